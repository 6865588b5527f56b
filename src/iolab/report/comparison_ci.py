"""A comparison for continuous integration: JUnit XML, and Bencher's metric format.

JUnit as GitLab, Jenkins and GitHub's reporters read it: a suite, a case for each row, `failure` for
one that is worse, `skipped` for what says neither.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any, Final

from iolab.analysis.comparison import Compared, Row
from iolab.core.metric import Metric
from iolab.report.comparison import point_text, row_texts
from iolab.report.numbers import show, show_interval
from iolab.stats.comparison import Verdict

_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to hold, not even escaped."""


def comparison_junit(compared: Compared) -> str:
    """JUnit XML: each row a case of class `STUDY.POINT` named by its metric.

    A row that is worse fails; one that is inconclusive, or a point that cannot be compared, is
    skipped with the reason. It is no verdict that a candidate lacks a point.
    """
    verdicts = compared.verdicts
    failures = verdicts.get(Verdict.WORSE, 0)
    skipped = verdicts.get(Verdict.INCONCLUSIVE, 0) + len(compared.skipped)
    counts = {
        "tests": str(len(compared.rows) + len(compared.skipped)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(skipped),
        "time": "0",
    }
    name = f"{compared.candidate.name} against {compared.baseline.name}"
    root = ET.Element("testsuites", {"name": "iolab compare", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _clean(name), **counts})
    study = compared.baseline.study.id
    for row in compared.rows:
        case = _case(suite, f"{study}.{point_text(row.workload, row.axis)}", row.metric)
        says = _sentence(row)
        match row.comparison.verdict:
            case Verdict.WORSE:
                fault = ET.SubElement(case, "failure", {"message": says, "type": "worse"})
                fault.text = _values(row)
            case Verdict.INCONCLUSIVE:
                why = row.comparison.reason
                ET.SubElement(case, "skipped", {"message": _clean(f"{says}: {why}")})
            case _:
                ET.SubElement(case, "system-out").text = f"{says}\n{_values(row)}"
    for one in compared.skipped:
        point = point_text(one.workload, one.axis)
        metric, colon, why = one.reason.partition(": ")
        named = (metric, why) if colon and " " not in metric else ("", one.reason)
        case = _case(suite, f"{study}.{point}", named[0] or "not compared")
        ET.SubElement(case, "skipped", {"message": _clean(named[1])})
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def comparison_bmf(compared: Compared) -> dict[str, Any]:
    """Bencher's metric format: the candidate's values by point and metric, with their intervals.

    Bencher keeps the history of one branch, so that only what is new is given to it. A limit that
    is not known is left out, as its format allows.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in compared.rows:
        if row.candidate.value is not None:
            point = point_text(row.workload, row.axis)
            found.setdefault(point, {})[row.metric] = _measure(row.candidate)
    return found


def _measure(metric: Metric) -> dict[str, float]:
    known = {"value": metric.value, "lower_value": metric.low, "upper_value": metric.high}
    return {name: value for name, value in known.items() if value is not None}


def _case(suite: ET.Element, point: str, metric: str) -> ET.Element:
    names = {"classname": _clean(point), "name": _clean(metric), "time": "0"}
    return ET.SubElement(suite, "testcase", names)


def _sentence(row: Row) -> str:
    """What the row says: `worse: iops 0.900 (-10.0 %) [0.891, 0.911]`."""
    _, metric, _, _, ratio, interval, verdict = row_texts(row)
    return _clean(f"{verdict}: {metric} {ratio} {interval}")


def _values(row: Row) -> str:
    sides = (("baseline", row.baseline), ("candidate", row.candidate))
    lines = [f"{name} {show(one)} {show_interval(one)}".rstrip() for name, one in sides]
    return _clean("\n".join([*lines, f"trust {row.level.value}"]))


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
