"""Names of hosts in records, and records whose hosts have other names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import replace

from iolab.text import list_text

_MARK: Final = Meta(extra={"is_host_name": True})

HostName: TypeAlias = Annotated[str, _MARK]
"""Text of a record that names a host of the session, or lists some as `list_text` does."""

T = TypeVar("T")


def with_renamed_hosts(record: T, new_names_by_host: Mapping[str, str]) -> T:
    """The record where hosts have those new names; a host that is not there keeps its own."""
    renamed: T = (
        _with_renamed_hosts(record, type(record), new_names_by_host)
        if new_names_by_host
        else record
    )
    return renamed


def _with_renamed_hosts(value: Any, hint: Any, new_names_by_host: Mapping[str, str]) -> Any:  # noqa: ANN401
    match value:
        case str():
            return _renamed_text(value, new_names_by_host) if _MARK in get_args(hint) else value
        case Struct():
            hints = _types_of_fields_with_host_names(type(value))
            fields = {
                name: _with_renamed_hosts(getattr(value, name), hints[name], new_names_by_host)
                for name in hints
            }
            return replace(value, **fields) if fields else value
        case tuple() if get_origin(hint) is tuple:
            kinds = get_args(hint)
            kinds = kinds[:1] * len(value) if kinds[-1] is ... else kinds
            pairs = zip(value, kinds, strict=True)
            return tuple(_with_renamed_hosts(item, kind, new_names_by_host) for item, kind in pairs)
        case Mapping():
            return {
                key: _with_renamed_hosts(item, type(item), new_names_by_host)
                for key, item in value.items()
            }
        case _:
            return value


def _renamed_text(text: str, new_names_by_host: Mapping[str, str]) -> str:
    if text in new_names_by_host:
        return new_names_by_host[text]
    first, last = text.rpartition(" and ")[::2]
    hosts = [*first.split(", "), last]
    is_list = bool(first) and list_text(hosts) == text
    return list_text(new_names_by_host.get(host, host) for host in hosts) if is_list else text


@cache
def _types_of_fields_with_host_names(record_type: type[Struct]) -> dict[str, Any]:
    """The types of a record's fields that may hold names of hosts."""
    hints = get_type_hints(record_type, include_extras=True)
    own = {name: hints[name] for name in record_type.__struct_fields__}
    return {name: hint for name, hint in own.items() if hint not in (str, int, float, bool)}
