"""System calls that a process and its children do without: forbidden, or not there yet.

    forbidden.py NUMBERS FIRST_MISSING PROGRAM [WORDS]

The calls of these numbers (425,101; may be empty) fail as a container's profile makes them fail,
those from FIRST_MISSING on as a kernel that has none of them. Numbers from 424 on are the same on
every architecture and came after Linux 5.0.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable

IO_URING_SETUP = 425
IO_SETUP_X86, PTRACE_X86 = 206, 101
AFTER_LINUX_5_0 = 424
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_NUMBER, JUMP_EQUAL, JUMP_FROM, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def forbidding(*calls: int, first_missing: int = 1 << 30) -> Callable[[], None]:
    """What a child does before its program: from then on these calls fail."""
    ends = ((RETURN, ALLOW), (RETURN, FAIL | errno.EPERM), (RETURN, FAIL | errno.ENOSYS))
    steps = struct.pack("<HBBI", LOAD_NUMBER, 0, 0, 0)
    for place, call in enumerate(calls):
        steps += struct.pack("<HBBI", JUMP_EQUAL, len(calls) - place + 1, 0, call)
    steps += struct.pack("<HBBI", JUMP_FROM, 2, 0, first_missing)
    steps += b"".join(struct.pack("<HBBI", what, 0, 0, value) for what, value in ends)
    kept = ctypes.create_string_buffer(steps, len(steps))
    program = _Filter(len(steps) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)

    def forbid() -> None:
        assert kept  # The steps live as long as this.
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no_new_privs")
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")

    return forbid


if __name__ == "__main__":
    numbers, first, *words = sys.argv[1:]
    forbidding(*map(int, filter(None, numbers.split(","))), first_missing=int(first))()
    os.execvp(words[0], words)  # noqa: S606 - this process is to be the program
