"""Build the Java kits that tests use, so that no test has to wait for downloads."""

from __future__ import annotations

import asyncio
import os
import sys

from iolab.errors import EngineError
from iolab.loads.keyvalue.java import YCSB_VERSION, JavaKitName, create_java_kit_builder_of_user
from iolab.loads.keyvalue.workload import EMBEDDED_SERVER

KITS = ((JavaKitName.YCSB, YCSB_VERSION), (JavaKitName.CASSANDRA, EMBEDDED_SERVER.version))


async def main() -> int:
    """Build what is not there yet; where one cannot be built, 1 if CI is set."""
    for name, version in KITS:
        try:
            await create_java_kit_builder_of_user().get_or_build_kit(name, version, print)
        except EngineError as fault:
            print(f"{fault}\nThe tests of YCSB and Cassandra are skipped.", file=sys.stderr)
            return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
