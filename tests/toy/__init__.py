"""A kind of load in one folder, as an installed package would add it: durable appends to a log."""
