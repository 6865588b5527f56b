"""What a plan with too few repeats cannot show, and what enough of them would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from iolab.core.configuration import Objective
from iolab.core.study import REPEATS_FOR_INTERVAL
from iolab.record import Record
from iolab.study.cost import demand_duration_text
from iolab.study.schedule import make_plan

if TYPE_CHECKING:
    from iolab.core.study import Study
    from iolab.study.kinds import StudyKinds


class RepeatsAdvice(Record):
    """A study whose points are measured `repeats` times, and how long it takes with enough."""

    repeats: int
    duration_text: str

    @property
    def advice_text(self) -> str:
        """What is missing, and the option that adds it with the time that the session takes."""
        times = "once" if self.repeats == 1 else "twice"
        return (
            f"each point is measured {times}: no interval over repeats, so small differences may "
            f"be chance and nothing can be ranked; --repeats {REPEATS_FOR_INTERVAL} takes "
            f"{self.duration_text}"
        )


def repeats_advice(study: Study, kinds: StudyKinds) -> RepeatsAdvice | None:
    """None where points have enough repeats, or results decide how many they get."""
    method = study.method
    follows_method = any(
        not workload.repeats and workload.search_goal.objective is Objective.GRID
        for workload in study.workloads
    )
    if (
        not follows_method
        or method.chooses_repeats_by_results
        or method.repeats >= REPEATS_FOR_INTERVAL
    ):
        return None
    enough = replace(study, method=replace(method, repeats=REPEATS_FOR_INTERVAL))
    return RepeatsAdvice(method.repeats, demand_duration_text(make_plan(enough, kinds).demand))
