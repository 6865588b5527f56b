"""A study file read, checked, and expanded into a plan with its cost."""
