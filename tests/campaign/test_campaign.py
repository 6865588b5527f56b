"""A dozen faults, so that the campaign itself stays whole; `make campaign` is the long form."""

from __future__ import annotations

import re

import pytest

from tests.campaign.campaign import campaign

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@pytest.mark.timeout(1200)
def test_a_dozen_faults_lose_nothing_and_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    failed = campaign(seed=20, faults=12, minutes=1.5, lanes=2, only=None)
    said = capsys.readouterr().out
    assert not failed, said
    counted = re.search(r"(\d+)  faults in (\d+) trials", said)
    assert counted
    assert int(counted[1]) >= 4  # As many as a busy machine plays in that time.
