"""The studies that come with iolab, and how a study is found by its name or its file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import iolab
from iolab.cli.options import (
    AsJson,
    EngineOption,
    HostsFile,
    Scale,
    ServerOption,
    Sets,
    StudyName,
    TargetPath,
    load_study,
)
from iolab.core.toml import read_regular
from iolab.errors import StoreError, UsageError

if TYPE_CHECKING:
    from iolab.importers.job_files import StudyDraft
    from iolab.published.audit.document import PublishedSet

_SUFFIX: Final = ".toml"
_PACKAGE: Final = Path(iolab.__file__).parent
_PLACES: Final = (_PACKAGE / "_studies", _PACKAGE.parents[1] / "studies")
"""Where the wheel puts the bundled studies, and where a checkout has them."""

_PUBLISHED: Final = "published"
"""Where results that others published lie, beside the studies."""

STUDY_BYTES_MAX: Final = 4 << 20
"""No study comes near; a device or a disk image by mistake is not read into memory."""


@dataclass(frozen=True, slots=True)
class StudySource:
    """A file's text and the name that its faults are told with."""

    text: str
    file_name: str


@dataclass(frozen=True, slots=True)
class BundledStudy:
    """One study that comes with iolab."""

    id: str
    title: str
    question: str
    path: Path


def bundled() -> tuple[BundledStudy, ...]:
    """Every bundled study, by id."""
    found = []
    for path in sorted(_folder().glob(f"*{_SUFFIX}")):
        heading = tomllib.loads(path.read_text(encoding="utf-8"))
        found.append(BundledStudy(heading["id"], heading["title"], heading["question"], path))
    return tuple(found)


def published_ids() -> tuple[str, ...]:
    """The ids of all published sets."""
    return tuple(sorted(path.stem for path in (_folder() / _PUBLISHED).glob(f"*{_SUFFIX}")))


def find_published(name: str) -> StudySource:
    """The published set of that id, or in that file; UsageError when there is none."""
    if name in published_ids():
        path = _folder() / _PUBLISHED / f"{name}{_SUFFIX}"
        return _read(path, path.name)
    if name.endswith(_SUFFIX) or "/" in name:
        return _read(Path(name), name, "Give a published set or a .toml file.")
    from iolab.study.wording import shown, suggestion

    raise UsageError(
        f"There is no published set {shown(name)}.",
        suggestion(name, published_ids(), "published sets"),
    )


def open_published(name: str) -> PublishedSet:
    """The published set of that id, or in that file, read; UsageError when it is none."""
    from iolab.published.audit.document import read_published
    from iolab.study.wording import shown

    source = find_published(name)
    try:
        return read_published(source.text)
    except ValueError as error:
        do = "Give a set of the form that 'iolab reference NAME --toml' prints."
        raise UsageError(f"{shown(name)} is no set of results: {error}.", do) from None


def find_study(name: str) -> StudySource:
    """The study of that id, or in that file; UsageError when there is none, with the nearest."""
    path = Path(name)
    if path.suffix == _SUFFIX or "/" in name:
        return _read(path, name)
    bundled_path = _folder() / f"{name}{_SUFFIX}"
    if bundled_path.is_file():
        return _read(bundled_path, f"{name}{_SUFFIX}")
    if path.is_file():
        return _read(path, name)
    from iolab.study.wording import shown, suggestion

    raise UsageError(
        f"There is no study {shown(name)}.",
        suggestion(name, [study.id for study in bundled()], "bundled studies")
        + " Give a bundled study or a .toml file.",
    )


def read_source(name: str, give: str) -> StudySource:
    """The text of any file that a command line names; `give` is what to do when it is none."""
    return _read(Path(name), name, give)


def _folder() -> Path:
    for place in _PLACES:
        if place.is_dir():
            return place
    raise StoreError("The bundled studies are missing.", "Install iolab again.")


_GIVE_STUDY: Final = "Give a bundled study (see 'iolab studies') or a .toml file."


def _read(path: Path, name: str, give: str = _GIVE_STUDY) -> StudySource:
    """The text of a study file; UsageError when it is missing, unreadable or no text."""
    from iolab.study.wording import shown

    try:
        content = read_regular(path, STUDY_BYTES_MAX)
        return StudySource(content.decode("utf-8-sig"), name)
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {shown(name)}.", give) from error
    except OSError as error:
        raise UsageError(f"{shown(name)} cannot be read: {error.strerror}.", give) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(name)} is not UTF-8 text (byte {error.start}).", give) from error


def studies(*, as_json: AsJson = False) -> None:
    """List the bundled studies."""
    from iolab.cli.output import result_json, result_screen
    from iolab.study.load import scale_names

    found = bundled()
    scales = {study.id: scale_names(study.path.read_text(encoding="utf-8")) for study in found}
    if as_json:
        listing = [
            {
                "id": study.id,
                "title": study.title,
                "question": study.question,
                "scales": list(scales[study.id]),
            }
            for study in found
        ]
        result_json({"format": 1, "studies": listing})
        return
    from iolab.report.terminal import Heading, plain, table

    rows = [
        [plain(study.id, "bold"), plain(study.question), plain(", ".join(scales[study.id]))]
        for study in found
    ]
    headings = [Heading("study"), Heading("question", main=True), Heading("scales")]
    result_screen(table(headings, rows))


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write.")] = Path(
        "study.toml"
    ),
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="JOB",
            help="Do what a job file of fio's, a report of fio's or a file of vdbench's does.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented study to begin with."""
    from iolab.cli.output import result, result_json, say, write_new
    from iolab.errors import UsageError
    from iolab.study.template import study_template
    from iolab.study.wording import shown

    if file.suffix != ".toml":
        raise UsageError(
            f"{shown(str(file))} does not end in .toml, as a study's file does.",
            f"Write {shown(str(file) + '.toml')}.",
        )
    text = study_template(file.stem)
    draft = None if source is None else _draft(file.stem, source)
    write_new(file, text if draft is None else draft.text)
    notes = [] if draft is None else [str(note) for note in draft.notes]
    if as_json:
        document = {"format": 1, "written": str(file)}
        result_json(document if draft is None else {**document, "notes": notes})
        return
    for note in notes:
        say(note)
    result(str(file))
    say(f"Next: change it, then 'iolab check {file}' and 'iolab plan {file} --path DIR'.")


def _draft(study_id: str, source: Path) -> StudyDraft:
    """The study of a job file; UsageError where it cannot be read or is none."""
    from iolab.importers.files import FILE_BYTES_MOST
    from iolab.importers.job_files import draft_of
    from iolab.study.wording import shown

    try:
        content = read_regular(source, FILE_BYTES_MOST)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"{shown(str(source))} cannot be read: {why}.", "Name a job file."
        ) from error
    return draft_of(study_id, source.name, content.decode("utf-8", "replace"))


def check(
    study: StudyName,
    *,
    path: TargetPath = None,
    hosts: HostsFile = None,
    scale: Scale = "full",
    sets: Sets = None,
    server: ServerOption = None,
    engine: EngineOption = None,
    as_json: AsJson = False,
) -> None:
    """Check a study file; touch no host."""
    from iolab.cli.output import result_json, result_screen
    from iolab.cli.study_kinds import STUDY_KINDS
    from iolab.report.numbers import count
    from iolab.report.terminal import one_line, plain
    from iolab.study.foretold import foretell
    from iolab.study.schedule import make_plan

    read = load_study(
        study, path, scale, sets, hosts=hosts, server=server, engine=engine, path_required=False
    )
    made = make_plan(read, STUDY_KINDS)
    foretold = foretell(read, made, STUDY_KINDS)
    if as_json:
        result_json(
            {
                "format": 1,
                "study": read.id,
                "title": read.title,
                "scale": read.scale,
                "configurations": len(read.configurations),
                "hosts": len(read.hosts),
                "workloads": len(read.workloads),
                "points": len(made.points),
                "runs": len(made.runs),
                "best_verdict": foretold.document(),
            }
        )
        return
    counted = ", ".join(
        (
            count(len(read.configurations), "configuration"),
            count(len(read.workloads), "workload"),
            count(len(made.points), "point"),
            count(len(made.runs), "run"),
        )
    )
    said = f"{study} is right: {read.id}, scale {read.scale}, {counted}."
    result_screen(*(plain(one_line(text)) for text in (said, *foretold.lines())))
