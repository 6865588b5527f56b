"""iolab measures itself: ratios of two things timed in turn, printed and never asserted."""
