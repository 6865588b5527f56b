"""Programs with environments of their own, which `bench.torch_peers` starts."""
