"""Build the Java kits that tests use, so that no test has to wait for downloads."""

from __future__ import annotations

import asyncio
import sys

from iolab.errors import EngineError
from iolab.model.ycsb import EMBEDDED
from iolab.run.kits import YCSB_VERSION, KitName, workshop

KITS = ((KitName.YCSB, YCSB_VERSION), (KitName.CASSANDRA, EMBEDDED.version))


async def main() -> int:
    """Build what is not there yet; 1 when one cannot be built."""
    for name, version in KITS:
        try:
            await workshop().folder_of(name, version, print)
        except EngineError as fault:
            print(fault, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
