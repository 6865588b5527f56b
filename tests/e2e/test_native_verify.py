"""What the native engine finds in blocks that it had written: each fault is planted by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faulty import faulty_file
from tests.e2e.native_engine import MIB, Outcome, Spec, ended, job, lines_of, run, spec, started

pytestmark = pytest.mark.e2e

SIZE, BLOCK = 2 * MIB, 4096
FAULTS = ("torn", "stale", "misplaced", "corrupt")


def once(path: Path, rw: str, ledger: Path, **more: Any) -> Spec:
    """Every block once, in order, stamped or checked."""
    one = job(path, SIZE, rw, verify=True, io_bytes=SIZE, **more)
    return spec(one, runtime_s=None, ledger=str(ledger))


def found(outcome: Outcome) -> Mapping[str, Any]:
    """What verification found; every block must have been looked at."""
    verify: Mapping[str, Any] = outcome.end["verify"]
    assert verify["checked"] == SIZE // BLOCK
    return {fault: verify[fault] for fault in FAULTS if verify[fault]}


def block(path: Path, number: int) -> bytes:
    return path.read_bytes()[number * BLOCK : (number + 1) * BLOCK]


def put(path: Path, number: int, content: bytes, skipped: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(number * BLOCK + skipped)
        file.write(content)


@pytest.fixture(params=["random", "scrambled"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A file that was written twice, as it was after the first time, and the ledger."""
    path, ledger = tmp_path / "file", tmp_path / "ledger"
    path.write_bytes(bytes(SIZE))
    contents = {"kind": request.param}
    assert run(once(path, "write", ledger, contents=contents)).count("write") == SIZE // BLOCK
    before = tmp_path / "before"
    before.write_bytes(path.read_bytes())
    assert run(once(path, "write", ledger, contents=contents)).count("write") == SIZE // BLOCK
    assert before.read_bytes() != path.read_bytes()
    return path, before, ledger


def test_what_was_written_is_found(written: tuple[Path, Path, Path]) -> None:
    path, _, ledger = written
    assert found(run(once(path, "read", ledger))) == {}
    mixed = once(path, "randread", ledger, distribution={"kind": "permutation"}, depth=32)
    assert found(run(mixed)) == {}


def test_every_planted_fault_is_found_and_told_apart(written: tuple[Path, Path, Path]) -> None:
    path, before, ledger = written
    content = block(path, 3)
    put(path, 3, bytes([content[700] ^ 4]), skipped=700)  # A flipped bit.
    put(path, 10, block(before, 10))  # A write that was lost.
    put(path, 11, block(before, 11))
    put(path, 20, block(before, 20)[:1536])  # One that was torn.
    put(path, 30, block(path, 31))  # One that went astray.
    put(path, 40, bytes(BLOCK))  # A block that was never written, as it seems.
    outcome = run(once(path, "read", ledger))
    assert found(outcome) == {"torn": 1, "stale": 3, "misplaced": 1, "corrupt": 1}
    told = "\n".join(outcome.end["verify"]["first"])
    for number, fault in ((3, "corrupt"), (10, "stale"), (20, "torn"), (30, "misplaced")):
        assert f"The block at {number * BLOCK} of {path} is {fault}" in told


def test_a_target_that_loses_and_tears_writes_is_caught(tmp_path: Path) -> None:
    lost, torn = {5 * BLOCK, 9 * BLOCK}, {7 * BLOCK}

    def keeps(offset: int, length: int) -> int:
        return 0 if offset in lost else 1024 if offset in torn else length

    with faulty_file(SIZE) as target:
        ledger = tmp_path / "ledger"
        assert run(once(target.path, "write", ledger)).count("write") == SIZE // BLOCK
        assert found(run(once(target.path, "read", ledger))) == {}
        target.keeps = keeps
        # It acknowledges all of them, so nobody counts an error.
        again = run(once(target.path, "write", ledger))
        assert not again.end["errors"]
        assert found(run(once(target.path, "read", ledger))) == {"stale": 2, "torn": 1}


def test_a_lost_write_is_stale_also_where_another_run_wrote_before() -> None:
    last = SIZE - BLOCK
    with faulty_file(SIZE) as target:
        layout = job(target.path, SIZE, "write", verify=True, io_bytes=SIZE)
        assert run(spec(layout, runtime_s=None)).count("write") == SIZE // BLOCK
        target.keeps = lambda offset, length: 0 if offset == last else length
        # Far fewer writes than those before, and no ledger that would know of them.
        few = {"offset_bytes": SIZE - 4 * BLOCK, "io_bytes": 100 * BLOCK, "depth": 1}
        outcome = run(spec(job(target.path, SIZE, "randrw", verify=True, **few), runtime_s=None))
    verify = outcome.end["verify"]
    assert verify["stale"] > 0
    assert verify["torn"] == verify["misplaced"] == verify["corrupt"] == 0
    assert all(f"The block at {last} of" in sentence for sentence in verify["first"])


def test_reads_beside_writes_of_the_same_blocks_find_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    for contents in ("random", "scrambled"):
        busy = job(path, 64 * BLOCK, "randrw", verify=True, depth=16, contents={"kind": contents})
        outcome = run(spec(busy))
        verify = outcome.end["verify"]
        assert verify["checked"] > 100
        assert {fault: verify[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0), verify


def test_after_the_writer_was_killed_its_ledger_tells_what_must_be_there(tmp_path: Path) -> None:
    path, ledger = tmp_path / "file", tmp_path / "ledger"
    path.write_bytes(bytes(SIZE))
    endless = job(path, SIZE, "randwrite", verify=True, depth=16)
    writer = started(spec(endless, runtime_s=60.0, ledger=str(ledger)))
    said = lines_of(writer, 8)
    held = run(once(path, "read", ledger)).faults  # Nobody else may use its ledger meanwhile.
    writer.kill()
    writer.communicate()
    assert '"seq"' in said[-1]
    assert "in use" in held
    # Nothing is wrong with what it left, also where it was killed in the middle of a write.
    assert found(run(once(path, "read", ledger))) == {}
    # And what would be wrong is seen: an old content of blocks that were surely acknowledged.
    old = path.read_bytes()
    again = ended(started(once(path, "write", ledger)))
    assert again.count("write") == SIZE // BLOCK
    for number in range(7, SIZE // BLOCK, 110):
        put(path, number, old[number * BLOCK : (number + 1) * BLOCK])
    assert found(run(once(path, "read", ledger))) == {"stale": 5}


def test_a_ledger_of_other_jobs_is_refused(tmp_path: Path) -> None:
    path, ledger = tmp_path / "file", tmp_path / "ledger"
    path.write_bytes(bytes(SIZE))
    run(once(path, "write", ledger))
    assert found(run(once(path, "read", ledger, seed=2))) == {}  # Only the order is another.
    other = tmp_path / "other"
    other.write_bytes(bytes(SIZE))
    assert "is of other files: target 0" in run(once(other, "read", ledger)).faults
    path.with_name("none").write_text("not a ledger", encoding="ascii")
    foreign = once(path, "read", tmp_path / "none")
    assert "is no ledger" in run(foreign).faults


def test_what_cannot_be_verified_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    for contents in ({"kind": "zeros"}, {"kind": "random", "dedupe_percent": 10}):
        asked = spec(job(path, SIZE, "write", verify=True, contents=contents))
        assert "verify" in run(asked).faults
    sizes = [{"bytes": 4096, "share": 1}, {"bytes": 8192, "share": 1}]
    assert "verify" in run(spec(job(path, SIZE, "write", verify=True, blocks=sizes))).faults
    proven = job(path, SIZE, "randrw", verify=True)
    larger = [{"bytes": 8192, "share": 1}]
    for other, message in (
        (job(path, SIZE, "randrw", verify=True, blocks=larger), "may overlap"),
        (job(path, SIZE, "randread", verify=True, offset_bytes=512), "may overlap"),
        (job(path, SIZE, "randwrite"), "changes what another job verifies"),
        (job(path, SIZE, "randtrim"), "changes what another job verifies"),
        (job(path, SIZE, "randtrim", verify=True), "bears no stamp"),
    ):
        assert message in run(spec(proven, other)).faults
    assert path.read_bytes() == bytes(SIZE)  # And nothing was touched.
