"""Whether the figures of a set of results agree with each other."""
