"""What runs are worth: windows, sums, intervals, checks, comparisons, findings."""
