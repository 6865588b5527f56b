"""How long and how many: the limits of ssh connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SshLimits:
    """Limits of all ssh connections of a session, in seconds and counts.

    A host that says nothing is lost after `silence_s`: it is asked for a sign of life every
    `keepalive_s`, and `keepalives` of these may stay unanswered.
    """

    at_once: int = 32
    login_s: float = 20.0
    keepalive_s: float = 5.0
    keepalives: int = 3
    end_s: float = 10.0

    @property
    def silence_s(self) -> float:
        """From the last thing heard to the loss of the host."""
        return self.keepalive_s * (self.keepalives + 1)


USUAL: Final = SshLimits()
"""32 logins at once keep two cores busy with key exchange; more only make each wait longer. A
login takes below a second in a data centre, and several behind slow name servers. A client under
full load may starve its sshd for seconds, not for twenty. An agent that is told to end kills its
processes and removes its files within ten."""

HOPS_MAX: Final = 8
"""Jump hosts on one way, and so an end for a configuration in which they lead in a circle."""

CLOSE_LIMIT_S: Final = 2.0
"""How long a connection may take to say good-bye before it is cut."""
