"""One node from inside over a run: each disk, each NUMA node's processors, each port, on one axis.

Rates of the node's own counters on the controller's clock, on the grid of the run's timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from iolab.analyse.guests.disks import kernel_of, leaves_of
from iolab.analyse.guests.inside import Inside as NodeInside
from iolab.analyse.guests.inside import inside_of
from iolab.analyse.window import Window
from iolab.model.host import HostFacts
from iolab.model.metric import Outlier, Result
from iolab.model.run import Bystander, RunRecord
from iolab.model.sample import Floats
from iolab.report.detail import Panel, Trace
from iolab.report.grid import Grid, trace
from iolab.report.surroundings import on_grid
from iolab.run.telemetry.rates import ALL_CORES, Series

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
    part of the result. `outliers` are what analysis named. `neighbours` are watched nodes of the
    same kernel, whose guests' work is in the processors' figures, too; with `shares_disks` also in
    those of disks.
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
    neighbours: tuple[str, ...] = ()
    shares_disks: bool = False


def node_inside(
    record: RunRecord,
    result: Result,
    telemetry: Sequence[Series],
    facts: Mapping[str, HostFacts],
    window: Window | None,
) -> Inside | None:
    """The node with the most outliers, else the first that was watched; None where none was."""
    told = {one.name: one for one in result.nodes}
    known = [host for host in record.bystanders if host.error is None and host.host in told]
    if not known:
        return None
    name = max((host.host for host in known), key=lambda one: len(told[one].outliers))
    seen = inside_of(record, telemetry, facts.get(name), name)
    if seen is None:
        return None
    grid = Grid.over(record)
    begin_ns = grid.start_ns + round(record.warmup_s * 1e9)
    end_ns = grid.start_ns + grid.span_ns
    if window is not None:
        begin_ns, end_ns = window.start_ns, window.end_ns
    begin_s, end_s = ((at - grid.start_ns) / 1e9 for at in (begin_ns, end_ns))
    within = (grid.middles_s >= begin_s) & (grid.middles_s <= end_s)
    panels = _panels(seen, grid, record.telemetry_interval_ms * 1e6, within)
    if not panels:
        return None
    (mine,) = (one for one in known if one.host == name)
    kernel = kernel_of(name, facts)
    beside = [one for one in known if one is not mine and kernel_of(one.host, facts) == kernel]
    return Inside(
        result=result,
        node=name,
        guests=len(told[name].guests),
        at_s=tuple(float(f"{at:.4f}") for at in grid.middles_s),
        cell_s=grid.cell_s,
        begin_s=round(begin_s, 3),
        end_s=round(end_s, 3),
        panels=panels,
        outliers=told[name].outliers,
        neighbours=tuple(one.host for one in beside),
        shares_disks=any(_leaves(one, facts) & _leaves(mine, facts) for one in beside),
    )


def _leaves(node: Bystander, facts: Mapping[str, HostFacts]) -> set[str]:
    return {delta.device for delta in leaves_of(node, facts.get(node.host))}


def _panels(
    seen: NodeInside, grid: Grid, step_ns: float, within: npt.NDArray[np.bool_]
) -> tuple[PanelInside, ...]:
    def rows(found: Mapping[str, Series]) -> dict[str, Floats]:
        return {name: on_grid(one, grid, None, step_ns) for name, one in found.items()}

    sent = rows(seen.tx_bytes_per_s)
    busy = _busy(sent)
    shares = {
        name: float(known.mean())
        for name, row in rows(seen.tx_share).items()
        if name in busy and (known := row[within & np.isfinite(row)]).size
    }
    frames = {name: row for name, row in rows(seen.tx_frames_per_s).items() if name in busy}
    numa = {_numa(name): row for name, row in rows(seen.processors).items()}
    found = (
        PanelInside(
            _panel("IOPS of each disk", "1/s", rows(seen.iops)),
            "disk",
            ("read_iops", "write_iops"),
        ),
        PanelInside(
            _panel("Write latency of each disk", "ns", rows(seen.write_lat_ns)),
            "disk",
            ("write_lat_ns",),
        ),
        PanelInside(_panel(_processors(numa), "share", numa), "cpu", ("busy_share",)),
        PanelInside(
            _panel("Sent by each port", "bytes/s", {name: sent[name] for name in busy}),
            "nic",
            ("tx_bytes_per_s",),
            tuple(shares.items()),
        ),
        PanelInside(
            _panel("Frames sent by each port", "frames/s", frames), "nic", ("tx_frames_per_s",)
        ),
    )
    return tuple(one for one in found if one.panel.traces)


def _panel(title: str, unit: str, rows: Mapping[str, Floats]) -> Panel:
    known = {name: row for name, row in rows.items() if np.isfinite(row).any()}
    traces: tuple[Trace, ...] = tuple(trace(name, row) for name, row in known.items())
    return Panel(title, unit, traces)


def _processors(numa: Mapping[str, Floats]) -> str:
    return "Processors busy by NUMA node" if len(numa) > 1 else "Processors busy"


def _numa(name: str) -> str:
    """A NUMA node's line: a hypervisor is a node too."""
    return "all cores" if name == ALL_CORES else f"NUMA {name.removeprefix('node')}"


def _busy(sent: Mapping[str, Floats]) -> list[str]:
    """The ports that had a part in the load; none where no port moved anything."""
    peaks = {name: float(np.nanmax(row)) for name, row in sent.items() if np.isfinite(row).any()}
    most = max(peaks.values(), default=0.0)
    return [name for name, peak in peaks.items() if most > 0 and peak > IDLE_SHARE * most]
