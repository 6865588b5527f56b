"""What is measured: work directories, devices, file systems, and their state beforehand."""
