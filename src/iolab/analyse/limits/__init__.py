"""What limits a result: the busiest resources of a run, and how the load's last step paid."""
