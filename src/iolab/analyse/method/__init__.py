"""The statistics of the measurement method: pure, numpy alone, proved by `bench/method`."""
