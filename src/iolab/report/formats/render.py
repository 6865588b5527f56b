"""The report as files for other programs: PDF, charts as SVG and PNG, tables as CSV.

The only door to typst, which sets pages and turns charts into pictures. Nothing is written in the
typesetter's language but templates, which ship with iolab: what comes from hosts, files and studies
goes in as JSON strings and is set as text.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

from iolab.core.metric import CheckResult, Level, Result
from iolab.errors import ReportError
from iolab.report.brief import Brief
from iolab.report.charts.chart import ChartGroup, Figure, ReportSection
from iolab.report.charts.palette import INK
from iolab.report.charts.svg import document
from iolab.report.formats.html import ReportPage, figures_of, make_page, shared_notes
from iolab.report.numbers import NOTHING, clean, count
from iolab.report.phrases import Objection, failure_words, names_among_several, where, whose_run
from iolab.report.runs import RunPart, checks_note, checks_table, evidence_text
from iolab.report.table import Table, columns, csv_text, filled, row, typst, typst_level
from iolab.report.user_text import blocks_of

SANS: Final = "IBM Plex Sans"
"""The letters of paper."""

PNG_SCALE: Final = 3.0
"""Pixels for each unit of a chart: sharp at the width of a page."""

_PICTURES: Final = """#for picture in json(bytes(sys.inputs.doc)) {
  page(width: picture.width * 1pt, height: picture.height * 1pt, margin: 0pt, image(picture.file))
}"""


def figure_pngs(figures: Sequence[Figure]) -> list[bytes]:
    """Each figure as a picture of `PNG_SCALE` pixels a unit, on white. ReportError as `typeset`."""
    if not figures:
        return []
    pictures = [
        {"file": f"{number}.svg", "width": figure.width, "height": figure.whole_height}
        for number, figure in enumerate(figures)
    ]
    files = {f"{number}.svg": _paper_svg(figure) for number, figure in enumerate(figures)}
    return _compile(_PICTURES, pictures, files, "png")


def typeset(template: str, document: object, files: Mapping[str, bytes]) -> bytes:
    """A PDF of a typst template that reads `document` as JSON; `files` lie beside it.

    Fonts are IBM Plex Sans and those that the typesetter brings, so that pages are the same on
    every machine, and no package is fetched. ReportError if it cannot be set.
    """
    return _compile(template, document, files, "pdf")[0]


def _compile(
    template: str, document: object, files: Mapping[str, bytes], form: Literal["pdf", "png"]
) -> list[bytes]:
    """A PDF as one file, or the pages as PNG."""
    import fontpkg_ibm_plex_sans as sans
    import typst  # takes 50 ms, and only paper needs it

    with tempfile.TemporaryDirectory(prefix="iolab-brief-") as folder:
        main = Path(folder) / "brief.typ"
        main.write_text(template, encoding="utf-8")
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        try:
            made = typst.compile(
                str(main),
                root=folder,
                format=form,
                ppi=72 * PNG_SCALE,
                ignore_system_fonts=True,
                font_paths=[str(sans.ROOT / "files")],
                sys_inputs={"doc": json.dumps(document, sort_keys=True, allow_nan=False)},
                timestamp=0,
            )
        except (RuntimeError, ValueError) as error:
            raise ReportError(
                f"The report cannot be typeset: {str(error).splitlines()[0]}.",
                "Report this with the session directory.",
            ) from error
    pages = made if isinstance(made, list) else [made]
    return [page for page in pages if page is not None]


def _paper_svg(figure: Figure) -> bytes:
    return document(figure, font=SANS).encode()


DRAWN_RUNS: Final = 12
"""Runs whose charts are printed in the appendix; all have their checks."""

LOGO: Final = "logo"
DRAWING: Final = "topology.svg"
_SVG: Final = "http://www.w3.org/2000/svg"

_TEMPLATE: Final = Path(__file__).parent / "templates" / "brief.typ"


class Paper(StrEnum):
    """What it is printed on."""

    A4 = "a4"
    LETTER = "letter"

    @property
    def typst_name(self) -> str:
        """The paper's name as the typesetter knows it."""
        return "a4" if self is Paper.A4 else "us-letter"


def render_pdf(brief: Brief, paper: Paper = Paper.A4) -> bytes:
    """The brief; the same one gives the same bytes. ReportError if it cannot be made."""
    return typeset_brief(brief, make_page(brief), paper)


def typeset_brief(brief: Brief, page: ReportPage, paper: Paper) -> bytes:
    """The same of a brief that is arranged already."""
    figures = _Figures()
    if page.topology:
        drawing = page.topology.svg.replace("currentColor", INK.light)
        figures.files[DRAWING] = drawing.replace("<svg ", f'<svg xmlns="{_SVG}" ', 1).encode()
    if brief.words.logo:
        figures.files[LOGO] = brief.words.logo
    parts = [_group(group, figures, in_brief=True) for group in page.workloads]
    document = {
        **_frame(brief, page, paper, "brief"),
        **_front(page, figures),
        "workloads": [part for part in parts if part["figures"] or part["tables"]],
        "chart_notes": f"{page.chart_notes} {_names(brief)}".strip(),
        "introduction": blocks_of(brief.words.introduction),
        "conclusion": blocks_of(brief.words.conclusion),
        "logo": LOGO if brief.words.logo else "",
        "sections": [_section(section, figures, in_brief=True) for section in page.sections],
        "topology": page.topology.alt if page.topology else "",
        "configuration": [
            *_tables(page.configurations),
            *([typst(page.hardware, title="")] if page.hosts else []),
        ],
        "method": [typst(page.method, title="")],
    }
    return _typeset(document, figures)


def render_appendix(brief: Brief, paper: Paper = Paper.A4) -> bytes:
    """What backs the brief: every run, check, host and job. ReportError as above."""
    figures, page = _Figures(), make_page(brief)
    names = names_among_several(brief.study)
    document = {
        **_frame(brief, page, paper, "appendix"),
        **_caveats(brief, page),
        "findings": [finding.text for finding in page.findings],
        "findings_note": page.findings_note,
        "gains": [{"table": typst(table), "note": note} for table, note in page.gains],
        "sections": [_section(section, figures) for section in page.backing],
        "configuration": _tables([*page.jobs, *page.guests]),
        "hosts": [{"title": names, "tables": _tables(tables)} for names, tables in page.hosts],
        "results": _tables(page.results),
        "repeats": [
            {
                "title": repeat.label,
                "command": shlex.join(repeat.command),
                "versions": _tables([repeat.versions]),
                "study_text": repeat.text,
            }
            for repeat in page.how_to_repeat
        ],
        **_runs(page, names, figures),
    }
    return _typeset(document, figures)


def _names(brief: Brief) -> str:
    """What charts call configurations whose titles are too long for them."""
    looks = brief.looks.values()
    legends = [look.legend for look in looks if look.name != look.title]
    return f"{'; '.join(legends)}." if legends else ""


def _typeset(document: dict[str, Any], figures: _Figures) -> bytes:
    return typeset(_TEMPLATE.read_text(encoding="utf-8"), _cleaned(document), figures.files)


def _frame(brief: Brief, page: ReportPage, paper: Paper, part: str) -> dict[str, Any]:
    """What both documents have: paper, title, and where they come from."""
    return {
        "part": part,
        "paper": paper.typst_name,
        "study": brief.study.id,
        "title": brief.study.title,
        "question": brief.study.question,
        "facts": [list(pair) for pair in page.facts],
        "alerts": list(page.alerts),
        "footer": f"iolab {brief.session.iolab_version}, session {brief.session.id}",
    }


def _section(
    section: ReportSection, figures: _Figures, *, in_brief: bool = False
) -> dict[str, Any]:
    groups = [_group(group, figures, in_brief=in_brief) for group in section.groups]
    kept = [group for group in groups if group["figures"] or group["tables"] or group["more"]]
    return {"title": section.title, "lede": section.lede, "groups": kept}


def _group(group: ChartGroup, figures: _Figures, *, in_brief: bool = False) -> dict[str, Any]:
    more = () if in_brief else group.more
    return {
        "title": group.title,
        "figures": figures.of(group.figures, plain=in_brief),
        "tables": [typst(group.table, title="" if in_brief else None)] if group.table else [],
        "note": group.note,
        "more": [{"table": typst(table), "note": note} for table, note in more if table.rows],
    }


class _Figures:
    """Figures drawn one after the other, each in a file of its own."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def of(self, figures: Iterable[Figure], *, plain: bool = False) -> list[dict[str, str]]:
        """What the template says of each, with its file drawn; of `plain` ones nothing twice."""
        drawn = []
        for figure in figures:
            name = f"figure-{len(self.files)}.svg"
            self.files[name] = _paper_svg(figure)
            drawn.append(
                {
                    "file": name,
                    "title": figure.title,
                    "finding": "" if plain else figure.finding,
                    "note": figure.note,
                    "alt": figure.alt,
                }
            )
        return drawn


def _front(page: ReportPage, figures: _Figures) -> dict[str, Any]:
    """The first page: the answer, how sure it is, the best of each workload, a few caveats."""
    answer = page.answer
    return {
        "answer": answer.says,
        "sure": answer.sure,
        "matrix": typst(answer.matrix, title=""),
        "note": answer.note,
        "failed": answer.failed,
        "first": figures.of([answer.chart] if answer.chart else [], plain=True),
        "sessions": _tables(page.sessions),
        "objections": [_objection(caveat) for caveat in answer.caveats],
        "more": f"{count(answer.more, 'more caveat')} in the appendix." if answer.more else "",
    }


def _objection(objection: Objection) -> dict[str, Any]:
    return {
        "level": typst_level(objection.level),
        "says": objection.says,
        "where": f"{objection.codes}, {where(objection)}",
    }


def _caveats(brief: Brief, page: ReportPage) -> dict[str, Any]:
    """Every failure and every objection."""
    names = names_among_several(brief.study)
    failed = [
        {
            "level": typst_level(result.verdict.level),
            "says": failure_words(result, names),
            "where": result.status.value,
        }
        for result in page.failures
    ]
    return {
        "objections": [*failed, *map(_objection, page.objections)],
        "more_failures": page.more_failures,
        "no_objection": "No check objects to any run." if brief.results else "There is no run yet.",
    }


def _runs(page: ReportPage, names: Mapping[str, str], figures: _Figures) -> dict[str, Any]:
    """Runs with charts or hosts of their own each, the others in tables; once what all have."""
    with_charts = [part for part in page.runs[:DRAWN_RUNS] if part.figures]
    without = [part for part in page.runs if part not in with_charts]
    shown_runs = [*with_charts, *(part for part in without if part.hosts or part.fleet)]
    others = [part for part in without if not (part.hosts or part.fleet)]
    looked = Counter(checks_note(part.result.verdict) for part in page.runs)
    usual = next((note for note, number in looked.most_common(1) if number > 1), "")
    sessions = {part.trace.partition(", ")[0] for part in page.runs}
    only = sessions.pop() if len(sessions) == 1 else ""
    session = f"{only}, " if only else ""
    groups = [ChartGroup("", part.figures) for part in with_charts]
    drawn, notes = shared_notes(groups)
    shown = [group.figures for group in drawn] + [()] * (len(shown_runs) - len(drawn))
    return {
        "runs_notes": [
            *([f"Of each run, unless it says otherwise: {usual}"] if usual else []),
            *([notes] if notes else []),
            *([f"Stored in the {only.replace('Session', 'session', 1)}."] if only else []),
        ],
        "runs": [
            {
                "title": whose_run(part.result, names),
                "level": typst_level(part.result.verdict.level),
                "trace": part.trace.removeprefix(session),
                "checks": _unusual(part.result, usual),
                "figures": figures.of(own),
                "tables": _tables(
                    [*([part.hosts] if part.hosts else []), *part.fleet, checks_table(part.result)]
                ),
            }
            for part, own in zip(shown_runs, shown, strict=True)
        ],
        "others": _tables([*_objections(others, names), _places(others, names, usual, session)]),
    }


def _unusual(result: Result, usual: str) -> str:
    note = checks_note(result.verdict)
    return "" if note == usual else note


def _objections(parts: Sequence[RunPart], names: Mapping[str, str]) -> Iterator[Table]:
    """A table for each check that objects to any of these runs; evidence that all share once."""
    by_code: dict[str, list[tuple[RunPart, CheckResult]]] = {}
    for part in parts:
        for objection in part.result.verdict.objections:
            by_code.setdefault(objection.code, []).append((part, objection))
    for code, hits in by_code.items():
        first = hits[0][1]
        shared = {
            name: value
            for name, value in first.evidence.items()
            if len(hits) > 1 and all(objection.evidence.get(name) == value for _, objection in hits)
        }
        rows = [
            row(
                whose_run(part.result, names),
                objection.level or Level.INVALID,
                evidence_text({k: v for k, v in objection.evidence.items() if k not in shared}),
            )
            for part, objection in hits
        ]
        if shared:
            rows.insert(0, (*row("all of these", ""), *row(evidence_text(shared))))
        heads = columns(("Run", "Verdict", "Evidence"))
        yield Table(f"{code}, as of the first: {first.says}", heads, tuple(rows))


def _places(parts: Sequence[RunPart], names: Mapping[str, str], usual: str, session: str) -> Table:
    """Verdicts of runs, where they are stored, and what checks looked where that is unusual."""
    rows = tuple(
        row(
            whose_run(part.result, names),
            part.result.verdict.level,
            part.trace.removeprefix(session),
            _unusual(part.result, usual) or NOTHING,
        )
        for part in parts
    )
    heads = columns(("Run", "Verdict", "Stored in", "Checks"))
    return filled(Table("Where other runs are stored", heads, rows))


def _tables(tables: Sequence[Table]) -> list[dict[str, Any]]:
    return [typst(table) for table in tables if table.rows]


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The document with every unseen character of its texts written out."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _cleaned(part) for key, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, list) else value


NAME_MOST: Final = 80
"""Characters of a file's name."""


def figure_files(brief: Brief) -> Iterator[tuple[str, str | bytes]]:
    """(name, content) of each file; names are numbered in the order of the report."""
    page = make_page(brief)
    drawn = {
        id(figure): figure for figure in figures_of(page)
    }  # that of the first page stands twice
    pictures = figure_pngs(list(drawn.values()))
    for number, (figure, picture) in enumerate(zip(drawn.values(), pictures, strict=True), 1):
        name = _name("figure", number, figure)
        yield f"{name}.svg", document(figure)
        yield f"{name}.png", picture
        yield f"{name}.csv", csv_text(figure.table)
    for number, table in enumerate(_every_table(page), 1):
        yield f"table-{number:02d}-{_slug(table.title)}.csv", csv_text(table)


def _every_table(page: ReportPage) -> Iterable[Table]:
    every = (
        page.answer.matrix,
        *(
            table
            for group in page.groups
            for table in (group.table, *(extra for extra, _ in group.more))
        ),
        *page.configurations,
        page.hardware,
        page.method,
        *page.jobs,
        *page.results,
    )
    return dict.fromkeys(table for table in every if table is not None and table.rows)


def _name(kind: str, number: int, figure: Figure) -> str:
    return f"{kind}-{number:02d}-{_slug(f'{figure.subject} {figure.title}')}"


def _slug(text: str) -> str:
    """The text as a part of a file's name, whatever it holds."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:NAME_MOST].rstrip("-") or "unnamed"
