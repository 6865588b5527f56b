"""What others do on a machine before a session, and whether it is fit to measure."""

from __future__ import annotations

import pytest

from iolab.cli.doctor.findings import FindingState, other_load
from iolab.session.discovery import Quiet


@pytest.mark.parametrize(
    ("quiet", "value"),
    [
        (Quiet(None, None, 0.99), "99%"),
        (Quiet(None, 0.5, 0.01), "50%"),
        (Quiet(None, None, None, cpu_waiting=0.3), "30%"),
        (Quiet(None, 0.01, 0.02, io_waiting=0.2), "20%"),
    ],
)
def test_a_busy_machine_is_told_with_what_keeps_it(quiet: Quiet, value: str) -> None:
    assert value in (quiet.others() or "")
    assert other_load(quiet).state is FindingState.NOTE


@pytest.mark.parametrize("quiet", [Quiet(None, None, None), Quiet(None, 0.02, 0.05, 0.01, 0.0)])
def test_a_quiet_machine_is_fit(quiet: Quiet) -> None:
    assert quiet.others() is None
    assert other_load(quiet).state is FindingState.OK
