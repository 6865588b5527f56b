"""Pods that iolab makes in a Kubernetes cluster, waits for, describes and removes."""
