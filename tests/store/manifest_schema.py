"""The JSON Schema of a run's manifest, as schema/manifest.json has it: this module prints it."""

from __future__ import annotations

import json
from typing import Any, Final

import iolab.registry  # noqa: F401 - whose parts it has
from iolab.store import layout
from iolab.store.codec import type_adapter
from iolab.store.documents import Manifest

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def manifest_schema() -> dict[str, Any]:
    """What a manifest of the current format looks like; a number that is not finite is null."""
    schema = type_adapter(Manifest).json_schema()
    schema["properties"]["format"] = {"const": layout.FORMAT}
    return {"$schema": _DIALECT, "title": "iolab run manifest", **_numbers_may_be_null(schema)}


def _numbers_may_be_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with null allowed wherever a plain float stands."""
    return {key: _relaxed(value) for key, value in schema.items()}


def _relaxed(node: Any) -> Any:
    """A part of the schema, relaxed; alternatives in an order that no order of imports changes."""
    if isinstance(node, list):
        return [_relaxed(item) for item in node]
    if not isinstance(node, dict):
        return node
    relaxed = {key: _relaxed(value) for key, value in node.items()}
    if relaxed.get("type") == "number":
        relaxed["type"] = ["number", "null"]
    if isinstance(relaxed.get("anyOf"), list):
        relaxed["anyOf"].sort(key=json.dumps)
    return relaxed


if __name__ == "__main__":
    print(json.dumps(manifest_schema(), indent=2))
