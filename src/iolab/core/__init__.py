"""What every part speaks of: hosts, studies, runs, samples, histograms, metrics."""
