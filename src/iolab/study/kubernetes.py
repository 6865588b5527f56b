"""`[kubernetes]` as it is written, and the fleet of pods that it describes."""

import re
from typing import Annotated, Final

from iolab.core.kubernetes import (
    CONTAINER,
    PodFleet,
    StorageClassMonthlyPrice,
    StorageClassPods,
    VolumeAccess,
    VolumeMode,
)
from iolab.study import values
from iolab.study.host_ranges import HOSTS_MAX
from iolab.study.load_tables import StudyTable
from iolab.text import quote_value
from iolab.units import parse_size
from iolab.version import __version__

SECTION: Final = "kubernetes"
MOUNT_PATH: Final = "/data"
DEVICE_PATH: Final = "/dev/iolab"
SERIAL_OF_POD: Final = "of-the-claim"
"""Stands for the serial of a pod's device, which is known when the pod runs."""

UNNAMED: Final = "iolab"
"""Begins the names of objects until a session gives them a name of its own."""

VOLUME_BYTES_MIN: Final = 1 << 20
VOLUME_BYTES_MAX: Final = 1 << 54
WAIT_S_MAX: Final = 86_400.0

LABEL_CHARACTERS: Final = 63
GROUP_CHARACTERS: Final = 20
"""Of a class in the name of its StatefulSet, whose pods' labels take 63 characters."""

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NAME: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,22}[a-z0-9])?")
_NAMESPACE: Final = re.compile(_LABEL)
_SELECTOR: Final = re.compile(
    r"(?=[^=]{1,317}=)(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
    r"=(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
)
_IMAGE: Final = re.compile(r"[a-zA-Z0-9][A-Za-z0-9._/:@-]{0,511}")
_CONTEXT: Final = re.compile(r"[^\s-]\S{0,255}")
_CPU: Final = re.compile(r"[1-9][0-9]{0,4}m?|0\.[0-9]{1,3}")
_MEMORY: Final = re.compile(r"[1-9][0-9]{0,8}(?:Ki|Mi|Gi|Ti)?")
_PRICE: Final = re.compile(r"([a-z0-9.-]{1,253})=([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([A-Z]{3})")
_KUBERNETES_SIZE: Final = re.compile(r"\s*[0-9.]+\s*[KMGTP]i\s*")
_OTHER: Final = re.compile(r"[^a-z0-9]+")

_CLASS_HINT: Final = "Give names as 'kubectl get storageclass' lists them."
_SELECTOR_HINT: Final = "Write KEY=VALUE, as in disktype=ssd."
_PRICE_HINT: Final = "Write CLASS=AMOUNT and a currency of three letters, as in fast=0.17EUR."


def volume_size_bytes(text: str | int) -> int:
    """Bytes of a size, also as Kubernetes writes it (`20Gi`); ValueError where it is none."""
    if isinstance(text, str) and _KUBERNETES_SIZE.fullmatch(text):
        text = f"{text.strip()}B"
    return parse_size(text)


def _read_volume_size(value: object) -> int:
    hint = "Write for example 20Gi or 500g; both are binary."
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise values.value_error(f"is {quote_value(value)}", hint)
    try:
        count = volume_size_bytes(value)
    except ValueError:
        raise values.value_error(f"is {quote_value(value)}, which is not a size", hint) from None
    if not VOLUME_BYTES_MIN <= count <= VOLUME_BYTES_MAX:
        raise values.value_error(f"is {quote_value(value)}", "Give from 1Mi to 16Pi.")
    return count


_SIZE: Final = values.ValueReader(
    _read_volume_size,
    {
        "anyOf": [
            {"type": "integer", "minimum": VOLUME_BYTES_MIN, "maximum": VOLUME_BYTES_MAX},
            {
                "type": "string",
                "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[kmgtpKMGTP]?([iI]?[bB]?)?\s*$",
            },
        ]
    },
)


def _pattern_value(pattern: re.Pattern[str], hint: str) -> values.ValueReader:
    return values.matching_text_value(pattern.fullmatch, hint, {"pattern": f"^{pattern.pattern}$"})


StorageClass = Annotated[str, _pattern_value(_SUBDOMAIN, _CLASS_HINT)]
NodeLabel = Annotated[str, _pattern_value(_SELECTOR, _SELECTOR_HINT)]

Price = Annotated[str, _pattern_value(_PRICE, _PRICE_HINT)]


class KubernetesTable(StudyTable):
    """`[kubernetes]`: pods that the session makes, with a volume each of each storage class."""

    storage_class: Annotated[list[StorageClass], values.ListValue(allow_scalar=True)]
    pods: Annotated[int, values.integer_value(1, HOSTS_MAX)] = 1
    volume: Annotated[int, _SIZE]
    volume_mode: Annotated[VolumeMode, values.choice_value(VolumeMode, "volume modes")] = (
        VolumeMode.FILESYSTEM
    )
    access: Annotated[VolumeAccess, values.choice_value(VolumeAccess, "access modes")] = (
        VolumeAccess.RWO
    )
    one_per_node: Annotated[bool, values.flag_value()] = True
    node_selector: Annotated[list[NodeLabel], values.ListValue(allow_scalar=True)] | None = None
    image: (
        Annotated[str, _pattern_value(_IMAGE, "Give an image, as in registry.example/iolab:1.")]
        | None
    ) = None
    namespace: Annotated[
        str, _pattern_value(_NAMESPACE, "Give a namespace of lower-case letters, digits and '-'.")
    ] = "iolab"
    context: (
        Annotated[
            str, _pattern_value(_CONTEXT, "Give one that 'kubectl config get-contexts' lists.")
        ]
        | None
    ) = None
    cpu: (
        Annotated[str, _pattern_value(_CPU, "Give processors as text, as in '2' or '500m'.")] | None
    ) = None
    memory: (
        Annotated[
            str, _pattern_value(_MEMORY, "Give bytes as Kubernetes writes them, as in '4Gi'.")
        ]
        | None
    ) = None
    price: Annotated[list[Price], values.ListValue(allow_scalar=True)] | None = None
    wait: Annotated[float, values.seconds_value(1, WAIT_S_MAX)] = 300.0
    keep: Annotated[bool, values.flag_value()] = False
    name: (
        Annotated[
            str,
            _pattern_value(
                _NAME, "Use lower-case letters, digits and '-', at most 24, a letter first."
            ),
        ]
        | None
    ) = None


def unique_short_storage_class_names(classes: list[str]) -> list[str]:
    """A short name for each class, fit for names of objects and hosts, no two the same."""
    names: list[str] = []
    number = 1
    for name in classes:
        short = _OTHER.sub("-", name.lower())[:GROUP_CHARACTERS].strip("-")
        while short in names:
            short = f"{short[: GROUP_CHARACTERS - 5].strip('-')}-c{number}"
            number += 1
        names.append(short)
    return names


def pod_fleet(table: KubernetesTable, mount_path: str = MOUNT_PATH) -> PodFleet:
    """The fleet that a table without faults describes."""
    groups = unique_short_storage_class_names(table.storage_class)
    return PodFleet(
        name=table.name or UNNAMED,
        namespace=table.namespace,
        context=table.context or "",
        classes=tuple(
            StorageClassPods(
                name, group, tuple(f"{group}-{number}" for number in range(table.pods))
            )
            for name, group in zip(table.storage_class, groups, strict=True)
        ),
        volume_bytes=table.volume,
        volume_mode=table.volume_mode,
        access=table.access,
        one_per_node=table.one_per_node,
        node_selector=tuple(
            (key, value)
            for key, _, value in (label.partition("=") for label in table.node_selector or ())
        ),
        image=table.image or f"iolab:{__version__}",
        mount_path=DEVICE_PATH if table.volume_mode is VolumeMode.BLOCK else mount_path,
        cpu=table.cpu or "",
        memory=table.memory or "",
        wait_s=table.wait,
        keep=table.keep,
        prices=tuple(_class_price(text) for text in table.price or ()),
    )


def _class_price(text: str) -> StorageClassMonthlyPrice:
    name, amount, currency = _PRICE.findall(text)[0]
    return StorageClassMonthlyPrice(name, float(amount), currency)


def kubectl_exec_command(fleet: PodFleet, host_name: str) -> list[str]:
    """The words that reach a pod."""
    context = [f"--context={fleet.context}"] if fleet.context else []
    where = [f"--namespace={fleet.namespace}", f"--container={CONTAINER}"]
    return ["kubectl", *context, "exec", "--stdin", *where, f"{fleet.name}-{host_name}", "--"]
