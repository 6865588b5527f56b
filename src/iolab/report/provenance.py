"""Where the numbers of a report come from: when, where and how was measured, and what is wrong."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import PurePath
from shlex import join
from typing import Final

from msgspec.structs import replace

from iolab.analysis.differences import Difference, DifferenceArea
from iolab.core.events import SessionStatus
from iolab.core.metric import RunResult
from iolab.core.run import Plan
from iolab.core.scenario import ScenarioPlan
from iolab.core.study import FULL_SCALE, IDLE_WATCH_S, Method, RunOrder, Study
from iolab.record import Record
from iolab.report.best import RunCounts
from iolab.report.brief import NO_UNION, Brief, LoadReportKinds, SessionUnion, UnionMember
from iolab.report.hardware import MACHINE, hardware_fact_rows
from iolab.report.merged import workload_versions_titled_by_session
from iolab.report.numbers import DASH, utc_datetime, utc_minute_text
from iolab.report.phrases import result_run_name_text
from iolab.report.table import Cell, Column, Table, row_of_cells, text_and_number_columns
from iolab.store.documents import SessionDocument
from iolab.text import counted_noun, list_text, percent_text
from iolab.units import format_bytes, format_duration_s

_OTHER_LINE: Final = "Load"
_METHOD_SENTENCES: Final[Mapping[str, str]] = {
    "Engine": "{} makes the load.",
    "Jobs": "Jobs: {}.",
    "Runs": "{}.",
    "Order": "The order is {}.",
    "Duration": "In each run {}.",
    "Warm-up": "Warm-up: {}.",
    "Settle": "There is {}.",
    "Caches": "Caches are {}.",
    "Files": "The load works on {}.",
    "Telemetry": "Hosts are watched {}.",
    "Scale": "{}.",
}
"""How the short method says what the table of it has; others by their names."""

_METHOD_LINES: Final[Mapping[str, tuple[str, ...]]] = {
    "Runs": ("Runs", "Order"),
    "Duration": ("Duration", "Warm-up", "Settle"),
    "Caches": ("Caches", "Files"),
    "Telemetry": ("Telemetry", "Idle watch", "Generator limit"),
    "Scale": ("Scale",),
}
"""The lines of the short method, and what each is made of; all else is of the load."""

OVERRIDES_SHOWN: Final = 3
"""Keys that a user set, under the title; the method has all."""

SOFTWARE_SHOWN: Final = 5
"""Engines and kernels named under the title; the appendix has all."""

LABELS_SHOWN: Final = 8
"""Sessions named under the title; the table has them all."""

INVENTORY_FILE: Final = "hosts.toml"
"""What the inventory is called where the session had one; its text has addresses and logins, so the
report, which travels, leaves it out."""

_PATH: Final = "target.path="

_RUNTIME: Final = "method.runtime"

TITLES_SHOWN: Final = 8
"""Configurations named for a session; the others are counted."""

NO_DIFFERENCE: Final = "same"
"""What stands where a session does not differ from the first one."""


def session_fact_rows(brief: Brief) -> tuple[tuple[str, str], ...]:
    """When was measured, on how many hosts, with which software, at which scale."""
    notes = [
        text
        for kind in brief.kinds.reports_of_study(brief.study)
        for text in kind.engine_build_texts(brief)
    ]
    hardware_rows = hardware_fact_rows(
        brief.study,
        brief.facts,
        {name: style.label for name, style in brief.series_styles.items()},
    )
    host_count_text = _host_count_text(brief)
    is_told_by_machine = host_count_text == "1" and any(
        name == MACHINE for name, _ in hardware_rows
    )
    return (
        ("Measured", _measurement_time_text(brief)),
        *(() if is_told_by_machine else (("Hosts", host_count_text),)),
        *_storage_node_and_configuration_rows(brief),
        *hardware_rows,
        ("Software", _software_versions_text(brief, notes)),
        *_scale_and_override_rows(brief),
        *_member_sessions_rows(brief),
        *(("Engine", text) for text in notes),
        *((("Source", brief.study.source),) if brief.study.source else ()),
        *((("Author", brief.user_text.author),) if brief.user_text.author else ()),
    )


def _scale_and_override_rows(brief: Brief) -> Iterator[tuple[str, str]]:
    """The scale where it is not the study as it is written, and which keys users set.

    The method has the values of all: see `_scale_method_rows`.
    """
    scale = brief.study.scale
    if not brief.study.has_reduced_scale:
        return
    own = sorted(_values_set_by_user(brief.session.overrides), key=_runtime_first_sort_key)
    keys = dict.fromkeys(name.rpartition(".")[2] for name in own)
    changed = f", {list_text(keys, OVERRIDES_SHOWN)} changed by the user" if keys else ""
    yield "Scale", f"{scale}{changed}"


def _scale_method_rows(study: Study, overrides: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """What the scale sets, where it is not the study as it is written, and what users set."""
    if not study.has_reduced_scale:
        return
    settings = scale_setting_texts(study, overrides)
    changes = override_texts(study, overrides)
    texts = (
        f"{study.scale}{f': {list_text(settings)}' if settings else ''}",
        f"changed by the user: {list_text(changes)}" if changes else "",
    )
    yield row_of_cells("Scale", "; ".join(filter(None, texts)))


def scale_setting_texts(study: Study, overrides: Sequence[str] = ()) -> tuple[str, ...]:
    """What the scale of a study sets, each as `runtime 20s`; none where its text does not tell.

    A key that several things have is told with whose it is: `victim numjobs 1`.
    What `overrides` set in its place is not told: it is not what was run.
    """
    settings = _scale_settings(study)
    names_set = set(_values_set_by_user(overrides))
    keys = Counter(name.rpartition(".")[2] for name in settings)
    texts = []
    for name, value in settings.items():
        *owners, key = name.split(".")
        whose = f"{owners[-1]} " if owners and keys[key] > 1 else ""
        if name not in names_set:
            texts.append(f"{whose}{key} {value}")
    return tuple(dict.fromkeys(texts))


def override_texts(study: Study, overrides: Sequence[str]) -> tuple[str, ...]:
    """What a user set, the runtime first: `keys 20000 (scale: 400000)`; the path is no load."""
    settings = _scale_settings(study)
    own = _values_set_by_user(overrides)
    keys = Counter(name.rpartition(".")[2] for name in own)
    texts = []
    for name in sorted(own, key=_runtime_first_sort_key):
        *owners, key = name.split(".")
        whose = f"{owners[-1]} " if owners and keys[key] > 1 else ""
        was = f" (scale: {settings[name]})" if name in settings else ""
        texts.append(f"{whose}{key} {own[name]}{was}")
    return tuple(texts)


def _runtime_first_sort_key(name: str) -> bool:
    return name != _RUNTIME


def _values_set_by_user(overrides: Sequence[str]) -> dict[str, str]:
    """The values of overrides by their names, without the target's path."""
    own = [override for override in overrides if not override.startswith(_PATH)]
    return dict(override.partition("=")[::2] for override in own)


def _scale_settings(study: Study) -> dict[str, object]:
    """The settings of the study's scale by their paths; none where its text does not tell."""
    try:
        scales = tomllib.loads(study.text).get("scale", {})
    except tomllib.TOMLDecodeError:
        return {}
    table = scales.get(study.scale) if isinstance(scales, dict) else None
    return dict(_flat_settings(table)) if isinstance(table, dict) else {}


def _flat_settings(table: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    """Each setting of nested tables by its path: `method.runtime`."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat_settings(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def scale_sentence(study: Study) -> str:
    """That a smaller study was run than the one that is written; empty for the whole."""
    if not study.has_reduced_scale:
        return ""
    return f"Scale {study.scale}: reduced from the whole study."


def _storage_node_and_configuration_rows(brief: Brief) -> Iterator[tuple[str, str]]:
    """The storage nodes where all have as many, and the titles that charts and tables shorten."""
    owners = brief.study.configurations
    nodes = {owner.nodes for owner in owners}
    number = nodes.pop() if len(nodes) == 1 else None
    if number:
        yield "Nodes", str(number)
    if any(style.label != style.title for style in brief.series_styles.values()):
        yield "Configurations", list_text([owner.title for owner in owners], LABELS_SHOWN)


def _software_versions_text(brief: Brief, engine_notes: Sequence[str]) -> str:
    """The engines that no note tells of, iolab, and the kernels of all hosts."""
    notes = " ".join(engine_notes)
    kernels = dict.fromkeys(f"Linux {host.kernel.release}" for host in brief.facts.values())
    versions = (version for version in brief.engine_versions if version not in notes)
    parts = [*versions, f"iolab {brief.session.iolab_version}", *kernels]
    return ", ".join(parts[:SOFTWARE_SHOWN])


def session_alerts(brief: Brief) -> tuple[str, ...]:
    """What is wrong with a session as a whole, or with several of them together."""
    damage = [f"Damaged and left out: {hurt}" for hurt in brief.damaged_runs]
    guests = brief.kinds.booted_hosts.caveat_texts(brief)
    return tuple(
        text.strip() for text in (*_session_fault_sentences(brief), *damage, *guests) if text
    )


def verdicts_sentence(run_counts: RunCounts) -> str:
    """How many runs there are, of which verdicts, and how many did not end well."""
    if not run_counts.total:
        return "No run is committed yet."
    parts = [
        f"{number} {name}"
        for number, name in (
            (run_counts.valid, "valid"),
            (run_counts.indicative, "indicative"),
            (run_counts.invalid, "invalid"),
        )
        if number
    ]
    ended = [
        f"{number} {name}"
        for number, name in (
            (run_counts.failed, "failed"),
            (run_counts.interrupted, "interrupted"),
        )
        if number
    ]
    runs = counted_noun(run_counts.total, "run")
    if len(parts) == 1:
        level = parts[0].partition(" ")[2]
        judged = f"{runs}, {level}" if run_counts.total == 1 else f"{runs}, all {level}"
    else:
        judged = f"{runs}: {', '.join(parts)}"
    return f"{judged}{'; of these ' + ', '.join(ended) if ended else ''}."


def repeats_sentence(run_counts: RunCounts, brief: Brief) -> str:
    """How many repeats stand behind a figure; empty for single runs."""
    number = _repeat_count_text(brief)
    if not run_counts.total or number == "1":
        return ""
    has_sound = 0 < run_counts.invalid < run_counts.total
    if has_sound:
        if {len(point.results) for point in brief.points if point.is_trusted} == {1}:
            others = {"its": "its other repeats are", "2": "the other repeat is"}
            text = others.get(number, f"the others of {number} repeats are")
            return f"Each figure: 1 run; {text} invalid."
        own = "its" if number == "its" else f"its {number}"
        return f"Each figure: geometric mean of {own} repeats, invalid ones left out."
    return f"Each figure: geometric mean of {number} repeats."


def _repeat_count_text(brief: Brief) -> str:
    """How many repeats stand behind a figure, "its" where that is not the same for all."""
    methods = [member.study.method for member in brief.session_union.members] or [
        brief.study.method
    ]
    numbers = {method.repeats for method in methods}
    own = [member.session for member in brief.session_union.members] or [brief.session]
    ended = all(session.status is SessionStatus.DONE for session in own)
    if (
        not ended
        or len(numbers) > 1
        or any(method.chooses_repeats_by_results for method in methods)
    ):
        return "its"
    return str(numbers.pop())


def _measurement_time_text(brief: Brief) -> str:
    created = [member.session.created_real_ns for member in brief.session_union.members]
    first, *others = sorted(map(utc_datetime, created)) or [
        utc_datetime(brief.session.created_real_ns)
    ]
    text = f"{first:%-d %B %Y, %H:%M}"
    for last in others[-1:]:
        form = "%H:%M" if last.date() == first.date() else "%-d %B %Y, %H:%M"
        text += f" to {last:{form}}"
    return f"{text} UTC"


def _host_count_text(brief: Brief) -> str:
    """How many hosts made load; of several sessions in each, since one host may be in many."""
    studies = [member.study for member in brief.session_union.members] or [brief.study]
    counts: dict[str, None] = {}
    for study in studies:
        hosts = list(
            dict.fromkeys(h for configuration in study.configurations for h in configuration.hosts)
        )
        counts[load_host_count_text(study, hosts)] = None
    return (
        f"{', '.join(counts)} in each session"
        if brief.session_union.is_merged
        else next(iter(counts))
    )


def load_host_count_text(study: Study, hosts: Sequence[str]) -> str:
    """How many hosts make load: `96 guests on 4 nodes`, or a number alone."""
    places = {spec.name: spec.hypervisor for spec in study.hosts}
    nodes = {node for host in hosts if (node := places.get(host, ""))}
    if not nodes:
        return str(len(hosts))
    guests = sum(1 for host in hosts if places.get(host))
    words = f"{counted_noun(guests, 'guest')} on {counted_noun(len(nodes), 'node')}"
    others = len(hosts) - guests
    return f"{words}, and {others} more" if others else words


def _member_sessions_rows(brief: Brief) -> tuple[tuple[str, str], ...]:
    """The sessions of a report on several, by their labels."""
    labels = [member.label for member in brief.session_union.members]
    return (("Sessions", f"{len(labels)}: {list_text(labels, LABELS_SHOWN)}"),) if labels else ()


def _run_progress_text(results: Sized, plan: Plan) -> str:
    """How many runs there are of how many; where results decide that, as many as there are."""
    done = len(results)
    return str(done) if plan.extra_run_count else f"{done} of {len(plan.runs)}"


def _session_fault_sentences(brief: Brief) -> Iterator[str]:
    """Sessions that did not come to their end, and those that differ by more than they may."""
    keys = [result.key for result in brief.results]
    if not brief.session_union.is_merged:
        missing = brief.plan.missing_run_count(keys) - sum(
            1 for hurt in brief.damaged_runs if hurt.run_name
        )
        yield _unfinished_session_sentence("The session", brief.session, missing)
    for member in brief.session_union.members:
        yield _unfinished_session_sentence(
            f"Session {member.label}", member.session, missing_run_count(member)
        )
    forbidden = [
        f"{difference.subject} ({label})"
        for label, difference in brief.session_union.session_labels_and_forbidding_differences()
    ]
    if forbidden:
        yield (
            "These sessions were not measured in the same way, and stand side by side all the same,"
            f" as was requested: {list_text(forbidden, LABELS_SHOWN)}."
        )


def missing_run_count(member: UnionMember) -> int:
    """How many runs a session still had to make."""
    keys = [result.key for result in member.results]
    return member.plan.missing_run_count(keys) - member.damaged_run_count


def _unfinished_session_sentence(
    session_name: str, session: SessionDocument, missing_runs: int
) -> str:
    if session.status is SessionStatus.DONE:
        return ""
    if session.status is SessionStatus.RUNNING:
        return f"{session_name} is still running; this is what it has so far."
    how = "was interrupted" if session.status is SessionStatus.INTERRUPTED else "failed"
    missing = f"with {counted_noun(missing_runs, 'run')} still to make"
    return f"{session_name} {how} {missing}. {session.reason or ''}"


class ReproductionInstructions(Record):
    """How one session is repeated; `label` is empty where there is only that.

    `study_file` is what its `study_text` is saved as; `inventory_file` is empty where it had none.
    """

    label: str
    study_file: str
    inventory_file: str
    command: tuple[str, ...]
    versions: Table
    study_text: str


def reproduction_instructions(brief: Brief) -> tuple[ReproductionInstructions, ...]:
    """How to repeat each of the sessions, of which there is mostly one."""
    members = brief.session_union.members
    if not members:
        return (_reproduction_instructions_of_session("", brief, study_file_name(brief)),)
    texts: dict[str, str] = {}
    parts = []
    for member in members:
        alone = _brief_of_union_member(brief, member)
        # Studies of one id may differ in their text: each is saved under a name of its own.
        name = study_file_name(alone)
        if texts.setdefault(name, alone.study.text) != alone.study.text:
            name = f"{alone.study.id}-{member.label}.toml"
        parts.append(_reproduction_instructions_of_session(member.label, alone, name))
    return tuple(parts)


def _brief_of_union_member(brief: Brief, member: UnionMember) -> Brief:
    """The brief with one of its sessions alone, for what is told of how that came about."""
    own = {
        key for key, trace in brief.session_union.run_sources.items() if trace.label == member.label
    }
    return replace(
        brief,
        session=member.session,
        study=member.study,
        plan=member.plan,
        results=member.results,
        segment_starts_ns=member.segment_starts_ns,
        manifests={key: manifest for key, manifest in brief.manifests.items() if key in own},
        session_union=NO_UNION,
    )


def _reproduction_instructions_of_session(
    label: str, brief: Brief, study_file: str
) -> ReproductionInstructions:
    return ReproductionInstructions(
        label=label,
        study_file=study_file,
        inventory_file=INVENTORY_FILE if brief.study.inventory else "",
        command=reproduction_command_words(brief, study_file),
        versions=versions_table(brief),
        study_text=brief.study.text,
    )


def study_file_name(brief: Brief) -> str:
    """The name under which a reader saves the study."""
    return f"{brief.study.id}.toml"


def reproduction_command_words(brief: Brief, study_file: str) -> tuple[str, ...]:
    """What to type beside the saved study: its hosts, its scale and all that was set over it."""
    scale = brief.session.scale
    words = ["iolab", "run", study_file]
    for override in brief.session.overrides:
        if override.startswith(_PATH):
            words += ["--path", override.removeprefix(_PATH)]
        else:
            words += ["--set", override]
    if brief.study.inventory:
        words += ["--hosts", INVENTORY_FILE]
    return (*words, *(("--scale", scale) if scale not in ("", FULL_SCALE) else ()))


def versions_table(brief: Brief) -> Table:
    """Which command, programs and seeds made the numbers."""
    session = brief.session
    rows = [
        row_of_cells("Command as it was", _command_line_text(session.command)),
        row_of_cells("iolab", session.iolab_version),
        row_of_cells("Agent", session.agent_version or DASH),
        row_of_cells("Engine", ", ".join(brief.engine_versions) or DASH),
        row_of_cells("Seed of the order", str(brief.study.method.seed)),
        row_of_cells("Plan", brief.plan.digest),
        *_resume_rows(brief),
    ]
    return Table("Versions", text_and_number_columns(("What", "Which")), tuple(rows))


def _resume_rows(brief: Brief) -> Iterator[tuple[Cell, ...]]:
    """Which runs were measured before and after each resume, where there was one."""
    by_segment: dict[int, list[int]] = {}
    order = {(run.point.digest, run.repeat): run.order for run in brief.plan.runs}
    for result in brief.results:
        planned = order.get(result.key, 0)
        by_segment.setdefault(result.segment, []).append(result.order or planned)
    if len(by_segment) < 2:
        return
    for segment, runs in sorted(by_segment.items()):
        label = "Measured at first" if segment == 1 else "Measured after a resume"
        is_known = segment <= len(brief.segment_starts_ns)
        begun = f"{utc_minute_text(brief.segment_starts_ns[segment - 1])} UTC" if is_known else DASH
        yield row_of_cells(label, f"{begun}: runs {integer_ranges_text(runs)}")


def integer_ranges_text(numbers: Iterable[int]) -> str:
    """Whole numbers as `1-7, 9`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(str(number) for number in part) for part in parts)


def _command_line_text(command: tuple[str, ...]) -> str:
    """The command line, its program by name: where it was installed tells nothing."""
    if not command:
        return DASH
    return join((PurePath(command[0]).name, *command[1:]))


def method_table(
    load_kinds: LoadReportKinds,
    study: Study,
    plan: Plan,
    engine_versions: Iterable[str],
    measured_s: Sequence[float] = (),
) -> Table:
    """How the study measures, one row a choice; `engine_versions` are those that ran.

    `measured_s` are the seconds that its runs were measured for.
    """
    method = study.method
    order = (
        f"randomised within each repeat, seed {method.seed}"
        if method.order is RunOrder.RANDOMISED
        else "as written"
    )
    files = dict.fromkeys(
        f"{format_bytes(data_set.bytes_per_host)} of the raw device of each host"
        if data_set.device
        else f"{counted_noun(len(data_set.file_names()), 'file')} of "
        f"{format_bytes(data_set.bytes_per_host // len(data_set.file_names()))} on each host"
        for data_set in plan.data_sets
    )
    layout = ", ".join(files) or DASH
    has_files = any(
        load_kinds.report_of_workload(workload).uses_laid_out_files for workload in study.workloads
    )
    caches = "dropped before every run that reads" if method.drop_caches else "kept"
    if all(configuration.object_store for configuration in study.configurations):
        caches = "left as they are in the store"
    versions = ", ".join(engine_versions)
    rows = (
        *((row_of_cells("Engine", versions),) if versions else ()),
        *(
            row_of_cells(*pair)
            for kind in load_kinds.reports_of_study(study)
            for pair in kind.job_count_and_depth_rows(study)
        ),
        row_of_cells(
            "Runs",
            f"{counted_noun(len(plan.runs), 'run')} of {counted_noun(len(plan.points), 'point')}, "
            f"repeats of each: {_method_repeats_text(study)}",
        ),
        *_duration_and_warmup_rows(study, measured_s),
        *(
            (
                row_of_cells(
                    "Settle", f"{format_duration_s(method.settle_s)} of rest after each run"
                ),
            )
            if method.settle_s
            else ()
        ),
        *_changed_precheck_setting_rows(method),
        row_of_cells("Order", order),
        row_of_cells("Caches", caches),
        *((row_of_cells("Files", layout),) if has_files else ()),
        row_of_cells("Telemetry", f"every {study.telemetry.interval_ms / 1000:g} s"),
    )
    return Table("Method", text_and_number_columns(("What", "How")), rows)


def _method_repeats_text(study: Study) -> str:
    """The method's repeats, and the workloads that have their own number of them."""
    others = [
        f"{workload.title}: {workload.repeats}"
        for workload in study.workloads
        if workload.repeats and workload.repeats != study.method.repeats
    ]
    return f"{study.method.repeats}{f' ({list_text(others, TITLES_SHOWN)})' if others else ''}"


def _changed_precheck_setting_rows(method: Method) -> Iterator[tuple[Cell, ...]]:
    """The looks before a run that are not made as usual."""
    if method.idle_watch_s != IDLE_WATCH_S:
        watch = f"{format_duration_s(method.idle_watch_s)} of the target's devices before each run"
        yield row_of_cells("Idle watch", watch if method.idle_watch_s else "none")
    if not method.generator_limit:
        yield row_of_cells("Generator limit", "not measured")


def _measured_durations_template(seconds: Sequence[float], asked_s: float) -> str:
    """`6 s were asked for ({}), 5.0 to 6.1 s measured`; shorter where that is the same.

    Cut and not rounded, as the check of the length of runs tells them.
    """
    low, high = (
        f"{math.floor(10 * end) / 10:.1f}"
        for end in (min(seconds, default=asked_s), max(seconds, default=asked_s))
    )
    asked = format_duration_s(asked_s)
    if low == high == f"{asked_s:.1f}":
        return f"{asked} are measured ({{}})"
    return f"{asked} were asked for ({{}}), {low if low == high else f'{low} to {high}'} s measured"


def _planned_and_measured_phases_text(
    scenario: ScenarioPlan, first_phase_measured_s: Sequence[float]
) -> str:
    """How long the phases of a run are, of which the first is measured as runs without any are."""
    least_s, most_s = scenario.min_duration_s, scenario.max_duration_s
    length = format_duration_s(most_s)
    if least_s < most_s:
        length = f"{format_duration_s(least_s)} to {length}, as witnesses end them"
    first = scenario.phases[0]
    range_text = _measured_durations_template(first_phase_measured_s, first.max_duration_s).format(
        first.id
    )
    return f"phases of {length}; of the first, whose figures are the run's, {range_text}"


def _duration_and_warmup_rows(
    study: Study, measured_s: Sequence[float]
) -> tuple[tuple[Cell, ...], ...]:
    """How long a run is, and what of it does not count."""
    method = study.method
    rule, kind = method.rule, method.kind.value
    if rule is None:
        return (
            row_of_cells(
                "Duration",
                _measured_durations_template(measured_s, method.runtime_s).format(kind)
                if study.scenario is None
                else _planned_and_measured_phases_text(study.scenario, measured_s),
            ),
            row_of_cells(
                "Warm-up",
                f"{format_duration_s(method.warmup_s)} before that, left out"
                if method.warmup_s
                else "none",
            ),
        )
    least_s, max_duration_s = method.load_seconds_range
    length = f"{format_duration_s(least_s)} to {format_duration_s(max_duration_s)}"
    return (
        row_of_cells(
            "Duration",
            f"{length} are measured ({kind}), until the mean is known to "
            f"±{percent_text(rule.precision)}",
        ),
        row_of_cells(
            "Warm-up", f"the transient that is found, at least {rule.cut_least_s} s, is left out"
        ),
    )


def session_tables(session_union: SessionUnion) -> tuple[Table, ...]:
    """What each session is, and in what they differ; none of a single session."""
    if not session_union.is_merged:
        return ()
    return (_sessions_table(session_union.members), _session_differences_table(session_union))


def _sessions_table(members: Iterable[UnionMember]) -> Table:
    texts = ("Session", "Measured (UTC)", "Study", "Scale", "Configurations", "Runs", "Status")
    rows = tuple(
        row_of_cells(
            member.label,
            utc_minute_text(member.session.created_real_ns),
            member.study.id,
            member.study.scale,
            list_text(member.configuration_titles, TITLES_SHOWN),
            _run_progress_text(member.results, member.plan),
            member.session.status.value,
            member.session.iolab_version,
            member.session.id,
        )
        for member in members
    )
    return Table("What each session is", text_and_number_columns((*texts, "iolab", "Id")), rows)


def _session_differences_table(session_union: SessionUnion) -> Table:
    """One row for each thing, one column for each session; what forbids comparing is marked."""
    rows: dict[tuple[DifferenceArea, str], dict[str, list[Difference]]] = {}
    for session in session_union.differences:
        for difference in session.differences:
            rows.setdefault((difference.area, difference.subject), {}).setdefault(
                session.label, []
            ).append(difference)
    labels = [member.label for member in session_union.members]
    heads = (Column("What"), *(Column(label) for label in labels))
    ordered = sorted(rows.items(), key=lambda pair: not _has_forbidding_difference(pair[1]))
    cells = tuple(
        row_of_cells(
            f"! {subject}" if _has_forbidding_difference(by_session) else subject,
            _distinct_texts_or_no_difference_text(
                difference.baseline for own in by_session.values() for difference in own
            ),
            *(
                _distinct_texts_or_no_difference_text(
                    difference.candidate for difference in by_session.get(label, ())
                )
                for label in labels[1:]
            ),
        )
        for (_, subject), by_session in ordered
    )
    nothing = (row_of_cells("Nothing", *([NO_DIFFERENCE] * len(labels))),)
    return Table("What differs between the sessions", heads, cells or nothing)


def _has_forbidding_difference(differences_by_session: Mapping[str, Iterable[Difference]]) -> bool:
    return any(
        difference.forbids_comparison
        for own in differences_by_session.values()
        for difference in own
    )


def _distinct_texts_or_no_difference_text(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or NO_DIFFERENCE


def study_with_workload_versions(brief: Brief) -> Study:
    """The study; a workload that sessions ask for differently under one id is there for each."""
    members = brief.session_union.members
    if not members:
        return brief.study
    workloads = workload_versions_titled_by_session(
        [member.label for member in members], [member.study for member in members]
    )
    return replace(brief.study, workloads=workloads)


def session_methods_table(brief: Brief) -> Table:
    """How was measured: of several sessions a column for each, one where all did it alike."""
    members = brief.session_union.members
    if not members:
        table = method_table(
            brief.kinds,
            brief.study,
            brief.plan,
            brief.engine_versions,
            [run.window_s for run in brief.results if run.window_s],
        )
        scale_rows = _scale_method_rows(brief.study, brief.session.overrides)
        return replace(table, rows=(*table.rows, *scale_rows))
    methods = [_method_texts_by_name(brief, member) for member in members]
    names = list(dict.fromkeys(name for method in methods for name in method))
    rows = [[method.get(name, DASH) for method in methods] for name in names]
    alike = all(len(set(texts)) == 1 for texts in rows)
    heads = ["How, in each session"] if alike else [member.label for member in members]
    cells = tuple(
        row_of_cells(name, *texts[: len(heads)]) for name, texts in zip(names, rows, strict=True)
    )
    return Table("Method", (Column("What"), *(Column(head) for head in heads)), cells)


def short_method_table(table: Table) -> Table:
    """A table of the method in five lines of sentences: what belongs together stands in one."""
    lines: dict[str, list[list[str]]] = {name: [] for name in (_OTHER_LINE, *_METHOD_LINES)}
    for name, *cells in table.rows:
        line = next((line for line, names in _METHOD_LINES.items() if name.text in names), "")
        texts = [cell.text for cell in cells]
        if all(text == DASH for text in texts):
            continue
        sentence = _METHOD_SENTENCES.get(name.text, f"{name.text}: {{}}.")
        lines[line or _OTHER_LINE].append(
            [DASH if text == DASH else sentence.format(text) for text in texts]
        )
    rows = tuple(
        row_of_cells(line, *(" ".join(texts) for texts in zip(*parts, strict=True)))
        for line, parts in lines.items()
        if parts
    )
    return replace(table, rows=rows, merges_equal=True)


def _method_texts_by_name(brief: Brief, member: UnionMember) -> dict[str, str]:
    engines = brief.engine_versions_of_session(member.label)
    cells = method_table(brief.kinds, member.study, member.plan, engines).rows
    return {name.text: how.text for name, how in cells}


def run_folders_table(brief: Brief) -> Table | None:
    """Where every run is stored, for forms that have no part for each run; None of one session."""
    if not brief.session_union.is_merged:
        return None
    rows = tuple(_run_folder_row(brief, result) for result in brief.results)
    heads = text_and_number_columns(("Run", "Configuration", "Session", "Stored in"))
    return Table("Where every run is stored", heads, rows)


def _run_folder_row(brief: Brief, result: RunResult) -> tuple[Cell, ...]:
    trace = brief.session_union.run_source(result.key)
    return row_of_cells(
        result_run_name_text(result), result.configuration, trace.label, trace.run_folder
    )
