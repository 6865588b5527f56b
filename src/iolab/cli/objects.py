"""`--endpoint` of `clean` and `doctor`: what sessions left in a bucket, whether it is ready."""

from __future__ import annotations

import asyncio
import secrets
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from iolab.cli.doctor.findings import Finding, FindingState
from iolab.cli.invocation import quoted_iolab_command
from iolab.cli.output import ask_for_removal, print_json, print_message
from iolab.core.host import HostSpec, HostTransport
from iolab.core.object_store import STORE_PREFIX, ObjectStore, session_object_prefix
from iolab.errors import ExitCode, HostError, IolabError
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.connect import open_hosts
from iolab.hosts.host import Host
from iolab.loads.objects.store_check import (
    EndpointStatus,
    endpoint_faults,
    probe_object_store_endpoints,
)
from iolab.loads.objects.store_tasks import (
    list_session_prefixes,
    load_object_store_access,
    remove_objects_below_prefix,
)
from iolab.study.file import ObjectStoreTable
from iolab.text import excerpt, one_line
from iolab.units import format_bytes, format_count, format_duration_s, format_ns

CLOCK_NOTE_S: Final = 60.0
"""From fifteen minutes on servers refuse requests."""


async def object_store_findings(
    target_keys: Mapping[str, str], hosts: Sequence[HostSpec]
) -> tuple[tuple[str, Finding], ...]:
    """What each of those hosts finds of a store: the host's name with each finding.

    An object below a prefix of its own is put, read and removed.
    """
    store = _parse_store_options(target_keys)
    access = load_object_store_access(store)
    async with open_hosts(hosts) as opened:
        (await gather_hosts(tuple(opened.values()), Host.connect)).results_or_raise()
        prefix = session_object_prefix(f"doctor-{secrets.token_hex(4)}")
        statuses = await probe_object_store_endpoints(tuple(opened.values()), access, prefix)
    return tuple(
        (status.host, finding)
        for status in statuses
        for finding in _endpoint_findings(store, status)
    )


def _endpoint_findings(store: ObjectStore, status: EndpointStatus) -> Iterator[Finding]:
    endpoint = status.endpoint
    if status.error_class:
        (fault,) = endpoint_faults(store, [status])
        yield Finding("endpoint", FindingState.FAULT, fault.message, fault.hint)
        return
    answer = f", answers within {format_ns(statistics.median(status.request_ns))}"
    server = f" ({status.server})" if status.server else ""
    tls = f", {status.tls}" if status.tls else ""
    text = f"{endpoint}{server}{answer if status.request_ns else ''}{tls}"
    yield Finding("endpoint", FindingState.OK, text)
    if status.tried_rights:
        done = f"bucket '{store.bucket}': an object was put, read and removed"
        yield Finding("rights", FindingState.OK, done)
    if status.clock_ahead_ms is not None:
        off_s = max(abs(status.clock_ahead_ms) / 1000 - 1, 0.0)
        text = f"the clock of {endpoint} is within {format_duration_s(off_s + 1)} of the host's"
        hint = "Set both clocks, by NTP for example: from 15 minutes on requests are refused."
        yield _ok_or_note_finding("clock", text, hint, is_good=off_s <= CLOCK_NOTE_S)
    if status.keeps_alive is not None:
        kept = "keeps" if status.keeps_alive else "closes"
        hint = "Have the server keep connections, or setting them up is measured with each request."
        text = f"{endpoint} {kept} connections after a request"
        yield _ok_or_note_finding("connections", text, hint, is_good=status.keeps_alive)
    if status.rejects_wrong_secret is not None:
        verb = "refuses" if status.rejects_wrong_secret else "accepts"
        text = f"{endpoint} {verb} requests that are signed with another secret key"
        hint = "A server that does not check signatures is faster than one that does."
        yield _ok_or_note_finding("signatures", text, hint, is_good=status.rejects_wrong_secret)


def _ok_or_note_finding(topic: str, text: str, hint: str, *, is_good: bool) -> Finding:
    if is_good:
        return Finding(topic, FindingState.OK, text)
    return Finding(topic, FindingState.NOTE, text, hint)


def clean_bucket(target_keys: Mapping[str, str], *, yes: bool, as_json: bool) -> ExitCode:
    """Show the prefixes of sessions in a bucket, ask, and remove what lies below them.

    `target_keys` are those of `[target]` that name the store.
    """
    store = _parse_store_options(target_keys)
    failures: dict[str, str] = {}
    removed: dict[str, Any] = {}
    prefixes = asyncio.run(_list_or_remove_prefixes(store, (), removed, failures))
    if prefixes and not as_json:
        for prefix in prefixes:
            print_message(one_line(f"{prefix} in {store.url_text}"))
        print_message("A session that still runs is among them, and would lose its objects.")
    if prefixes and (yes or (not as_json and ask_for_removal())):
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
        print_message(_cleanup_result_text(store, prefixes, removed))
    return ExitCode.HOST if failures else ExitCode.OK


def _parse_store_options(target_keys: Mapping[str, str]) -> ObjectStore:
    """The store that options name. HostError for what is none."""
    try:
        table = TypeAdapter(ObjectStoreTable).validate_python(target_keys)
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
    removed_to_fill: dict[str, Any],
    failures_to_fill: dict[str, str],
) -> list[str]:
    """The prefixes of sessions, without any given; else remove what lies below each of these."""
    access = load_object_store_access(store)
    async with open_hosts([HostSpec("local", HostTransport.LOCAL)]) as hosts:
        (host,) = hosts.values()
        await host.connect()
        if not prefixes:
            return await list_session_prefixes(host, access, STORE_PREFIX)
        for prefix in prefixes:
            try:
                answer = await remove_objects_below_prefix(host, access, prefix)
            except IolabError as fault:
                failures_to_fill[prefix] = f"{fault.message} {fault.hint}"
                continue
            if answer.get("left"):
                failures_to_fill[prefix] = f"{answer['left']} objects stay. Run it again."
            else:
                removed_to_fill[prefix] = answer
    return list(prefixes)


def _cleanup_result_text(
    store: ObjectStore, prefixes: Sequence[str], removed: dict[str, Any]
) -> str:
    if not prefixes:
        return f"Nothing was left by sessions in {store.url_text}."
    if not removed:
        return f"Nothing was removed; '{quoted_iolab_command('clean')}' with --yes removes it."
    objects = sum(int(answer.get("objects") or 0) for answer in removed.values())
    size = sum(int(answer.get("bytes") or 0) for answer in removed.values())
    return f"Removed {format_count(objects)} objects, {format_bytes(size)}."
