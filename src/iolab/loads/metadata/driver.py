"""How metadata load is made in a session."""

from __future__ import annotations

from typing import Final

from iolab.core.engine import EngineName
from iolab.loads.metadata.mdtest import MdtestDriver
from iolab.loads.metadata.native import MetadataDriver
from iolab.session.kinds import LoadSession

METADATA: Final = LoadSession(
    drivers={EngineName.METADATA: MetadataDriver, EngineName.MDTEST: MdtestDriver}
)
