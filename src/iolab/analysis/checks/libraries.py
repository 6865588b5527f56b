"""Whether libraries stand between a load and the kernel that change what its calls do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    valid_answer,
)
from iolab.analysis.view import RunView
from iolab.core.libraries import (
    InterposerKind,
    LibrarySource,
    LoadedLibrary,
    interposer_kind,
    known_library_name,
    replaced_functions_text,
)
from iolab.text import counted_noun, excerpt


@check("preloaded-library", "A library between the load and the kernel")
@per_host(max_key="rank")
def check_preloaded_library(view: RunView, host_index: int) -> Iterable[CheckAnswer]:
    """Whether a process of the load had a library that replaces what reaches storage or clocks."""
    host = view.hosts[host_index]
    use = host.libraries
    if use is None:
        return [not_applicable_answer(f"{host.host} does not show which libraries its load had.")]
    files = counted_noun(use.files, "mapped file")
    clean = valid_answer(
        f"No library stands between the load{view.on_host_if_several(host)} and the kernel "
        f"({files} of {counted_noun(use.processes, 'process', 'processes')}).",
        host=host.host,
        files=use.files,
        processes=use.processes,
        spent_ms=use.spent_ns / 1e6,
    )
    suffix = f"{view.on_host_if_several(host)}"
    return list(preload_answers(use.libraries, f"The load{suffix}", host.host)) or [clean]


def preload_answers(
    libraries: Iterable[LoadedLibrary], process_text: str, host_name: str = ""
) -> Iterator[CheckAnswer]:
    """What each library means for the result of the `process_text` that has it."""
    for library in libraries:
        kind, path = interposer_kind(library), excerpt(library.path, 200)
        evidence: EvidenceValues = {
            "host": host_name,
            "library": path,
            "source": library.source.value,
            "kind": kind.value,
            "functions": ", ".join(library.exports),
            "rank": list(InterposerKind)[::-1].index(kind),
        }
        text = f"{process_text} has {path} ({_library_source_text(library.source)})"
        if kind is InterposerKind.REPLACES:
            yield invalid_answer(
                f"{text}, which has functions of its own for "
                f"{replaced_functions_text(library)}: what was measured may not be the storage.",
                **evidence,
            )
        elif kind is InterposerKind.SANITIZER:
            name = known_library_name(library)
            yield valid_answer(f"{text}: {name}, which slows the load.", **evidence)
        elif kind is InterposerKind.ALLOCATOR:
            name = known_library_name(library) or "another allocator"
            yield valid_answer(f"{text}: {name}, which does not touch I/O.", **evidence)
        elif kind is InterposerKind.NOT_LOADED:
            yield valid_answer(
                f"{process_text} was told to load {path} ({_library_source_text(library.source)}), "
                "which it did not load.",
                **evidence,
            )
        else:
            why = f" ({excerpt(library.fault, 100)})" if library.fault else ""
            yield indicative_answer(
                f"{text}; what it changes is not known{why}.",
                **evidence,
            )


def _library_source_text(source: LibrarySource) -> str:
    if source is LibrarySource.MAPPED:
        return "mapped, and not the system's or the program's own"
    if source is LibrarySource.PROGRAM:
        return "the program itself"
    return f"by {source.value}"
