"""What jobs, studies and plans need to know of each engine of files, before any is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from iolab.core.engine import EngineName
from iolab.core.host import HostFacts, HostProgram, ToolFacts, version_argv_by_tool
from iolab.record import Record
from iolab.text import quote_value

FIO_ENGINE: Final = EngineName("fio")

NATIVE_ENGINE: Final = EngineName("native")
"""The agent itself."""

LIBAIO: Final = "libaio"

AUTO: Final = "auto"
"""The way to the kernel that the native engine finds best on the target."""

FIO_OLDEST: Final = (3, 16)
"""The first fio whose JSON has the latency bins of whole I/Os (lat_ns) that iolab reads."""

_OLDEST: Final = ".".join(map(str, FIO_OLDEST))
_FIO_VERSION: Final = re.compile(r"fio-(\d{1,4})\.(\d{1,4})(?:[.-].*)?")


def parse_fio_version(text: str | None) -> tuple[int, int] | None:
    """Major and minor number in a first line like `fio-3.33-5-gabc`; None where there is none."""
    match = _FIO_VERSION.fullmatch((text or "").strip())
    return (int(match.group(1)), int(match.group(2))) if match else None


def fio_unusable_reason(tool: ToolFacts | None) -> str | None:
    """What a host's fio is, if it cannot serve: `not installed`; None where it can."""
    if tool is None or (tool.path is None and tool.version is None):
        return "not installed"
    version = parse_fio_version(tool.version)
    if version is None:
        return f"of unknown version: {quote_value(tool.fault or tool.version or '')}"
    if version < FIO_OLDEST:
        return f"{quote_value(tool.version or '')}, where fio {_OLDEST} or newer is needed"
    return None


def _fio_version_none_or_unknown_text(host_facts: HostFacts) -> str:
    tool = host_facts.tool_facts(FIO_ENGINE)
    if tool is None or tool.path is None:
        return "none"
    return (tool.version or "") if parse_fio_version(tool.version) else "unknown"


class FileEngineFacts(Record):
    """One engine: its `name` in studies, and the `program` of hosts that it is, if any.

    `default_ioengine` is how it asks the kernel where a study does not say.
    `generator_limit_load_s` is the load of one look at how much it can make at all,
    `generator_limit_measurement_s` the same with its start and end. `reports_errors_at_end` is
    whether it goes on after errors, which only its last word tells of.
    """

    name: EngineName
    default_ioengine: str
    generator_limit_load_s: float
    generator_limit_measurement_s: float
    reports_errors_at_end: bool = False
    program: HostProgram | None = None


FILE_ENGINES: Final[Mapping[str, FileEngineFacts]] = MappingProxyType(
    {
        FIO_ENGINE: FileEngineFacts(
            FIO_ENGINE,
            LIBAIO,
            # Hundreds of thousands of I/Os. fio counts its time in whole milliseconds from each
            # process's own start, so it takes longer until that no longer matters.
            generator_limit_load_s=0.5,
            generator_limit_measurement_s=1.0,
            program=HostProgram(
                FIO_ENGINE,
                FIO_ENGINE,
                {FIO_ENGINE: (FIO_ENGINE, "--version")},
                _fio_version_none_or_unknown_text,
                unequal_versions_hint="Install the same version on all; versions differ in what "
                "they do and count.",
                fault_of_facts=lambda facts: fio_unusable_reason(facts.tool_facts(FIO_ENGINE)),
                install_hint=f"Install fio {_OLDEST} or newer there, as with "
                "'apt-get install fio'; runs with --engine native need none.",
            ),
        ),
        NATIVE_ENGINE: FileEngineFacts(
            NATIVE_ENGINE,
            AUTO,
            generator_limit_load_s=0.3,
            generator_limit_measurement_s=0.4,
            reports_errors_at_end=True,
        ),
    }
)
"""All that a study may name. Times of looks are as they were measured on two busy cores."""

VERSION_COMMANDS: Final[Mapping[str, list[str]]] = version_argv_by_tool(
    engine.program for engine in FILE_ENGINES.values() if engine.program
)
"""What hosts are asked for: programs, each with the command that tells its version."""
