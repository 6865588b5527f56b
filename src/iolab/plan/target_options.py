"""The target as the command line names it, over what a study file says."""

from __future__ import annotations

from iolab.plan.assign import printable
from iolab.plan.document import Document, Faults, Origin


def set_path(document: Document, path: str, faults: Faults) -> None:
    """`--path` goes over the file's path, but must not fight with a `--set` or have no effect."""
    target = document.tree.get("target")
    before = document.overrides.get(("target", "path"))
    given = target.get("path") if isinstance(target, dict) else None
    if before is not None and before.line is None and given != path:
        happened = f"--path {printable(path)} and {before.file} give the target twice."
        faults.add(Origin("--path"), happened, "Give one of them.")
    configurations = document.tree.get("configuration")
    if isinstance(configurations, list) and all(
        isinstance(item, dict) and ("path" in item or "device" in item) for item in configurations
    ):
        happened = f"--path {printable(path)} has no effect: every configuration has its own path."
        do = "Leave it out, or use --set configuration.ID.path=DIR."
        faults.add(Origin("--path"), happened, do)
    set_in_target(document, "path", path)


def set_in_target(document: Document, key: str, value: str) -> None:
    """A key of `[target]` as the option of that name sets it."""
    target = document.tree.get("target")
    if target is None or isinstance(target, dict):
        document.assign(("target", key), value, Origin(f"--{key}"))


def drop_hidden_target(document: Document) -> None:
    """A directory that is set over the file's device hides it, and the other way round."""
    target = document.tree.get("target")
    if not isinstance(target, dict):
        return
    is_set = {key for key in ("path", "device") if ("target", key) in document.overrides}
    if is_set == {"path"}:
        target.pop("device", None)
        target.pop("serial", None)
    elif is_set == {"device"}:
        target.pop("path", None)
        # An image of the file or of a scale is where a file system goes for want of a device.
        if document.where(("target", "image")).line is not None:
            target.pop("image", None)
