"""RocksDB's db_bench."""
