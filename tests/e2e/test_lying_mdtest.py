"""An mdtest that makes half of the files it tells of is found by the file system's count."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iolab.core.metric import VerdictLevel
from iolab.store.reader import SessionReader
from tests.e2e.sessions import iolab, write_study
from tests.e2e.targets import xfs_on_loop
from tests.needs import require
from tests.recorded import recorded

pytestmark = [pytest.mark.e2e, pytest.mark.long]

MPIEXEC = "mpiexec.mpich"
FILES, PHASE_S = 1000, 0.5
STUDY = """
format = 1
id = "mdtest"

[[workload]]
id = "files"
engine = "mdtest"
ranks = [1]
files_per_rank = {files}
iterations = 1
rank_shift = 0

[workload.mdtest]
mdtest = "{mdtest}"
mpiexec = "{mpiexec}"
allow_run_as_root = true

[method]
settle = "0s"
idle_watch = 0

[telemetry]
interval = "100ms"
"""
STAND_IN = """\
#!{python}
# A stand-in for mdtest, which it is not: it makes files and tells a recorded output of one.
import re, sys, time
from pathlib import Path
if sys.argv[1:] == ["-h"]:
    print("a stand-in for mdtest")
    sys.exit()
files = int(sys.argv[sys.argv.index("-n") + 1])
folder = Path(sys.argv[sys.argv.index("-d") + 1])
folder.mkdir(parents=True)
made = [folder / str(n) for n in range(files // {part})]
for one in made:
    one.touch()
time.sleep(2 * {phase_s})
for one in made:
    one.unlink()
folder.rmdir()
text = Path({output!r}).read_text()
text = re.sub(".* ops.sec\\n", "", text).replace("4 total task", "1 total task")
text = text.replace("4 tasks, 200 files", f"1 tasks, {{files}} files")
rate = f"{{files / {phase_s}:.3f}}"
for line in text.splitlines():
    # Columns stay as wide as they were; the last one is the deviation, which is none.
    *rates, none = re.findall(r" +[0-9.]+", line) if line.startswith("   File") else (0,)
    for one in rates:
        line = line.replace(one, rate.rjust(len(one)))
    print(line)
"""


@pytest.mark.parametrize(("part", "level"), [(1, VerdictLevel.VALID), (2, VerdictLevel.INVALID)])
def test_files_that_were_not_made_are_missing(
    tmp_path: Path, part: int, level: VerdictLevel
) -> None:
    require(MPIEXEC)
    output, mdtest = tmp_path / "recorded.txt", tmp_path / "mdtest"
    output.write_bytes(recorded("mdtest/one-4.0.0.txt"))
    mdtest.write_text(
        STAND_IN.format(python=sys.executable, part=part, phase_s=PHASE_S, output=str(output)),
        encoding="utf-8",
    )
    mdtest.chmod(0o755)
    study = write_study(tmp_path, STUDY.format(files=FILES, mdtest=mdtest, mpiexec=MPIEXEC))
    with xfs_on_loop(512 << 20) as target:
        iolab("run", study, "--path", target.path, "--out", tmp_path / "session")
    (result,) = SessionReader(tmp_path / "session").results()
    checks = {one.code: one for one in result.verdict.checks}
    said = checks["operations-counted"]
    assert said.level is level, said
    assert said.evidence["claimed"] == FILES
    # Whoever mounts the file system may see an inode or two of its own.
    assert said.evidence["counted"] == pytest.approx(FILES / part, rel=0.01)
    assert checks["reported-rates"].level is VerdictLevel.VALID
