"""Guests as analysis asks of them: their checks, what limited them, and what their nodes saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analysis.check import Check, HostQuestion
from iolab.analysis.view import RunView
from iolab.core.metric import NodeResult
from iolab.guests.checks import (
    emulated_guest,
    guest_bound,
    guest_bytes,
    guest_starved,
    limited_disk,
    modelled_disk,
)
from iolab.guests.results import counted_guests, limited_guests, node_results


class GuestAnalysis:
    """Hosts that live on a node which is looked at from inside, too."""

    checks: Final[Mapping[HostQuestion, tuple[Check[RunView], ...]]] = {
        HostQuestion.PROCESSORS_REAL: (emulated_guest, modelled_disk),
        HostQuestion.LIMITS: (limited_disk,),
        HostQuestion.BYTES: (guest_bytes,),
        HostQuestion.LATENCY: (guest_bound,),
        HostQuestion.PROCESSORS_FREE: (guest_starved,),
    }

    def limited_hosts(self, view: RunView) -> frozenset[str]:
        """Those of which guest-bound says it."""
        return limited_guests(view)

    def counted_hosts(self, view: RunView) -> frozenset[str]:
        """Those of which guest-starved speaks."""
        return counted_guests(view)

    def nodes(self, view: RunView) -> tuple[NodeResult, ...]:
        """See `node_results`."""
        return node_results(view)
