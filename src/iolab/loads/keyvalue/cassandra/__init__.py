"""Apache Cassandra as the store."""
