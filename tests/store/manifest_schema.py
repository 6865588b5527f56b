"""The JSON Schema of a run's manifest, as schema/manifest.json has it: this module prints it."""

from __future__ import annotations

import json
from inspect import cleandoc
from typing import Any, Final

import msgspec

import iolab.registry  # noqa: F401 - whose parts it has
from iolab.core.tagged import TaggedRecord, tagged_classes
from iolab.store import layout
from iolab.store.documents import Manifest

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def manifest_schema() -> dict[str, Any]:
    """What a manifest of the current format looks like; a number that is not finite is null."""
    parts = [part for place in TaggedRecord.__subclasses__() for part in tagged_classes(place)]
    (root, *_), definitions = msgspec.json.schema_components(
        (Manifest, *parts), schema_hook=_schema_of_place, ref_template="#/$defs/{name}"
    )
    assert root == {"$ref": "#/$defs/Manifest"}
    schema = {**definitions.pop("Manifest"), "$defs": definitions}
    schema["properties"]["format"] = {"const": layout.FORMAT}
    return {"$schema": _DIALECT, "title": "iolab run manifest", **_relaxed(schema)}


def _schema_of_place(place: type) -> dict[str, Any]:
    """That of a place for parts is one of all its parts."""
    assert issubclass(place, TaggedRecord)
    return {"anyOf": [{"$ref": f"#/$defs/{part.__name__}"} for part in tagged_classes(place)]}


def _relaxed(node: Any) -> Any:
    """A part of the schema, relaxed; alternatives in an order that no order of imports changes."""
    if isinstance(node, list):
        return [_relaxed(item) for item in node]
    if not isinstance(node, dict):
        return node
    relaxed = {key: _relaxed(value) for key, value in node.items()}
    if isinstance(relaxed.get("description"), str):
        relaxed["description"] = cleandoc(relaxed["description"])
    if relaxed.get("type") == "number":
        relaxed["type"] = ["number", "null"]
    if isinstance(relaxed.get("anyOf"), list):
        relaxed["anyOf"].sort(key=json.dumps)
    return relaxed


if __name__ == "__main__":
    print(json.dumps(manifest_schema(), indent=2))
