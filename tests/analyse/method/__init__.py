"""The statistics of the method, against oracles and against what must hold."""
