"""Make what guests boot from, so that no test has to wait for downloads."""

from __future__ import annotations

import asyncio
import os
import sys

from iolab.errors import EngineError
from iolab.guests.kit.build import build_guest_kit


async def main() -> int:
    """Make it if it is not there yet; where it cannot be made, 1 if CI is set."""
    try:
        kit = await build_guest_kit(print)
    except EngineError as fault:
        print(f"{fault}\nThe tests of guests are skipped.", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    print(f"guests boot Linux {kit.release} from {kit.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
