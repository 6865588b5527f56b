"""The results beside what others published: figure by figure, and what differs in how and on what.

There is no verdict: the hardware differs. Both figures, what they are told for, and the ratio with
its interval are shown, so that a reader can judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.core.configuration import Configuration
from iolab.core.host import HostFacts
from iolab.core.metric import VerdictLevel, worst_verdict_level
from iolab.core.metric_spec import BetterDirection
from iolab.core.study import Study
from iolab.published.audit.document import RoundingInterval, key_text
from iolab.published.recomputed import (
    FigureDivisorKind,
    PublishedAndMeasuredFigure,
    published_and_measured_figures,
    published_system_names,
)
from iolab.published.sets import (
    PublishedFigure,
    PublishedReference,
    PublishedSystem,
    method_descriptions,
)
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart, ChartGroup, ReportSection, SeriesStyles
from iolab.report.charts.rows import Dot, DotRow, dot_chart, rows_by_key
from iolab.report.charts.series import RunAnchors
from iolab.report.numbers import (
    DASH,
    axis_values_text,
    interval_and_runs_text,
    metric_value_text,
    value_text,
)
from iolab.report.phrases import metric_phrase
from iolab.report.table import Table, row_of_cells, text_and_number_columns, verdict_cell
from iolab.text import list_text
from iolab.units import format_bytes, format_duration_s

NAMED_MAX: Final = 4
"""Different values that are named; more are counted."""

_BASES: Final = (
    FigureDivisorKind.HOST,
    FigureDivisorKind.NODE,
    FigureDivisorKind.RAW_TB,
    FigureDivisorKind.USABLE_TB,
)

_DRAWN: Final = (
    FigureDivisorKind.HOST,
    FigureDivisorKind.NODE,
    FigureDivisorKind.USABLE_TB,
    FigureDivisorKind.RAW_TB,
    FigureDivisorKind.WHOLE,
)
"""The basis that is drawn: the first for which both sides are known."""

INTRODUCTION: Final = (
    "What was measured here beside what others published, on other hardware. A ratio says how "
    "many times the published figure was reached; its interval holds the chance here and the "
    "rounding there. Told for each host, node or TB it supposes that both scale evenly."
)

_LATENCIES: Final = "Latencies are told as they are: below 1 is faster here."

_UPPERCASE_WORDS: Final = {
    name.lower(): name for name in ("TB", "SSD", "SSDs", "CPU", "CPUs", "DRAM", "NIC", "NICs", "OS")
}

_JOBS_PER_HOST: Final = re.compile(r"(?:jobs|threads)_per_")

_NOT_COMPARED: Final = frozenset({"clients", "nodes", "statistic", "left_out", "reported"})
"""Told of the owner already, or words on how the figures were drawn."""


def own_counterpart_text(brief: Brief, published_key: str) -> str:
    """What is known of that here; a dash where nothing is, or where it has no counterpart.

    What the study tells of its hardware is of the same machines as what was published; facts are of
    the hosts that made the load.
    """
    stated = _stated_hardware_texts(brief, published_key)
    describe = _DESCRIBERS.get(
        published_key.rpartition(".")[2], _job_option_describer(published_key)
    )
    texts = stated or list(dict.fromkeys(describe(brief)))
    return list_text(texts, NAMED_MAX) or DASH


def _stated_hardware_texts(brief: Brief, published_key: str) -> list[str]:
    """The rows of that name in the hardware of the study's configurations."""
    rows = (dict(configuration.hardware) for configuration in brief.study.configurations)
    return list(dict.fromkeys(row[published_key] for row in rows if row.get(published_key)))


_BriefDescriber = Callable[[Brief], Iterable[str]]


def _configuration_describer(describe: Callable[[Configuration], str]) -> _BriefDescriber:
    """What the study tells of each configuration, where it tells it."""
    return lambda brief: filter(None, map(describe, brief.study.configurations))


def _each_host_describer(describe: Callable[[HostFacts], str]) -> _BriefDescriber:
    """What each host that made the load tells of itself."""
    return lambda brief: map(describe, brief.facts.values())


def _study_describer(describe: Callable[[Study], str]) -> _BriefDescriber:
    return lambda brief: [describe(brief.study)]


def _terabytes_text(size_tb: float | None) -> str:
    return f"{size_tb:g} TB" if size_tb else ""


def _processors_text(facts: HostFacts) -> str:
    return f"{facts.cpu.sockets}x {facts.cpu.model}"


def _memory_text(facts: HostFacts) -> str:
    return format_bytes(facts.memory.total_bytes)


def _port_speed_texts(brief: Brief) -> Iterator[str]:
    ports = (
        nic for facts in brief.facts.values() for nic in facts.nics if nic.up and nic.has_hardware
    )
    yield from (f"{nic.speed_mbit_s / 1000:g} Gbit/s" for nic in ports if nic.speed_mbit_s)


def _target_disk_models(brief: Brief) -> Iterator[str]:
    """The models of the devices below the target."""
    for facts in brief.facts.values():
        below = facts.target.devices if facts.target else ()
        yield from (disk.model for disk in facts.disks if disk.model and disk.name in below)


def _job_option_describer(published_key: str) -> _BriefDescriber:
    """What the jobs say under that key of a study file, of those that know it.

    Jobs or threads of each client or guest are its `numjobs`.
    """
    key = "numjobs" if _JOBS_PER_HOST.match(published_key) else published_key.rpartition(".")[2]
    return lambda brief: (
        _job_option_text(key, value)
        for workload in brief.study.workloads
        if (value := workload.job.study_values_by_key.get(key)) is not None
    )


def _job_option_text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_bytes(value) if "size" in key and isinstance(value, int) else str(value)


_SERVERS: Final = _each_host_describer(
    lambda facts: f"{_processors_text(facts)}, {_memory_text(facts)}"
)
_WARMUP: Final = _study_describer(lambda study: format_duration_s(study.method.warmup_s))
_RUNTIME: Final = _study_describer(lambda study: format_duration_s(study.method.runtime_s))

_DESCRIBERS: Final[Mapping[str, _BriefDescriber]] = {
    "clients": _configuration_describer(lambda configuration: str(len(configuration.hosts))),
    "nodes": _configuration_describer(lambda configuration: str(configuration.nodes or "")),
    "raw_tb": _configuration_describer(
        lambda configuration: _terabytes_text(configuration.capacity.raw_tb)
    ),
    "usable_tb": _configuration_describer(
        lambda configuration: _terabytes_text(configuration.capacity.usable_tb)
    ),
    "cpu": _each_host_describer(_processors_text),
    "node": _SERVERS,
    "server": _SERVERS,
    "dram": _each_host_describer(_memory_text),
    "nic": _port_speed_texts,
    "ssd": _target_disk_models,
    "engine": lambda brief: brief.engine_versions,
    "runtime": _RUNTIME,
    "startdelay": _WARMUP,
    "warmup_s": _WARMUP,
    "run_s": _RUNTIME,
    "repeats": _study_describer(lambda study: str(study.method.repeats)),
}


def comparison_section(reference: PublishedReference, brief: Brief) -> ReportSection:
    """The results beside that set."""
    figures = reference.figures
    pairs = published_and_measured_figures(brief.study, brief.points, figures)
    styles, anchors = brief.series_styles, brief.run_anchors
    by_owner = {
        owner: [pair for pair in pairs if pair.published_figure.system.name == owner]
        for owner in published_system_names(figures)
    }
    drawn = (_ratio_chart(owner, own, styles, anchors) for owner, own in by_owner.items() if own)
    charts = tuple(replace(figure, page_columns=6) for figure in drawn if figure is not None)
    source = f"Published by: {reference.published.source or DASH}."
    owned = [figure.system for figure in figures]
    note = f"{source}{_unmeasured_figures_note(figures, pairs)}"
    beneath = ChartGroup(
        "What differs", (), _published_and_own_system_table(brief, reference, owned), note
    )
    groups = (ChartGroup("", charts), beneath) if charts else (beneath,)
    title = f"Against {reference.published.id}"
    return ReportSection("against", title, INTRODUCTION, groups, in_appendix=False)


def _unmeasured_figures_note(
    figures: Sequence[PublishedFigure], pairs: Sequence[PublishedAndMeasuredFigure]
) -> str:
    """What was published and not measured here, so that nobody takes silence for agreement."""
    measured = {
        (pair.published_figure.system, pair.published_figure.workload, pair.published_figure.metric)
        for pair in pairs
    }
    lost = [
        figure
        for figure in figures
        if (figure.system, figure.workload, figure.metric) not in measured
    ]
    if not lost:
        return ""
    if not pairs:
        return " Nothing that was published there was measured here."
    names = list(
        dict.fromkeys(f"{figure.workload} ({metric_phrase(figure.metric)})" for figure in lost)
    )
    return f" Published, but not measured here: {list_text(names, 8)}."


def _ratio_chart(
    system_name: str,
    pairs: Sequence[PublishedAndMeasuredFigure],
    styles: SeriesStyles,
    anchors: RunAnchors,
) -> Chart | None:
    """What was published of one product, cluster or client, drawn and as a table."""
    divisor_kind = next(b for b in _DRAWN if any(b in pair.ratio_by_divisor for pair in pairs))
    rows = [
        DotRow(name, tuple(_ratio_dot(pair, divisor_kind, styles) for pair in own))
        for name, own in rows_by_key(pairs, _ratio_row_title).items()
    ]
    table = _ratio_table(system_name, pairs, styles, anchors)
    words = "the whole" if divisor_kind is FigureDivisorKind.WHOLE else f"each {divisor_kind.value}"
    return dot_chart(
        system_name,
        f"Times the published figures of {system_name}, for {words}",
        rows,
        finding=_ratios_sentence(system_name, pairs, divisor_kind, words),
        note=_LATENCIES
        if any(pair.published_figure.better is BetterDirection.LOWER for pair in pairs)
        else "",
        table=table,
    )


def _ratios_sentence(
    system_name: str,
    pairs: Sequence[PublishedAndMeasuredFigure],
    divisor_kind: FigureDivisorKind,
    noun: str,
) -> str:
    """How far the ratios reach, rates and latencies apart, since they are good in opposite ways."""
    parts = []
    for name, better in (("rates", BetterDirection.HIGHER), ("latencies", BetterDirection.LOWER)):
        ratios = [
            ratio
            for pair in pairs
            if pair.published_figure.better is better
            and (
                ratio := pair.ratio_by_divisor.get(
                    divisor_kind, pair.ratio_by_divisor[FigureDivisorKind.WHOLE]
                ).ratio.value
            )
            is not None
        ]
        if ratios:
            low, high = f"{min(ratios):.2g}", f"{max(ratios):.2g}"
            parts.append(f"{name} {low} times" if low == high else f"{name} {low} to {high} times")
    worst = worst_verdict_level(pair.verdict_level for pair in pairs)
    trust = "all valid" if worst is VerdictLevel.VALID else f"at worst {worst.value}"
    return f"For {noun}, {list_text(parts)} what is published of {system_name}; {trust} here."


def _ratio_row_title(figure: PublishedAndMeasuredFigure) -> str:
    return f"{figure.published_figure.workload}, {metric_phrase(figure.published_figure.metric)}"


def _ratio_dot(
    figure: PublishedAndMeasuredFigure, divisor_kind: FigureDivisorKind, styles: SeriesStyles
) -> Dot:
    style = styles[figure.configuration.id]
    ratio = figure.ratio_by_divisor.get(
        divisor_kind, figure.ratio_by_divisor[FigureDivisorKind.WHOLE]
    ).ratio
    return Dot(style.label, style.color, ratio, figure.verdict_level, title=style.title)


def _ratio_table(
    system_name: str,
    pairs: Sequence[PublishedAndMeasuredFigure],
    styles: SeriesStyles,
    anchors: RunAnchors,
) -> Table:
    """Both figures and the ratio, whole and for each basis that both sides have."""
    bases = [
        divisor_kind
        for divisor_kind in _BASES
        if any(divisor_kind in pair.ratio_by_divisor for pair in pairs)
    ]
    named = ("Configuration",) if len(styles) > 1 else ()
    shares = (text for divisor_kind in bases for text in _per_divisor_column_headings(divisor_kind))
    heads = text_and_number_columns(
        ("Workload", "Metric", *named, "At", "Published at"),
        ("Here", "95 % interval", "Published", "Times", *shares),
        ("Verdict",),
    )
    rows = []
    for pair in pairs:
        share = pair.ratio_by_divisor[FigureDivisorKind.WHOLE]
        run = pair.run
        anchor = anchors.get(run.key) if run is not None else None
        rows.append(
            row_of_cells(
                pair.published_figure.workload,
                metric_phrase(pair.published_figure.metric),
                *((styles[pair.configuration.id].title,) if named else ()),
                axis_values_text(pair.axis_values) or DASH,
                axis_values_text(pair.published_figure.printed_for_axis_values) or DASH,
                metric_value_text(share.measured),
                interval_and_runs_text(share.measured, is_rate_unit_omitted=True),
                _range_middle_text(share.published, pair.published_figure.unit),
                _ratio_and_interval_text(pair, FigureDivisorKind.WHOLE),
                *(
                    text
                    for divisor_kind in bases
                    for text in _measured_published_and_ratio_texts(pair, divisor_kind)
                ),
                verdict_cell(pair.verdict_level, anchor),
            )
        )
    return Table(f"Beside {system_name}", heads, tuple(rows))


def _per_divisor_column_headings(divisor_kind: FigureDivisorKind) -> tuple[str, str, str]:
    return (
        f"Here, per {divisor_kind.value}",
        f"Published, per {divisor_kind.value}",
        f"Times, {divisor_kind.value}",
    )


def _measured_published_and_ratio_texts(
    figure: PublishedAndMeasuredFigure, divisor_kind: FigureDivisorKind
) -> tuple[str, str, str]:
    share = figure.ratio_by_divisor.get(divisor_kind)
    if share is None:
        return (DASH, DASH, DASH)
    return (
        metric_value_text(share.measured),
        _range_middle_text(share.published, figure.published_figure.unit),
        _ratio_and_interval_text(figure, divisor_kind),
    )


def _range_middle_text(span: RoundingInterval, unit: str) -> str:
    return value_text(span.middle, unit)


def _ratio_and_interval_text(
    figure: PublishedAndMeasuredFigure, divisor_kind: FigureDivisorKind
) -> str:
    ratio = figure.ratio_by_divisor[divisor_kind].ratio
    if ratio.value is None:
        return DASH
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.3g}"
    return f"{ratio.value:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]"


def _published_and_own_system_table(
    brief: Brief, reference: PublishedReference, systems: Sequence[PublishedSystem]
) -> Table:
    """What was published of hardware and method, and what is known of it here."""
    each = {owner.name: owner for owner in systems}
    several = len(each) > 1
    rows = [
        row_of_cells(
            f"{_capitalized_key_text(name)}{f' of {owner.name}' if several else ''}",
            own_counterpart_text(brief, name),
            text,
        )
        for owner in each.values()
        for name, text in _system_description_rows(owner)
    ]
    rows += [
        row_of_cells(_capitalized_key_text(name), own_counterpart_text(brief, name), text)
        for name, text in method_descriptions(reference.published)
        if name not in _NOT_COMPARED
    ]
    return Table(
        "What differs", text_and_number_columns(("What", "Here", "Published")), tuple(rows)
    )


def _capitalized_key_text(key: str) -> str:
    """A key for people, with what is always written large."""
    return " ".join(_UPPERCASE_WORDS.get(word, word) for word in key_text(key).split())


def _system_description_rows(system: PublishedSystem) -> list[tuple[str, str]]:
    counts = (("clients", system.client_count), ("nodes", system.node_count))
    sizes = (("raw_tb", system.raw_tb), ("usable_tb", system.usable_tb))
    return [
        *((name, str(number)) for name, number in counts if number),
        *((name, f"{size.middle:g} TB") for name, size in sizes if size),
        *system.description,
    ]
