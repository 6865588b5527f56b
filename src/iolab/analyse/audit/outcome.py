"""What an audit says of one relation that figures should keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Agreement(StrEnum):
    """How figures stand to each other."""

    AGREES = "agrees"
    CONTRADICTS = "contradicts"
    """Two figures cannot both be right, whatever their rounding hides."""
    DOUBTFUL = "doubtful"
    """Nothing that can be computed forbids it, but it is rarely so."""

    @property
    def rank(self) -> int:
        """0 for agreement, then as it gets worse."""
        return [Agreement.AGREES, Agreement.DOUBTFUL, Agreement.CONTRADICTS].index(self)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One relation looked at: the rule, what it was looked at of, and a sentence with the numbers.

    `stated` is the figure as it was printed, `computed` what others of the set make of it, "" where
    one of them is no figure.
    """

    rule: str
    subject: str
    agreement: Agreement
    says: str
    stated: str = ""
    computed: str = ""
