"""Load on key-value stores: short commands, databases and their copies, engines held to them."""
