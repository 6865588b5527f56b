"""Training-read load: accelerators that take batches of samples."""
