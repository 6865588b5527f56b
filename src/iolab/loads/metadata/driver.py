"""What makes metadata load in a session: the agent itself, or mdtest."""

from __future__ import annotations

from typing import Final

from iolab.loads.metadata.mdtest import MdtestDriver
from iolab.loads.metadata.native import MetadataDriver
from iolab.loads.metadata.workload import MDTEST_ENGINE, METADATA_ENGINE
from iolab.session.kinds import LoadSessionKind

METADATA: Final = LoadSessionKind(
    driver_factory_by_engine={METADATA_ENGINE: MetadataDriver, MDTEST_ENGINE: MdtestDriver}
)
