"""Consent to events: each named with its host and by the option of its kind."""

from __future__ import annotations

import pytest

from iolab.cli.run import require_event_consent
from iolab.core.study import Study
from iolab.errors import UsageError
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides
from tests.plans import parse_study

STUDY = """
format = 1
id = "loss"
[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
filesize = "16m"
[[phase]]
id = "before"
seconds = "20s"
[[phase]]
id = "degraded"
seconds = "20s"
[[event]]
id = "lose"
action = "lose"
phase = "degraded"
[[event]]
id = "replace"
action = "replace"
phase = "degraded"
after = "10s"
"""
HOSTS = """
format = 1
[[host]]
name = "a"
path = "/mnt/bench"
[[action]]
id = "lose"
host = "a"
command = ["/bin/lose"]
destructive = true
[[action]]
id = "replace"
host = "a"
command = ["/bin/replace"]
"""


@pytest.fixture
def study() -> Study:
    return parse_study(STUDY, "s.toml", StudyOverrides(inventory=Inventory(HOSTS, "hosts.toml")))


def test_each_event_is_consented_to_by_the_option_of_its_kind(study: Study) -> None:
    require_event_consent(study, ["replace@a"], ["lose@a"])


@pytest.mark.parametrize(
    ("events", "destroyed", "parts"),
    [
        ((), (), ("2 events", "--event replace@a", "--destroy lose@a")),
        (("replace@a",), (), ("1 event ", "--destroy lose@a")),
        (("lose@a", "replace@a"), (), ("'lose@a' is destructive", "--destroy lose@a")),
        ((), ("replace@a",), ("'replace@a' is not destructive", "--event replace@a")),
        (("lose",), (), ("'lose'", "host", "--destroy lose@a")),
        (("lose@b",), (), ("'lose@b'", "lose@a")),
    ],
)
def test_another_consent_is_refused_with_the_right_option(
    study: Study, events: tuple[str, ...], destroyed: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError) as caught:
        require_event_consent(study, events, destroyed)
    text = f"{caught.value.message} {caught.value.hint}"
    assert all(part in text for part in parts)


def test_a_study_without_events_takes_no_consent() -> None:
    plain = STUDY[: STUDY.index("[[phase]]")]
    study = parse_study(plain, "s.toml", StudyOverrides(path="/mnt/bench"))
    with pytest.raises(UsageError) as caught:
        require_event_consent(study, ["lose@a"], ())
    assert "'lose@a'" in caught.value.message
