"""One execution of a plan: connect, start, watch, reconnect, stop, record."""
