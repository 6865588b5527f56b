"""The nouns of iolab: frozen, without I/O, the same in code, files and reports."""
