"""Sessions of a directory in a browser: read-only, over HTTP, nothing from elsewhere."""
