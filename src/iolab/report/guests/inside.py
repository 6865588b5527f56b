"""One node from inside over a run: each disk, each NUMA node's processors, each port, on one axis.

Rates of the node's own counters on the controller's clock, on the grid of the run's timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.window import Window
from iolab.model.host import HostFacts, Role
from iolab.model.metric import Outlier, Result
from iolab.model.run import Bystander, RunRecord
from iolab.model.sample import Floats
from iolab.report.detail import Panel, Trace
from iolab.report.grid import Grid, trace
from iolab.report.surroundings import LOOPBACK, HostSeries, on_grid

BITS: Final = 8
MEGABIT: Final = 1e6
IDLE_SHARE: Final = 1e-3
"""A port that never moved this share of what the busiest did has no part in the load."""


@dataclass(frozen=True, slots=True)
class PanelInside:
    """One quantity of all devices of a kind; `scope` and `metrics` are those of its outliers.

    `shares` is, by trace, which share of its link a port used on average within the window.
    """

    panel: Panel
    scope: str
    metrics: tuple[str, ...]
    shares: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Inside:
    """A node in one run: its panels, those without any value left out.

    Times are seconds since the run's first I/O; what is before `begin_s` or after `end_s` is no
    part of the result. `outliers` are what analysis named.
    """

    result: Result
    node: str
    guests: int
    at_s: tuple[float, ...]
    cell_s: float
    begin_s: float
    end_s: float
    panels: tuple[PanelInside, ...]
    outliers: tuple[Outlier, ...]


def node_inside(
    record: RunRecord,
    result: Result,
    series: Sequence[HostSeries],
    facts: dict[str, HostFacts],
    window: Window | None,
) -> Inside | None:
    """The node with the most outliers, else the first with telemetry; None where none has any."""
    nodes = [host for host in record.bystanders if host.role is Role.HYPERVISOR]
    told = {one.name: one for one in result.nodes}
    with_series = {one.host for one in series}
    known = [host for host in nodes if host.host in with_series and host.host in told]
    if not known:
        return None
    chosen = max(known, key=lambda host: len(told[host.host].outliers))
    grid = Grid.over(record)
    begin_ns = grid.start_ns + round(record.warmup_s * 1e9)
    end_ns = grid.start_ns + grid.span_ns
    if window is not None:
        begin_ns, end_ns = window.start_ns, window.end_ns
    begin_s, end_s = ((at - grid.start_ns) / 1e9 for at in (begin_ns, end_ns))
    own = [one for one in series if one.host == chosen.host]
    panels = _panels(record, chosen, own, facts.get(chosen.host), (grid, begin_s, end_s))
    if not panels:
        return None
    return Inside(
        result=result,
        node=chosen.host,
        guests=len(told[chosen.host].guests),
        at_s=tuple(float(f"{at:.4f}") for at in grid.middles_s),
        cell_s=grid.cell_s,
        begin_s=round(begin_s, 3),
        end_s=round(end_s, 3),
        panels=panels,
        outliers=told[chosen.host].outliers,
    )


def _panels(
    record: RunRecord,
    node: Bystander,
    series: Sequence[HostSeries],
    facts: HostFacts | None,
    place: tuple[Grid, float, float],
) -> tuple[PanelInside, ...]:
    grid, begin_s, end_s = place
    index = record.host_names.index(node.host)
    step_ns = record.telemetry_interval_ms * 1e6
    values: dict[tuple[str, str], dict[str, Floats]] = {}
    for one in series:
        gridded = on_grid(one, grid, index, step_ns)
        values.setdefault((one.scope, one.metric), {})[one.name] = gridded

    def of(scope: str, metric: str, names: Iterable[str] | None = None) -> dict[str, Floats]:
        found = values.get((scope, metric), {})
        return {name: found[name] for name in (names or sorted(found)) if name in found}

    disks = [delta.device for delta in node.devices]
    reads, writes = of("disk", "read_iops", disks), of("disk", "write_iops", disks)
    both = {name: reads[name] + writes[name] for name in reads if name in writes}
    numa = {name: row for name, row in of("cpu", "busy_share").items() if name.startswith("node")}
    sent = of("nic", "tx_bytes_per_s")
    ports = _busy(sent)
    within = (grid.middles_s >= begin_s) & (grid.middles_s <= end_s)
    sent, frames = of("nic", "tx_bytes_per_s", ports), of("nic", "tx_frames_per_s", ports)
    found = (
        PanelInside(_panel("IOPS of each disk", "1/s", both), "disk", ("read_iops", "write_iops")),
        PanelInside(
            _panel("Write latency of each disk", "ns", of("disk", "write_lat_ns", disks)),
            "disk",
            ("write_lat_ns",),
        ),
        PanelInside(
            _panel("Processors busy by NUMA node", "share", _numbered(numa)), "cpu", ("busy_share",)
        ),
        PanelInside(
            _panel("Sent by each port", "bytes/s", sent),
            "nic",
            ("tx_bytes_per_s",),
            _link_shares(sent, facts, within),
        ),
        PanelInside(
            _panel("Frames sent by each port", "frames/s", frames), "nic", ("tx_frames_per_s",)
        ),
    )
    return tuple(one for one in found if one.panel.traces)


def _panel(title: str, unit: str, rows: dict[str, Floats]) -> Panel:
    known = {name: row for name, row in rows.items() if np.isfinite(row).any()}
    traces: tuple[Trace, ...] = tuple(trace(name, row) for name, row in known.items())
    return Panel(title, unit, traces)


def _numbered(numa: dict[str, Floats]) -> dict[str, Floats]:
    """NUMA nodes in the order of their numbers, under a name that is not a hypervisor's."""
    ordered = sorted(numa, key=lambda name: (len(name), name))
    return {f"NUMA {name.removeprefix('node')}": numa[name] for name in ordered}


def _busy(sent: dict[str, Floats]) -> list[str]:
    """The ports that had a part in the load; none where no port moved anything."""
    peaks = {
        name: float(np.nanmax(row))
        for name, row in sent.items()
        if name != LOOPBACK and np.isfinite(row).any()
    }
    most = max(peaks.values(), default=0.0)
    return [name for name, peak in peaks.items() if most > 0 and peak > IDLE_SHARE * most] or [""]


def _link_shares(
    sent: dict[str, Floats], facts: HostFacts | None, within: np.ndarray
) -> tuple[tuple[str, float], ...]:
    """Which share of its link each port used, of the ports whose speed is known."""
    speeds = {nic.name: nic.speed_mbit_s for nic in facts.nics} if facts else {}
    shares = []
    for name, row in sent.items():
        speed, known = speeds.get(name), row[within & np.isfinite(row)]
        if speed and known.size:
            shares.append((name, float(known.mean()) * BITS / (speed * MEGABIT)))
    return tuple(shares)
