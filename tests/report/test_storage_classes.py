"""The answer of a session in pods: ratio with interval, pods, and what the same money gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from iolab.analysis.points import PointSummary, summarise_points
from iolab.core.configuration import Configuration
from iolab.core.kubernetes import StorageClassMonthlyPrice
from iolab.core.study import Study
from iolab.report.storage_classes import storage_classes_sentence
from tests.hosts.test_kubernetes import FLEET
from tests.report.charts.outcomes import WORKLOAD, result
from tests.report.synthetic import study_of

CLASSES = ("fast", "slow")


def study(*prices: StorageClassMonthlyPrice) -> Study:
    configurations = tuple(Configuration(name, name, (f"{name}-0",), "/data") for name in CLASSES)
    made = study_of("s", "S", "", configurations, (WORKLOAD,))
    return replace(made, kubernetes=replace(FLEET, prices=prices))


def points(rates: Mapping[str, Sequence[float]]) -> tuple[PointSummary, ...]:
    runs = [
        replace(result(8, rate, repeat=repeat), configuration=name, digest=f"{name:0>16}")
        for name, found in rates.items()
        for repeat, rate in enumerate(found, 1)
    ]
    return summarise_points(runs, study())


FOURFOLD = points({"fast": (4000.0, 4040.0, 3960.0), "slow": (1000.0, 1000.0, 1000.0)})


def test_the_faster_class_is_told_with_ratio_and_interval_in_any_order() -> None:
    sentence = storage_classes_sentence(study(), FOURFOLD)
    assert sentence.startswith("fast gives 4 (3.")
    assert "times the IOPS of slow in Random read" in sentence
    assert "at 0.25 times the p99 latency" in sentence
    other = points({"fast": (1000.0, 1000.0, 1001.0), "slow": (4000.0, 4040.0, 3960.0)})
    assert storage_classes_sentence(study(), other).startswith("slow gives 4 (3.")


def test_pods_and_their_spread_are_told() -> None:
    assert "2 pods each of fast and slow, one a node" in storage_classes_sentence(study(), FOURFOLD)


def test_prices_give_what_the_same_money_buys() -> None:
    prices = (
        StorageClassMonthlyPrice("fast", 0.2, "EUR"),
        StorageClassMonthlyPrice("slow", 0.1, "EUR"),
    )
    sentence = storage_classes_sentence(study(*prices), FOURFOLD)
    assert "0.2 EUR and 0.1 EUR" in sentence
    assert "for the same money fast gives 2 times as much" in sentence
    foreign = (prices[0], StorageClassMonthlyPrice("slow", 0.1, "USD"))
    assert "same money" not in storage_classes_sentence(study(*foreign), FOURFOLD)


def test_classes_that_intervals_do_not_tell_apart_are_called_so() -> None:
    alike = points({"fast": (1000.0, 1300.0, 900.0), "slow": (1000.0, 950.0, 1150.0)})
    assert "does not tell them apart" in storage_classes_sentence(study(), alike)


def test_other_studies_have_no_such_answer() -> None:
    assert storage_classes_sentence(replace(study(), kubernetes=None), FOURFOLD) == ""
