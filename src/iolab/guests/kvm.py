"""Whether KVM works on a node: a guest is booted with it.

That /dev/kvm is there says little. Where hypervisors are nested it opens, and runs a kernel a
hundred times slower than emulation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.errors import HostError
from iolab.guests.boot import BootHung, boot
from iolab.hosts.host import Host

KVM_LIMIT_S: Final = 15.0
"""From the start to the first word: with KVM that takes a second, on a node under load or with a
slow disk some. Where KVM runs a hundred times slower than emulation it takes minutes."""


async def why_not_kvm(node: Host, argv: Sequence[str], folder: str, guest: str) -> str | None:
    """Why a guest with that command does not boot; None when it does, and it is gone again.

    Raises HostError when the node is lost.
    """
    try:
        booted = await boot(node, argv, folder, guest, KVM_LIMIT_S)
    except BootHung:
        return f"a guest did not boot within {KVM_LIMIT_S:g} s"
    except HostError as fault:
        if node.lost:
            raise
        return fault.happened.rpartition(": ")[2].rstrip(".")
    await booted.qemu.kill()
    await booted.relay.end()
    return None
