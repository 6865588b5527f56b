"""The studies that come with iolab, and how a study is found by its name or its file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.core.regular_file import read_regular_file
from iolab.errors import StoreError, UsageError
from iolab.record import Record
from iolab.text import quote_value, suggestion

if TYPE_CHECKING:
    from iolab.published.audit.document import PublishedSet

_SUFFIX: Final = ".toml"
_PACKAGE: Final = Path(__file__).parents[1]
_STUDY_FOLDERS: Final = (_PACKAGE / "_studies", _PACKAGE.parents[1] / "studies")
"""Where the wheel puts the bundled studies, and where a checkout has them."""

_PUBLISHED: Final = "published"
"""Where results that others published lie, beside the studies."""

STUDY_BYTES_MAX: Final = 4 << 20
"""No study comes near; a device or a disk image by mistake is not read into memory."""

_GIVE_STUDY: Final = "Give a bundled study (see 'iolab studies') or a .toml file."


class SourceText(Record):
    """A file's text and the name that its faults are told with."""

    text: str
    file_name: str


class BundledStudy(Record):
    """One study that comes with iolab."""

    id: str
    title: str
    question: str
    path: Path


def bundled_studies() -> tuple[BundledStudy, ...]:
    """Every bundled study, by id."""
    studies = []
    for path in sorted(_studies_folder().glob(f"*{_SUFFIX}")):
        heading = tomllib.loads(path.read_text(encoding="utf-8"))
        studies.append(BundledStudy(heading["id"], heading["title"], heading["question"], path))
    return tuple(studies)


def published_set_ids() -> tuple[str, ...]:
    """The ids of all published sets."""
    return tuple(sorted(path.stem for path in (_studies_folder() / _PUBLISHED).glob(f"*{_SUFFIX}")))


def read_published_source(id_or_path: str) -> SourceText:
    """The published set of that id, or in that file; UsageError when there is none."""
    if id_or_path in published_set_ids():
        path = _studies_folder() / _PUBLISHED / f"{id_or_path}{_SUFFIX}"
        return _read_study_file(path, path.name)
    if id_or_path.endswith(_SUFFIX) or "/" in id_or_path:
        return _read_study_file(
            Path(id_or_path), id_or_path, "Give a published set or a .toml file."
        )
    raise UsageError(
        f"There is no published set {quote_value(id_or_path)}.",
        suggestion(id_or_path, published_set_ids(), "published sets"),
    )


def read_published_set(id_or_path: str) -> PublishedSet:
    """The published set of that id, or in that file, read; UsageError when it is none.

    A file with the id of a set that ships is a copy of it: without `[meaning]` it has the latter's.
    """
    from iolab.published.audit.document import parse_published_set
    from iolab.published.meaning import MEANING_KEY

    source = read_published_source(id_or_path)
    try:
        published = parse_published_set(source.text)
    except ValueError as error:
        hint = "Give a set of the form that 'iolab reference NAME --toml' prints."
        raise UsageError(
            f"{quote_value(id_or_path)} is no set of results: {error}.", hint
        ) from None
    is_copy = id_or_path != published.id and published.id in published_set_ids()
    if is_copy and MEANING_KEY not in published.tree:
        return replace(published, meaning=read_published_set(published.id).meaning)
    return published


def read_study_source(id_or_path: str) -> SourceText:
    """The study of that id, or in that file; UsageError when there is none, with the nearest."""
    path = Path(id_or_path)
    if path.suffix == _SUFFIX or "/" in id_or_path:
        return _read_study_file(path, id_or_path)
    bundled_path = _studies_folder() / f"{id_or_path}{_SUFFIX}"
    if bundled_path.is_file():
        return _read_study_file(bundled_path, f"{id_or_path}{_SUFFIX}")
    if path.is_file():
        return _read_study_file(path, id_or_path)
    raise UsageError(
        f"There is no study {quote_value(id_or_path)}.",
        suggestion(id_or_path, [study.id for study in bundled_studies()], "bundled studies")
        + " Give a bundled study or a .toml file.",
    )


def read_file_argument(path_argument: str, remedy: str) -> SourceText:
    """The text of any file that a command line names; `remedy` is what to do when it is none."""
    return _read_study_file(Path(path_argument), path_argument, remedy)


def _studies_folder() -> Path:
    for place in _STUDY_FOLDERS:
        if place.is_dir():
            return place
    raise StoreError("The bundled studies are missing.", "Install iolab again.")


def _read_study_file(path: Path, shown_name: str, remedy: str = _GIVE_STUDY) -> SourceText:
    """The text of a study file; UsageError when it is missing, unreadable or no text."""
    try:
        content = read_regular_file(path, STUDY_BYTES_MAX)
        return SourceText(content.decode("utf-8-sig"), shown_name)
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {quote_value(shown_name)}.", remedy) from error
    except OSError as error:
        raise UsageError(
            f"{quote_value(shown_name)} cannot be read: {error.strerror}.", remedy
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{quote_value(shown_name)} is not UTF-8 text (byte {error.start}).", remedy
        ) from error
