"""Sessions on disk: runs committed whole or not at all, readable while the session still runs."""
