"""What others published: reference sets, their audit, and comparisons with them."""
