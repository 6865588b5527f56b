"""Tables of columns: words of any kind, numbers of any width, and files of earlier writers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.core.samples import BinTable, CounterTable, EncodedNames
from iolab.store.parquet import read_parquet_columns, write_parquet
from iolab.store.runs import read_table
from tests.processes import run_program

GOLDEN = Path(__file__).parents[1] / "golden" / "store"


@pytest.mark.parametrize(
    "words",
    [
        ["sda", "it's", "it's"],
        ["a\0b", "'", "a"],
        ["'); DROP TABLE x; --", "\\", "\n"],
        ["", "日本", "é"],
    ],
)
def test_any_words_come_back(tmp_path: Path, words: list[str]) -> None:
    codes = np.array([2, 0, 1, 2], dtype=np.int8)
    write_parquet({"word": EncodedNames(codes, words), "n": codes}, tmp_path / "t")
    found = read_parquet_columns(tmp_path / "t", ["word", "n"])
    assert found["word"].tolist() == [words[code] for code in codes]
    assert found["n"].tolist() == codes.tolist()


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64])
def test_numbers_of_any_width_are_64_bits_in_a_file(
    tmp_path: Path, kind: type[np.signedinteger[Any]]
) -> None:
    limits = np.iinfo(kind)
    column = np.array([limits.max, limits.min, 0, limits.max], dtype=kind)
    write_parquet({"n": column}, tmp_path / "t")
    found = read_parquet_columns(tmp_path / "t", ["n"])["n"]
    assert found.dtype == np.int64
    assert found.tolist() == column.tolist()


def test_bins_of_the_first_writer_are_read() -> None:
    table = read_table(GOLDEN / "bins-1.parquet", BinTable)
    assert table.host.tolist() == [0, 0, 1]
    assert table.seq.tolist() == [0, 1, 0]
    assert table.direction.tolist() == [0, 1, 1]
    assert table.bin.tolist() == [3, 700, 1855]
    assert table.count.tolist() == [1, 70_000, 1 << 62]


def test_counters_of_the_first_writer_are_read() -> None:
    table = read_table(GOLDEN / "counters-1.parquet", CounterTable)
    assert table.real_ns.tolist() == [1, 2, 1 << 62]
    assert table.scope.tolist() == ["cpu", "disk", "disk"]
    assert table.name.tolist() == ["0@0", "it's", "sda"]
    assert table.metric.tolist() == ["user_ns", "read_ios", "read_ios"]
    assert table.value.tolist() == [5, -6, (1 << 63) - 1]


SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from iolab.store.parquet import write_parquet
table = {"value": np.arange(3_000_000)}
write_parquet({"value": np.arange(3)}, Path(sys.argv[1]))
used_bytes = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used_bytes + int(sys.argv[2]),) * 2)
try:
    write_parquet(table, Path(sys.argv[1]))
except MemoryError:
    sys.exit(42)
"""
"""A process that gets so many more bytes, and writes a table that needs more."""


@pytest.mark.parametrize("mebibytes", [0, 1, 2])
def test_a_lack_of_memory_is_no_fault_of_the_file(tmp_path: Path, mebibytes: int) -> None:
    words = [sys.executable, "-c", SHORT_OF_MEMORY, str(tmp_path / "t"), str(mebibytes << 20)]
    done = run_program(words)
    assert done.returncode == 42, done.stderr
