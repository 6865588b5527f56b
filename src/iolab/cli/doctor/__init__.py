"""`iolab doctor`: whether this machine, or every host of a fleet, is ready to measure."""
