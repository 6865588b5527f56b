"""A stand-in for Java: it repeats what YCSB printed and logged in a session that was recorded.

`java` makes such a program. What it does otherwise stands in `behaviour.json` beside it, which is
read at each start: for `version`, `load`, `shape` and `measure` an object of

- `exit`: the code that it ends with; `message`: words on standard error before that
- `swap`: [old, new] in what it prints; `sleep`: seconds before it prints its end
- of `load` alone `inserts`: how many records it inserts, all by default
- of `measure` alone `lacks`: logs that it does not write; `cut`: bytes of each log that it leaves
  out at the end; `hole`: whether their first line is lost, as when a log is opened twice;
  `late`: seconds by which it begins later than it was started
- `only`: the name of the host on which it does all that

Each start leaves a file `started.KIND.N` there, with the arguments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from tests.recorded import unpack

RECORDS: Final = 1000
"""Records of the recorded session."""
_PROGRAM: Final = """\
#!PYTHON -IS
import json, os, pathlib, re, sys, time
here = pathlib.Path(__file__).parent
golden = pathlib.Path(GOLDEN)
words = sys.argv[1:]
given = dict(word.split("=", 1) for word in words if "=" in word and not word.startswith("-X"))
kind = "version"
if "site.ycsb.Client" in words:
    kind = "load" if "-load" in words else "measure"
elif "iolab.ycsb.RocksTool" in words:
    kind = "shape"
number = len(list(here.glob(f"started.{kind}.*")))
(here / f"started.{kind}.{number}.{os.getpid()}").write_text(json.dumps(words))
told = here / "behaviour.json"
does = json.loads(told.read_text()).get(kind, {}) if told.exists() else {}
if does.get("only", "") not in os.getcwd():
    does = {}


def recorded(stream):
    path = golden / f"{kind}.{stream}"
    text = path.read_text() if path.exists() else ""
    old, new = does.get("swap", ["", ""])
    if kind == "load":
        count = does.get("inserts", given["insertcount"])
        text = re.sub(r"(INSERT\\], (?:Operations|Return=OK)), 1000", rf"\\1, {count}", text)
    if kind == "measure":
        text = text.replace("RunTime(ms), 3130", f"RunTime(ms), {given['maxexecutiontime']}130")
    if kind == "shape":
        loaded = pathlib.Path(given["iolab.database"], "records").read_text()
        text = text.replace("keys 1000", f"keys {loaded}")
    return text.replace(old, new) if old else text


def write_logs():
    began = time.time() + does.get("late", 0)
    for path in golden.glob("*.hdr"):
        if path.name in does.get("lacks", []):
            continue
        log = re.sub(r"StartTime: [0-9.]+", f"StartTime: {began:.3f}", path.read_text())
        if does.get("hole"):
            first = log.split("\\n")[4]
            log = log.replace(first, "\\0" * len(first))
        folder = given["hdrhistogram.output.path"].rpartition("/")[0]
        pathlib.Path(folder, path.name).write_text(log[: len(log) - does.get("cut", 0)])


if kind == "load" and "iolab.database" in given:
    folder = pathlib.Path(given["iolab.database"])
    folder.mkdir()
    (folder / "records").write_text(str(does.get("inserts", given["insertcount"])))
if kind == "measure":
    write_logs()
sys.stderr.write(recorded("err"))
sys.stderr.flush()
time.sleep(does.get("sleep", 0))
sys.stderr.write(does.get("message", ""))
sys.stdout.write(recorded("out"))
sys.exit(does.get("exit", 0))
"""


def java(folder: Path) -> Path:
    """Such a program in that folder."""
    program = folder / "java"
    golden = unpack("ycsb_session", folder / "recorded")
    text = _PROGRAM.replace("PYTHON", sys.executable).replace("GOLDEN", repr(str(golden)))
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


def behave(program: Path, **kinds: dict[str, Any]) -> None:
    """From its next start on."""
    program.with_name("behaviour.json").write_text(json.dumps(kinds), encoding="utf-8")


def started(program: Path, kind: str) -> list[list[str]]:
    """The arguments of each start of that kind, in order."""
    paths = program.parent.glob(f"started.{kind}.*")
    ordered = sorted(paths, key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text(encoding="utf-8")) for path in ordered]
