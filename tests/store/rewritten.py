"""Documents of a session changed on purpose, with digests that fit: what another program wrote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iolab.store.codec import encode, encode_with_digest
from iolab.store.verify import describe_stored_file


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the JSON document at `path`, and its digest with it."""
    document = json.loads(path.read_bytes())
    document.pop("sha256", None)
    change(document)
    if path.name != "manifest.json":
        path.write_bytes(encode_with_digest(document))
        if path.name != "session.json":
            _list_again(path.parent, path.name)
        return
    path.write_bytes(encode(document))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name("manifest.sha256").write_text(f"{digest}  manifest.json\n")


def rewrite_study(session: Path, old: str, new: str) -> None:
    """Change the text of the study, and its digest in the session's own document."""
    study = session / "study.toml"
    study.write_text(study.read_text().replace(old, new))
    _list_again(session, "study.toml")


def _list_again(session: Path, name: str) -> None:
    """Put the digest of a document into the session's own, where that has one of it."""
    found = describe_stored_file(session, name)
    entry = {"name": found.name, "size_bytes": found.size_bytes, "sha256": found.sha256}

    def change(document: dict[str, Any]) -> None:
        document["files"] = [entry if one["name"] == name else one for one in document["files"]]

    rewrite(session / "session.json", change)
