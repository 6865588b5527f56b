"""What is done to an object store beside load: buckets, layouts, lists, removals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from iolab.core.object_store import ObjectStore
from iolab.errors import EngineError, HostError, Interrupted
from iolab.hosts.barrier import StopRequest, run_with_background
from iolab.hosts.engine_lines import LineError
from iolab.hosts.host import Host
from iolab.hosts.remote_process import exit_fault_text, run_process
from iolab.loads.objects.credentials import load_credentials
from iolab.loads.objects.engine import (
    Document,
    ObjectStoreAccess,
    engine_command,
    parse_task_answer,
    task_failure_sentences,
)
from iolab.loads.objects.remedies import request_failure_hint
from iolab.text import excerpt

TASK_LIMIT_S: Final = 120.0
"""A question to a store, or a bucket."""

LONG_TASK_LIMIT_S: Final = 12 * 3600.0
"""A layout or a removal of a billion objects."""

REQUEST_TIMEOUT_S: Final = 30.0
CONCURRENCY: Final = 16
CA_BYTES_MAX: Final = 1 << 20


def load_object_store_access(store: ObjectStore) -> ObjectStoreAccess:
    """The store with its keys and authorities. HostError where they cannot be had."""
    ca_pem = None
    if store.ca_file is not None:
        path = Path(store.ca_file).expanduser()
        try:
            with path.open("rb") as file:
                ca_pem = file.read(CA_BYTES_MAX).decode("ascii", "replace")
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror or error}."
            raise HostError(message, "See target.ca_file.") from None
        if "-----BEGIN CERTIFICATE-----" not in ca_pem:
            message = f"{path} has no certificate in PEM."
            raise HostError(message, "See target.ca_file.")
    return ObjectStoreAccess(store, ca_pem, load_credentials(store))


async def run_object_store_task(
    host: Host,
    access: ObjectStoreAccess,
    document: Mapping[str, Any],
    answer_key: str,
    *,
    directory: str = "/",
    endpoints: Sequence[str] = (),
    limit_s: float = TASK_LIMIT_S,
    stop: StopRequest | None = None,
    parse_answer: Callable[[Any], Any] = lambda answer: answer,
) -> Any:  # noqa: ANN401 - of any shape
    """A task of the engine on a host; its answer, as `parse_answer` reads it.

    EngineError with what the server said, and where `parse_answer` raises a LineError; Interrupted
    where a request to stop ended it.
    """
    spec = {
        **access.document_without_keys(endpoints or access.store.endpoints, REQUEST_TIMEOUT_S),
        **document,
    }
    command = engine_command(access, spec, directory, limit_s=limit_s)
    printed = bytearray()
    halt = asyncio.Event()
    work = run_process(host, command, halt, printed.extend)
    ending = await (run_with_background(work, stop.forward_to_event(halt)) if stop else work)
    if ending.was_halted:
        raise Interrupted(f"s3 on host '{host.name}' was stopped.", "Resume the session to go on.")
    faults = task_failure_sentences(bytes(printed))
    if faults:
        raise EngineError(
            _store_host_and_faults_text(host.name, access.store, faults),
            request_failure_hint(" ".join(faults)),
        )
    if how := exit_fault_text(ending, command):
        raise EngineError(f"s3 on host '{host.name}' {how}.", "See its agent, and run again.")
    try:
        return parse_answer(parse_task_answer(bytes(printed), answer_key))
    except LineError as fault:
        raise EngineError(f"s3 on host '{host.name}': {fault}.", "Run again.") from None


def _store_host_and_faults_text(
    host_name: str, store: ObjectStore, fault_texts: Sequence[str]
) -> str:
    reason = excerpt("; ".join(fault.rstrip(".") for fault in fault_texts), 600)
    return f"{store.url_text}, from host '{host_name}': {reason}."


async def create_bucket_if_missing(host: Host, access: ObjectStoreAccess) -> bool:
    """Make the bucket; False where it was there already."""
    answer = await run_object_store_task(host, access, {"task": "create-bucket"}, "bucket")
    return isinstance(answer, dict) and answer.get("created") is True


async def remove_objects_below_prefix(
    host: Host, access: ObjectStoreAccess, object_prefix: str
) -> Document:
    """Remove everything below a prefix of iolab's own; what was removed."""
    document = {"task": "delete", "prefix": object_prefix, "concurrency": CONCURRENCY}
    answer = await run_object_store_task(
        host, access, document, "delete", limit_s=LONG_TASK_LIMIT_S
    )
    return answer if isinstance(answer, dict) else {}


async def list_session_prefixes(
    host: Host, access: ObjectStoreAccess, object_prefix: str
) -> list[str]:
    """The prefixes of sessions that have objects in the bucket."""
    document = {"task": "list-prefixes", "prefix": object_prefix}
    answer = await run_object_store_task(host, access, document, "prefixes")
    return [str(each) for each in answer] if isinstance(answer, list) else []
