"""What a cloud volume is provisioned for stands beside the fall of its rate."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import CloudFacts, CloudVolume, HostFacts
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.volume import provisioned_limit
from tests.analysis.planted import seconds, session
from tests.analysis.records import facts_of
from tests.facts import tells

GIB = 1 << 30


def of(gib: int, *told: CloudVolume) -> HostFacts:
    facts = facts_of()
    cloud = CloudFacts("Azure", "Standard_D8s_v5", None, told) if told else None
    disks = tuple(replace(one, size_bytes=gib * GIB) for one in facts.disks)
    return replace(facts, disks=disks, cloud=cloud)


@pytest.mark.parametrize(
    ("facts", "named", "kind", "iops", "bytes_per_s"),
    [
        (of(20), "gp2", "gp2", 100, 128 << 20),
        (of(500), "gp2", "gp2", 1500, 250 << 20),
        (of(10_000), "gp2", "gp2", 16_000, 250 << 20),
        (of(500), "gp3", "gp3", 3000, 125 << 20),
        (of(2048), "st1", "st1", None, 80 << 20),
        (of(1024), "P30", "P30", 5000, 200_000_000),
        (of(1024, CloudVolume("d", "Premium_LRS", 1024)), None, "P30", 5000, 200_000_000),
        (of(200, CloudVolume("d", "Premium_ZRS", 200)), None, "P15", 1100, 125_000_000),
        (of(4, CloudVolume("d", "Premium_LRS", 4)), None, "P1", 120, 25_000_000),
        (of(5, CloudVolume("d", "Premium_LRS", 5)), None, "P2", 120, 25_000_000),
        (of(16, CloudVolume("d", "Premium_LRS", 16)), None, "P3", 120, 25_000_000),
        (of(17, CloudVolume("d", "Premium_LRS", 17)), None, "P4", 120, 25_000_000),
    ],
)
def test_a_volume_has_the_limits_of_its_type_and_size(
    facts: HostFacts, *, named: str | None, kind: str, iops: float | None, bytes_per_s: float
) -> None:
    found = provisioned_limit(facts, named)
    assert found is not None
    assert (found.type, found.iops, found.bytes_per_s) == (kind, iops, bytes_per_s)


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (of(500), None),
        (of(500, CloudVolume("d", "Premium_LRS", 1024)), None),
        (
            of(64, CloudVolume("a", "Premium_LRS", 64), CloudVolume("b", "StandardSSD_LRS", 64)),
            None,
        ),
        (of(64, CloudVolume("a", "StandardSSD_LRS", 64)), None),
        (replace(of(500), target=None), "gp2"),
    ],
)
def test_a_volume_that_is_not_surely_known_has_none(facts: HostFacts, named: str | None) -> None:
    assert provisioned_limit(facts, named) is None


def fell(to: int, volume: str | None = "gp2") -> RunRecord:
    return seconds([3000] * 10 + [to] * 15, volume=volume)


def check(record: RunRecord, facts: HostFacts) -> CheckResult:
    verdict = session(record).but(facts={"c1": facts}).verdict()
    return next(one for one in verdict.checks if one.code == "burst-credits")


def test_a_fall_to_the_provisioned_limit_is_called_that() -> None:
    found = check(fell(to=1500), of(500))
    assert found.level is VerdictLevel.INDICATIVE
    assert found.evidence["provisioned"] == 1500
    assert found.evidence["of_provisioned"] == pytest.approx(1, rel=0.02)
    assert tells(found.message, "100 %", "gp2")


def test_a_fall_elsewhere_is_told_beside_it() -> None:
    for to, share in ((600, 0.4), (2400, 1.6)):
        found = check(fell(to), of(500))
        assert found.evidence["of_provisioned"] == pytest.approx(share, rel=0.05)


def test_an_unknown_volume_has_no_limit_beside_its_fall_and_an_even_rate_no_fall() -> None:
    assert "provisioned" not in check(fell(to=1500, volume=None), of(500)).evidence
    even = check(seconds([1500 + at % 3 for at in range(25)], volume="gp2"), of(500))
    assert even.level is VerdictLevel.VALID
    assert "provisioned" not in even.evidence


def test_at_large_blocks_bytes_are_the_limit() -> None:
    found = provisioned_limit(of(500), "gp3")
    assert found is not None
    assert found.iops_at(4096) == 3000
    assert found.iops_at(1 << 20) == 125
