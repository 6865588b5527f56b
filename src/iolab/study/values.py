"""The kinds of value that a study file holds: how each is read, and its JSON Schema.

A reader takes what TOML or `--set` gives and returns the value, or raises a fault of two parts:
what is wrong with it, said after the key's name, and what to do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from iolab.record import Record
from iolab.text import quote_value, suggestion
from iolab.units import parse_duration_s, parse_size

FAULT: Final = "iolab"
"""The pydantic error type of our own faults; their context holds `message` and `hint`."""

ID_CHARACTERS: Final = 64
"""Ids become folder and file names, several to a path."""

LIST_VALUES: Final = 1000
"""More values on one axis than any study shows in a figure."""

FACTOR_MAX: Final = 100
"""More copies of a byte than any storage keeps."""

_ID: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{ID_CHARACTERS - 1}}}")
_PATH_CHARACTERS: Final = 1024
"""Well below the kernel's 4096, so that scratch folders and files still fit behind it."""

AMOUNT_MAX: Final = 1e12
"""More than any cluster costs or holds."""

_DEVICE: Final = re.compile(r"[A-Za-z][A-Za-z0-9!._-]{0,63}")
_SIZE_HINT: Final = "Write for example 4k, 128k, 1m, 2g or 4096."
_DURATION_HINT: Final = "Write for example 500ms, 30s, 10min or 2h."
_PERCENT: Final = re.compile(r"\s*([0-9]{1,2}(?:\.[0-9]{1,6})?)\s*%\s*")
_DEVICE_PATH: Final = re.compile(r"/dev/[A-Za-z0-9_][A-Za-z0-9!@:+=._/-]{0,250}")

ENDPOINT_CHARACTERS: Final = 300


class ValueReader(Record):
    """Metadata of a pydantic field: the reader of its value, and the value's JSON Schema."""

    read: Callable[[object], object]
    schema: dict[str, Any]

    def __hash__(self) -> int:
        return hash(self.read)

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.schema)

    @property
    def is_text(self) -> bool:
        """Whether the value is text whatever it looks like, as `title = "2024"`."""
        return self.schema.get("type") == "string"


def value_error(message: str, hint: str) -> PydanticCustomError:
    """A fault of a value: `message` continues the key's name ("is 0"), `hint` is a sentence."""
    return PydanticCustomError(FAULT, "value {message}. {hint}", {"message": message, "hint": hint})


def integer_value(low: int, high: int) -> ValueReader:
    """A whole number from `low` to `high`."""

    def read_integer(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        hint = f"Give a whole number from {low} to {high}."
        raise value_error(f"is {quote_value(value)}", hint)

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return ValueReader(read_integer, schema)


def exact_value(only_number: int, hint: str) -> ValueReader:
    """The one number that is known; `hint` says so."""

    def read_exact(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value == only_number:
            return value
        raise value_error(f"is {quote_value(value)}", hint)

    return ValueReader(read_exact, {"const": only_number})


def number_value(low: float, high: float, example: str = "") -> ValueReader:
    """A number from `low` to `high`, also one with a fraction."""

    def read_number(value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        raise value_error(
            f"is {quote_value(value)}", f"Give a number from {low:g} to {high:g}{example}."
        )

    return ValueReader(read_number, {"type": "number", "minimum": low, "maximum": high})


def non_negative_number_value() -> ValueReader:
    """A number that is not negative and not beyond everything."""
    return number_value(0, AMOUNT_MAX)


def redundancy_factor_value() -> ValueReader:
    """How many bytes stand for one: from 1 to 100."""
    return number_value(1, FACTOR_MAX, ", as 3 or 1.5")


def multiplier_value(high: float) -> ValueReader:
    """How many times something is done: a number from 0 to `high`, in parts too."""
    return number_value(0, high, ", as 2 or 1.5")


def flag_value() -> ValueReader:
    """True or false."""

    def read_flag(value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise value_error(f"is {quote_value(value)}", "Give true or false.")

    return ValueReader(read_flag, {"type": "boolean"})


def text_value(max_length: int, *, allows_line_breaks: bool = False) -> ValueReader:
    """Text of up to `max_length` characters; control characters are refused."""

    def read_text(value: object) -> str:
        if not isinstance(value, str):
            raise value_error(f"is {quote_value(value)}", "Give text in quotes.")
        if len(value) > max_length:
            raise value_error(f"has {len(value)} characters", f"Give at most {max_length}.")
        plain = value.replace("\n", "").replace("\t", "") if allows_line_breaks else value
        if not all(character.isprintable() for character in plain):
            raise value_error(f"is {quote_value(value)}", "Leave control characters out.")
        return value

    return ValueReader(read_text, {"type": "string", "maxLength": max_length})


def matching_text_value(
    is_valid: Callable[[str], object], hint: str, schema: dict[str, Any], fault_verb: str = "is"
) -> ValueReader:
    """Text that `is_valid`; else a fault with `fault_verb`, and `hint` says what would be."""

    def read_valid_text(value: object) -> str:
        if isinstance(value, str) and is_valid(value):
            return value
        raise value_error(f"{fault_verb} {quote_value(value)}", hint)

    return ValueReader(read_valid_text, {"type": "string", **schema})


def identifier_value() -> ValueReader:
    """An id, which becomes part of file names."""
    hint = (
        "Use letters, digits, '.', '_' and '-', a letter or digit first, "
        f"at most {ID_CHARACTERS} characters."
    )
    return matching_text_value(_ID.fullmatch, hint, {"pattern": f"^{_ID.pattern}$"})


def host_name_value() -> ValueReader:
    """The name of a host; in a file it may hold ranges, which are expanded before it is read."""

    def read_host_name(value: object) -> str:
        if isinstance(value, str) and value.startswith("-"):
            hint = "Begin it with a letter or digit; programs take such a name for an option."
            raise value_error(f"is {quote_value(value)}", hint)
        return str(_IDENTIFIER.read(value))

    return ValueReader(
        read_host_name, {"type": "string", "pattern": r"^[A-Za-z0-9\[][A-Za-z0-9._,\[\]-]*$"}
    )


def is_identifier(value: object) -> bool:
    """Whether the value can be an id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


_IDENTIFIER: Final = identifier_value()


def absolute_path_value() -> ValueReader:
    """An absolute path of a directory."""

    def read_path(value: object) -> str:
        if not isinstance(value, str) or not value.startswith("/"):
            raise value_error(
                f"is {quote_value(value)}", "Give an absolute path, as in '/mnt/target'."
            )
        if not value.strip("/."):
            raise value_error(
                f"is {quote_value(value)}, the root of it all", "Name a directory below it."
            )
        return require_printable_path(value, _PATH_CHARACTERS)

    schema = {"type": "string", "pattern": "^/", "maxLength": _PATH_CHARACTERS}
    return ValueReader(read_path, schema)


def require_printable_path(path: str, max_length: int) -> str:
    """The path; a fault where it has more characters, or such as control a terminal."""
    if len(path) > max_length:
        raise value_error(
            f"has {len(path)} characters", f"Give a path of at most {max_length} characters."
        )
    if not path.isprintable():
        raise value_error(f"is {quote_value(path)}", "Leave control characters out.")
    return path


def block_device_name_value() -> ValueReader:
    """A block device by the kernel's own name, kept without the `/dev/` it may be written with."""

    def read_device_name(value: object) -> str:
        name = value.removeprefix("/dev/") if isinstance(value, str) else ""
        if _DEVICE.fullmatch(name):
            return name
        hint = "Give the kernel's name, as 'nvme0n1' or '/dev/sda'; 'lsblk -no KNAME' tells it."
        raise value_error(f"is {quote_value(value)}", hint)

    return ValueReader(
        read_device_name, {"type": "string", "pattern": f"^(/dev/)?{_DEVICE.pattern}$"}
    )


def size_value(low: int, high: int, *, multiple: int) -> ValueReader:
    """A size in bytes, kept as it is written; `multiplier_value` must divide it."""

    def read_size(value: object) -> int | str:
        if not isinstance(value, int | str) or isinstance(value, bool):
            raise value_error(f"is {quote_value(value)}", _SIZE_HINT)
        try:
            count = parse_size(value)
        except ValueError:
            raise value_error(f"is {quote_value(value)}, which is not a size", _SIZE_HINT) from None
        if not low <= count <= high:
            hint = f"Give from {low} to {high} bytes; k, m, g and t are binary."
            raise value_error(f"is {quote_value(value)}", hint)
        if count % multiple:
            hint = f"Give a multiple of {multiple}; storage has no smaller block."
            plain = str(value).strip() == str(count)
            amount = "" if plain else f" or {count} bytes"
            raise value_error(
                f"is {quote_value(value)}{amount}, which is not a multiple of {multiple}", hint
            )
        return value

    schema = {
        "anyOf": [
            {"type": "integer", "minimum": low, "maximum": high, "multipleOf": multiple},
            {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[kmgtpKMGTP]?([iI]?[bB])?\s*$"},
        ]
    }
    return ValueReader(read_size, schema)


def seconds_value(low: float, high: float) -> ValueReader:
    """A duration read to seconds."""

    def read_seconds(value: object) -> float:
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            raise value_error(f"is {quote_value(value)}", _DURATION_HINT)
        try:
            number = parse_duration_s(value) if isinstance(value, str) else _as_float(value)
        except ValueError:
            raise value_error(
                f"is {quote_value(value)}, which is not a duration", _DURATION_HINT
            ) from None
        if not low <= number <= high:
            hint = f"Give at least {low:g} and at most {high:g} seconds."
            raise value_error(f"is {quote_value(value)}", hint)
        return number

    schema = {
        "anyOf": [
            {"type": "number", "minimum": low, "maximum": high},
            {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([a-zA-Z]+)?\s*$"},
        ]
    }
    return ValueReader(read_seconds, schema)


def whole_seconds_value(low: int, high: int) -> ValueReader:
    """A duration of whole seconds."""
    plain = seconds_value(low, high)

    def read_whole_seconds(value: object) -> int:
        number = plain.read(value)
        if not isinstance(number, float | int) or number != int(number):
            raise value_error(f"is {quote_value(value)}", "Give whole seconds, as in 30s or 10min.")
        return int(number)

    return ValueReader(read_whole_seconds, plain.schema)


def share_value() -> ValueReader:
    """A part of a whole, between 0 and 1 or in per cent; both ends are excluded."""

    def read_share(value: object) -> float:
        number = math.nan
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = _as_float(value)
        elif isinstance(value, str) and (match := _PERCENT.fullmatch(value)):
            number = float(match[1]) / 100
        if 0 < number < 1:
            return number
        raise value_error(
            f"is {quote_value(value)}", "Give a share between 0 and 1, as 0.02 or '2%'."
        )

    schema = {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": f"^{_PERCENT.pattern}$"},
        ]
    }
    return ValueReader(read_share, schema)


def word_value(
    valid_words: Sequence[str], plural_noun: str, known_words: Sequence[str] = ()
) -> ValueReader:
    """One of the `valid_words` words; `plural_noun` names the kind in the plural.

    With `known_words` one of these may have been meant, though only the valid ones fit here.
    """
    every = known_words or valid_words

    def read_word(value: object) -> str:
        if isinstance(value, str) and value in valid_words:
            return value
        spelling = value if isinstance(value, str) else ""
        raise value_error(
            f"is {quote_value(value)}",
            suggestion(spelling, valid_words if value in every else every, plural_noun),
        )

    return ValueReader(read_word, {"enum": list(valid_words)})


def choice_value(
    enum_type: type[StrEnum], plural_noun: str, allowed_members: Iterable[StrEnum] | None = None
) -> ValueReader:
    """One word of an enum, as `word_value` has it; with `allowed_members` only these fit here."""
    valid = [member.value for member in (enum_type if allowed_members is None else allowed_members)]
    plain = word_value(valid, plural_noun, [member.value for member in enum_type])
    return ValueReader(lambda value: enum_type(str(plain.read(value))), plain.schema)


def scalar_value() -> ValueReader:
    """text, a number or true/false, kept as it is (its owner checks it)."""

    def read_scalar(value: object) -> str | int | float | bool:
        if isinstance(value, str | int | float):
            return value
        raise value_error(f"is {quote_value(value)}", "Give text, a number, true or false.")

    return ValueReader(read_scalar, {"type": ["string", "number", "boolean"]})


def program_option_text(value: str | float) -> str:
    """A `scalar_value` as options of programs have it: booleans are 1 and 0."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)


class ListValue(Record):
    """A list with at least one value, each at most once (`equality_key` maps equal values alike).

    With `allow_scalar`, a value that stands alone is read as the list of it.
    """

    allow_scalar: bool = False
    max_values: int = LIST_VALUES
    equality_key: Callable[[Any], object] = str

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        listed = core_schema.no_info_before_validator_function(self._as_list, handler(source))
        return core_schema.no_info_after_validator_function(self._reject_duplicates, listed)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        listed = {**handler(core), "minItems": 1, "maxItems": self.max_values, "uniqueItems": True}
        return {"anyOf": [listed["items"], listed]} if self.allow_scalar else listed

    def _as_list(self, value: object) -> list[object]:
        if not isinstance(value, list):
            if self.allow_scalar:
                return [value]
            raise value_error(f"is {quote_value(value)}", 'Give a list, as in ["a", "b"].')
        if not value:
            raise value_error("is an empty list", "Give at least one value, or leave the key out.")
        if len(value) > self.max_values:
            raise value_error(f"has {len(value)} values", f"Give at most {self.max_values}.")
        return value

    def _reject_duplicates(self, values: list[Any]) -> list[Any]:
        so_far: set[object] = set()
        for value in values:
            if self.equality_key(value) in so_far:
                raise value_error(f"has {quote_value(value)} twice", "Give each value once.")
            so_far.add(self.equality_key(value))
        return values


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def device_path_value() -> ValueReader:
    """The path of a block device below /dev."""
    return matching_text_value(
        lambda path: _DEVICE_PATH.fullmatch(path) and ".." not in path,
        "Give a path below /dev, as '/dev/nvme1n1' or '/dev/disk/by-id/...'.",
        {"pattern": f"^{_DEVICE_PATH.pattern}$"},
    )


def server_url_value() -> ValueReader:
    """A reader for the address of a server: `https://host:port`, and nothing behind it."""

    def read_endpoint(value: object) -> str:
        if isinstance(value, str) and len(value) <= ENDPOINT_CHARACTERS:
            try:
                parts = urlsplit(value)
                is_server = bool(parts.hostname) and parts.port != 0
            except ValueError:
                is_server = False
            has_more = parts.path.strip("/") or parts.query or parts.fragment if is_server else ""
            if is_server and parts.scheme in ("http", "https") and not has_more:
                if "@" not in parts.netloc:
                    return f"{parts.scheme}://{parts.netloc}"
                hint = "Leave them out: keys come from the environment, a profile or a command."
                raise value_error("has a user or password in its address", hint)
        hint = "Write for example 'https://s3.example.org:9000'."
        raise value_error(f"is {quote_value(value)}, not the address of a server", hint)

    return ValueReader(read_endpoint, {"type": "string", "maxLength": ENDPOINT_CHARACTERS})
