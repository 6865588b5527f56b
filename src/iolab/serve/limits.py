"""The limits of the server, each with its reason."""

from __future__ import annotations

from typing import Final

ENTRIES_MAX: Final = 400_000
"""Files and folders of one session that are looked at: ten times what 5,000 points have."""

FILE_BYTES_MAX: Final = 1 << 30
"""A larger file in a session is none of ours."""

LISTING_S: Final = 1.5
"""How long a list waits for sessions that were not read yet; it shows the others and asks again."""

FOUND_SESSIONS_VALID_S: Final = 2.0
"""How long the sessions that were found are taken to be all there are; a list searches anew."""

READERS_MAX: Final = 8
"""Sessions whose results stay in memory: those of 5,000 points take 100 MB."""

REPORT_S: Final = 600.0
"""When a report is given up: that of 5,000 points takes half a minute on two busy cores."""

REPORT_WAIT_S: Final = 4.0
"""How long a request waits for a report; then it gets a page that asks again."""

REPORTS_WAITING_MAX: Final = 8
"""Reports that wait to be made, one after the other; who asks for more is told to come again."""

REPORT_BYTES_MAX: Final = 256 << 20
"""The largest page that is shown; that of 5,000 points has 25 MB."""

CACHE_BYTES_MAX: Final = 64 << 20
"""Memory for pages that were made, compressed: a hundred usual ones, or twenty of the largest."""

CONNECTIONS_MAX: Final = 64
"""Connections at a time of those who were let in; a browser opens six."""

UNAUTHENTICATED_CONNECTIONS_MAX: Final = 64
"""Connections at a time on which nobody was let in yet; a further one ends the oldest of them, so
that whoever has the token gets in while others hold connections and say nothing."""

HEAD_BYTES_MAX: Final = 16 << 10
"""The head of a request: its address, and all headers, the token in them."""

HEAD_S: Final = 10.0
"""How long a connection may take to tell its request, or go without one at first."""

KEEP_ALIVE_S: Final = 20
"""How long a connection stays open for the next request."""

SHUTDOWN_S: Final = 3
"""How long answers that are under way may take at the end."""

READING_S: Final = 30.0
"""How long a request may take in all; reading the largest session takes some seconds."""
