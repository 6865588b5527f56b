"""Kinds of value that only the tables about targets hold."""

from __future__ import annotations

import re
from typing import Final

from iolab.plan import values
from iolab.plan.wording import shown

_DEVICE_PATH: Final = re.compile(r"/dev/[A-Za-z0-9_][A-Za-z0-9!@:+=._/-]{0,250}")


def device_path() -> values.Read:
    """The path of a block device below /dev."""

    def read(value: object) -> str:
        if isinstance(value, str) and _DEVICE_PATH.fullmatch(value) and ".." not in value:
            return value
        do = "Give a path below /dev, as '/dev/nvme1n1' or '/dev/disk/by-id/...'."
        raise values.fault(f"is {shown(value)}", do)

    return values.Read(read, {"type": "string", "pattern": f"^{_DEVICE_PATH.pattern}$"})


def multiple(high: float) -> values.Read:
    """How many times something is done: a number from 0 to `high`, in parts too."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
            do = f"Give a number from 0 to {high:g}, as 2 or 1.5."
            raise values.fault(f"is {shown(value)}", do)
        return float(value)

    return values.Read(read, {"type": "number", "minimum": 0, "maximum": high})
