"""The options that several commands have, and what `--hosts` and those of a study stand for."""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.core.kubernetes import VolumeAccess, VolumeMode
from iolab.errors import Fault, HostError, StudyError, UsageError
from iolab.record import Record
from iolab.text import counted_noun, quote_value, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from iolab.core.host import HostSpec
    from iolab.core.study import Study
    from iolab.study.inventory import Inventory

SLURM: Final = "slurm"
MPI: Final = "mpi:"
PODS: Final = "k8s:"

LOAD: Final = "Load"
KUBERNETES: Final = "Kubernetes"

TARGET: Final = "Target and hosts"
"""The headings that the help has such options under."""

LAST_SESSION: Final = "last"
"""Stands for the newest session below the current directory."""


def read_inventory(hosts_option: str) -> Inventory:
    """The inventory that `--hosts` names. UsageError or HostError when there is none.

    A file whose name looks like a launcher is reached as `./slurm`.
    """
    if hosts_option == SLURM:
        return _inventory_from_slurm()
    if hosts_option.startswith(MPI):
        return _inventory_from_mpi_file(hosts_option)
    if hosts_option.startswith(PODS):
        return _inventory_from_pods(hosts_option)
    return _inventory_from_file(hosts_option)


def read_hosts(hosts_option: str) -> tuple[HostSpec, ...]:
    """The hosts that `--hosts` names; UsageError with every fault of it."""
    from iolab.study.inventory import parse_inventory

    inventory = read_inventory(hosts_option)
    try:
        return parse_inventory(inventory.text, inventory.file_name)
    except StudyError as error:
        message = f"The inventory has {counted_noun(len(error.faults), 'fault')}."
        raise UsageError(message, error.hint, error.faults) from None


def require_absolute(path: str | None) -> None:
    """UsageError for a directory of hosts that is named from where this process happens to be."""
    if path is not None and not path.startswith("/"):
        raise UsageError(
            f"--path {quote_value(path)} is relative, and hosts have no "
            "directory of ours to begin at.",
            "Give the whole path, from / on.",
        )


def _inventory_from_file(hosts_option: str) -> Inventory:
    from iolab.cli.studies import read_file_argument
    from iolab.study.inventory import Inventory

    source = read_file_argument(hosts_option, "Give an inventory, see docs/reference/inventory.md.")
    return Inventory(source.text, source.file_name)


def _inventory_from_slurm() -> Inventory:
    from iolab.study.inventory import read_slurm_allocation, slurm_inventory

    allocation = read_slurm_allocation(os.environ)
    _require_local_program("srun", "Add Slurm's programs to PATH (Debian: slurm-client).")
    return slurm_inventory(allocation)


def _inventory_from_mpi_file(hosts_option: str) -> Inventory:
    from iolab.cli.studies import read_file_argument
    from iolab.study.inventory import mpi_inventory

    source = read_file_argument(
        hosts_option.removeprefix(MPI), "Give an MPI host file, as in mpi:hosts."
    )
    return mpi_inventory(source.text, source.file_name)


def _inventory_from_pods(hosts_option: str) -> Inventory:
    import asyncio

    from iolab.hosts.connect import read_context_and_pods_json
    from iolab.study.inventory import parse_pod_selection, pods_inventory

    selection = parse_pod_selection(hosts_option.removeprefix(PODS))
    _require_local_program("kubectl", "Install it, or add it to PATH.")
    context, listing = asyncio.run(read_context_and_pods_json(selection))
    return pods_inventory(selection, context, listing)


def _require_local_program(program: str, hint: str) -> None:
    if shutil.which(program) is None:
        raise HostError(f"There is no program '{program}' here.", hint)


class MethodName(StrEnum):
    """What `--method` takes."""

    ADAPTIVE = "adaptive"
    PUBLISHED = "published"

    @property
    def method_assignment(self) -> str:
        """The same as `--set` says it: published studies give fixed times."""
        return f"method.kind={'fixed' if self is MethodName.PUBLISHED else self.value}"


class IoEngine(StrEnum):
    """What `--engine` takes."""

    FIO = "fio"
    NATIVE = "native"


def _bundled_study_completions() -> list[str]:
    """What the shell offers for a study; files are offered by the shell itself."""
    from iolab.cli.studies import bundled_studies

    return [study.id for study in bundled_studies()]


def _scale_completions() -> list[str]:
    return ["full", "small"]


def _server_kind_completions() -> list[str]:
    return ["embedded", "managed"]


def published_set_completions(incomplete: str) -> list[str]:
    """What the shell offers for a published set."""
    from iolab.cli.studies import published_set_ids

    return [name for name in published_set_ids() if name.startswith(incomplete)]


def session_or_set_completions(incomplete: str) -> list[str]:
    """What the shell offers where a published set or a session may stand."""
    return [*published_set_completions(incomplete), *session_completions(incomplete)]


def setting_completions(incomplete: str) -> list[str]:
    """What the shell offers for `--set`: every key of a study, up to its `=`."""
    from iolab.registry import study_kinds

    form = study_kinds().file_schema
    names = [
        f"{section}.{key}"
        for section, table in form.single_table_type_by_name.items()
        for key in table.model_fields
    ]
    names += [
        f"{section}.*.{key}"
        for section in ("workload", "configuration", "host")
        for table in form.element_table_types(section)
        for key in table.model_fields
    ]
    return [f"{name}=" for name in dict.fromkeys(names) if name.startswith(incomplete)]


def server_overrides(server_option: str) -> tuple[str, ...]:
    """The same as `--set` says it: a kind of server by its name, else the cluster's addresses."""
    if server_option in _server_kind_completions():
        return (f"server.kind={server_option}",)
    return ("server.kind=given", f"server.addresses={server_option}")


StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A bundled study (see 'iolab studies') or a .toml file.",
        autocompletion=_bundled_study_completions,
        show_default=False,
    ),
]


def path_or_newest_session(session_argument: str) -> Path:
    """The directory that a session's name on a command line means; UsageError for no last one."""
    path = Path(session_argument)
    if session_argument != LAST_SESSION or path.exists():
        return path
    from iolab.store.search import newest_session_directory

    newest = newest_session_directory(Path())
    if newest is None:
        raise UsageError(
            "There is no last session: no directory below this one is a session.",
            "Name the directory of one.",
        )
    return newest


def session_completions(incomplete: str) -> list[str]:
    """What the shell offers for a session."""
    from iolab.store.search import find_session_folders

    names = [LAST_SESSION, *map(str, find_session_folders(Path()).folders)]
    return [name for name in names if name.startswith(incomplete)]


SessionDirectory = Annotated[
    Path,
    typer.Argument(
        metavar="SESSION",
        help="The directory of a session, also of a running one; 'last' is the newest one below "
        "the current directory.",
        parser=path_or_newest_session,
        autocompletion=session_completions,
    ),
]
SkipQuestion = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask; needed without a terminal.")
]
TargetPath = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="DIR",
        help="Measure the file system below this directory.",
        rich_help_panel=TARGET,
    ),
]
DevicePath = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEV",
        help="Measure this whole block device and DESTROY all its data; needs --serial.",
        rich_help_panel=TARGET,
    ),
]
DeviceSerial = Annotated[
    str | None,
    typer.Option(
        "--serial",
        metavar="SN",
        help="The serial number of that device.",
        rich_help_panel=TARGET,
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="NAME",
        help="The scale of the study, for example 'small'; 'full' is the study as written.",
        autocompletion=_scale_completions,
        rich_help_panel=LOAD,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a value of the study, for example workload.rand-read-4k.iodepth=1,8; repeatable.",
        autocompletion=setting_completions,
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
MethodOption = Annotated[
    MethodName | None,
    typer.Option(
        "--method",
        help="End runs by the stopping rule ('adaptive') or after a fixed time ('published'); "
        "default: the study's.",
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
EngineNameOption = Annotated[
    IoEngine | None,
    typer.Option(
        "--engine",
        help="The engine of all file I/O: fio or iolab's own; default: the study's.",
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
HostsFile = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="HOSTS",
        help="Hosts instead of the study's: an inventory file, slurm, mpi:FILE or "
        "k8s:NAMESPACE/SELECTOR.",
        rich_help_panel=TARGET,
    ),
]
StoreEndpoint = Annotated[
    str | None,
    typer.Option("--endpoint", metavar="URL", help="An object store, in place of --path."),
]
StoreBucket = Annotated[
    str | None, typer.Option("--bucket", metavar="NAME", help="The bucket of --endpoint.")
]
StoreRegion = Annotated[str | None, typer.Option("--region", metavar="NAME", help="Its region.")]
StoreProfile = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="The profile that has its keys.")
]
StoreCaFile = Annotated[
    str | None,
    typer.Option("--ca-file", metavar="FILE", help="The authorities of its certificate."),
]


def target_keys_from_store_options(**options: str | None) -> dict[str, str]:
    """The keys of `[target]` that options of a store give."""
    return {name: value for name, value in options.items() if value is not None}


OtherHosts = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="HOSTS",
        help="These hosts instead of this machine: an inventory file, slurm, mpi:FILE or "
        "k8s:NAMESPACE/SELECTOR.",
    ),
]
Runtime = Annotated[
    str | None,
    typer.Option(
        "--runtime",
        metavar="TIME",
        help="Measured time of a run, for example 30s or 2m.",
        rich_help_panel=LOAD,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats", metavar="N", help="How often each point is measured.", rich_help_panel=LOAD
    ),
]
IoDepths = Annotated[
    str | None,
    typer.Option(
        "--iodepth",
        metavar="N,...",
        help="Queue depth of each job, or several to sweep.",
        rich_help_panel=LOAD,
    ),
]
BlockSizes = Annotated[
    str | None,
    typer.Option(
        "--bs",
        metavar="SIZE,...",
        help="Block size, for example 4k, or several to sweep.",
        rich_help_panel=LOAD,
    ),
]
JobCounts = Annotated[
    str | None,
    typer.Option(
        "--numjobs",
        metavar="N,...",
        help="Jobs of each client, or several to sweep.",
        rich_help_panel=LOAD,
    ),
]


def workload_overrides(
    runtime: str | None = None,
    repeats: int | None = None,
    iodepth: str | None = None,
    bs: str | None = None,
    numjobs: str | None = None,
) -> tuple[str, ...]:
    """The same as `--set` says it; load is set of every workload that has such a key."""
    values = {
        "method.runtime": runtime,
        "method.repeats": repeats,
        "workload.*.iodepth": iodepth,
        "workload.*.bs": bs,
        "workload.*.numjobs": numjobs,
    }
    return tuple(f"{key}={value}" for key, value in values.items() if value is not None)


ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="WHERE",
        help="The store of YCSB workloads: 'embedded' (RocksDB in each client), 'managed' (a "
        "Cassandra node that iolab starts) or HOST[:PORT],... of your cluster; default: as the "
        "study says.",
        autocompletion=_server_kind_completions,
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


class OutputFormat(StrEnum):
    """What a command that prints results takes for `--format`."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


OutputOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format", "-f", metavar="FORMAT", help="table, json, csv or markdown.", show_default=False
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only the results, no progress.")
]
Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", "-w", metavar="ID", help="Only this workload; repeatable."),
]


def unknown_name_faults(
    noun: str, requested: Iterable[str], names: Sequence[str]
) -> tuple[Fault, ...]:
    """A fault for each name asked for that is not known, with the nearest; `noun` is a singular."""
    return tuple(
        Fault(f"There is no {noun} {quote_value(name)}.", suggestion(name, names, f"{noun}s"))
        for name in requested
        if name not in names
    )


def refuse_empty_or_root_path(path: str) -> None:
    """UsageError for what is seldom meant: an unset variable, or the root of everything."""
    if not path.strip():
        raise UsageError(
            "--path is empty.", "Name a directory; where a variable stands for it, it is not set."
        )
    if Path(path).resolve() == Path("/"):
        raise UsageError(
            f"--path {path} is the root of the file system.",
            "Name a directory below it that is made for the load.",
        )


def with_output_format(command: Callable[..., None]) -> Callable[..., None]:
    """The command with `--format` and `--json` in place of its last parameter, `output`."""
    *own, last = inspect.signature(command, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = (
        inspect.Parameter(
            "output_format", keyword, default=OutputFormat.TABLE, annotation=OutputOption
        ),
        inspect.Parameter("as_json", keyword, default=False, annotation=AsJson),
    )

    def run_with_output_format(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as the signature says
        output = options.pop("output_format", OutputFormat.TABLE)
        if options.pop("as_json", False):
            output = OutputFormat.JSON
        command(*arguments, **{**options, last.name: output})

    run_with_output_format.__doc__ = command.__doc__
    vars(run_with_output_format)["__signature__"] = inspect.Signature([*own, *shared])
    return run_with_output_format


StorageClasses = Annotated[
    str | None,
    typer.Option(
        "--storage-class",
        metavar="NAME,...",
        help="Make pods with a volume of this storage class, or of several to compare.",
        rich_help_panel=KUBERNETES,
    ),
]
PodCount = Annotated[
    int | None,
    typer.Option(
        "--pods", metavar="N", help="Pods of each class, one a node.", rich_help_panel=KUBERNETES
    ),
]
VolumeSize = Annotated[
    str | None,
    typer.Option(
        "--volume",
        metavar="SIZE",
        help="Size of each pod's volume, as 20Gi.",
        rich_help_panel=KUBERNETES,
    ),
]
VolumeModeOption = Annotated[
    VolumeMode | None,
    typer.Option(
        "--volume-mode",
        help="Measure a file system, or a raw block device (then the pods run as root).",
        show_default=False,
        rich_help_panel=KUBERNETES,
    ),
]
VolumeAccessOption = Annotated[
    VolumeAccess | None,
    typer.Option(
        "--access",
        help="RWO: a volume for each pod; RWX: one that all pods of a class share.",
        show_default=False,
        rich_help_panel=KUBERNETES,
    ),
]
NodeSelector = Annotated[
    str | None,
    typer.Option(
        "--node-selector",
        metavar="KEY=VALUE,...",
        help="Only nodes with these labels.",
        rich_help_panel=KUBERNETES,
    ),
]
ClassPrices = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="NAME=AMOUNT,...",
        help="What a GiB of a class costs a month, as fast=0.17EUR.",
        rich_help_panel=KUBERNETES,
    ),
]
PodImage = Annotated[
    str | None,
    typer.Option(
        "--image",
        metavar="IMAGE",
        help="Image of the pods, with the engine and coreutils or busybox.",
        rich_help_panel=KUBERNETES,
    ),
]
PodNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        help="Namespace of the pods; default: iolab.",
        rich_help_panel=KUBERNETES,
    ),
]
KeepPods = Annotated[
    bool,
    typer.Option("--keep", help="Leave the pods for the next session.", rich_help_panel=KUBERNETES),
]


class StudyOptions(Record):
    """A study as a command line names it, and what that sets over it."""

    study: StudyName
    path: TargetPath = None
    device: DevicePath = None
    serial: DeviceSerial = None
    hosts: HostsFile = None
    scale: Scale = "full"
    sets: Sets = None
    method: MethodOption = None
    server: ServerOption = None
    engine: EngineNameOption = None
    runtime: Runtime = None
    repeats: Repeats = None
    iodepth: IoDepths = None
    bs: BlockSizes = None
    numjobs: JobCounts = None
    storage_class: StorageClasses = None
    pods: PodCount = None
    volume: VolumeSize = None
    volume_mode: VolumeModeOption = None
    access: VolumeAccessOption = None
    node_selector: NodeSelector = None
    price: ClassPrices = None
    image: PodImage = None
    namespace: PodNamespace = None
    keep: KeepPods = False

    @property
    def pod_overrides(self) -> tuple[str, ...]:
        """What its options of pods set, as `--set` says it."""
        values = {
            "storage_class": self.storage_class,
            "pods": self.pods,
            "volume": self.volume,
            "volume_mode": self.volume_mode,
            "access": self.access,
            "node_selector": self.node_selector,
            "price": self.price,
            "image": self.image,
            "namespace": self.namespace,
            "keep": "true" if self.keep else None,
        }
        return tuple(
            f"kubernetes.{key}={value}" for key, value in values.items() if value is not None
        )


def with_study_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every option of a study in place of its first parameter, before its own."""
    shared = inspect.signature(StudyOptions, eval_str=True).parameters
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    def command_with_options(**options: Any) -> None:  # noqa: ANN401 - as the signature says
        study = StudyOptions(**{name: options.pop(name) for name in shared if name in options})
        command(study, **options)

    command_with_options.__doc__ = command.__doc__
    vars(command_with_options)["__signature__"] = inspect.Signature([*shared.values(), *own])
    return command_with_options


def load_study(
    options: StudyOptions, *, is_path_required: bool = True, assignments: Sequence[str] = ()
) -> Study:
    """The study that a command line names; UsageError or StudyError with every fault.

    `assignments` are set over all that the options set.
    """
    from iolab.cli.studies import read_study_source
    from iolab.core.engine import EngineName
    from iolab.registry import read_study
    from iolab.study.parse import StudyOverrides

    source = read_study_source(options.study)
    path, server = options.path, options.server
    if path is not None:
        refuse_empty_or_root_path(path)
    overrides = (
        *(options.sets or ()),
        *([options.method.method_assignment] if options.method else ()),
        *(server_overrides(server) if server is not None else ()),
        *workload_overrides(
            options.runtime, options.repeats, options.iodepth, options.bs, options.numjobs
        ),
        *options.pod_overrides,
        *assignments,
    )
    if options.hosts is not None and options.pod_overrides:
        raise UsageError(
            "--hosts names hosts that are there, and options of Kubernetes make others.",
            "Give --hosts or --storage-class, not both.",
        )
    loaded_as = StudyOverrides(
        None if path is None else str(Path(path).absolute()),
        options.scale,
        overrides,
        is_path_required,
        None if options.hosts is None else read_inventory(options.hosts),
        options.device,
        options.serial,
        None if options.engine is None else EngineName(options.engine.value),
    )
    return read_study(source.text, source.file_name, loaded_as)
