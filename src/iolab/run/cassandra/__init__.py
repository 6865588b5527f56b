"""Apache Cassandra for YCSB: a node of iolab's own, or the cluster that the user has."""
