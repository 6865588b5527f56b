"""The part in studies of what others measured: none asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from iolab.core.engine import EngineName
from iolab.study.kinds import LoadStudy
from iolab.study.load_tables import LoadTable


class ImportedStudy(LoadStudy):
    """No table of a study describes it."""

    tables: Mapping[type[LoadTable], tuple[EngineName, ...]] = MappingProxyType({})
