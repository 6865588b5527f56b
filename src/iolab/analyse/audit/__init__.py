"""Whether a set of results agrees with itself: what can be computed from it, held against it."""
