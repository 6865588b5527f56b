"""RocksDB's db_bench as an engine, and what it says."""
