"""Rates in the table of workloads have their unit, also where they are an axis."""

from __future__ import annotations

from iolab.loads.fileio.report import workloads_table
from tests.study.studies import load, workload


def further(lines: str) -> str:
    (row,) = workloads_table(load(workload(lines))).rows
    return row[-1].text


def test_a_rate_in_bytes_has_its_unit() -> None:
    assert further("rate = 10485760") == "rate=10 MiB/s"


def test_an_axis_of_rates_too() -> None:
    assert further('rate = ["1m", 20971520]') == "rate=1 MiB/s, 20 MiB/s"


def test_rates_of_ios_are_numbers() -> None:
    assert further("rate_iops = [100, 200]") == "rate_iops=100, 200"
