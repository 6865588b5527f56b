"""What results say, as statements with intervals: pure functions from summaries to findings."""
