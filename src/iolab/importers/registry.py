"""Every format that is known, in the order in which files are held against them."""

from __future__ import annotations

from typing import Final

from iolab.importers.files import Importer
from iolab.importers.fio import FioImporter

IMPORTERS: Final[tuple[Importer, ...]] = (FioImporter(),)
"""The first that recognises a file reads it."""
