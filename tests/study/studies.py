"""Studies for tests: a small valid one, and short ways to load and to fail."""

from __future__ import annotations

import pytest

from iolab.core.study import Study
from iolab.errors import Fault, StudyError
from iolab.study.parse import StudyOverrides
from tests.plans import parse_study

FILE = "s.toml"

SMALL = """\
format = 1
id = "small"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = [1, 8]
filesize = "1m"

[[workload]]
id = "mix"
rw = "randrw"
rwmixread = 70
bs = "4k"
filesize = "1m"

[scale.tiny]
"workload.*.filesize" = "64k"
"""


def workload(extra: str = "", *, rw: str = "randread", bs: str = '"4k"') -> str:
    """A study of one workload; `extra` are lines of it, from line 8."""
    return (
        f'format = 1\nid = "s"\n[[workload]]\nid = "w"\nrw = "{rw}"\n'
        f'bs = {bs}\nfilesize = "1m"\n{extra}\n'
    )


def load(text: str, *sets: str, path: str | None = "/mnt/t", scale: str = "full") -> Study:
    """The study of `text` under these settings."""
    return parse_study(text, FILE, StudyOverrides(path, scale, sets))


def faults(text: str, *sets: str, path: str | None = "/mnt/t", scale: str = "full") -> list[Fault]:
    """The faults of `text` under these settings; it must have some."""
    with pytest.raises(StudyError) as caught:
        load(text, *sets, path=path, scale=scale)
    return list(caught.value.faults)


def told(text: str, *sets: str, path: str | None = "/mnt/t", scale: str = "full") -> list[str]:
    """The faults as people read them."""
    return [str(fault) for fault in faults(text, *sets, path=path, scale=scale)]
