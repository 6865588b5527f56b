"""System calls forbidden to one process and its children, as a container's profile does it."""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Callable

IO_URING_SETUP = 425
"""The same number on every architecture."""
IO_SETUP_X86 = 206
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_NUMBER, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def forbidding(*calls: int) -> Callable[[], None]:
    """What a child does before its program: from then on these calls fail with EPERM."""
    steps = struct.pack("<HBBI", LOAD_NUMBER, 0, 0, 0)
    for place, call in enumerate(calls):
        steps += struct.pack("<HBBI", JUMP_EQUAL, len(calls) - place, 0, call)
    steps += struct.pack("<HBBI", RETURN, 0, 0, ALLOW) + struct.pack("<HBBI", RETURN, 0, 0, REFUSE)
    kept = ctypes.create_string_buffer(steps, len(steps))
    program = _Filter(len(calls) + 3, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)

    def forbid() -> None:
        assert kept  # The steps live as long as this.
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no_new_privs")
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")

    return forbid
