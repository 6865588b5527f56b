"""Tests on a real Kubernetes, which `make kubernetes` starts."""
