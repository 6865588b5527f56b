"""What other tools measured, read into sessions and judged as far as their files tell."""
