"""Pods for the time of a session: made before it, kept alive in it, removed after it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from msgspec import to_builtins
from msgspec.structs import replace

from iolab.cli.output import ask_for_removal, print_json, print_message, wrap_for_terminal
from iolab.cli.session import STOPPING_AT_ONCE, stop_on_signals
from iolab.core.kubernetes import PodFleet, VolumeMode
from iolab.core.leftover_texts import add_to_collected_leftover_texts
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.errors import ExitCode, Fault, HostError, Interrupted, StudyError
from iolab.hosts.kubernetes.fleet import (
    LEASE_RENEWAL_S,
    acquire_lease_or_reuse_kept_pods,
    create_pods,
    kubectl_for_fleet,
    list_leases,
    read_current_context,
    remove_fleet_and_list_kept_volumes,
    renew_lease_or_keep_pods,
    require_cluster_accepts,
    require_namespace,
    wait_until_ready,
)
from iolab.hosts.kubernetes.kubectl import Kubectl
from iolab.study.inventory import parse_namespace
from iolab.study.kubernetes import SERIAL_OF_POD, UNNAMED
from iolab.study.targets import data_sets_at_target, targets_of_study
from iolab.targets.devices import read_device_serial_by_host
from iolab.text import counted_noun, one_line
from iolab.units import format_bytes

FILE_SYSTEM_SHARE: Final = 0.05
"""Of a volume for the file system itself, and what it keeps for root."""


async def pod_fleet_identity_overrides(fleet: PodFleet) -> tuple[str, ...]:
    """What `--set` would say to name a fleet that no session has had, in a context that is fixed.

    So the same pods of the same cluster are met when the session is resumed.
    """
    assignments = []
    if fleet.name == UNNAMED:
        assignments.append(f"kubernetes.name={UNNAMED}-{secrets.token_hex(3)}")
    if not fleet.context and (context := await read_current_context()):
        assignments.append(f"kubernetes.context={context}")
    return tuple(assignments)


def volume_size_error(study: Study, plan: Plan) -> StudyError | None:
    """The fault of a plan whose files do not fit into the volumes that are asked for."""
    fleet = study.kubernetes
    if fleet is None:
        return None
    room = fleet.volume_bytes
    if fleet.volume_mode is VolumeMode.FILESYSTEM:
        room = int(room * (1 - FILE_SYSTEM_SHARE))
    needed = max(
        (
            sum(item.bytes_per_host for item in data_sets_at_target(plan, target))
            for target in targets_of_study(study)
        ),
        default=0,
    )
    if needed > room:
        message = f"The files need {format_bytes(needed)} on each volume of "
        message += f"{format_bytes(fleet.volume_bytes)}."
        hint = "Ask for larger volumes by --volume, or for smaller files by a smaller --scale or "
        hint += "--set 'workload.*.filesize=64m'."
        return StudyError((Fault(message, hint),))
    return None


@asynccontextmanager
async def temporary_session_pods(
    study: Study, plan: Plan, notify: Callable[[str], None]
) -> AsyncIterator[Study]:
    """The study with its pods made; at the end they are removed, unless they are to be kept.

    A study without `[kubernetes]` is given as it is. HostError or StudyError, before anything is
    made, where the cluster or a volume does not do. Interrupted at a signal that the block does not
    handle itself. What cannot be removed is a leftover.
    """
    fleet = study.kubernetes
    if fleet is None:
        yield study
        return
    if (fault := volume_size_error(study, plan)) is not None:
        raise fault
    with _cancelled_by_signals(notify):
        await require_cluster_accepts(fleet)
        # Until there is a Lease of ours, whatever has its name belongs to another session.
        acquisition = asyncio.ensure_future(acquire_lease_or_reuse_kept_pods(fleet))
        is_kept = False
        renewal = asyncio.create_task(_renew_lease_periodically(fleet))
        try:
            await _create_pods_if_new_and_wait(fleet, await asyncio.shield(acquisition), notify)
            yield await _with_device_serials(study, fleet)
            if fleet.keep:
                await renew_lease_or_keep_pods(fleet, does_keep_pods=True)
                is_kept = True
        finally:
            renewal.cancel()
            await asyncio.wait([acquisition])
            if not is_kept and acquisition.exception() is None:
                await _remove_pods(fleet, notify)


def kept_pods_sentences(fleet: PodFleet) -> Iterator[str]:
    """What a session that leaves its pods ends with."""
    again = f"--set kubernetes.name={fleet.name}"
    yield f"The pods stay. To measure in them, give the same options and {again}"
    yield f"To remove them: iolab clean --hosts k8s:{fleet.namespace}"


async def _renew_lease_periodically(fleet: PodFleet) -> None:
    while True:
        await asyncio.sleep(LEASE_RENEWAL_S)
        await renew_lease_or_keep_pods(fleet)


@contextmanager
def _cancelled_by_signals(show_text: Callable[[str], None]) -> Iterator[None]:
    """A signal cancels the task of the block, which ends in Interrupted."""
    task = asyncio.current_task()
    is_stopped = False

    def cancel_task_and_get_text() -> str:
        nonlocal is_stopped
        is_stopped = True
        if task is not None:
            task.cancel()
        return STOPPING_AT_ONCE

    with stop_on_signals(cancel_task_and_get_text, show_text):
        try:
            yield
        except asyncio.CancelledError:
            if not is_stopped:
                raise
            raise Interrupted("Stopped while no run was measured.", "Run again.") from None


async def _create_pods_if_new_and_wait(
    fleet: PodFleet, owner_uid: str | None, notify: Callable[[str], None]
) -> None:
    pods = counted_noun(fleet.pod_count, "pod")
    where = f"in namespace {fleet.namespace} as {fleet.name}"
    if owner_uid is None:
        notify(f"Measuring in the kept pods {where}.")
    else:
        size = format_bytes(fleet.volume_bytes)
        notify(f"Making {pods} with volumes of {size} {where}.")
        await create_pods(fleet, owner_uid)
    await wait_until_ready(fleet, notify)


async def _with_device_serials(study: Study, fleet: PodFleet) -> Study:
    """The study with the serials of the pods' devices, which running pods tell."""
    if fleet.volume_mode is not VolumeMode.BLOCK:
        return study
    names = {name for item in fleet.classes for name in item.host_names}
    specs = [spec for spec in study.hosts if spec.name in names]
    serials = await read_device_serial_by_host(specs, fleet.mount_path)
    hosts = tuple(
        replace(spec, path=fleet.mount_path, serial=serials[spec.name])
        if spec.name in serials
        else spec
        for spec in study.hosts
    )
    configurations = tuple(
        replace(item, serial=None if item.serial == SERIAL_OF_POD else item.serial)
        for item in study.configurations
    )
    return replace(study, hosts=hosts, configurations=configurations)


async def _remove_pods(fleet: PodFleet, notify: Callable[[str], None]) -> None:
    """Remove all that was made; no signal stops it: the rest would have to be removed by hand."""
    notify("Removing the pods and their volumes.")
    with stop_on_signals(lambda: "The pods are being removed, which ends by itself.", notify):
        try:
            removal = remove_fleet_and_list_kept_volumes(kubectl_for_fleet(fleet), fleet.name)
            for sentence in await asyncio.shield(removal):
                notify(sentence)
        except HostError as error:
            again = f"'iolab clean --hosts k8s:{fleet.namespace}' removes what is left."
            add_to_collected_leftover_texts([f"{error.message} {error.hint}", again])


def clean_namespace(namespace_text: str, *, yes: bool, as_json: bool) -> ExitCode:
    """Show what iolab's sessions left in a namespace of a cluster, ask, and remove it."""
    kubectl = Kubectl(parse_namespace(namespace_text))
    found = asyncio.run(list_leases(kubectl))
    if not found:
        asyncio.run(require_namespace(kubectl))
    dead = [item.name for item in found if not item.is_lease_holder_alive]
    for item in () if as_json else found:
        print_message(
            one_line(f"{item}{', alive: it stays' if item.is_lease_holder_alive else ''}")
        )
    removed: list[str] = []
    messages: list[str] = []
    if dead and (yes or (not as_json and ask_for_removal())):
        for name in dead:
            try:
                messages += asyncio.run(remove_fleet_and_list_kept_volumes(kubectl, name))
                removed.append(name)
            except HostError as error:
                messages.append(f"{name}: {error.message} {error.hint}")
    if as_json:
        sessions = [{**to_builtins(item), "removed": item.name in removed} for item in found]
        print_json({"format": 1, "namespace": kubectl.namespace, "sessions": sessions})
    for sentence in messages:
        print_message(wrap_for_terminal(one_line(sentence)))
    is_failed = bool(messages) and len(removed) < len(dead)
    if not is_failed:
        print_message(_cleanup_result_text(kubectl.namespace, dead, removed))
    return ExitCode.HOST if is_failed else ExitCode.OK


def _cleanup_result_text(namespace: str, dead_sessions: list[str], removed: list[str]) -> str:
    if not dead_sessions:
        return f"Nothing was left by dead sessions in namespace {namespace}."
    return "Removed." if removed else "Nothing was removed; the same with --yes removes it."
