"""The cloud's metadata service is asked where the study says so, and what a study names is kept."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.events import SessionStarted
from iolab.core.host import CloudFacts, CloudVolume
from iolab.report.hardware import host_table
from tests.fakes.machine import machine_facts
from tests.fakes.script import FakeScript
from tests.session.stage import Stage

CLOUD = CloudFacts(
    "Azure", "Standard_D8s_v5", "westeurope", (CloudVolume("data", "Premium_LRS", 1024),)
)


@pytest.mark.parametrize(
    ("sets", "cloud", "volume"),
    [
        ((), False, None),
        (("target.cloud_metadata=true",), True, None),
        (("target.volume=gp3",), False, "gp3"),
    ],
)
def test_a_study_says_whether_the_cloud_is_asked(
    *, sets: tuple[str, ...], cloud: bool, volume: str | None
) -> None:
    told = replace(machine_facts("/mnt/bench"), cloud=CLOUD if cloud else None)
    stage = Stage(sets=sets, scripts={"local": FakeScript(told)}).play()
    asked = [more for verb, more in stage.hosts["local"].agent.asked if verb == "facts"]
    assert asked
    assert all(one["cloud"] is cloud for one in asked)
    (started,) = stage.notes.of(SessionStarted)
    facts = dict(started.facts)["local"]
    assert facts.cloud == told.cloud
    assert {record.volume for record in stage.records} == {volume}


def test_the_table_of_a_host_shows_what_the_cloud_told() -> None:
    told = replace(machine_facts("/mnt/bench"), cloud=CLOUD)
    rows = {row[0].text: row[1].text for row in host_table(told).rows}
    assert "Premium_LRS 1024 GiB" in rows["Cloud"]
    assert "Cloud" not in {row[0].text for row in host_table(replace(told, cloud=None)).rows}
