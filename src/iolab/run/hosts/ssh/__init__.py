"""Hosts reached by ssh: the one door to asyncssh."""
