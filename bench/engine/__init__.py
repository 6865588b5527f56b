"""The native engine against fio: I/Os for a second of processor time, in turn on one target."""
