"""What others do on a machine before a session, and whether it is fit to measure."""

from __future__ import annotations

import pytest

from iolab.cli.doctor.findings import FindingState, other_load_finding
from iolab.session.discovery import HostActivity


@pytest.mark.parametrize(
    ("quiet", "value"),
    [
        (HostActivity(None, None, 0.99), "99 %"),
        (HostActivity(None, 0.5, 0.01), "50 %"),
        (HostActivity(None, None, None, cpu_waiting_share=0.3), "30 %"),
        (HostActivity(None, 0.01, 0.02, io_waiting_share=0.2), "20 %"),
    ],
)
def test_a_busy_machine_is_told_with_what_keeps_it(quiet: HostActivity, value: str) -> None:
    assert value in (quiet.interference_reason_or_none() or "")
    assert other_load_finding(quiet).state is FindingState.NOTE


@pytest.mark.parametrize(
    "quiet", [HostActivity(None, None, None), HostActivity(None, 0.02, 0.05, 0.01, 0.0)]
)
def test_a_quiet_machine_is_fit(quiet: HostActivity) -> None:
    assert quiet.interference_reason_or_none() is None
    assert other_load_finding(quiet).state is FindingState.OK
