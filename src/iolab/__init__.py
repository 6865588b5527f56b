"""iolab: a storage-performance lab that stands behind every number.

`iolab.load` and `iolab.run` are for scripts and notebooks (docs/reference/python.md); what they
stand on is imported when it is first asked for, so that `import iolab` and the command are quick.
"""

# Before all others: a module of the current directory may have their names.
from iolab.safe_path import drop_current_directory_from_sys_path

drop_current_directory_from_sys_path()

from typing import Any  # noqa: E402

from iolab.version import __version__  # noqa: E402

API_VERSION = 1
"""The number of the Python interface; it changes when a script would have to."""

_API = (
    *("load", "run", "Session", "MeasuredPoint", "Run", "Rows"),
    *("Intervals", "Bins", "Telemetry", "Metric", "IolabError", "LeftoverWarning"),
)

__all__ = ["API_VERSION", "__version__", *_API]  # noqa: PLE0604 - they are names


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function of the interface
    """What `iolab.api` has under that name."""
    if name not in _API:
        raise AttributeError(f"module 'iolab' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module("iolab.api"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
