"""iolab: a storage-performance lab that stands behind every number."""

__version__ = "0.1.0"
