"""Pods of Kubernetes: what `--hosts k8s:…` selects, and the pods found as an inventory. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from iolab.errors import Fault, HostError, UsageError
from iolab.model.host import HostKind
from iolab.plan.hosts_text import inventory_text
from iolab.plan.inventory import Inventory
from iolab.plan.values import ID_CHARACTERS, is_identifier
from iolab.plan.wording import shown

DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
"""The annotation by which a pod says which of its containers is meant."""

SELECTOR_CHARACTERS: Final = 1024
CONTEXT_CHARACTERS: Final = 256

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_CHOICE: Final = re.compile(
    rf"(?P<namespace>{_LABEL})/(?P<selector>[A-Za-z0-9_./=!,() -]+)(?:@(?P<container>{_LABEL}))?"
)
_POD: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_DO: Final = "Give k8s:NAMESPACE/SELECTOR, as in k8s:bench/app=load or k8s:bench/app=load@main."
_OVER: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Selection:
    """Pods of a namespace by their labels; `container` is the one to enter, None for its own."""

    namespace: str
    selector: str
    container: str | None = None

    def __str__(self) -> str:
        container = f"@{self.container}" if self.container else ""
        return f"k8s:{self.namespace}/{self.selector}{container}"


def parse_selection(text: str) -> Selection:
    """The selection in `NAMESPACE/SELECTOR[@CONTAINER]`. UsageError when it is none."""
    match = _CHOICE.fullmatch(text)
    if match is None or len(text) > SELECTOR_CHARACTERS or not match["selector"].strip():
        raise UsageError(f"{shown(text)} selects no pods.", _DO)
    return Selection(match["namespace"], match["selector"].strip(), match["container"])


def listing_words(selection: Selection) -> tuple[str, ...]:
    """The command that lists the pods, for `pods_inventory`."""
    where = (f"--namespace={selection.namespace}", f"--selector={selection.selector}")
    return ("kubectl", "get", "pods", *where, "--output=json", "--request-timeout=20s")


def pods_inventory(selection: Selection, context: str | None, listing: str) -> Inventory:
    """The pods of a listing, each reached by `kubectl exec`. HostError with every fault.

    `context` is written into the commands, so that the same cluster is met whenever they run. Pods
    that have ended or are being deleted are left out; one that is not ready is a fault, because a
    fleet without it would be smaller than was asked for.
    """
    faults: list[Fault] = []
    hosts: list[dict[str, str | int | list[str]]] = []
    for pod in sorted(_standing(listing), key=_order):
        try:
            hosts.append(_host(selection, context, pod))
        except _PodFault as fault:
            faults.append(Fault(fault.happened, fault.do))
    if faults:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        happened = f"The pods of {shown(str(selection))} have {count}."
        raise HostError(happened, "Correct it and run again.", faults)
    if not hosts:
        happened = f"{shown(str(selection))} selects no running pod."
        raise HostError(happened, "See 'kubectl get pods --show-labels' in that namespace.")
    origin = f"--hosts {selection}, {len(hosts)} pods"
    return Inventory(inventory_text(origin, hosts), f"--hosts {selection}")


class _PodFault(ValueError):
    def __init__(self, happened: str, do: str) -> None:
        super().__init__(happened)
        self.happened = happened
        self.do = do


def _standing(listing: str) -> Iterator[Mapping[str, Any]]:
    """The pods that have not ended; HostError when this is no list of pods."""
    try:
        items = json.loads(listing)["items"]
        for pod in items:
            over = pod["status"]["phase"] in _OVER or pod["metadata"].get("deletionTimestamp")
            if not over:
                str(pod["metadata"]["name"]), pod["spec"]["containers"][0]["name"]
                yield pod
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        do = "Try 'kubectl get pods -o json' by hand; another program of that name may be first."
        raise HostError("kubectl answered with what is no list of pods.", do) from None


def _order(pod: Mapping[str, Any]) -> list[tuple[int, str]]:
    """`load-2` before `load-10`."""
    parts = re.split(r"([0-9]+)", str(pod["metadata"]["name"]))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _host(
    selection: Selection, context: str | None, pod: Mapping[str, Any]
) -> dict[str, str | int | list[str]]:
    name = pod["metadata"]["name"]
    if not isinstance(name, str) or not _POD.fullmatch(name):
        happened = f"{shown(name)} is no name of a pod."
        raise _PodFault(happened, "Find out what answered for the cluster.")
    if not is_identifier(name):
        happened = f"Pod {shown(name)} has a name of {len(name)} characters."
        do = f"Give an inventory with names of at most {ID_CHARACTERS} and this pod in a command."
        raise _PodFault(happened, do)
    if not _is_ready(pod["status"]):
        happened = f"Pod {shown(name)} is not ready ({shown(pod['status']['phase'])})."
        raise _PodFault(happened, "Wait with 'kubectl wait --for=condition=Ready', or select less.")
    cluster = [f"--context={context}"] if context else []
    where = [f"--namespace={selection.namespace}", f"--container={_container(selection, pod)}"]
    command = ["kubectl", *cluster, "exec", "--stdin", *where, name, "--"]
    return {"name": name, "kind": HostKind.COMMAND.value, "command": command}


def _is_ready(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions")
    return status["phase"] == "Running" and any(
        isinstance(one, dict) and one.get("type") == "Ready" and one.get("status") == "True"
        for one in (conditions if isinstance(conditions, list) else ())
    )


def _container(selection: Selection, pod: Mapping[str, Any]) -> str:
    """The one asked for, else the one that the pod calls its default, else the only one."""
    name = pod["metadata"]["name"]
    there = [str(one.get("name")) for one in pod["spec"]["containers"] if isinstance(one, dict)]
    annotations = pod["metadata"].get("annotations")
    default = annotations.get(DEFAULT_CONTAINER) if isinstance(annotations, dict) else None
    wanted = selection.container or default or (there[0] if len(there) == 1 else None)
    if wanted is None:
        happened = f"Pod {shown(name)} has {len(there)} containers: {shown(there)}."
        raise _PodFault(happened, f"Name one behind '@', as in {selection}@{there[0][:63]}.")
    if wanted not in there or not re.fullmatch(_LABEL, str(wanted)):
        happened = f"Pod {shown(name)} has no container {shown(wanted)}, but {shown(there)}."
        raise _PodFault(happened, "Name one of its containers behind '@'.")
    return str(wanted)
