"""The bundled study of a loss, on a real mirror; and what it says of an inventory that lacks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.errors import ExitCode
from tests.e2e.sessions import iolab, shown
from tests.facts import tells
from tests.fakes import mirror
from tests.fakes.mirror import Mirror
from tests.needs import require

pytestmark = [pytest.mark.e2e, pytest.mark.long]

DISK_IOPS = 100
"""Far slower than a busy machine is."""

SHORT = (
    *("phase.before.seconds=6s", "phase.degraded.seconds=10s", "phase.after.seconds=6s"),
    *("event.fail.within=8s", "workload.mixed.filesize=1m"),
    *("method.idle_watch=0", "method.generator_limit=false"),
)


@pytest.fixture
def made_mirror(tmp_path: Path) -> Iterator[Mirror]:
    require(*mirror.PROGRAMS, "root")
    with Mirror.running(tmp_path / "mirror", DISK_IOPS) as made:
        yield made


def test_the_study_of_a_loss_runs_by_what_the_inventory_says(
    made_mirror: Mirror, tmp_path: Path
) -> None:
    hosts, out = made_mirror.inventory, tmp_path / "session"
    sets = [word for value in SHORT for word in ("--set", value)]
    asked = ("--event", "fail@lab", "--event", "replace@lab", "--out", out)
    iolab("run", "rebuild", "--scale", "small", "--hosts", hosts, *sets, *asked)
    assert made_mirror.state()["redundant"]
    (result,) = shown(out)["results"]
    scenario = result["scenario"]
    phases = {phase["id"]: phase for phase in scenario["phases"]}
    assert list(phases) == ["before", "degraded", "rebuild", "after"]
    assert phases["rebuild"]["ended_by"] == "witness"
    # Two disks of L do 2 L with each write twice; one does L: 65 % of a mix with 30 % writes.
    assert phases["degraded"]["iops"]["value"] == pytest.approx(DISK_IOPS, rel=0.1)
    assert phases["degraded"]["baseline_share"]["value"] == pytest.approx(0.65, abs=0.1)
    assert 0 < scenario["detection_s"]["value"] < scenario["redundancy_s"]["value"]
    assert (scenario["lost_blocks"], scenario["failed_ios"]) == (0, 0)
    levels = {check["code"]: check["level"] for check in result["verdict"]["checks"]}
    assert {levels[code] for code in ("event-failed", "event-unwitnessed")} == {"valid"}
    assert tells(" ".join(iolab("show", out).stdout.split()), "losing a member costs", "%")


def test_an_inventory_without_an_action_is_told_what_to_write(tmp_path: Path) -> None:
    text = mirror.INVENTORY + mirror.ACTIONS.replace('id = "replace"', 'id = "mend"')
    words = {"holder": "1", "mount": tmp_path, "program": '"/bin/true"'}
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(text.format_map(words))
    refused = iolab("plan", "rebuild", "--hosts", hosts, expect=ExitCode.STUDY)
    assert tells(refused.stderr, "action = 'replace'", "[[action]] with id = 'replace'", "'mend'")
    assert "'fail'," not in refused.stderr
    refused = iolab("plan", "rebuild", "--path", tmp_path, expect=ExitCode.STUDY)
    for name in ("fail", "replace", "redundant"):
        assert tells(refused.stderr, f"with id = '{name}'", "--hosts")
