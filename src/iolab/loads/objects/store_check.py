"""Looks at the endpoints of a store from hosts: reachable, keys, bucket and clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from iolab.core import limits
from iolab.core.object_store import ObjectStore
from iolab.errors import EngineError, Fault
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.host import Host
from iolab.loads.objects.engine import ObjectStoreAccess
from iolab.loads.objects.remedies import OTHER_HINT, PROBLEMS, problem_name_in_text
from iolab.loads.objects.store_tasks import run_object_store_task
from iolab.record import Record
from iolab.text import excerpt, list_text, quote_value
from iolab.units import format_duration_s

NAMED_HOSTS: Final = 4
CHECK_ANSWER: Final = "check"


class EndpointStatus(Record):
    """What a look at one endpoint showed to one host.

    `error_class` is that of the first request that failed, and `error` its words; both are empty
    where all went well. `clock_ahead_ms` is by how much the server's clock is ahead of the host's.
    `keeps_alive` is whether it keeps connections, `rejects_wrong_secret` whether it refuses a
    request that is signed with another secret key. `server` is the name that it gives itself, `tls`
    what encrypts. `tried_rights` is whether an object was put there. What could not be seen is None
    or empty.
    """

    host: str
    endpoint: str
    error_class: str = ""
    error: str = ""
    clock_ahead_ms: int | None = None
    request_ns: tuple[int, ...] = ()
    keeps_alive: bool | None = None
    rejects_wrong_secret: bool | None = None
    server: str = ""
    tls: str = ""
    tried_rights: bool = False


async def probe_object_store_endpoints(
    hosts: Sequence[Host], access: ObjectStoreAccess, probe_prefix: str
) -> tuple[EndpointStatus, ...]:
    """What each host sees of the endpoints that it uses.

    The first puts, reads and removes an object below `probe_prefix` at its first endpoint: all have
    the same keys, and gateways of one store would meet there. Raises HostError and EngineError
    where a host cannot look.
    """
    places = {host.name: place for place, host in enumerate(hosts)}

    async def probe_endpoints_from_host(host: Host) -> list[EndpointStatus]:
        endpoints = access.store.endpoints_of_host(places[host.name])
        found: list[EndpointStatus] = []
        for endpoint in endpoints:
            tries_rights = not found and places[host.name] == 0
            document = {"task": "check", "prefix": probe_prefix if tries_rights else ""}
            try:
                answer = await run_object_store_task(
                    host, access, document, CHECK_ANSWER, endpoints=(endpoint,)
                )
            except EngineError as error:
                problem = problem_name_in_text(error.message)
                if problem is None:
                    raise
                found.append(_unreachable_status(host, endpoint, problem, error))
                continue
            statuses = _endpoint_statuses_from_answer(host, answer)
            found += [replace(status, tried_rights=tries_rights) for status in statuses]
        return found

    outcomes = (await gather_hosts(hosts, probe_endpoints_from_host)).results_or_raise()
    return tuple(status for found in outcomes.values() for status in found)


def endpoint_faults(store: ObjectStore, statuses: Iterable[EndpointStatus]) -> list[Fault]:
    """Why load cannot go there: each once, with the hosts that see it."""
    hosts: dict[Fault, list[str]] = {}
    for status in statuses:
        makes_bucket = store.create_bucket and status.error_class == "NoSuchBucket"
        if status.error_class and not makes_bucket:
            hosts.setdefault(_endpoint_fault(store, status), []).append(status.host)
    return [
        Fault(
            f"{fault.message}, from {list_text(map(quote_value, names), NAMED_HOSTS)}.", fault.hint
        )
        for fault, names in hosts.items()
    ]


def _endpoint_fault(store: ObjectStore, status: EndpointStatus) -> Fault:
    """The same without a full stop, and without the host."""
    words = excerpt(status.error.rstrip("."), 300)
    problem = PROBLEMS.get(status.error_class)
    if problem is None:
        return Fault(f"{status.endpoint} does not serve: {words}", OTHER_HINT)
    text = problem.text.format(bucket=store.bucket, skew=_clock_skew_suffix(status.clock_ahead_ms))
    return Fault(f"{status.endpoint} {text}: {words}", problem.hint)


def _clock_skew_suffix(ahead_ms: int | None) -> str:
    if ahead_ms is None:
        return ""
    direction = "ahead" if ahead_ms > 0 else "behind"
    return f", {format_duration_s(abs(ahead_ms) / 1000)} {direction}"


def _unreachable_status(
    host: Host, endpoint: str, problem: str, error: EngineError
) -> EndpointStatus:
    """An endpoint of which nothing could be seen, as where its name has no address."""
    words = error.message.partition(f"from host '{host.name}': ")[2] or error.message
    return EndpointStatus(host.name, endpoint, problem, words)


def _endpoint_statuses_from_answer(host: Host, answer: object) -> list[EndpointStatus]:
    rows = answer.get("endpoints") if isinstance(answer, dict) else None
    return [
        _endpoint_status_from_answer(host.name, row)
        for row in (rows if isinstance(rows, list) else [])[: limits.LISTED_MAX]
        if isinstance(row, dict)
    ]


def _endpoint_status_from_answer(host_name: str, answer_row: Mapping[str, Any]) -> EndpointStatus:
    ahead = answer_row.get("ahead_ms")
    return EndpointStatus(
        host=host_name,
        endpoint=_printable_text_or_empty(answer_row.get("endpoint")),
        error_class=_printable_text_or_empty(answer_row.get("error_class")),
        error=_printable_text_or_empty(answer_row.get("error")),
        clock_ahead_ms=ahead if isinstance(ahead, int) else None,
        request_ns=tuple(ns for ns in answer_row.get("request_ns") or () if isinstance(ns, int)),
        keeps_alive=_bool_or_none(answer_row.get("keep_alive")),
        rejects_wrong_secret=_bool_or_none(answer_row.get("rejects_wrong_secret")),
        server=_printable_text_or_empty(answer_row.get("server")),
        tls=" ".join(map(_printable_text_or_empty, tls.values()))
        if isinstance(tls := answer_row.get("tls"), dict)
        else "",
    )


def _bool_or_none(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _printable_text_or_empty(value: object) -> str:
    return excerpt(value, limits.SENTENCE_CHARACTERS_MAX) if isinstance(value, str) else ""
