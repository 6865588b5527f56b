"""`iolab report`: the technical brief of a session, as HTML, PDF or Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec.structs import replace

from iolab.cli.options import (
    AsJson,
    path_or_newest_session,
    published_set_completions,
    session_completions,
)
from iolab.cli.output import (
    make_directory_if_missing,
    open_session,
    print_json,
    print_message,
    print_result,
    replace_files_atomically,
    require_directory_or_nothing,
    require_no_directory,
    require_valid_output_path,
)
from iolab.errors import UsageError
from iolab.text import quote_value, suggestion

if TYPE_CHECKING:
    from iolab.report.brief import Brief, PublishedResultTables, SectionMaker
    from iolab.report.gather import StoredSessionReader

REPORT_FILE: Final = "report.html"
"""Where a session's report goes unless a form is named; that of several goes where we are."""


LOAD_MAX: Final = 1_000_000
"""No axis goes so far."""


class PaperName(StrEnum):
    """What `--paper` takes."""

    A4 = "a4"
    LETTER = "letter"


Sessions = Annotated[
    list[Path],
    typer.Argument(
        metavar="SESSION",
        help="The directory of a session, also of a running one, or of several to compare; the "
        "first is the baseline. 'last' is the newest one below the current directory.",
        parser=path_or_newest_session,
        autocompletion=session_completions,
    ),
]


def report(
    sessions: Sessions,
    *,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write HTML to this file. Default, if no other form is named: "
            "SESSION/report.html, for several sessions ./report.html.",
        ),
    ] = None,
    pdf: Annotated[
        Path | None,
        typer.Option(
            "--pdf",
            metavar="FILE",
            help="Write PDF, its appendix beside it.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--md",
            metavar="FILE",
            help="Write Markdown without charts, its appendix beside it.",
        ),
    ] = None,
    docx: Annotated[
        Path | None,
        typer.Option(
            "--docx",
            metavar="FILE",
            help="Write the brief as a Word document (needs python-docx).",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures",
            metavar="DIR",
            help="Write each chart as SVG and PNG, each table as CSV.",
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            "--text",
            metavar="FILE",
            help="Your Markdown file with author, logo, introduction and conclusion.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="SET[:NAME]",
            help="Compare with a published set (see 'iolab reference') or file, or with one "
            "cluster, client or product of it.",
            autocompletion=published_set_completions,
        ),
    ] = None,
    allow_differences: Annotated[
        bool,
        typer.Option(
            "--allow-differences",
            help="Compare although load or method differ; such rows are marked.",
        ),
    ] = False,
    predict: Annotated[
        list[str] | None,
        typer.Option(
            "--predict",
            metavar="LOAD=N",
            help="Add a prediction for N hosts, depth, threads or vms (per node); repeatable.",
        ),
    ] = None,
    extrapolate: Annotated[
        bool,
        typer.Option("--extrapolate", help="Predict also beyond twice the largest measured load."),
    ] = False,
    paper: Annotated[PaperName, typer.Option("--paper", help="Paper of the PDF.")] = PaperName.A4,
    open_it: Annotated[
        bool, typer.Option("--open", help="Show what was written, in the browser or viewer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the report of sessions as HTML, PDF or Markdown."""
    forms = {"html": html, "pdf": pdf, "md": markdown, "docx": docx, "figures": figures}
    wanted = {form: path for form, path in forms.items() if path is not None}
    if not wanted:
        wanted = {"html": _default_report_file(sessions)}
    source = _open_sessions(sessions, allow_differences=allow_differences)
    beside = _published_comparison_sections(against) if against else ()
    if predict:
        beside += _prediction_sections(source, predict, does_extrapolate=extrapolate)
    written = write_report_files(source, wanted, paper, beside, text)
    if as_json:
        # One form is told as it always was.
        paths = written[0] if len(written) == 1 else list(written)
        print_json({"format": 1, "written": paths})
    else:
        for path in written:
            print_result(path)
    if open_it:
        _open_with_desktop(Path(written[0]))


def _open_with_desktop(path: Path) -> None:
    """Open a file with what the desktop has for it; where there is nothing, say so."""
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        print_message("There is no browser here to open it with.")


def write_html_report(session_directory: Path) -> Path:
    """Build and write the report as HTML; where it went."""
    path = session_directory / REPORT_FILE
    write_report_files(open_session(session_directory), {"html": path}, PaperName.A4)
    return path


def _default_report_file(sessions: Sequence[Path]) -> Path:
    """Where the report goes that no form is named for; UsageError where that would be a session."""
    from iolab.store.reader import is_session

    if len(sessions) == 1:
        return sessions[0] / REPORT_FILE
    here = Path.cwd()
    if any(is_session(folder) for folder in (here, *here.parents)):
        raise UsageError(
            "A report on several sessions is not written into one of them.",
            "Name a file with --html, --pdf or --md, or call it from another directory.",
        )
    return Path(REPORT_FILE)


def _open_sessions(sessions: Sequence[Path], *, allow_differences: bool) -> StoredSessionReader:
    """The sessions as one source; UsageError where they do not compare, unless that is allowed."""
    from iolab.cli.compare import require_mergeable
    from iolab.report.merged import merge_sessions, session_union_of_source

    source = merge_sessions(
        [(session.resolve().name or session.name, open_session(session)) for session in sessions]
    )
    if len(sessions) > 1 and not allow_differences:
        require_mergeable(
            session_union_of_source(source).session_labels_and_forbidding_differences()
        )
    return source


def write_report_files(
    source: StoredSessionReader,
    path_by_format: Mapping[str, Path],
    paper: PaperName,
    extra_sections: tuple[SectionMaker, ...] = (),
    user_text_path: Path | None = None,
) -> tuple[str, ...]:
    """Build the report once, then write it in each form when all are made; where they went."""
    from iolab.registry import report_kinds
    from iolab.report.gather import build_brief
    from iolab.report.merged import session_union_of_source
    from iolab.report.user_text import EMPTY_USER_TEXT, read_user_text

    for form, path in path_by_format.items():
        require_valid_output_path(path)
        if form == "figures":
            require_directory_or_nothing(path)
        else:
            require_no_directory(path)
        if form in ("pdf", "md"):
            require_valid_output_path(appendix_path(path))
    words = read_user_text(user_text_path) if user_text_path else EMPTY_USER_TEXT
    made_of = build_brief(
        report_kinds(),
        source,
        _published_tables(source),
        session_union_of_source(source),
        extra_sections,
    )
    brief = replace(made_of, user_text=words)
    files = [
        (path, content)
        for form, file in path_by_format.items()
        for path, content in _render_files(brief, form, file, paper)
    ]
    if "figures" in path_by_format:
        make_directory_if_missing(path_by_format["figures"])
    replace_files_atomically(dict(files))
    return tuple(str(path) for path, _ in files)


def appendix_path(path: Path) -> Path:
    """Where the appendix of a brief goes: beside it."""
    return path.with_stem(f"{path.stem}-appendix")


def _render_files(
    brief: Brief, report_format: str, file: Path, paper: PaperName
) -> tuple[tuple[Path, str | bytes], ...]:
    """The report in one form, of two files but for HTML, which folds its appendix.

    What draws and typesets is loaded where it is wanted.
    """
    if report_format == "md":
        from iolab.report.formats import markdown

        appendix = markdown.render_appendix(brief)
        return (file, markdown.render_markdown(brief)), (appendix_path(file), appendix)
    if report_format == "pdf":
        from iolab.report.formats import render

        on = render.Paper(paper.value)
        return (file, render.render_pdf(brief, on)), (
            appendix_path(file),
            render.render_appendix(brief, on),
        )
    if report_format == "docx":
        from iolab.report.formats.word import render_docx

        return ((file, render_docx(brief)),)
    if report_format == "figures":
        from iolab.report.formats.render import chart_and_table_files

        return tuple((file / name, content) for name, content in chart_and_table_files(brief))
    from iolab.report.formats.html import render_html

    return ((file, render_html(brief)),)


def _published_comparison_sections(set_argument: str) -> tuple[SectionMaker, ...]:
    """Sets results beside what `SET` or `SET:NAME` means; UsageError when there is none."""
    from iolab.cli.studies import read_published_set
    from iolab.published.comparison import comparison_section
    from iolab.published.recomputed import published_system_names
    from iolab.published.sets import PublishedReference, comparable_figures

    place, mark, only = set_argument.rpartition(":")
    if not mark or "/" in only:  # a path may have a colon in it
        place, only = set_argument, ""
    published = read_published_set(place)
    figures = comparable_figures(published)
    names = published_system_names(figures)
    if not figures:
        raise UsageError(
            f"{quote_value(place)} has no figure that a study measures.",
            "Give a published set; 'iolab reference' lists them.",
        )
    if only and only not in names:
        raise UsageError(
            f"{quote_value(place)} has no figures of {quote_value(only)}.",
            suggestion(only, names, "names"),
        )
    return (partial(comparison_section, PublishedReference(published, only)),)


def _prediction_sections(
    source: StoredSessionReader, requested_load_texts: Sequence[str], *, does_extrapolate: bool
) -> tuple[SectionMaker, ...]:
    """The section of those loads; UsageError for what is none, or varied by no workload."""
    from iolab.cli.predict import AXES
    from iolab.registry import analysis_kinds
    from iolab.report.predicted import (
        RequestedLoad,
        create_first_run_resources_reader,
        predictions_section,
    )

    loads = []
    swept = {axis.name for workload in source.study.workloads for axis in workload.sweep}
    for text in requested_load_texts:
        name, _, number = text.partition("=")
        if name not in AXES:
            raise UsageError(
                f"{quote_value(name)} is no load that can be predicted.",
                suggestion(name, tuple(AXES), "loads"),
            )
        if not (number.isascii() and number.isdecimal() and 0 < int(number[:10]) < LOAD_MAX):
            raise UsageError(
                f"{quote_value(text)} has no whole number below {LOAD_MAX}.",
                f"Write it like {name}=24.",
            )
        if AXES[name] not in swept:
            raise UsageError(
                f"No workload of the session varies {quote_value(AXES[name])}.",
                "Ask for an axis that its study has.",
            )
        loads.append(RequestedLoad(AXES[name], int(number), allow_any_distance=does_extrapolate))
    return (
        partial(
            predictions_section, loads, create_first_run_resources_reader(source, analysis_kinds())
        ),
    )


def _published_tables(source: StoredSessionReader) -> PublishedResultTables | None:
    """What others published of the same study, to be read beside it."""
    from iolab.cli.studies import published_set_ids, read_published_set
    from iolab.registry import report_kinds

    study = source.study
    if not report_kinds().has_published_figures(study) or study.id not in published_set_ids():
        return None
    from iolab.published.report import published_tables  # which few sessions need

    return published_tables(read_published_set(study.id))
