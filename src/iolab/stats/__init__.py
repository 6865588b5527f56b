"""Pure mathematics: intervals, steady state, stopping, searches, curves."""
