"""Further options of YCSB and of iolab's bindings that a study may set, and nothing else.

What iolab itself decides (the mix, records, fields, threads, the distribution, rate and time, where
the store is, how and whereto YCSB measures) is not listed, nor what would name files or classes.
Options of YCSB keep its own names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class YcsbOption:
    """One allowed option: the pattern that its value must match as a whole, and an example.

    `prefix` is what it is called by beyond its name: nothing for YCSB's own, `iolab.` for those of
    the bindings, and for those of the Java machine, which are no properties, the flag.
    """

    name: str
    pattern: re.Pattern[str]
    example: str
    meaning: str
    prefix: str = ""


BINDING: Final = "iolab."
"""Properties that the bindings read."""

HEAP: Final = "heap"
"""The one option that is told to the Java machine."""

LOAD_ONLY: Final = frozenset({"block_bytes", "bloom_bits"})
"""What a database of RocksDB has from its load; a run on it uses the same for what it writes."""


def ycsb_value_fits(name: str, text: str) -> bool:
    """Whether `text` is a value that the allowed option `name` takes; KeyError if not allowed."""
    return YCSB_OPTIONS[name].pattern.fullmatch(text) is not None


_FLAG: Final = "true|false"
_COUNT: Final = "[1-9][0-9]{0,8}"
_SHARE: Final = r"0(?:\.[0-9]{1,6})?|1(?:\.0{1,6})?"
_BYTES: Final = "[0-9]{1,15}"

_OWN: Final = (
    ("readallfields", _FLAG, "true", "a read takes all fields, else one of them"),
    ("writeallfields", _FLAG, "false", "an update writes all fields, else one of them"),
    ("fieldlengthdistribution", "constant|uniform|zipfian", "constant", "how long values are"),
    ("minfieldlength", _COUNT, "1", "the shortest value, where they differ"),
    ("insertorder", "hashed|ordered", "hashed", "whether keys are in the order of their numbers"),
    ("zeropadding", "[1-9][0-9]?", "10", "digits of a key's number at least"),
    ("minscanlength", _COUNT, "1", "records of the shortest scan"),
    ("maxscanlength", _COUNT, "100", "records of the longest scan"),
    ("scanlengthdistribution", "uniform|zipfian", "uniform", "how long scans are"),
    ("hotspotdatafraction", _SHARE, "0.2", "the share of records that are hot (`hotspot`)"),
    ("hotspotopnfraction", _SHARE, "0.8", "the share of operations that go to them"),
    ("exponential.percentile", r"[0-9]{1,2}(?:\.[0-9]{1,3})?", "95", "see `exponential.frac`"),
    ("exponential.frac", _SHARE, "0.857143", "records that get this percent (`exponential`)"),
    ("core_workload_insertion_retry_limit", "[0-9]{1,3}", "0", "new tries of a failed insert"),
    ("core_workload_insertion_retry_interval", "[1-9][0-9]{0,2}", "3", "seconds between them"),
    ("spin.sleep", _FLAG, "false", "wait for an operation's due time without sleeping"),
)
_BINDINGS: Final = (
    ("cache_bytes", _BYTES, "8388608", "RocksDB's block cache (embedded)"),
    ("block_bytes", "[1-9][0-9]{2,6}", "4096", "bytes of a block of RocksDB (embedded)"),
    ("bloom_bits", "[0-9]{1,2}", "10", "bits of RocksDB's filter a key, 0 for none (embedded)"),
    ("direct_reads", _FLAG, "true", "RocksDB reads and writes past the page cache (embedded)"),
    ("sync", _FLAG, "true", "RocksDB syncs its log with each write (embedded)"),
    ("connections", "[1-9][0-9]?", "1", "connections to each node of Cassandra"),
    ("timeout_ms", "[1-9][0-9]{2,5}", "12000", "how long an answer of Cassandra is waited for"),
)

YCSB_OPTIONS: Final[Mapping[str, YcsbOption]] = MappingProxyType(
    {
        name: YcsbOption(name, re.compile(pattern), example, meaning, prefix)
        for prefix, options in (
            ("", _OWN),
            (BINDING, _BINDINGS),
            ("-Xmx", ((HEAP, "[1-9][0-9]{0,6}[mg]", "512m", "heap of the client's Java"),)),
        )
        for name, pattern, example, meaning in options
    }
)
"""Every allowed option by its name."""
