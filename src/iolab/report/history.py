"""Many sessions of one study for other programs: the document of `iolab history --json`.

The JSON is a contract: `schema/history.json` describes it, docs/how-to/track.md explains it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from iolab.analyse.history import FALSE_ALARMS, Series, Tracked
from iolab.analyse.method.changes import MAGNITUDE_LEAST, Change
from iolab.report.comparison import difference_document, side_document
from iolab.report.wording import count

FORMAT: Final = 1
"""The number of the JSON document's format; it changes when a reader would have to."""


def history_document(tracked: Tracked) -> dict[str, Any]:
    """The document of `iolab history --json`, made of JSON's own types only."""
    return {
        "format": FORMAT,
        "thresholds": {"magnitude": MAGNITUDE_LEAST, "false_alarms": FALSE_ALARMS},
        "sessions": [
            {**side_document(side), "changed": [difference_document(one) for one in changed]}
            for side, changed in zip(tracked.sessions, tracked.changed, strict=True)
        ],
        "series": [_series(one) for one in tracked.series],
        "changes": tracked.changes,
        "says": summary_text(tracked),
    }


def day(real_ns: int) -> str:
    """A time for people: `2025-06-15 15:06`, in UTC."""
    return f"{datetime.fromtimestamp(real_ns / 1e9, tz=UTC):%Y-%m-%d %H:%M}"


def summary_text(tracked: Tracked) -> str:
    """In one sentence, whether anything changed."""
    sessions = count(len(tracked.sessions), "session")
    searched = [one for one in tracked.series if one.found.enough]
    if not searched:
        needed = min((one.found.needed for one in tracked.series), default=0)
        return f"{sessions} are too few to tell a change; {needed} are needed."
    series = count(len(searched), "series", "series")
    few = len(tracked.series) - len(searched)
    rest = f" {few} more have too few sessions." if few else ""
    if not tracked.changes:
        return f"Nothing changed over {sessions} in {series}.{rest}"
    return f"{count(tracked.changes, 'change')} over {sessions} in {series}.{rest}"


def said(series: Series) -> str:
    """What one series tells, in a few words."""
    found = series.found
    if not found.enough:
        return f"too few: {found.runs} of {found.needed}"
    if not found.changes:
        return "nothing changed"
    return ", ".join(f"{100 * (one.ratio - 1):+.1f} %" for one in found.changes)


def _series(series: Series) -> dict[str, Any]:
    return {
        "workload": series.workload,
        "axis": dict(series.axis),
        "metric": series.metric,
        "unit": series.values[0].metric.unit,
        "values": [
            {
                "session": seen.session,
                "value": seen.metric.value,
                "low": seen.metric.low,
                "high": seen.metric.high,
                "n": seen.metric.n,
                "level": seen.level.value,
            }
            for seen in series.values
        ],
        "enough": series.found.enough,
        "needed": series.found.needed,
        "changes": [_change(series, one) for one in series.found.changes],
    }


def _change(series: Series, one: Change) -> dict[str, Any]:
    return {"session": series.values[one.index].session, "ratio": one.ratio, "p": one.p}
