"""The inventory: a file of hosts, given with `--hosts`, that takes the place of a study's own.

The same `[[host]]` tables as in a study, and `[defaults]` for what all of them share, so that a
study of one host becomes a study of a fleet without a change.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from iolab.core.host import HostRole, HostSpec, HostTransport
from iolab.errors import Fault, HostError, StudyError, UsageError
from iolab.record import Record
from iolab.study import values
from iolab.study.build import build_host_spec
from iolab.study.checks import add_host_faults
from iolab.study.document import FaultCollector, KeyPath, StudyDocument, ValueOrigin, read_document
from iolab.study.file import (
    FORMAT,
    ControllerFile,
    Devices,
    HostTable,
    HypervisorHint,
    Jumps,
    Port,
    SshUser,
    TargetPath,
    WrittenKind,
)
from iolab.study.host_ranges import HOSTS_MAX, HostNamesError, expand_host_ranges, expand_names
from iolab.study.load_tables import NumJobs, StudyTable
from iolab.study.scenario_tables import INVENTORY_ONLY, ActionTable, WitnessTable
from iolab.study.ssh_addresses import PORT_MAX, is_valid_ssh_host, is_valid_user_name
from iolab.study.tables import read_table_array_and_add_faults, validate_table_and_add_faults
from iolab.study.values import ID_CHARACTERS, is_identifier
from iolab.text import counted_noun, quote_value, suggestion

SSH_DEFAULTS: Final = ("user", "port", "jump", "key", "known_hosts")
"""Defaults that a host of another kind than ssh does without."""

HYPERVISOR_HINT_DEFAULTS: Final = ("cores", "numa_nodes", "queues")
"""Defaults that are for hypervisors alone."""

LINES_MAX: Final = 100_000
"""A line a rank, as some batch systems write it: a thousand hosts of a hundred ranks each."""

FAULTS_MAX: Final = 20
"""A file that is no host file at all has a fault on every line; nobody reads more of them."""

_TABLES: Final = ("defaults", "host", *INVENTORY_ONLY)

_SLOTS: Final = ("slots", "slot", "cpus", "cpu", "count", "max_slots", "max-slots", "slots_max")
_SLOTS_MORE: Final = ("slots-max", "max_cpus", "max-cpus", "cpus_max", "boards", "sockets", "cores")
_IGNORED: Final = ("binding", "ifname", "hca")
_USERS: Final = ("user", "username", "user_name", "user-name")
_KEYS: Final = frozenset((*_SLOTS, *_SLOTS_MORE, *_IGNORED, *_USERS, "port"))
_COUNTED: Final = frozenset((*_SLOTS, *_SLOTS_MORE))
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,6}")
_HOST_HINT: Final = "Write HOST, USER@HOST, HOST:SLOTS or HOST slots=N."
JOB_VARIABLE: Final = "SLURM_JOB_ID"
NODES_VARIABLE: Final = "SLURM_JOB_NODELIST"

KEPT_VARIABLES: Final = frozenset(
    {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_WORKING_CLUSTER"}
)
"""How srun finds its controller and proves who asks. Every other variable of Slurm's is an option
of the job around us (`SLURM_NTASKS`, `SLURM_MEM_PER_CPU`), which srun would take for the step's."""

_INSIDE: Final = "Run iolab inside of one, started with salloc or sbatch."

DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
"""The annotation by which a pod says which of its containers is meant."""

SELECTOR_CHARACTERS: Final = 1024
CONTEXT_CHARACTERS: Final = 256
_POD_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"

_CHOICE: Final = re.compile(
    rf"(?P<namespace>{_POD_LABEL})/(?P<selector>[A-Za-z0-9_./=!,() -]+)"
    rf"(?:@(?P<container>{_POD_LABEL}))?"
)

_POD: Final = re.compile(rf"{_POD_LABEL}(?:\.{_POD_LABEL})*")
_HINT: Final = "Give k8s:NAMESPACE/SELECTOR, as in k8s:bench/app=load or k8s:bench/app=load@main."
_ENDED_PHASES: Final = ("Succeeded", "Failed")


class Inventory(Record):
    """The text of an inventory and the name by which its faults call it."""

    text: str
    file_name: str


class DefaultsTable(StudyTable):
    """`[defaults]`: what every host has that does not say otherwise."""

    kind: WrittenKind | None = None
    path: TargetPath | None = None
    user: SshUser | None = None
    port: Port | None = None
    jump: Jumps | None = None
    key: ControllerFile | None = None
    known_hosts: ControllerFile | None = None
    devices: Devices | None = None
    numjobs: NumJobs | None = None
    cores: HypervisorHint | None = None
    numa_nodes: HypervisorHint | None = None
    queues: HypervisorHint | None = None


class InventoryHeading(StudyTable):
    """The keys before the first table."""

    format: Annotated[int, values.exact_value(FORMAT, f"This iolab reads format = {FORMAT}.")]


class InventoryFile(InventoryHeading):
    """The whole file."""

    defaults: DefaultsTable = DefaultsTable()
    host: Annotated[list[HostTable], Field(min_length=1)]
    action: list[ActionTable] = Field(default_factory=list)
    witness: list[WitnessTable] = Field(default_factory=list)


InventoryHeading.part_of = InventoryFile


def parse_inventory(text: str, file_name: str) -> tuple[HostSpec, ...]:
    """The hosts of an inventory; StudyError with every fault, each with its line."""
    faults = FaultCollector()
    document = read_inventory(Inventory(text, file_name), faults)
    if document is None:
        raise StudyError(faults.all_faults)
    expand_host_ranges(document)
    items = read_table_array_and_add_faults(document, "host")
    add_host_faults(document, items)
    if faults.all_faults:
        raise StudyError(faults.all_faults)
    return tuple(build_host_spec(item.table) for item in items if isinstance(item.table, HostTable))


def inventory_schema() -> dict[str, Any]:
    """JSON Schema of an inventory file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An iolab inventory",
        **InventoryFile.model_json_schema(),
    }


def read_inventory(inventory: Inventory, faults: FaultCollector) -> StudyDocument | None:
    """The inventory's hosts as a study would have them, their ranges not yet expanded.

    None when the text is no TOML; else every fault outside of the hosts has been added.
    """
    document = read_document(inventory.text, inventory.file_name, faults)
    if document is None:
        return None
    tree = document.tree
    heading = {key: value for key, value in tree.items() if key not in _TABLES}
    validate_table_and_add_faults(document, InventoryHeading, heading, ())
    defaults = tree.get("defaults", {})
    if not isinstance(defaults, dict):
        message = f"defaults is {quote_value(defaults)}, not a table."
        hint = "Write [defaults] on a line of its own, its keys below."
        document.add_fault(("defaults",), message, hint)
        defaults = {}
    good = validate_table_and_add_faults(document, DefaultsTable, defaults, ("defaults",))
    kept = good.model_fields_set if good is not None else set()
    hosts = tree.get("host", [])
    if not hosts:
        hint = "Describe at least one under [[host]]."
        document.add_fault((), "The inventory has no host.", hint)
    _apply_host_defaults(document, {key: value for key, value in defaults.items() if key in kept})
    return document


def replace_with_inventory_tables(
    document: StudyDocument, inventory_document: StudyDocument
) -> None:
    """Put the hosts of an inventory in place of a study's; their faults keep their own lines.

    With them come what events may do there, and the witnesses.
    """
    origins: dict[KeyPath, ValueOrigin] = {}
    for section in ("host", *INVENTORY_ONLY):
        elements = inventory_document.tree.get(section, [])
        document.tree[section] = elements
        origins[(section,)] = inventory_document.origin_of((section,))
        for index, element in enumerate(elements if isinstance(elements, list) else ()):
            origins[section, index] = inventory_document.origin_of((section, index))
            for key in element if isinstance(element, dict) else ():
                origins[section, index, key] = inventory_document.origin_of((section, index, key))
    document.overrides.update(origins)


def _apply_host_defaults(document: StudyDocument, defaults: Mapping[str, Any]) -> None:
    """Give every host the defaults that it does not write itself; without a kind it is ssh's."""
    elements = document.tree.get("host")
    for index, element in enumerate(elements if isinstance(elements, list) else ()):
        if not isinstance(element, dict):
            continue
        kind = element.get("kind", defaults.get("kind"))
        if kind is None:
            kind = "command" if "command" in element else "ssh"
        for key, value in {**defaults, "kind": kind}.items():
            if key in element or (key in SSH_DEFAULTS and kind != "ssh"):
                continue
            if key == "numjobs" and element.get("role", HostRole.CLIENT) != HostRole.CLIENT:
                continue  # a default for all who make load
            if key in HYPERVISOR_HINT_DEFAULTS and element.get("role") != HostRole.HYPERVISOR:
                continue
            element[key] = value
            at: KeyPath = ("defaults", key) if key in defaults else ("host", index)
            document.overrides["host", index, key] = document.origin_of(at)


def inventory_toml(
    heading_comment: str, host_tables: Iterable[Mapping[str, str | int | list[str]]]
) -> str:
    """The TOML of an inventory with these `[[host]]` tables; `heading_comment`, one line, heads it.

    The values must be printable: what JSON escapes in such text, TOML reads the same way.
    """
    lines = [f"# {heading_comment}", f"format = {FORMAT}"]
    for host in host_tables:
        lines += ["", "[[host]]"]
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in host.items()]
    return "\n".join((*lines, ""))


def mpi_inventory(text: str, file_name: str) -> Inventory:
    """The file's hosts, each once and reached by ssh. UsageError with every fault, each located."""
    entries: dict[str, _MpiHostEntry] = {}
    faults: list[Fault] = []
    for number, line in enumerate(text.splitlines()[: LINES_MAX + 1], 1):
        try:
            if (entry := _parse_mpi_line(line)) is not None:
                _add_mpi_entry_or_raise_conflict(entries, entry, number)
        except HostNamesError as fault:
            faults.append(Fault(fault.message, fault.hint, file_name, number))
    if len(entries) > HOSTS_MAX:
        faults.append(Fault(f"There are {len(entries)} hosts.", f"Give at most {HOSTS_MAX}."))
    if not entries and not faults:
        faults.append(Fault("The host file has no host.", "Write one a line.", file_name, 1))
    if faults:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        hint = "Correct it and run again."
        raise UsageError(f"The MPI host file has {count}.", hint, faults[:FAULTS_MAX])
    hosts = [entry.table() for entry in entries.values()]
    return Inventory(
        inventory_toml(f"--hosts mpi:, {counted_noun(len(hosts), 'host')}", hosts), file_name
    )


class _MpiHostEntry(Record):
    name: str
    user: str | None
    port: int | None

    def table(self) -> dict[str, str | int | list[str]]:
        entry: dict[str, str | int | list[str]] = {
            "name": self.name,
            "kind": HostTransport.SSH.value,
        }
        if self.user is not None:
            entry["user"] = self.user
        if self.port is not None:
            entry["port"] = self.port
        return entry


def _add_mpi_entry_or_raise_conflict(
    entries: dict[str, _MpiHostEntry], entry: _MpiHostEntry, line_number: int
) -> None:
    first = entries.setdefault(entry.name, entry)
    if first != entry:
        message = f"Host {quote_value(entry.name)} has another user or port than before."
        raise HostNamesError(message, f"Write the same in line {line_number} and above.")


def _parse_mpi_line(line: str) -> _MpiHostEntry | None:
    """The host of a line, None when there is none."""
    words = re.sub(r"\s*=\s*", "=", line.split("#", 1)[0]).split()
    if not words:
        return None
    first, *rest = words
    if "=" in first or (first == "rank" and rest):
        hint = "A rank file says which rank runs where; give the host file instead."
        raise HostNamesError(f"The line begins with {quote_value(first)}, not with a host.", hint)
    values = dict(_parse_host_setting(word) for word in rest)
    users = [value for key, value in values.items() if key in _USERS]
    before, at, place = first.rpartition("@")
    users = [before, *users] if at else users
    name = _host_name_before_slots(place)
    for user in users:
        if not is_valid_user_name(user):
            raise HostNamesError(
                f"The user of {quote_value(name)} is {quote_value(user)}.", "Give a login name."
            )
    if len(set(users)) > 1:
        raise HostNamesError(f"Host {quote_value(name)} has two users.", "Leave one of them out.")
    port = values.get("port")
    if port is not None and not (_NUMBER.fullmatch(port) and int(port) <= PORT_MAX):
        message = f"The port of {quote_value(name)} is {quote_value(port)}."
        raise HostNamesError(message, f"Give a number from 1 to {PORT_MAX}.")
    return _MpiHostEntry(name, users[0] if users else None, int(port) if port else None)


def _host_name_before_slots(host_text: str) -> str:
    """The name in `HOST[:SLOTS[:more]]`."""
    if host_text.startswith(("+", "^")):
        message = f"{quote_value(host_text)} chooses among other hosts."
        raise HostNamesError(message, "Name the hosts themselves.")
    if host_text.startswith("[") or host_text.count(":") > 2:
        hint = "Write an inventory, whose address may be one of IPv6."
        raise HostNamesError(f"{quote_value(host_text)} is no name of a host.", hint)
    name, colon, slots = host_text.partition(":")
    if not is_identifier(name) or not is_valid_ssh_host(name):
        raise HostNamesError(f"{quote_value(name)} is no name of a host.", _HOST_HINT)
    if colon:
        _require_positive_count(name, slots.split(":")[0])
    return name


def _parse_host_setting(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    key = key.lower()
    if not equals or not value:
        raise HostNamesError(f"{quote_value(word)} behind a host is not understood.", _HOST_HINT)
    if key not in _KEYS:
        hint = suggestion(key, sorted(_KEYS), "keys")
        raise HostNamesError(f"The host file's key {quote_value(key)} is not known.", hint)
    if key in _COUNTED:
        _require_positive_count(key, value)
    return key, value


def _require_positive_count(setting_name: str, text: str) -> None:
    if not _NUMBER.fullmatch(text):
        message = f"The number behind {quote_value(setting_name)} is {quote_value(text)}."
        raise HostNamesError(message, "Give a whole number from 1.")


class SlurmAllocation(Record):
    """A job's id and its nodes."""

    job_id: str
    nodes: tuple[str, ...]


def read_slurm_allocation(environment: Mapping[str, str]) -> SlurmAllocation:
    """The allocation that a process with this environment is in. HostError when there is none."""
    job, nodes = environment.get(JOB_VARIABLE, ""), environment.get(NODES_VARIABLE, "")
    if not job or not nodes:
        unset = NODES_VARIABLE if job else JOB_VARIABLE
        raise HostError(f"There is no Slurm allocation here ({unset} is not set).", _INSIDE)
    if not re.fullmatch(r"[0-9]{1,10}", job):
        raise HostError(f"{JOB_VARIABLE} is {quote_value(job)}, not a number.", _INSIDE)
    try:
        names = expand_names(nodes)
    except HostNamesError as fault:
        raise HostError(f"{NODES_VARIABLE} {fault.message}.", _INSIDE) from None
    for name in names:
        if not is_identifier(name):
            message = f"{NODES_VARIABLE} has {quote_value(name)}, which is no name of a node."
            raise HostError(message, _INSIDE)
    return SlurmAllocation(job, names)


def slurm_inventory(allocation: SlurmAllocation) -> Inventory:
    """The allocation's nodes, each a host of kind `slurm`: no job's id is in it."""
    origin = f"--hosts slurm, in job {allocation.job_id}"
    hosts = ({"name": name, "kind": HostTransport.SLURM.value} for name in allocation.nodes)
    return Inventory(inventory_toml(origin, hosts), "--hosts slurm")


def srun_prefix(job_id: str, node_name: str) -> tuple[str, ...]:
    """The words before a program that let srun run it on one node of the job."""
    return (
        "srun",
        f"--jobid={job_id}",
        f"--nodelist={node_name}",
        "--nodes=1",
        "--ntasks=1",
        "--job-name=iolab",
        # The allocation's memory, processors and devices are shared with every other step; without
        # these three a second step waits until the first one ends.
        "--overlap",
        "--mem=0",
        "--gres=none",
        # One task would else be bound to one core, and all load with it.
        "--cpu-bind=none",
        "--mpi=none",
        # Buffered, slurmstepd holds output back until a line ends, and a frame has no line.
        "--unbuffered",
        "--input=all",
        "--output=all",
        "--error=all",
        # The controller's working directory need not be there, its PATH must.
        "--chdir=/",
        "--export=ALL",
        "--quiet",
    )


def srun_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for srun: that of the controller without the job's own settings."""
    return {
        name: value
        for name, value in environment.items()
        if name in KEPT_VARIABLES or not name.startswith(("SLURM_", "SRUN_", "SBATCH_", "SALLOC_"))
    }


class PodSelection(Record):
    """Pods of a namespace by their labels; `container` is the one to enter, None for its own."""

    namespace: str
    selector: str
    container: str | None = None

    def __str__(self) -> str:
        container = f"@{self.container}" if self.container else ""
        return f"k8s:{self.namespace}/{self.selector}{container}"


def parse_pod_selection(text: str) -> PodSelection:
    """The selection in `NAMESPACE/SELECTOR[@CONTAINER]`. UsageError when it is none."""
    match = _CHOICE.fullmatch(text)
    if match is None or len(text) > SELECTOR_CHARACTERS or not match["selector"].strip():
        raise UsageError(f"{quote_value(text)} selects no pods.", _HINT)
    return PodSelection(match["namespace"], match["selector"].strip(), match["container"])


def is_namespace_without_pods(hosts_option: str) -> bool:
    """Whether `--hosts` names a namespace of a cluster and no pods in it."""
    return hosts_option.startswith("k8s:") and "/" not in hosts_option


def parse_namespace(hosts_option: str) -> str:
    """The namespace in `k8s:NAMESPACE`. UsageError when it is none."""
    name = hosts_option.removeprefix("k8s:")
    if not re.fullmatch(_POD_LABEL, name):
        message = f"{quote_value(hosts_option)} names no namespace."
        raise UsageError(message, "Give k8s:NAMESPACE, as in k8s:bench.")
    return name


def list_pods_command(selection: PodSelection) -> tuple[str, ...]:
    """The command that lists the pods, for `pods_inventory`.

    Without `--request-timeout`: with it kubectl forgets the account of the pod that it runs in.
    """
    where = (f"--namespace={selection.namespace}", f"--selector={selection.selector}")
    return ("kubectl", "get", "pods", *where, "--output=json")


def pods_inventory(selection: PodSelection, context: str | None, listing: str) -> Inventory:
    """The pods of a listing, each reached by `kubectl exec`. HostError with every fault.

    `context` is written into the commands, so that the same cluster is met whenever they run. Pods
    that have ended or are being deleted are left out; one that is not ready is a fault, because a
    fleet without it would be smaller than was requested.
    """
    faults: list[Fault] = []
    hosts: list[dict[str, str | int | list[str]]] = []
    for pod in sorted(_running_pods(listing), key=_pod_sort_key):
        try:
            hosts.append(_host_table_of_pod(selection, context, pod))
        except HostNamesError as fault:
            faults.append(Fault(fault.message, fault.hint))
    if faults:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        message = f"The pods of {quote_value(str(selection))} have {count}."
        raise HostError(message, "Correct it and run again.", faults)
    if not hosts:
        message = f"{quote_value(str(selection))} selects no running pod."
        raise HostError(message, "See 'kubectl get pods --show-labels' in that namespace.")
    origin = f"--hosts {selection}, {counted_noun(len(hosts), 'pod')}"
    return Inventory(inventory_toml(origin, hosts), f"--hosts {selection}")


def _running_pods(listing: str) -> Iterator[Mapping[str, Any]]:
    """The pods that have not ended; HostError when this is no list of pods."""
    try:
        items = json.loads(listing)["items"]
        for pod in items:
            over = pod["status"]["phase"] in _ENDED_PHASES or pod["metadata"].get(
                "deletionTimestamp"
            )
            if not over:
                str(pod["metadata"]["name"]), pod["spec"]["containers"][0]["name"]
                yield pod
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        hint = "Try 'kubectl get pods -o json' by hand; another program of that name may be first."
        raise HostError("kubectl answered with what is no list of pods.", hint) from None


def _pod_sort_key(pod: Mapping[str, Any]) -> list[tuple[int, str]]:
    """`load-2` before `load-10`."""
    parts = re.split(r"([0-9]+)", str(pod["metadata"]["name"]))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _host_table_of_pod(
    selection: PodSelection, context: str | None, pod: Mapping[str, Any]
) -> dict[str, str | int | list[str]]:
    name = pod["metadata"]["name"]
    if not isinstance(name, str) or not _POD.fullmatch(name):
        message = f"{quote_value(name)} is no name of a pod."
        raise HostNamesError(message, "Find out what answered for the cluster.")
    if not is_identifier(name):
        message = f"Pod {quote_value(name)} has a name of {len(name)} characters."
        hint = f"Give an inventory with names of at most {ID_CHARACTERS} and this pod in a command."
        raise HostNamesError(message, hint)
    if not _is_pod_ready(pod["status"]):
        message = f"Pod {quote_value(name)} is not ready ({quote_value(pod['status']['phase'])})."
        raise HostNamesError(
            message, "Wait with 'kubectl wait --for=condition=Ready', or select less."
        )
    cluster = [f"--context={context}"] if context else []
    where = [f"--namespace={selection.namespace}", f"--container={_container_name(selection, pod)}"]
    command = ["kubectl", *cluster, "exec", "--stdin", *where, name, "--"]
    return {"name": name, "kind": HostTransport.COMMAND.value, "command": command}


def _is_pod_ready(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions")
    return status["phase"] == "Running" and any(
        isinstance(condition, dict)
        and condition.get("type") == "Ready"
        and condition.get("status") == "True"
        for condition in (conditions if isinstance(conditions, list) else ())
    )


def _container_names(containers: object) -> list[str]:
    listed = containers if isinstance(containers, list) else []
    return [str(container.get("name")) for container in listed if isinstance(container, dict)]


def _container_name(selection: PodSelection, pod: Mapping[str, Any]) -> str:
    """The one asked for, else the one that the pod calls its default, else the only one."""
    name = pod["metadata"]["name"]
    there = _container_names(pod["spec"]["containers"])
    annotations = pod["metadata"].get("annotations")
    default = annotations.get(DEFAULT_CONTAINER) if isinstance(annotations, dict) else None
    wanted = selection.container or default or (there[0] if len(there) == 1 else None)
    if wanted is None:
        message = f"Pod {quote_value(name)} has {len(there)} containers: {quote_value(there)}."
        raise HostNamesError(message, f"Name one behind '@', as in {selection}@{there[0][:63]}.")
    # An ephemeral container is entered if it is named: it brings tools to a pod that has none.
    there += _container_names(pod["spec"].get("ephemeralContainers"))
    if wanted not in there or not re.fullmatch(_POD_LABEL, str(wanted)):
        message = (
            f"Pod {quote_value(name)} has no container {quote_value(wanted)}, "
            f"but {quote_value(there)}."
        )
        raise HostNamesError(message, "Name one of its containers behind '@'.")
    return str(wanted)
