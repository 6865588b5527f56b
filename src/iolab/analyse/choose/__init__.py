"""Which configuration serves a requirement, with how many nodes, and how sure that is."""
