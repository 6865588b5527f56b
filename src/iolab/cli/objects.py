"""`iolab clean --endpoint`: what killed sessions left in a bucket, shown and then removed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from iolab.cli.invocation import command_line
from iolab.cli.output import is_removal_confirmed, print_json, print_message
from iolab.core.host import HostKind, HostSpec
from iolab.core.object_store import STORE_PREFIX, ObjectStore
from iolab.errors import ExitCode, HostError, IolabError
from iolab.hosts.connect import open_hosts
from iolab.loads.objects.store_tasks import list_session_prefixes, open_store, remove_objects
from iolab.study.file import ObjectStoreTable
from iolab.text import excerpt, one_line
from iolab.units import format_bytes, format_count


def clean_bucket(keys: dict[str, str], *, yes: bool, as_json: bool) -> int:
    """Show the prefixes of sessions in a bucket, ask, and remove what lies below them.

    `keys` are those of `[target]` that name the store.
    """
    store = _store_from_keys(keys)
    failures: dict[str, str] = {}
    removed: dict[str, Any] = {}
    prefixes = asyncio.run(_list_or_remove_prefixes(store, (), removed, failures))
    if prefixes and not as_json:
        for prefix in prefixes:
            print_message(one_line(f"{prefix} in {store.url_text}"))
        print_message("A session that still runs is among them, and would lose its objects.")
    if prefixes and (yes or (not as_json and is_removal_confirmed())):
        asyncio.run(_list_or_remove_prefixes(store, prefixes, removed, failures))
    if as_json:
        rows = [
            {"prefix": prefix, "removed": prefix in removed, "fault": failures.get(prefix)}
            for prefix in prefixes
        ]
        print_json({"format": 1, "bucket": store.bucket, "sessions": rows})
    for prefix, message in failures.items():
        print_message(one_line(f"{prefix}: {message}"))
    if not failures:
        print_message(_cleanup_text(store, prefixes, removed))
    return ExitCode.HOST if failures else ExitCode.OK


def _store_from_keys(keys: dict[str, str]) -> ObjectStore:
    """The store that options name. HostError for what is none."""
    try:
        table = TypeAdapter(ObjectStoreTable).validate_python(keys)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "endpoint"
        context = first.get("ctx", {})
        message = f"--{name.replace('_', '-')} {context.get('message', first['msg'])}."
        hint = str(context.get("hint", "See 'iolab clean --help'."))
        raise HostError(excerpt(message, 300), hint) from None
    if not table.endpoint or not table.bucket:
        raise HostError("A bucket needs --endpoint and --bucket.", "Give both.")
    return ObjectStore(
        endpoints=tuple(table.endpoint),
        bucket=table.bucket,
        region=table.region,
        addressing=table.addressing,
        ca_file=table.ca_file,
        profile=table.profile,
    )


async def _list_or_remove_prefixes(
    store: ObjectStore,
    prefixes: Sequence[str],
    removed: dict[str, Any],
    failures: dict[str, str],
) -> list[str]:
    """The prefixes of sessions, without any given; else remove what lies below each of these."""
    access = open_store(store)
    async with open_hosts([HostSpec("local", HostKind.LOCAL)]) as hosts:
        (host,) = hosts.values()
        await host.connect()
        if not prefixes:
            return await list_session_prefixes(host, access, STORE_PREFIX)
        for prefix in prefixes:
            try:
                answer = await remove_objects(host, access, prefix)
            except IolabError as fault:
                failures[prefix] = f"{fault.message} {fault.hint}"
                continue
            if answer.get("left"):
                failures[prefix] = f"{answer['left']} objects stay. Run it again."
            else:
                removed[prefix] = answer
    return list(prefixes)


def _cleanup_text(store: ObjectStore, prefixes: Sequence[str], removed: dict[str, Any]) -> str:
    if not prefixes:
        return f"Nothing was left by sessions in {store.url_text}."
    if not removed:
        return f"Nothing was removed; '{command_line('clean')}' with --yes removes it."
    objects = sum(int(answer.get("objects") or 0) for answer in removed.values())
    size = sum(int(answer.get("bytes") or 0) for answer in removed.values())
    return f"Removed {format_count(objects)} objects, {format_bytes(size)}."
