"""What lies in the current directory is no module of ours, whatever its name.

Imported first of all, so it imports nothing that is not frozen into the interpreter.
"""

import os
import sys

_PROGRAM = "iolab"
_OWN_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


def drop_current_directory_from_sys_path() -> None:
    """Have the command look for modules where Python and packages are, and in PYTHONPATH.

    `python -m` puts the current directory before all others, and so does an entry of PYTHONPATH
    that is empty or relative. Programs and notebooks that import iolab keep what they have.
    """
    entries: list[str] = []
    if sys.argv[:1] == ["-m"]:
        if not {_PROGRAM, f"-m{_PROGRAM}", f"{_PROGRAM}.__main__"} & set(sys.orig_argv[1:]):
            return
        if not sys.flags.safe_path:
            entries += sys.path[:1]
            del sys.path[:1]
    elif os.path.basename(sys.argv[0] if sys.argv else "") != _PROGRAM:  # noqa: PTH119
        return
    if not sys.flags.ignore_environment:
        named = os.environ.get("PYTHONPATH", "")
        relative = [item for item in named.split(os.pathsep) if named and not os.path.isabs(item)]  # noqa: PTH117
        entries += [os.path.abspath(item) for item in relative]  # noqa: PTH100
        kept = {item.rstrip("/") for item in named.split(os.pathsep)}
        sys.path[:] = [item for item in sys.path if item in kept or item not in entries]
    if _OWN_ROOT in entries and _OWN_ROOT not in sys.path:
        sys.path.append(_OWN_ROOT)  # As in a checkout that is not installed.
