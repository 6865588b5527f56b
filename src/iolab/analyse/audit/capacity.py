"""Rules of what hardware adds up to: modules, drives, nodes, and figures per terabyte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from iolab.analyse.audit.document import MODULES, Published, label, span
from iolab.analyse.audit.figure import Span, exact, product
from iolab.analyse.audit.outcome import Outcome
from iolab.analyse.audit.relation import agreement, compared, number

GB_PER_TB: Final = 1000.0

_READS: Final = ("randread", "read")
"""Access patterns that only read."""


def modules(published: Published) -> Iterator[Outcome]:
    """`8x 32GB (256GB)`: the modules and their total, and the same total stated elsewhere."""
    for table in (*published.tables("configuration"), published.table("hardware")):
        for name, text in table.items():
            found = MODULES.search(text) if isinstance(text, str) else None
            if found is None or found[5] is None:
                continue
            made = exact(int(found[1]) * float(found[3]))
            subject = ", ".join(part for part in (label(table), name) if part)
            yield compared("modules", subject, f"{found[5]} GB", exact(int(found[5])), made, "GB")
            yield from _said_again(subject, name, made, table)


def _said_again(subject: str, name: str, made: Span, table: Mapping[str, Any]) -> Iterator[Outcome]:
    """Another key that begins with the same word and tells a total alone."""
    for other, text in table.items():
        alone = isinstance(text, str) and text.removesuffix("GB").isdecimal()
        if other != name and other.startswith(f"{name}_") and alone:
            stated = exact(int(text.removesuffix("GB")))
            said = f"{text.removesuffix('GB')} GB ({other.replace('_', ' ')})"
            yield compared("modules", subject, said, stated, made, "GB")


def raw_capacity(published: Published) -> Iterator[Outcome]:
    """Nodes times drives times the size of one."""
    for table in published.tables("configuration"):
        parts = [span(table.get(name)) for name in ("nodes", "ssds_per_node")]
        size, stated = _size(table), span(table.get("raw_tb"))
        if None in parts or size is None or stated is None:
            continue
        made = product([*(exact(part.middle) for part in parts if part), size])
        yield compared("raw-capacity", label(table), f"{table['raw_tb']} TB", stated, made, "TB")
    yield from _from_words(published)


def _from_words(published: Published) -> Iterator[Outcome]:
    """The same where the drives of a node stand in one text with its processors."""
    hardware, nodes = published.table("hardware"), span(published.table("method").get("nodes"))
    stated = span(hardware.get("cluster_raw_tb"))
    drives = [m for m in MODULES.finditer(str(hardware.get("node", ""))) if m[4] == "T"]
    if stated is None or nodes is None or len(drives) != 1:
        return
    (drive,) = drives
    made = product([exact(nodes.middle), exact(int(drive[1])), exact(float(drive[3]))])
    said = f"{hardware['cluster_raw_tb']} TB"
    yield compared("raw-capacity", "the cluster", said, stated, made, "TB")


def per_terabyte(published: Published) -> Iterator[Outcome]:
    """Figures per node and per terabyte against what they were derived from."""
    owners = {str(table.get("id")): table for table in published.tables("configuration")}
    reads = {
        str(table.get("id")) for table in published.tables("workload") if table.get("rw") in _READS
    }
    for derived in published.tables("printed_derivation"):
        owner = owners.get(str(derived.get("configuration")), {})
        raw, size = number(owner.get("raw_tb")), _size(owner)
        sources = {
            "tb_per_node": None
            if size is None
            else product([size, exact(number(owner.get("ssds_per_node")) or 0)]),
            "read_gb_s_per_tb": _best(owner.get("peak_gb_s"), reads, raw),
            "read_iops_per_tb": _best(owner.get("peak_iops"), reads, raw),
        }
        for name, made in sources.items():
            stated = span(derived.get(name))
            if stated is None or made is None:
                continue
            unit = name.replace("_per_", "/").replace("_s/", "/s/").replace("_", " ")
            yield compared("per-terabyte", label(owner), f"{derived[name]}", stated, made, unit)


def _best(peaks: object, reads: set[Any], raw_tb: float | None) -> Span | None:
    """The highest of the reading workloads over the raw capacity."""
    if not isinstance(peaks, dict) or raw_tb is None or raw_tb <= 0:
        return None
    found = [one for name, value in peaks.items() if name in reads and (one := span(value))]
    return max(found, key=lambda one: one.middle) / exact(raw_tb) if found else None


def ranks(published: Published) -> Iterator[Outcome]:
    """The processes and files of a command line against the same in its description."""
    told = published.table("metadata")
    words = str(told.get("command_shape", "")).split()
    flags = {a: b for a, b in pairwise(words) if b.isdecimal()}
    options = told.get("options", {})
    pairs = (
        ("-np", told.get("ranks"), "processes"),
        ("-n", told.get("files_per_rank"), "files a process"),
        ("-N", options.get("rank_shift") if isinstance(options, dict) else None, "shifted by"),
    )
    for flag, stated, what in pairs:
        if flag in flags and (given := number(stated)) is not None:
            says = agreement(exact(given), exact(int(flags[flag])))
            sentence = f"The command has {flag} {flags[flag]}, the description {given:g} ({what})."
            yield Outcome("command", "metadata", says, sentence, f"{given:g}", flags[flag])
    count, clients = number(told.get("ranks")), number(told.get("clients"))
    if count and clients and "-N" in flags:
        made = exact(clients * int(flags["-N"]))
        yield compared("command", "metadata", f"{count:g} ranks", exact(count), made, "ranks")


def _size(table: Mapping[str, Any]) -> Span | None:
    """The size of one drive: exact, as drives are sold by it."""
    size = number(table.get("ssd_tb"))
    return None if size is None else exact(size)
