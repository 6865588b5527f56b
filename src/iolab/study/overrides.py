"""Values set over a study: `--set workload.ID.KEY=VALUE` and the tables `[scale.NAME]`.

Both use the same names: `SECTION.KEY` for `method`, `telemetry` and `target`, `SECTION.ID.KEY` for
`workload`, `configuration` and `host`, where `*` stands for every id. A value that stands alone
over a list stays a list of one, so the axis is still shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, get_args, get_origin

from iolab.core.engine import EngineName
from iolab.record import Record
from iolab.study import values
from iolab.study.document import KeyPath, StudyDocument, ValueOrigin
from iolab.study.file import ITEMS, StudyFileSchema
from iolab.study.load_tables import StudyTable
from iolab.study.tables import table_name
from iolab.text import excerpt, quote_value, suggestion

EVERY: Final = "*"
"""Stands for all ids."""

SET_CHARACTERS_SHOWN: Final = 80
"""As much of an assignment as names it in a message."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,18}\.[0-9]{1,18}")


def apply_set_argument(
    document: StudyDocument, assignment: str, file_schema: StudyFileSchema
) -> None:
    """Apply one `--set` argument, or say what is wrong with it."""
    origin = ValueOrigin(f"--set {excerpt(assignment, SET_CHARACTERS_SHOWN)}")
    name, equals, value = assignment.partition("=")
    if not equals:
        document.faults.add(
            origin, "There is no '='.", "Write workload.ID.KEY=VALUE or method.KEY=VALUE."
        )
        return
    _KeyAssigner(document, origin, file_schema).assign(name.strip(), value.strip(), is_parsed=False)


def apply_scale(
    document: StudyDocument, scale: str, table: dict[str, Any], file_schema: StudyFileSchema
) -> None:
    """Apply the assignments of `[scale.NAME]`, whose dotted names may be quoted or not."""
    for path, name, value in _nested_paths_names_and_values(table, ("scale", scale)):
        origin = document.origin_of(path)
        _KeyAssigner(document, origin, file_schema).assign(name, value, is_parsed=True)


def engine_overrides_or_add_fault(
    document: StudyDocument, engine_name: EngineName, file_schema: StudyFileSchema
) -> tuple[str, ...]:
    """What `--engine` sets, as `--set` says it, of each workload that it can make.

    A fault where it can make none.
    """
    assignments = tuple(
        f"workload.{item['id']}.engine={engine_name}"
        for item in _list_or_empty(document.tree.get("workload"))
        if isinstance(item, dict)
        and "id" in item
        and engine_name in file_schema.possible_engines(item)
    )
    if not assignments:
        message = f"The study has no workload that engine {quote_value(engine_name)} could make."
        document.faults.add(ValueOrigin("--engine"), message, "Leave --engine out.")
    return assignments


class _KeyAssigner(Record):
    """One assignment on its way into the tree."""

    document: StudyDocument
    origin: ValueOrigin
    file_schema: StudyFileSchema

    def assign(self, name: str, value: object, *, is_parsed: bool) -> None:
        section, _, rest = name.partition(".")
        single = self.file_schema.single_table_type_by_name
        if section in single and rest:
            self._assign_key(single[section], (section,), rest, value, is_parsed=is_parsed)
        elif section in ITEMS and rest:
            key_name = ITEMS[section][1]
            for path, key, table in self._find_named_elements_or_add_fault(section, key_name, rest):
                if key == key_name:
                    hint = "Change it in the file."
                    self.document.faults.add(
                        self.origin, f"{quote_value(name)} would rename an element.", hint
                    )
                    return
                self._assign_key(table, path, key, value, is_parsed=is_parsed)
        else:
            self._add_unknown_section_fault(name, section)

    def _find_named_elements_or_add_fault(
        self, section: str, id_key: str, id_and_key: str
    ) -> list[tuple[KeyPath, str, type[StudyTable]]]:
        """The elements that `id_and_key` (ID.KEY) names, each with the key; a fault when none."""
        named: list[tuple[KeyPath, str, type[StudyTable]]] = [
            (
                (section, index),
                str(item[id_key]),
                self.file_schema.element_table_type(section, item),
            )
            for index, item in enumerate(_list_or_empty(self.document.tree.get(section)))
            if isinstance(item, dict) and id_key in item
        ]
        if id_and_key.startswith(f"{EVERY}."):
            return self._find_elements_with_key_or_add_fault(
                section, id_and_key[len(EVERY) + 1 :], named
            )
        fitting = [element for element in named if id_and_key.startswith(f"{element[1]}.")]
        if fitting:
            longest = max(len(name) for _, name, _ in fitting)
            return [
                (p, id_and_key[longest + 1 :], t) for p, name, t in fitting if len(name) == longest
            ]
        asked = _id_before_first_known_key(
            id_and_key, self.file_schema.element_table_types(section)
        )
        hint = suggestion(asked, [name for _, name, _ in named], f"{section} {id_key}s")
        self.document.faults.add(self.origin, f"There is no {section} {quote_value(asked)}.", hint)
        return []

    def _find_elements_with_key_or_add_fault(
        self, section: str, key: str, named_elements: list[tuple[KeyPath, str, type[StudyTable]]]
    ) -> list[tuple[KeyPath, str, type[StudyTable]]]:
        """Of all elements those that can have the key; a fault when none can."""
        first = key.partition(".")[0]
        having = [
            (path, key, table) for path, _, table in named_elements if first in table.model_fields
        ]
        if having or not named_elements:
            return having
        message = f"Unknown key {quote_value(first)}."
        keys = dict.fromkeys(name for _, _, table in named_elements for name in table.model_fields)
        hint = suggestion(first, keys, f"keys of {section}")
        if engines := self.file_schema.other_engines_with_key_text(first, named_elements[0][2]):
            message = f"No {section} of the study can have {quote_value(first)}."
            hint = f"It is a key of those with engine = {engines}."
        self.document.faults.add(self.origin, message, hint)
        return []

    def _assign_key(
        self,
        table_type: type[StudyTable],
        key_path: KeyPath,
        name: str,
        value: object,
        *,
        is_parsed: bool,
    ) -> None:
        key, _, inner = name.partition(".")
        shape = value_shape(table_type, key) if key in table_type.model_fields else None
        if shape is None or (inner and not shape.has_keys):
            unknown = name if shape is not None else key
            message = f"Unknown key {quote_value(unknown)}."
            hint = suggestion(unknown, table_type.model_fields, f"keys of {key_path[0]}")
            if engines := self.file_schema.other_engines_with_key_text(key, table_type):
                message = (
                    f"{key} does not go with the engine of {table_name(self.document, key_path)}."
                )
                hint = f"It is a key of workloads with engine = {engines}."
            self.document.faults.add_once(self.origin, name, message, hint)
            return
        if shape.has_keys and not inner:
            hint = f"Name the key inside it, as in {key}.NAME."
            self.document.faults.add_once(
                self.origin, name, f"{quote_value(key)} is a table.", hint
            )
            return
        full: KeyPath = (*key_path, key, inner) if inner else (*key_path, key)
        if not is_parsed:
            value = _parse_set_value(
                str(value), is_list=shape.is_list, is_text=shape.is_text or shape.has_free_keys
            )
        if (
            shape.is_list
            and not isinstance(value, list)
            and isinstance(self._current_value(full), list)
        ):
            value = [value]
        if self._is_inside_tables(full):
            self.document.assign(full, value, self.origin)

    def _current_value(self, key_path: KeyPath) -> object:
        value: Any = self.document.tree
        for key in key_path:
            if isinstance(value, dict):
                value = value.get(str(key))
            elif isinstance(value, list) and isinstance(key, int):
                value = value[key]
            else:
                return None
        return value

    def _is_inside_tables(self, key_path: KeyPath) -> bool:
        """Whether the tables around the key are tables; if not, the file's own fault is told."""
        return all(
            isinstance(self._current_value(key_path[:length]), dict | list | None)
            for length in range(1, len(key_path))
        )

    def _add_unknown_section_fault(self, name: str, section: str) -> None:
        sections = [*self.file_schema.single_table_type_by_name, *ITEMS]
        if section in sections:
            form = f"{section}.ID.KEY" if section in ITEMS else f"{section}.KEY"
            hint = f"Write {form}=VALUE."
        elif any(
            name in table.model_fields for table in self.file_schema.element_table_types("workload")
        ):
            every = ", for all of them" if name in self.file_schema.axis_keys else ""
            hint = f"Write workload.ID.{name} or workload.*.{name}{every}."
        else:
            hint = suggestion(section, sections, "sections")
        self.document.faults.add(
            self.origin, f"{quote_value(name)} names no value of a study.", hint
        )


def _list_or_empty(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _id_before_first_known_key(id_and_key: str, table_types: tuple[type[StudyTable], ...]) -> str:
    """The id that was probably meant in ID.KEY: all before the first key that an element has."""
    parts = id_and_key.split(".")
    for index in range(1, len(parts)):
        if any(parts[index] in table.model_fields for table in table_types):
            return ".".join(parts[:index])
    return ".".join(parts[:-1]) or id_and_key


def _nested_paths_names_and_values(
    table: dict[str, Any], key_path: KeyPath
) -> Iterator[tuple[KeyPath, str, object]]:
    """Every value in nested tables with its path and the dotted name that the path spells."""
    for key, value in table.items():
        if isinstance(value, dict):
            for inner, name, inner_value in _nested_paths_names_and_values(value, (*key_path, key)):
                yield inner, f"{key}.{name}", inner_value
        else:
            yield (*key_path, key), key, value


class ValueShape(Record):
    """Whether a value is split at commas, is kept as text, holds keys, and holds free ones."""

    is_list: bool
    is_text: bool
    has_keys: bool = False
    has_free_keys: bool = False


def value_shape(table_type: type[StudyTable], key: str) -> ValueShape:
    """The shape of a key of `table_type`; KeyError when the table has none of that name."""
    described = table_type.model_fields[key]
    marks = [*described.metadata, *_annotation_metadata_and_containers(described.annotation)]
    if "dict" in marks or "table" in marks:
        return ValueShape(
            is_list=False, is_text=False, has_keys=True, has_free_keys="dict" in marks
        )
    listed = any(isinstance(mark, values.ListValue) for mark in marks) or "list" in marks
    return ValueShape(
        listed, any(isinstance(mark, values.ValueReader) and mark.is_text for mark in marks)
    )


def _annotation_metadata_and_containers(annotation: object) -> Iterator[object]:
    """The metadata of an annotation and of all within it, and what kind of container it is."""
    if get_origin(annotation) is list:
        yield "list"
    if get_origin(annotation) is dict:
        yield "dict"
        return
    if isinstance(annotation, type) and issubclass(annotation, StudyTable):
        yield "table"
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__  # type: ignore[attr-defined]
    for inner in get_args(annotation):
        if not isinstance(inner, values.ValueReader | values.ListValue):
            yield from _annotation_metadata_and_containers(inner)


def _parse_set_value(value_text: str, *, is_list: bool, is_text: bool) -> object:
    """What `--set` gives, as TOML would have typed it."""
    if is_list and "," in value_text:
        return [
            _parse_set_value(part.strip(), is_list=False, is_text=is_text)
            for part in value_text.split(",")
        ]
    if is_text:
        return value_text
    if value_text in ("true", "false"):
        return value_text == "true"
    if _INTEGER.fullmatch(value_text):
        return int(value_text)
    if _DECIMAL.fullmatch(value_text):
        return float(value_text)
    return value_text


def set_target_path(document: StudyDocument, path: str) -> None:
    """`--path` goes over the file's path, but must not fight with a `--set` or have no effect."""
    target = document.tree.get("target")
    before = document.overrides.get(("target", "path"))
    in_file = target.get("path") if isinstance(target, dict) else None
    if before is not None and before.line is None and in_file != path:
        message = (
            f"--path {excerpt(path, SET_CHARACTERS_SHOWN)} and {before.file} give the target twice."
        )
        document.faults.add(ValueOrigin("--path"), message, "Give one of them.")
    configurations = document.tree.get("configuration")
    if isinstance(configurations, list) and all(
        isinstance(item, dict) and ("path" in item or "device" in item) for item in configurations
    ):
        message = (
            f"--path {excerpt(path, SET_CHARACTERS_SHOWN)} has no effect: every "
            "configuration has its own path."
        )
        hint = "Leave it out, or use --set configuration.ID.path=DIR."
        document.faults.add(ValueOrigin("--path"), message, hint)
    set_target_key(document, "path", path)


def set_target_key(document: StudyDocument, key: str, value: str) -> None:
    """A key of `[target]` as the option of that name sets it."""
    target = document.tree.get("target")
    if target is None or isinstance(target, dict):
        document.assign(("target", key), value, ValueOrigin(f"--{key}"))


def drop_target_keys_hidden_by_overrides(document: StudyDocument) -> None:
    """A directory that is set over the file's device hides it, and the other way round."""
    target = document.tree.get("target")
    if not isinstance(target, dict):
        return
    is_set = {key for key in ("path", "device") if ("target", key) in document.overrides}
    if is_set == {"path"}:
        target.pop("device", None)
        if ("target", "serial") not in document.overrides:
            target.pop("serial", None)
    elif is_set == {"device"}:
        target.pop("path", None)
        # An image of the file or of a scale is where a file system goes for want of a device.
        if document.origin_of(("target", "image")).line is not None:
            target.pop("image", None)
