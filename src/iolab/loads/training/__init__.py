"""Training-read load: accelerators that take batches of samples, read ahead of them."""
