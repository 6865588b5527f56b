"""Which run comes next: repeats in interleaved order, searches, and the sentinel between them."""
