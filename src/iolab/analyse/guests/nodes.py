"""What the guests of each node did together, and what their node saw of it from inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from iolab.analyse.guests.disks import written_of
from iolab.analyse.guests.layers import layers_of
from iolab.analyse.guests.outliers import outliers_of
from iolab.analyse.guests.placement import nodes_in
from iolab.analyse.guests.tails import hypervisor_metrics
from iolab.analyse.points import PointSummary, summarise
from iolab.analyse.summary import group_metrics
from iolab.analyse.view import RunView
from iolab.model.metric import NodeResult, Result
from iolab.model.study import Study


def node_results(view: RunView) -> tuple[NodeResult, ...]:
    """One for each node that guests of the run live on; the run's job is I/O on files.

    Metrics of a node are those of a result over the guests of that node alone: rates add up within
    the window that all hosts of the run share, latencies are merged bin by bin.
    """
    return tuple(
        NodeResult(
            name=node.name,
            guests=tuple(guest.name for guest in node.guests),
            metrics=group_metrics(view.load, node.hosts, view.access),
            layers=layers_of(view, node),
            outliers=outliers_of(view, node),
            written=written_of(view, node),
            hypervisor=hypervisor_metrics(node),
        )
        for node in nodes_in(view.record)
    )


def node_points(results: Sequence[Result], study: Study) -> Mapping[str, tuple[PointSummary, ...]]:
    """Every point as each node had it, by the node's name: published values over its repeats.

    They are made as those of the fleet (`points`), from the runs in which the node had guests.
    """
    of_node: dict[str, list[Result]] = {}
    for result in results:
        for node in result.nodes:
            alone = replace(result, metrics=node.metrics, nodes=(node,))
            of_node.setdefault(node.name, []).append(alone)
    return {name: summarise(runs, study) for name, runs in of_node.items()}
