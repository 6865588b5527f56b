"""Make what guests boot from, so that no test has to wait for downloads."""

from __future__ import annotations

import asyncio
import sys

from iolab.errors import EngineError
from iolab.run.guests.kit import guest_kit


async def main() -> int:
    """Make it if it is not there yet; 1 when it cannot be made."""
    try:
        kit = await guest_kit(print)
    except EngineError as fault:
        print(fault, file=sys.stderr)
        return 1
    print(f"guests boot Linux {kit.release} from {kit.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
