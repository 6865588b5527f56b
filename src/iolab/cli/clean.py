"""`iolab clean`: what killed sessions left on this machine or on hosts, shown and then removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins

from iolab.cli.invocation import quoted_iolab_command
from iolab.cli.options import (
    AsJson,
    OtherHosts,
    SkipQuestion,
    StoreBucket,
    StoreCaFile,
    StoreEndpoint,
    StoreProfile,
    StoreRegion,
    read_hosts,
    require_absolute,
    target_keys_from_store_options,
)
from iolab.cli.output import ask_for_removal, print_json, print_message, print_renderables
from iolab.core.host import HostSpec, HostTransport
from iolab.errors import ExitCode
from iolab.study.inventory import is_namespace_without_pods
from iolab.text import one_line
from iolab.units import format_bytes

if TYPE_CHECKING:
    from iolab.errors import IolabError
    from iolab.hosts.answers import HostLeftovers


def clean(
    *,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="DIR",
            help="The measured directory; default: the current one.",
        ),
    ] = None,
    hosts: OtherHosts = None,
    endpoint: StoreEndpoint = None,
    bucket: StoreBucket = None,
    region: StoreRegion = None,
    profile: StoreProfile = None,
    ca_file: StoreCaFile = None,
    yes: SkipQuestion = False,
    as_json: AsJson = False,
) -> None:
    """Remove what killed sessions left, after a question.

    With --hosts k8s:NAMESPACE it is the pods and volumes that sessions made there, with --endpoint
    and --bucket the objects.
    """
    import asyncio

    from iolab.session.discovery import list_or_remove_leftovers

    keys = target_keys_from_store_options(
        endpoint=endpoint, bucket=bucket, region=region, profile=profile, ca_file=ca_file
    )
    if keys or (hosts is not None and is_namespace_without_pods(hosts)):
        raise typer.Exit(_clean_store_or_namespace(keys, hosts or "", yes=yes, as_json=as_json))
    if hosts is None:
        specs: tuple[HostSpec, ...] = (HostSpec("local", HostTransport.LOCAL),)
        path = path or "."
    else:
        require_absolute(path)
        specs = read_hosts(hosts)
    absolute = None if path is None else str(Path(path).absolute())
    searched = asyncio.run(list_or_remove_leftovers(specs, absolute))
    leftovers = {name: left for name, left in searched.results.items() if left.has_any}
    removed: Mapping[str, HostLeftovers] = {}
    failed = dict(searched.errors)
    if not as_json:
        _show_leftovers(leftovers)
        _show_folders_of_other_hosts(searched.results)
        _show_other_users_folders(searched.results)
    if leftovers and (yes or (not as_json and ask_for_removal())):
        again = [spec for spec in specs if spec.name in leftovers]
        ended = asyncio.run(
            list_or_remove_leftovers(again, absolute, leftovers_to_remove=leftovers)
        )
        removed, failed = ended.results, failed | dict(ended.errors)
    if as_json:
        theirs = {name: left for name, left in searched.results.items() if left.foreign_folders}
        print_json(_cleanup_document(leftovers | theirs, removed, failed))
    faults = [f"{name}: {fault}" for name, left in removed.items() for fault in left.faults]
    faults += [f"{name}: {error.message} {error.hint}" for name, error in failed.items()]
    for fault in faults:
        print_message(fault)
    if not faults:
        print_message(_cleanup_result_text(leftovers, removed, absolute))
        if more := sum(left.more_folders for left in removed.values()):
            print_message(
                f"{more} more scratch folders were left; "
                f"run '{quoted_iolab_command('clean')}' again."
            )
    if faults:
        raise typer.Exit(ExitCode.HOST)


def _clean_store_or_namespace(
    target_keys: dict[str, str], namespace: str, *, yes: bool, as_json: bool
) -> ExitCode:
    """What sessions left that is on no host: objects of a bucket, pods of a namespace."""
    if target_keys:
        from iolab.cli.objects import clean_bucket

        return clean_bucket(target_keys, yes=yes, as_json=as_json)
    from iolab.cli.pods import clean_namespace

    return clean_namespace(namespace, yes=yes, as_json=as_json)


def _cleanup_result_text(
    leftovers_by_host: Mapping[str, HostLeftovers],
    removed_by_host: Mapping[str, HostLeftovers],
    path: str | None,
) -> str:
    if not leftovers_by_host:
        return f"Nothing was left by killed sessions{f' in {path}' if path else ''}."
    if not removed_by_host:
        return f"Nothing was removed; '{quoted_iolab_command('clean')}' with --yes removes it."
    return "Removed."


def _show_leftovers(leftovers_by_host: Mapping[str, HostLeftovers]) -> None:
    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, terminal_table

    rows = [
        [literal_text(name), literal_text(kind), literal_text(which)]
        for name, left in leftovers_by_host.items()
        for kind, which in _removable_kinds_and_names(left)
    ]
    if rows:
        headings = (Column("host"), Column("left"), Column("which", can_wrap=True))
        print_renderables(terminal_table(headings, rows))


def _show_folders_of_other_hosts(leftovers_by_host: Mapping[str, HostLeftovers]) -> None:
    """Folders that stay, since a lock of another host's may not be seen from here."""
    for folder in {folder for left in leftovers_by_host.values() for folder in left.elsewhere}:
        message = f"{folder.dir} is of host {folder.host}: clean it there, or remove it by hand."
        print_message(one_line(message))


def _show_other_users_folders(leftovers_by_host: Mapping[str, HostLeftovers]) -> None:
    """Folders of other users, whose sessions may be alive: they are theirs to remove."""
    for name, left in leftovers_by_host.items():
        for folder in left.foreign_folders:
            print_message(one_line(f"{folder} on host {name} is another user's, and stays."))
        if more := left.foreign_folder_count - len(left.foreign_folders):
            message = f"{more} more scratch folders on host {name} are other users', and stay."
            print_message(one_line(message))


def _removable_kinds_and_names(leftovers: HostLeftovers) -> Iterator[tuple[str, str]]:
    for process in leftovers.processes:
        yield "process", f"{process.pid} {process.command}"
    for folder in leftovers.folders:
        of = f", {folder.owner}" if folder.owner else ""
        yield "scratch folder", f"{folder.dir} ({format_bytes(folder.bytes)}{of})"
    for undo in leftovers.undos:
        yield "undo of an event", "; ".join(undo.steps)
    for kind, paths in (
        ("loop device", leftovers.loops),
        ("control group", leftovers.groups),
        ("agent", leftovers.agents),
    ):
        for path in paths:
            yield kind, path


def _cleanup_document(
    leftovers_by_host: Mapping[str, HostLeftovers],
    removed_by_host: Mapping[str, HostLeftovers],
    error_by_host: Mapping[str, IolabError],
) -> dict[str, Any]:
    return {
        "format": 1,
        "hosts": [
            {
                "name": name,
                **to_builtins(left),
                "removed": name in removed_by_host,
                "faults": list(removed_by_host[name].faults) if name in removed_by_host else [],
            }
            for name, left in leftovers_by_host.items()
        ],
        "failed": {name: error.message for name, error in error_by_host.items()},
    }
