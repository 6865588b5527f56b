"""The report as files for other programs: PDF, charts as SVG and PNG, tables as CSV.

The only door to typst, which sets pages and turns charts into pictures. Nothing is written in the
typesetter's language but templates, which ship with iolab: what comes from hosts, files and studies
goes in as JSON strings and is set as text.
"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

import fontpkg_ibm_plex_sans as sans
import typst
from msgspec.structs import replace

from iolab.core.metric import CheckResult, RunResult, VerdictLevel
from iolab.errors import ReportError
from iolab.report.blocks import (
    HARDWARE_TITLE,
    Block,
    ChartBlock,
    CodeBlock,
    FastFactsBlock,
    Heading,
    LandscapeBlocks,
    Paragraph,
    ParagraphStyle,
    SideBySideBlocks,
    TopologyBlock,
    UserTextBlock,
    appendix_blocks,
    brief_blocks,
    brief_objection_block,
    linked_sentence_block,
)
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart, ChartGroup
from iolab.report.charts.lines import joined_point_tables
from iolab.report.charts.palette import INK
from iolab.report.charts.scale import WIDTH
from iolab.report.charts.svg import svg_document
from iolab.report.numbers import DASH, text_with_no_break_units
from iolab.report.page import (
    FURTHER,
    ReportPage,
    build_report_page,
    factor_out_shared_notes,
    page_charts,
)
from iolab.report.phrases import (
    run_with_configuration_text,
    title_by_configuration_if_several,
)
from iolab.report.runs import RunSection, evidence_text, objections_table, passed_checks_text
from iolab.report.table import (
    Table,
    row_of_cells,
    table_csv,
    table_typst_data,
    table_without_empty_columns,
    text_and_number_columns,
    verdict_typst_data,
)
from iolab.report.user_text import markdown_to_blocks
from iolab.text import escape_invisible, file_name_slug

SANS: Final = "IBM Plex Sans"
"""The letters of paper."""

PNG_SCALE: Final = 3.0
"""Pixels for each unit of a chart: sharp at the width of a page."""

PAPER_WIDTHS: Final = {4: 250, 6: WIDTH, 12: 790}
"""Units of a chart on paper by its columns of the 12 of the text: all letters have one size."""

_PICTURES_TEMPLATE: Final = """#for picture in json(bytes(sys.inputs.doc)) {
  let width = picture.width * 1pt
  page(width: width, height: picture.height * 1pt, margin: 0pt, image(picture.file, width: width))
}"""

SPARE_ITEMS: Final = 6
"""Caveats, and findings, that a page with room for them has more."""

RUNS_WITH_CHARTS: Final = 12
"""Runs whose charts are printed in the appendix; all have their checks."""

LOGO: Final = "logo"
DRAWING: Final = "topology.svg"
NARROW_DRAWING: Final = "topology-narrow.svg"
"""The drawing below a table of hardware, and beside a narrow one."""
_SVG: Final = "http://www.w3.org/2000/svg"

_TEMPLATE: Final = Path(__file__).parent / "templates" / "brief.typ"


def chart_pngs(charts: Sequence[Chart]) -> list[bytes]:
    """Each figure as a picture of `PNG_SCALE` pixels a unit, on white.

    ReportError as `typeset_pdf`.
    """
    if not charts:
        return []
    pictures = [
        {"file": f"{number}.svg", "width": chart.width, "height": chart.height}
        for number, chart in enumerate(charts)
    ]
    files = {f"{number}.svg": _chart_svg_for_paper(chart) for number, chart in enumerate(charts)}
    return _compile_typst(_PICTURES_TEMPLATE, pictures, files, "png")


def typeset_pdf(template: str, document: object, files: Mapping[str, bytes]) -> bytes:
    """A PDF of a typst template that reads `document` as JSON; `files` lie beside it.

    Fonts are IBM Plex Sans and those that the typesetter brings, so that pages are the same on
    every machine, and no package is fetched. ReportError if it cannot be set.
    """
    return _compile_typst(template, document, files, "pdf")[0]


def _compile_typst(
    template: str,
    document: object,
    files: Mapping[str, bytes],
    output_format: Literal["pdf", "png"],
) -> list[bytes]:
    """A PDF as one file, or the pages as PNG."""
    with tempfile.TemporaryDirectory(prefix="iolab-brief-") as folder:
        main = Path(folder) / "brief.typ"
        main.write_text(template, encoding="utf-8")
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        try:
            made = typst.compile(
                str(main),
                root=folder,
                format=output_format,
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


def _chart_svg_for_paper(chart: Chart) -> bytes:
    return svg_document(chart, font=SANS).encode()


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
    return typeset_brief_pdf(brief, build_report_page(brief), paper)


def typeset_brief_pdf(brief: Brief, page: ReportPage, paper: Paper) -> bytes:
    """The same of a brief that is arranged already."""
    charts = _ChartFiles()
    if page.topology and page.has_topology_in_brief:
        for name, svg in (
            (DRAWING, page.topology.svg),
            (NARROW_DRAWING, page.topology.narrow_svg),
        ):
            drawing = svg.replace("currentColor", INK.light)
            charts.files[name] = drawing.replace("<svg ", f'<svg xmlns="{_SVG}" ', 1).encode()
    if brief.user_text.logo:
        charts.files[LOGO] = brief.user_text.logo
    logo = LOGO if brief.user_text.logo else ""
    extra = [_blocks_typst_data(blocks, charts) for blocks in _page_filler_blocks(page)]
    frame = {**_common_document_data(brief, page, paper, "brief"), "logo": logo, "extra": extra}
    return _typeset_document(frame, brief_blocks(brief, page), charts)


def _page_filler_blocks(page: ReportPage) -> Iterator[list[Block]]:
    """What pages that would be half empty have, as far as there is room for it."""
    charts = [chart for group in page.charts_by_workload for chart in group.charts]
    tables = [replace(table, title="") for table in joined_point_tables(charts)]
    for table in tables:
        yield [Heading("The numbers", 1), table]
    backing = [
        replace(chart, page_columns=6)
        for section in page.appendix_sections
        if section.anchor == FURTHER
        for group in section.groups
        for chart in group.charts
    ]
    if len(backing) > 1:
        yield [Heading("More charts", 1), ChartBlock(tuple(backing[:2]))]
    for name, items in (
        ("More caveats", [brief_objection_block(own) for own in page.further_caveats]),
        ("More findings", [linked_sentence_block(own) for own in page.further_findings]),
    ):
        if items:
            shown = items[:SPARE_ITEMS]
            count = f" ({len(shown)} of {len(items)}; all in the appendix)"
            yield [Heading(name + count * (len(shown) < len(items)), 1), *shown]
    for repeat in page.reproduction_instructions[:1]:
        yield [
            Heading("How to repeat it", 1),
            CodeBlock(shlex.join(repeat.command)),
            repeat.versions,
        ]


def render_appendix(brief: Brief, paper: Paper = Paper.A4) -> bytes:
    """What backs the brief: every run, check, host and job. ReportError as above."""
    page = build_report_page(brief)
    frame = {**_common_document_data(brief, page, paper, "appendix"), "logo": ""}
    runs = _blocks_of_runs(page, title_by_configuration_if_several(brief.study))
    return _typeset_document(frame, appendix_blocks(brief, page, runs), _ChartFiles())


def _typeset_document(
    common_data: dict[str, Any], blocks: Iterable[Block], figure_files: _ChartFiles
) -> bytes:
    document = _escape_invisible_texts(
        {**common_data, "blocks": _blocks_typst_data(blocks, figure_files)}
    )
    return typeset_pdf(_TEMPLATE.read_text(encoding="utf-8"), document, figure_files.files)


def _block_typst_data(block: Block, figure_files: _ChartFiles) -> Iterator[dict[str, Any]]:
    """The block as the typesetter's template takes it."""
    match block:
        case Heading():
            yield {
                "kind": "heading",
                "text": block.text,
                "level": block.level,
                "anchor": block.anchor,
            }
        case Paragraph():
            level = verdict_typst_data(block.verdict) if block.verdict else None
            yield {
                "kind": block.style.value,
                "lead": block.lead,
                "text": block.text_after_lead,
                "level": level,
                "note": block.note,
            }
        case UserTextBlock():
            yield {"kind": "own", "blocks": markdown_to_blocks(block.markdown)}
        case CodeBlock():
            yield {"kind": "code", "text": block.text, "language": block.language}
        case Table():
            yield from ({"kind": "table", **table_typst_data(block)} for _ in block.rows[:1])
        case ChartBlock():
            found = figure_files.draw_charts_and_get_typst_data(
                block.charts, is_detailed=block.is_detailed
            )
            yield {"kind": "charts", "figures": found, "detailed": block.is_detailed}
        case TopologyBlock():
            yield {
                "kind": "drawing",
                "alt": block.alt_text,
                "file": DRAWING,
                "narrow": NARROW_DRAWING,
            }
        case LandscapeBlocks() | FastFactsBlock() | SideBySideBlocks():
            yield _layout_typst_data(block, figure_files)


def _layout_typst_data(
    block: LandscapeBlocks | FastFactsBlock | SideBySideBlocks, figure_files: _ChartFiles
) -> dict[str, Any]:
    """What stands beside other things, or on pages of its own."""
    match block:
        case FastFactsBlock():
            facts = [
                {
                    "value": text_with_no_break_units(fact.value),
                    "label": fact.label,
                    "note": text_with_no_break_units(fact.note),
                }
                for fact in block.facts
            ]
            return {"kind": "facts", "facts": facts}
        case SideBySideBlocks():
            left, right = (
                _blocks_typst_data(side, figure_files) for side in (block.left, block.right)
            )
            return {"kind": "columns", "left": left, "right": right}
        case LandscapeBlocks():
            return {"kind": "landscape", "blocks": _blocks_typst_data(block.blocks, figure_files)}


def _blocks_typst_data(blocks: Iterable[Block], figure_files: _ChartFiles) -> list[dict[str, Any]]:
    every = (data for block in blocks for data in _block_typst_data(block, figure_files))
    parts: list[dict[str, Any]] = []
    for is_list, own in groupby(every, _is_list_item_without_verdict):
        members = list(own)
        parts += [{"kind": "list", "items": members}] if is_list else members
    return parts


def _is_list_item_without_verdict(block_document: Mapping[str, Any]) -> bool:
    """Whether it is an item of a list, without a verdict."""
    return block_document["kind"] == "item" and block_document["level"] is None


def _common_document_data(
    brief: Brief, page: ReportPage, paper: Paper, document_part: str
) -> dict[str, Any]:
    """What both documents have: paper, title, and where they come from."""
    return {
        "part": document_part,
        "paper": paper.typst_name,
        "study": brief.study.id,
        "title": brief.study.title,
        "question": brief.study.question,
        "facts": [list(pair) for pair in page.fact_rows],
        "tail": HARDWARE_TITLE,
        "legend": legend_names_and_colors(brief),
        "footer": f"iolab {brief.session.iolab_version}, session {brief.session.id}",
    }


def legend_names_and_colors(brief: Brief) -> list[tuple[str, str]]:
    """The names of configurations with their colours on paper; none of a single one."""
    styles = brief.series_styles.values()
    pairs = [(style.legend_text, style.color.light) for style in styles]
    return pairs if len(pairs) > 1 else []


class _ChartFiles:
    """Figures drawn one after the other, each in a file of its own."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def draw_charts_and_get_typst_data(
        self, charts: Iterable[Chart], *, is_detailed: bool
    ) -> list[dict[str, str | int]]:
        """What the template says of each, with its file drawn; in detail with what it shows.

        Those stand in two columns, and others in rows of as many columns as they have.
        """
        drawn: list[dict[str, str | int]] = []
        for chart in charts:
            columns = 6 if is_detailed else chart.page_columns
            name = f"figure-{len(self.files)}.svg"
            self.files[name] = _chart_svg_for_paper(
                replace(chart, fixed_width=PAPER_WIDTHS[columns])
            )
            drawn.append(
                {
                    "file": name,
                    "columns": columns,
                    "title": chart.title,
                    "finding": chart.finding if is_detailed else "",
                    "note": chart.note,
                    "alt": chart.alt_text,
                }
            )
        return drawn


def _blocks_of_runs(page: ReportPage, configuration_titles: Mapping[str, str]) -> Iterator[Block]:
    """Runs with charts or hosts of their own each, the others in tables; once what all have."""
    with_charts = [part for part in page.runs[:RUNS_WITH_CHARTS] if part.charts]
    without = [part for part in page.runs if part not in with_charts]
    shown_runs = [
        *with_charts,
        *(part for part in without if part.hosts_table or part.fleet_tables),
    ]
    others = [part for part in without if not (part.hosts_table or part.fleet_tables)]
    looked = Counter(passed_checks_text(part.result.verdict) for part in page.runs)
    usual = next((note for note, number in looked.most_common(1) if number > 1), "")
    sessions = {part.storage_text.partition(", ")[0] for part in page.runs}
    only = sessions.pop() if len(sessions) == 1 else ""
    session = f"{only}, " if only else ""
    groups = [ChartGroup("", part.charts) for part in with_charts]
    drawn, notes = factor_out_shared_notes(groups)
    shown = [group.charts for group in drawn] + [()] * (len(shown_runs) - len(drawn))
    yield Heading("Runs and their checks", 1)
    if usual:
        yield Paragraph(f"Of each run, unless noted otherwise: {usual}", ParagraphStyle.NOTE)
    if notes:
        yield Paragraph(notes, ParagraphStyle.NOTE)
    if only:
        yield Paragraph(
            f"Stored in the {only.replace('Session', 'session', 1)}.", ParagraphStyle.NOTE
        )
    for part, own in zip(shown_runs, shown, strict=True):
        yield Heading(run_with_configuration_text(part.result, configuration_titles), 3)
        trace = part.storage_text.removeprefix(session)
        checks = _passed_checks_note_if_unusual(part.result, usual)
        yield Paragraph(trace, ParagraphStyle.ITEM, part.result.verdict.level, checks)
        if own:
            yield ChartBlock(own, is_detailed=True)
        if part.hosts_table:
            yield part.hosts_table
        yield from (*part.fleet_tables, objections_table(part.result))
    yield from _objection_tables(others, configuration_titles)
    yield _verdicts_and_folders_table(others, configuration_titles, usual, session)


def _passed_checks_note_if_unusual(result: RunResult, usual_checks_note: str) -> str:
    note = passed_checks_text(result.verdict)
    return "" if note == usual_checks_note else note


def _objection_tables(
    sections_of_runs: Sequence[RunSection], configuration_titles: Mapping[str, str]
) -> Iterator[Table]:
    """A table for each check that objects to any of these runs; evidence that all share once."""
    by_code: dict[str, list[tuple[RunSection, CheckResult]]] = {}
    for part in sections_of_runs:
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
            row_of_cells(
                run_with_configuration_text(part.result, configuration_titles),
                objection.level or VerdictLevel.INVALID,
                evidence_text({k: v for k, v in objection.evidence.items() if k not in shared}),
            )
            for part, objection in hits
        ]
        if shared:
            rows.insert(
                0, (*row_of_cells("all of these", ""), *row_of_cells(evidence_text(shared)))
            )
        heads = text_and_number_columns(("Run", "Verdict", "Evidence"))
        yield Table(f"{code}, as of the first: {first.message}", heads, tuple(rows))


def _verdicts_and_folders_table(
    sections_of_runs: Sequence[RunSection],
    configuration_titles: Mapping[str, str],
    usual_checks_note: str,
    stripped_prefix: str,
) -> Table:
    """Verdicts of runs, where they are stored, and what checks looked where that is unusual."""
    rows = tuple(
        row_of_cells(
            run_with_configuration_text(part.result, configuration_titles),
            part.result.verdict.level,
            part.storage_text.removeprefix(stripped_prefix),
            _passed_checks_note_if_unusual(part.result, usual_checks_note) or DASH,
        )
        for part in sections_of_runs
    )
    heads = text_and_number_columns(("Run", "Verdict", "Stored in", "Checks"))
    return table_without_empty_columns(Table("Where other runs are stored", heads, rows))


def _escape_invisible_texts(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The document with every unseen character of its texts written out."""
    if isinstance(value, str):
        return escape_invisible(value)
    if isinstance(value, dict):
        return {key: _escape_invisible_texts(part) for key, part in value.items()}
    return [_escape_invisible_texts(part) for part in value] if isinstance(value, list) else value


def chart_and_table_files(brief: Brief) -> Iterator[tuple[str, str | bytes]]:
    """(name, content) of each file; names are numbered in the order of the report."""
    page = build_report_page(brief)
    drawn = {id(chart): chart for chart in page_charts(page)}  # that of the first page stands twice
    pictures = chart_pngs(list(drawn.values()))
    for number, (chart, picture) in enumerate(zip(drawn.values(), pictures, strict=True), 1):
        name = _chart_file_stem("figure", number, chart)
        yield f"{name}.svg", svg_document(chart)
        yield f"{name}.png", picture
        yield f"{name}.csv", table_csv(chart.table)
    for number, table in enumerate(_page_tables(page), 1):
        yield f"table-{number:02d}-{file_name_slug(table.title)}.csv", table_csv(table)


def _page_tables(page: ReportPage) -> Iterable[Table]:
    every = (
        page.answer.best_table,
        *(
            table
            for group in page.chart_groups
            for table in (
                group.table,
                *(
                    extra
                    for extra, _ in (
                        *group.tables_below_with_notes,
                        *group.detail_tables_with_notes,
                    )
                ),
            )
        ),
        *page.hardware_tables,
        page.method_table,
        *page.job_tables,
        *page.result_tables,
    )
    return dict.fromkeys(table for table in every if table is not None and table.rows)


def _chart_file_stem(prefix: str, number: int, chart: Chart) -> str:
    return f"{prefix}-{number:02d}-{file_name_slug(f'{chart.subject} {chart.title}')}"
