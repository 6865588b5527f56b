"""Briefs and pages of a few studies, made once in a process for all the tests that only read them.

Nobody may change what is given here: take `msgspec.structs.replace` for a brief that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from msgspec.structs import replace

from iolab.report.brief import Brief
from iolab.report.formats.html import render_html
from iolab.report.gather import StoredSessionReader
from iolab.report.page import ReportPage, build_report_page
from tests.guests.guest_session import EMULATED, MIXES, GuestSource, fleet
from tests.loads.keyvalue.key_value_session import KeySource, cassandra, rocksdb
from tests.loads.metadata.metadata_session import MetadataSource, kpi_with_metadata
from tests.report.hostile import hostile
from tests.report.made import build_brief
from tests.report.studies import kpi, pair, sweep


@cache
def keys() -> KeySource:
    """Three workloads of db_bench."""
    return rocksdb(seconds=4)


@cache
def two_keys() -> KeySource:
    """One workload of db_bench on two configurations, each point twice."""
    return rocksdb(("old", "new"), repeats=2, seconds=2, workload_count=1)


@cache
def paced() -> KeySource:
    """YCSB at two rates."""
    return cassandra(rates=(1000, 4000), seconds=4)


@cache
def files() -> MetadataSource:
    """An indicator of I/O beside operations on files."""
    return kpi_with_metadata()


@cache
def guests() -> GuestSource:
    """Guests on two nodes."""
    return fleet(seconds=4)


def crowded() -> GuestSource:
    """Many guests on four nodes with a dozen disks each, so that labels have little room."""
    nodes = ("node-1", "node-2", "node-3", "node-4")
    source = fleet(nodes, (1, 2, 4, 8, 16, 24), (8,), seconds=2, mixes=MIXES[1:], settings=EMULATED)
    source.disks = tuple(f"nvme{number}n1" for number in range(12))
    return source


_SOURCES: Final[Mapping[str, Callable[[], StoredSessionReader]]] = {
    "pair": pair,
    "hostile": lambda: hostile(pair()),
    "kpi": kpi,
    "sweep": lambda: sweep(seconds=6),
    "two": lambda: sweep(("alpha", "beta"), seconds=6),
    "long": lambda: sweep(("alpha", "beta"), seconds=20),
    "beside": lambda: sweep(("default", "performance"), seconds=6),
    "files": files,
    "keys": keys,
    "two keys": two_keys,
    "paced": paced,
    "guests": guests,
    "crowded": crowded,
}


@cache
def brief(name: str) -> Brief:
    """The brief of the session of that name."""
    return build_brief(_SOURCES[name]())


@cache
def page(name: str) -> ReportPage:
    """What its page holds."""
    return build_report_page(brief(name))


@cache
def html(name: str) -> str:
    """Its page."""
    return drawn(brief(name))


def drawn(told: Brief) -> str:
    """The page of a brief."""
    return render_html(told)


def undrawn(told: Brief) -> Brief:
    """The brief without the charts of its runs, where a page is about something else."""
    return replace(told, chart_data_by_run={})
