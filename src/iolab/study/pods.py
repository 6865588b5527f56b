"""Puts the pods of `[kubernetes]` into a study, in the place of its clients and configurations.

Everything after it sees hosts that are reached by `kubectl exec`.
"""

from __future__ import annotations

from typing import Any

from iolab.core.host import HostRole, HostTransport
from iolab.core.kubernetes import PodFleet, VolumeMode
from iolab.study import values
from iolab.study.document import KeyPath, StudyDocument
from iolab.study.host_ranges import HOSTS_MAX
from iolab.study.kubernetes import (
    MOUNT_PATH,
    SECTION,
    SERIAL_OF_POD,
    KubernetesTable,
    kubectl_exec_command,
    pod_fleet,
)
from iolab.study.tables import validate_table_and_add_faults
from iolab.text import quote_value


def expand_pods_or_add_faults(document: StudyDocument) -> PodFleet | None:
    """Put the pods in the place of the study's clients, and a configuration for each class.

    Storage nodes stay, and of a configuration that is named as a class its titles, hardware and
    cost. None where the study has no such table, or one with faults.
    """
    values_as_written = document.tree.get(SECTION)
    if not isinstance(values_as_written, dict):
        return None
    table = validate_table_and_add_faults(document, KubernetesTable, values_as_written, (SECTION,))
    if table is None:
        _set_pod_target_or_add_fault(
            document, MOUNT_PATH
        )  # so that nobody misses a target beside the faults
        return None
    if "vm" in document.tree:
        message = "The study has [kubernetes] and [vm], which both make its hosts."
        document.add_fault((SECTION,), message, "Leave one of them out.")
        return None
    count = table.pods * len(table.storage_class)
    if count > HOSTS_MAX:
        message = f"{table.pods} pods of {len(table.storage_class)} classes are {count} hosts."
        document.add_fault((SECTION, "pods"), message, f"Give at most {HOSTS_MAX}.")
        return None
    fleet = pod_fleet(table, _target_path_or_default_mount_path(document))
    _add_price_faults(document, fleet)
    _set_pod_target_or_add_fault(
        document, fleet.mount_path, is_block=fleet.volume_mode is VolumeMode.BLOCK
    )
    hosts = document.tree.get("host")
    others = [
        host
        for host in (hosts if isinstance(hosts, list) else ())
        if isinstance(host, dict) and host.get("role", HostRole.CLIENT) != HostRole.CLIENT
    ]
    document.tree["host"] = [
        *(
            {
                "name": name,
                "kind": HostTransport.COMMAND.value,
                "command": kubectl_exec_command(fleet, name),
            }
            for item in fleet.classes
            for name in item.host_names
        ),
        *others,
    ]
    document.tree["configuration"] = _storage_class_configuration_tables(document, fleet)
    origin = document.origin_of((SECTION,))
    document.overrides.update({("host",): origin, ("configuration",): origin})
    return fleet


def _add_price_faults(document: StudyDocument, fleet: PodFleet) -> None:
    """Each price is of a class that is measured, and each class has one."""
    measured = [item.storage_class for item in fleet.classes]
    priced = [price.storage_class for price in fleet.prices]
    for name in dict.fromkeys(priced):
        if name not in measured:
            message = f"price names the class {quote_value(name)}."
            hint = f"Name one that is measured: {', '.join(measured)}."
            document.add_fault((SECTION, "price"), message, hint)
        elif (count := priced.count(name)) > 1:
            message = f"price has {count} prices of the class {quote_value(name)}."
            document.add_fault((SECTION, "price"), message, "Give one.")


def _target_path_or_default_mount_path(document: StudyDocument) -> str:
    target = document.tree.get("target")
    path = target.get("path") if isinstance(target, dict) else None
    return path if isinstance(path, str) and path.startswith("/") else MOUNT_PATH


def _set_pod_target_or_add_fault(
    document: StudyDocument, path: str, *, is_block: bool = False
) -> None:
    target = document.tree.setdefault("target", {})
    if not isinstance(target, dict):
        return  # its own fault is told
    if is_block and "path" in target:
        at: KeyPath = ("target", "path")
        message = "volume_mode is 'block', but [target] has a path."
        document.add_fault(at, message, "Leave the path out.")
    if is_block:
        target.update({"device": path, "serial": SERIAL_OF_POD})
    else:
        target.setdefault("path", path)


def _storage_class_configuration_tables(
    document: StudyDocument, fleet: PodFleet
) -> list[dict[str, Any]]:
    """A configuration for each class, with what the study says of one of its name."""
    elements = document.tree.get("configuration")
    by_id = {
        item["id"]: item
        for item in (elements if isinstance(elements, list) else ())
        if isinstance(item, dict) and isinstance(item.get("id"), str)
    }
    kept = ("title", "nodes", "capacity", "cost", "hardware", "storage", "redundancy")
    return [
        {
            "id": item.group
            if not values.is_identifier(item.storage_class)
            else item.storage_class,
            "title": item.storage_class,
            **_monthly_volume_cost_table(fleet, item.storage_class),
            **{
                key: value
                for key, value in by_id.get(item.storage_class, {}).items()
                if key in kept
            },
            "hosts": list(item.host_names),
        }
        for item in fleet.classes
    ]


def _monthly_volume_cost_table(fleet: PodFleet, storage_class: str) -> dict[str, Any]:
    """What the volumes of a class cost in a month, as a table of its configuration."""
    cost = fleet.monthly_cost(storage_class)
    if cost is None:
        return {}
    parts = {"servers": 0, "network": 0, "storage": cost.amount}
    return {"cost": {"currency": cost.currency, **parts}}
