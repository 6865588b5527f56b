"""Which resource limits a prediction, and how far it goes: what grows with the load is no limit."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.prediction import CurvePrediction, predict_curves
from iolab.core.host import HostRole
from iolab.core.metric import VerdictLevel
from iolab.core.resources import Resource, ResourceUse, RunResources
from tests.report.growing import STUDY, points, runs

LINEAR = {n: (10_000.0 * n, 10_050.0 * n, 9_950.0 * n) for n in (1, 2, 4, 8)}
NODE_PORT = ResourceUse(Resource.PORT, "s1", HostRole.STORAGE, "eth0 out", 0.8)
CLIENT_PORT = ResourceUse(Resource.PORT, "client-1", HostRole.CLIENT, "eth0 in", 0.9)
NODE_DISK = ResourceUse(Resource.DEVICE, "s1", HostRole.STORAGE, "nvme0n1", 1.0)


def seen(*uses: ResourceUse) -> RunResources:
    return RunResources(
        uses, None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0
    )


def at(
    hosts: int, *uses: ResourceUse, levels: dict[int, VerdictLevel] | None = None
) -> CurvePrediction:
    found = points(runs(LINEAR, levels))
    (only,) = predict_curves(
        STUDY, found, "hosts", hosts, lambda _: seen(*uses), allow_any_distance=False
    )
    return only


def test_what_the_storage_s_port_leaves_is_the_most() -> None:
    told = at(16, NODE_PORT)
    assert told.limiting_use == NODE_PORT
    assert told.prediction is not None
    assert told.prediction.bottleneck_rate == pytest.approx(80_000 / 0.8, rel=0.01)
    assert told.prediction.rate == told.prediction.bottleneck_rate == told.prediction.high


@pytest.mark.parametrize("use", [CLIENT_PORT, NODE_DISK])
def test_clients_ports_grow_with_hosts_and_busy_devices_may_do_more(use: ResourceUse) -> None:
    told = at(16, use)
    assert told.limiting_use is None
    assert told.prediction is not None
    assert told.prediction.rate > 150_000


def test_between_measured_loads_nothing_limits() -> None:
    told = at(6, NODE_PORT)
    assert told.limiting_use is None
    assert told.prediction is not None
    assert told.prediction.low < 60_000 < told.prediction.high


def test_one_run_a_load_does_not_tell_how_far_runs_differ() -> None:
    found = points(runs({n: (rate,) for n, (rate, *_) in LINEAR.items()}))
    (told,) = predict_curves(STUDY, found, "hosts", 16, lambda _: seen(), allow_any_distance=False)
    assert (told.prediction, told.min_run_count) == (None, 1)
    assert at(16).min_run_count == 3


def test_invalid_points_do_not_enter() -> None:
    told = at(6, levels={8: VerdictLevel.INVALID})
    assert [one.load for one in told.measured_loads] == [1, 2, 4]
    assert told.prediction is None
    assert "3" in told.reason


@pytest.mark.parametrize("axis", ["iodepth", "threads", "vms_per_node"])
def test_every_load_is_predicted_alike(axis: str) -> None:
    found = [
        replace(
            point,
            key=replace(
                point.key, axis_values=tuple((axis, load) for _, load in point.key.axis_values)
            ),
        )
        for point in points(runs(LINEAR))
    ]
    (told,) = predict_curves(
        STUDY, found, axis, 16, lambda _: seen(CLIENT_PORT), allow_any_distance=False
    )
    assert told.prediction is not None
    assert told.limiting_use == CLIENT_PORT
    assert told.prediction.bottleneck_rate == pytest.approx(80_000 / 0.9, rel=0.01)
    assert told.prediction.high <= 80_000 / 0.9 * 1.01
    assert predict_curves(STUDY, found, "hosts", 16, lambda _: None, allow_any_distance=False) == ()
