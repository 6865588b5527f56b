"""Watts over the time of a run, beside its rate."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.hosts.rates import CounterSeries
from iolab.report.charts.run_series import telemetry_panels
from iolab.report.charts.series import Panel, TimeGrid
from tests.analysis.meters import meter_readings, metered
from tests.analysis.planted import FILES

RECORD = FILES.record


def power_panel(*series: CounterSeries) -> Panel | None:
    panels = telemetry_panels(RECORD, series, TimeGrid.for_run(RECORD))
    return next((panel for panel in panels if panel.title == "Power"), None)


def test_watts_of_all_machines_stand_beside_the_rate() -> None:
    nodes = metered(RECORD, load_w=150.0, noise_w=0.0)
    # A second meter of the same machine holds the same watts once more.
    again = metered(RECORD, name="node:hwmon3-1", load_w=900.0, noise_w=0.0)
    packages = metered(RECORD, name="processors:package-0", load_w=40.0, noise_w=0.0)
    # Those of another package are not in the first.
    packages += metered(RECORD, name="processors:package-1", load_w=50.0, noise_w=0.0)
    panel = power_panel(*again, *nodes, *packages)
    assert panel is not None
    assert panel.unit == "W"
    values = {line.name: [v for v in line.values if v is not None] for line in panel.lines}
    assert list(values) == ["node", "processors"]
    hosts = len(RECORD.hosts)
    assert np.median(values["node"]) == pytest.approx(150 * hosts)
    assert np.median(values["processors"]) == pytest.approx(90 * hosts)


def test_a_slow_meter_leaves_no_gaps_and_without_one_there_is_no_panel() -> None:
    slow = [meter_readings(RECORD, host.host, every_s=3.0, noise_w=0.0) for host in RECORD.hosts]
    panel = power_panel(*slow)
    assert panel is not None
    (line,) = panel.lines
    assert None not in line.values[:-3]
    assert power_panel() is None
