"""Studies and plans with every kind of load, as the command line has them."""

from __future__ import annotations

from typing import Any

from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.registry import study_kinds
from iolab.study import file, parse, readiness, schedule
from iolab.study.parse import StudyOverrides


def parse_study(text: str, file_name: str, options: StudyOverrides) -> Study:
    """A study of any kind of load."""
    return parse.parse_study(text, file_name, options, study_kinds())


def make_plan(study: Study) -> Plan:
    """Its plan."""
    return schedule.make_plan(study, study_kinds())


def check_ready(study: Study, plan: Plan, *seen: Any, **more: Any) -> None:
    """Whether hosts can serve it."""
    readiness.require_plan_ready(study, plan, study_kinds(), *seen, **more)


def study_schema() -> dict[str, Any]:
    """The JSON Schema of study files."""
    return file.study_schema(study_kinds().file_schema)
