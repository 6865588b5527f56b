"""The layers of all nodes of a run as one account of latency for each direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iolab.model.metric import Layer, LayerLatency, NodeResult, Result
from iolab.model.sample import Direction
from iolab.report.figures.latency_account import Account, parts_of


def fleet_layers(nodes: Iterable[NodeResult]) -> tuple[LayerLatency, ...]:
    """The layers of all nodes together: every I/O weighs the same; from the generator down.

    A layer that a node with guests does not tell of is left out: it would be another fleet's.
    """
    told = [node.layers for node in nodes if node.layers]
    found = []
    for layer in Layer:
        for direction in Direction:
            own = [
                one
                for layers in told
                for one in layers
                if one.layer is layer and one.direction is direction and one.ios > 0
            ]
            ios = sum(one.ios for one in own)
            if ios and len(own) == _having(told, direction):
                mean = sum(one.mean_ns * one.ios for one in own) / ios
                found.append(LayerLatency(layer, direction, mean, ios))
    return tuple(found)


def _having(told: list[tuple[LayerLatency, ...]], direction: Direction) -> int:
    """How many nodes have I/Os in a direction at all, as their generators saw it."""
    return sum(
        any(one.layer is Layer.ENGINE and one.direction is direction and one.ios for one in layers)
        for layers in told
    )


def accounts_of(run: Result, name: str) -> Iterator[Account]:
    """An account for each direction of a run that has any layer; `name` is what it is called."""
    layers = fleet_layers(run.nodes)
    for direction in (Direction.READ, Direction.WRITE):
        seen = tuple((one.layer, one.mean_ns) for one in layers if one.direction is direction)
        if not seen or seen[0][0] is not Layer.ENGINE:
            continue
        parts, capped = parts_of(seen)
        yield Account(
            run=name,
            direction=direction.name.lower(),
            whole_ns=seen[0][1],
            parts=parts,
            seen=seen,
            capped=capped,
            level=run.verdict.level,
        )
