"""`[method]` of a study file: when a run ends, how often and in which order runs are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

from iolab.model import study
from iolab.model.rule import PRESETS, LoadKind, RuleSettings
from iolab.model.study import MethodKind, OnFailure, Order
from iolab.plan import values
from iolab.plan.document import Document, Faults
from iolab.plan.target_tables import Flag, Table

WARMUP_S_MAX: Final = 86_400.0
RUNTIME_S_MAX: Final = 7 * 86_400.0
SETTLE_S_MAX: Final = 86_400.0
"""A day of waiting, a week of load: longer is a slip of the unit."""

RULE_S_MAX: Final = 86_400
"""A day: a rule that watches a run for longer is a slip of the unit."""

REPEATS_MAX: Final = 1000
RETRIES_MAX: Final = 10
"""A run that fails more often will fail again."""

LOOKS_MAX: Final = 100
"""Looks in a row, batches, cycles: more of them would let no run end."""

SEED_MAX: Final = 2**32 - 1

Seconds = Annotated[int, values.whole_seconds(1, RULE_S_MAX)]
Few = Annotated[int, values.whole(1, LOOKS_MAX)]
Share = Annotated[float, values.share()]


class MethodTable(Table):
    """`[method]`: the keys of both kinds may stand in one file, `kind` chooses."""

    kind: Annotated[MethodKind, values.choice(MethodKind, "methods")] = MethodKind.FIXED
    warmup: Annotated[float, values.seconds(0, WARMUP_S_MAX)] = 5.0
    runtime: Annotated[float, values.seconds(0, RUNTIME_S_MAX, above=True)] = 30.0
    repeats: Annotated[int, values.whole(1, REPEATS_MAX)] = 1
    settle: Annotated[float, values.seconds(0, SETTLE_S_MAX)] = 1.0
    order: Annotated[Order, values.choice(Order, "orders")] = Order.AS_WRITTEN
    seed: Annotated[int, values.whole(0, SEED_MAX)] = 1
    drop_caches: Flag = True
    on_failure: Annotated[OnFailure, values.choice(OnFailure, "ways to go on")] = (
        OnFailure.SKIP_POINT
    )
    retries: Annotated[int, values.whole(1, RETRIES_MAX)] | None = None
    load_kind: Annotated[LoadKind, values.choice(LoadKind, "kinds of load")] = LoadKind.RAW_BLOCK
    precision: Share | None = None
    shortest: Seconds | None = None
    longest: Seconds | None = None
    step: Seconds | None = None
    consecutive: Few | None = None
    batches_min: Few | None = None
    cycles_min: Few | None = None
    retained: Seconds | None = None
    equivalence: Share | None = None
    bias_share: Share | None = None
    block: Seconds | None = None
    cut_least: Seconds | None = None
    repeats_max: Annotated[int, values.whole(1, REPEATS_MAX)] = study.REPEATS_MAX
    target_half_width: Share = study.TARGET_HALF_WIDTH
    sentinel: Annotated[str, values.identifier()] | None = None


_TIMES: Final = ("shortest", "longest", "step", "retained", "block", "cut_least")
_OTHERS: Final = (
    "precision",
    "consecutive",
    "batches_min",
    "cycles_min",
    "equivalence",
    "bias_share",
)


def rule_of(table: MethodTable) -> RuleSettings:
    """The rule: that of the kind of load, with single constants as written.

    Raises ValueError for constants that contradict one another.
    """
    named: dict[str, Any] = {f"{key}_s": getattr(table, key) for key in _TIMES}
    named |= {key: getattr(table, key) for key in _OTHERS}
    written = {field: value for field, value in named.items() if value is not None}
    return replace(PRESETS[table.load_kind], **written)


def check_method(document: Document, method: MethodTable, faults: Faults) -> None:
    """Add the faults of keys that do not go together, those of a rule that is not in use too."""
    if method.retries is not None and method.on_failure is not OnFailure.RETRY:
        happened = f"retries = {method.retries}, but on_failure is '{method.on_failure.value}'."
        do = f"Set method.on_failure to '{OnFailure.RETRY.value}', or leave retries out."
        faults.add(document.where(("method", "retries")), happened, do)
    try:
        rule_of(method)
    except ValueError as error:
        happened = f"The stopping rule contradicts itself: {str(error).replace('_s ', ' ')}."
        do = "docs/reference/study.md says how its keys go together."
        faults.add(document.where(("method",)), happened, do)
