"""Read a study: from its text and what is set over it to a `Study`, or to all its faults."""

from __future__ import annotations

import copy
from typing import Any, Final

from iolab.core.configuration import DEFAULT_CONFIGURATION, LOCAL_HOST
from iolab.core.engine import EngineName
from iolab.core.study import FULL_SCALE, Study
from iolab.errors import StudyError
from iolab.record import Record
from iolab.study.build import build_study
from iolab.study.checks import (
    add_cross_table_faults,
    add_device_faults,
    add_path_and_object_store_faults,
)
from iolab.study.document import FaultCollector, StudyDocument, ValueOrigin, read_document
from iolab.study.file import StudyFileSchema
from iolab.study.host_ranges import expand_host_ranges
from iolab.study.inventory import Inventory, read_inventory, replace_with_inventory_tables
from iolab.study.kinds import StudyKinds
from iolab.study.kubernetes import SECTION
from iolab.study.overrides import (
    apply_scale,
    apply_set_argument,
    drop_target_keys_hidden_by_overrides,
    engine_overrides_or_add_fault,
    set_target_key,
    set_target_path,
)
from iolab.study.pods import expand_pods_or_add_faults
from iolab.study.scenario import add_phase_and_event_faults, drop_inventory_tables_and_add_faults
from iolab.study.tables import read_tables_and_add_faults
from iolab.text import quote_value, suggestion

INVENTORY_NAME: Final = "inventory"
"""What a session calls the inventory that it began with."""


class StudyOverrides(Record):
    """What the command line sets over the file.

    `set_arguments` are `--set` arguments and win over the scale; `path` is `--path`, `device` and
    `serial` are `--device` and `--serial`. With `requires_path` False a study without a target can
    be read, to list or check it; its paths are then empty. The hosts of an `inventory` take the
    place of the study's. All workloads of I/O get the `engine` where one is named.
    """

    path: str | None = None
    scale: str = FULL_SCALE
    set_arguments: tuple[str, ...] = ()
    requires_path: bool = True
    inventory: Inventory | None = None
    device: str | None = None
    serial: str | None = None
    engine: EngineName | None = None


def parse_study(text: str, file_name: str, overrides: StudyOverrides, kinds: StudyKinds) -> Study:
    """The study that `text` describes; StudyError with every fault, each with file and line.

    Faults of every scale are found, not only of the one asked for.
    """
    faults = FaultCollector()
    document = read_document(text, file_name, faults)
    if document is None:
        raise StudyError(faults.all_faults)
    scales = _pop_scales_or_add_faults(document)
    if overrides.scale != FULL_SCALE and overrides.scale not in scales:
        names = [FULL_SCALE, *scales]
        message = f"The study has no scale {quote_value(overrides.scale)}."
        faults.add(ValueOrigin("--scale"), message, suggestion(overrides.scale, names, "scales"))
    study = _build_study_at_scale(
        _copy_document_without_overrides(document),
        text,
        overrides,
        scales.get(overrides.scale),
        kinds,
    )
    for other in scales:
        if other != overrides.scale:
            plain = StudyOverrides(scale=other, requires_path=False, inventory=overrides.inventory)
            _build_study_at_scale(
                _copy_document_without_overrides(document), text, plain, scales[other], kinds
            )
    if faults.all_faults or study is None:
        raise StudyError(faults.all_faults)
    return study


def overrides_for_resume(study: Study) -> StudyOverrides:
    """The options under which `study.text` gives the same study again, for a resumed session."""
    required = all(configuration.target_text for configuration in study.configurations)
    inventory = Inventory(study.inventory, INVENTORY_NAME) if study.inventory else None
    return StudyOverrides(
        scale=study.scale,
        set_arguments=study.overrides,
        requires_path=required,
        inventory=inventory,
    )


def scale_names(text: str) -> tuple[str, ...]:
    """The scales that a study file has, "full" first; only that where it cannot be read."""
    faults = FaultCollector()
    document = read_document(text, "study", faults)
    if document is None:
        return (FULL_SCALE,)
    return (FULL_SCALE, *_pop_scales_or_add_faults(document))


def _build_study_at_scale(
    document: StudyDocument,
    text: str,
    overrides: StudyOverrides,
    scale: dict[str, Any] | None,
    kinds: StudyKinds,
) -> Study | None:
    """One reading of the document under one scale; None when any fault was found."""
    drop_inventory_tables_and_add_faults(document)
    if overrides.inventory is not None:
        hosts = read_inventory(overrides.inventory, document.faults)
        if hosts is None:
            return None
        replace_with_inventory_tables(document, hosts)
        document.tree.pop(SECTION, None)  # the pods are there already
    file_schema = kinds.file_schema
    _add_default_host_and_configuration(document, file_schema)
    expand_host_ranges(document)
    if scale is not None:
        apply_scale(document, overrides.scale, scale, file_schema)
    assignments = _apply_overrides_and_get_assignments(document, overrides, file_schema)
    drop_target_keys_hidden_by_overrides(document)
    fleet = None if overrides.inventory is not None else expand_pods_or_add_faults(document)
    tables = read_tables_and_add_faults(document, file_schema)
    add_cross_table_faults(document, tables, kinds)
    add_device_faults(document, tables, kinds)
    add_path_and_object_store_faults(document, tables, kinds, is_required=overrides.requires_path)
    add_phase_and_event_faults(document, tables, is_required=overrides.requires_path)
    if document.faults.all_faults:
        return None
    inventory = overrides.inventory.text if overrides.inventory else ""
    study = build_study(
        tables,
        kinds,
        scale=overrides.scale,
        text=text,
        overrides=tuple(assignments),
        inventory=inventory,
        kubernetes=fleet,
    )
    for kind in kinds.loads:
        kind.add_point_faults(document, study)
    return None if document.faults.all_faults else study


def _apply_overrides_and_get_assignments(
    document: StudyDocument, overrides: StudyOverrides, file_schema: StudyFileSchema
) -> list[str]:
    """Set what the command line sets over the file, and tell it as `--set` would say it."""
    assignments = list(overrides.set_arguments)
    if overrides.engine is not None:
        assignments += engine_overrides_or_add_fault(document, overrides.engine, file_schema)
    for assignment in assignments:
        apply_set_argument(document, assignment, file_schema)
    if overrides.path is not None:
        assignments.append(f"target.path={overrides.path}")
        set_target_path(document, overrides.path)
    for key in ("device", "serial"):
        value = getattr(overrides, key)
        if value is not None:
            assignments.append(f"target.{key}={value}")
            set_target_key(document, key, value)
    return assignments


def _add_default_host_and_configuration(
    document: StudyDocument, file_schema: StudyFileSchema
) -> None:
    """Name the host and the configuration that a study without any has, so both can be set."""
    making = (section.name for section in file_schema.sections if section.makes_hosts)
    if not any(name in document.tree for name in making):
        document.tree.setdefault("host", [{"name": LOCAL_HOST}])
    document.tree.setdefault("configuration", [{"id": DEFAULT_CONFIGURATION}])


def _pop_scales_or_add_faults(document: StudyDocument) -> dict[str, dict[str, Any]]:
    """The tables `[scale.NAME]`, taken out of the tree."""
    scales = document.tree.pop("scale", {})
    hint = "Write [scale.NAME] with lines as 'workload.*.filesize' = '256m'."
    if not isinstance(scales, dict):
        document.add_fault(("scale",), f"scale is {quote_value(scales)}, not a table.", hint)
        return {}
    for name, table in scales.items():
        if not isinstance(table, dict):
            message = f"scale {quote_value(name)} is {quote_value(table)}, not a table."
            document.add_fault(("scale", name), message, hint)
    if FULL_SCALE in scales:
        message = f"Scale {quote_value(FULL_SCALE)} is the study as it is written."
        document.add_fault(("scale", FULL_SCALE), message, "Give it another name.")
    return {
        name: table
        for name, table in scales.items()
        if isinstance(table, dict) and name != FULL_SCALE
    }


def _copy_document_without_overrides(document: StudyDocument) -> StudyDocument:
    return StudyDocument(
        document.file, copy.deepcopy(document.tree), document.lines, document.faults
    )
