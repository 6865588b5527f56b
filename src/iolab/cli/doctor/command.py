"""The command: it looks at this machine or at a fleet, shows what it found, and ends by it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.doctor.findings import (
    LEFTOVERS_TOPIC,
    Finding,
    FindingState,
    Readiness,
    inspect_local_machine,
    readiness,
)
from iolab.cli.options import (
    OtherHosts,
    OutputFormat,
    StoreBucket,
    StoreCaFile,
    StoreEndpoint,
    StoreProfile,
    StoreRegion,
    read_hosts,
    require_absolute,
    target_keys_from_store_options,
    with_output_format,
)
from iolab.cli.output import print_document, print_message, print_renderables
from iolab.errors import ExitCode
from iolab.text import counted_noun, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence


@with_output_format
def doctor(
    *,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="DIR",
            help="The directory to measure; default: the current one.",
        ),
    ] = None,
    hosts: OtherHosts = None,
    cloud_metadata: Annotated[
        bool,
        typer.Option(
            "--cloud-metadata",
            help="Also ask the cloud's metadata service (169.254.169.254) for the instance type "
            "and the volumes.",
        ),
    ] = False,
    endpoint: StoreEndpoint = None,
    bucket: StoreBucket = None,
    region: StoreRegion = None,
    profile: StoreProfile = None,
    ca_file: StoreCaFile = None,
    output_format: OutputFormat,
) -> None:
    """Check whether this machine, or a fleet, is ready to measure.

    With --endpoint and --bucket it is an object store as these see it: one object is put, read and
    removed there.
    """
    keys = target_keys_from_store_options(
        endpoint=endpoint, bucket=bucket, region=region, profile=profile, ca_file=ca_file
    )
    if keys:
        print_readiness_or_exit(_check_and_print_store(keys, hosts, output_format), "")
        return
    if hosts is None:
        findings = _check_and_print_this_machine(
            path or ".", does_ask_cloud_metadata=cloud_metadata, output_format=output_format
        )
    else:
        findings = _check_and_print_fleet(
            hosts, path, does_ask_cloud_metadata=cloud_metadata, output_format=output_format
        )
    print_readiness_or_exit(findings, clean_command_line_text(path, hosts))


def clean_command_line_text(path: str | None, hosts: str | None) -> str:
    """What shows what killed sessions left where this command has looked."""
    words = ["iolab", "clean"]
    for option, value in (("--path", path), ("--hosts", hosts)):
        words += [] if value is None else [option, value]
    return shlex.join(words)


def _check_and_print_this_machine(
    path: str, *, does_ask_cloud_metadata: bool, output_format: OutputFormat
) -> Sequence[Finding]:
    import asyncio

    findings = asyncio.run(
        inspect_local_machine(
            str(Path(path).absolute()), does_ask_cloud_metadata=does_ask_cloud_metadata
        )
    )
    _print_findings([("", item) for item in findings], output_format)
    return findings


def _check_and_print_store(
    target_keys: dict[str, str], hosts: str | None, output_format: OutputFormat
) -> Sequence[Finding]:
    import asyncio

    from iolab.cli.objects import object_store_findings
    from iolab.core.host import HostSpec, HostTransport

    specs = (HostSpec("local", HostTransport.LOCAL),) if hosts is None else read_hosts(hosts)
    findings = asyncio.run(object_store_findings(target_keys, specs))
    _print_findings(
        [("" if hosts is None else name, finding) for name, finding in findings], output_format
    )
    return [finding for _, finding in findings]


def _print_findings(findings: Sequence[tuple[str, Finding]], output_format: OutputFormat) -> None:
    """Print each with the host that it is of; "" where there is one host only."""
    from rich.text import Text

    from iolab.report.table import Column
    from iolab.report.terminal import QUIET_STYLE, literal_text, terminal_table

    if output_format is not OutputFormat.TABLE:
        answers = [
            {
                "what": item.topic,
                "state": item.state.value,
                **({"host": host} if host else {}),
                "message": item.message,
                "hint": item.hint,
            }
            for host, item in findings
        ]
        verdict = readiness([item for _, item in findings]).value
        print_document(
            output_format, {"format": 1, "verdict": verdict, "findings": answers}, answers
        )
        return
    styles = {
        FindingState.OK: "green",
        FindingState.NOTE: "yellow",
        FindingState.FAULT: "bold red",
    }
    rows: list[list[Text | str]] = []
    for host, item in findings:
        rows.append(
            [
                literal_text(f"{host}: {item.topic}" if host else item.topic),
                literal_text(item.state, styles[item.state]),
                literal_text(item.message),
            ]
        )
        if item.hint:
            rows.append(["", "", literal_text(item.hint, QUIET_STYLE)])
    headings = (Column(""), Column("state"), Column("found, and what to do", can_wrap=True))
    print_renderables(terminal_table(headings, rows))


def _check_and_print_fleet(
    hosts_option: str,
    target_path: str | None,
    *,
    does_ask_cloud_metadata: bool,
    output_format: OutputFormat,
) -> Sequence[Finding]:
    import asyncio

    from iolab.cli.doctor.fleet import (
        fleet_document,
        fleet_findings,
        fleet_table_and_finding_lines,
        inspect_fleet,
    )

    require_absolute(target_path)
    specs = read_hosts(hosts_option)
    inspected = asyncio.run(
        inspect_fleet(specs, target_path, does_ask_cloud_metadata=does_ask_cloud_metadata)
    )
    if output_format is not OutputFormat.TABLE:
        document = fleet_document(specs, inspected)
        print_document(output_format, document, document["findings"])
    else:
        print_renderables(*fleet_table_and_finding_lines(specs, inspected))
    return [item.finding for item in fleet_findings(inspected)]


def print_readiness_or_exit(findings: Sequence[Finding], clean_command: str) -> None:
    """Print whether all is fit, with the command that cleans; typer.Exit where it is not."""
    if any(item.topic == LEFTOVERS_TOPIC for item in findings):
        print_message(f"Left by killed sessions; to see and remove it: {one_line(clean_command)}")
    match readiness(findings):
        case Readiness.FIT:
            print_message("Fit to measure.")
        case Readiness.BUSY:
            print_message("Fit to measure, but busy: results measured now are at best indicative.")
        case Readiness.NOT_FIT:
            faults = [item for item in findings if item.state is FindingState.FAULT]
            print_message(f"Not fit to measure: {counted_noun(len(faults), 'fault')}.")
            only_engines = all(item.is_engine_fault for item in faults)
            raise typer.Exit(ExitCode.ENGINE if only_engines else ExitCode.HOST)
