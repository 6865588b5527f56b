"""What a guest's console says of its end, with lines of real guests."""

from __future__ import annotations

from iolab.guests.qemu import telling

NO_PCI = b"[    0.699477] PCI: Fatal: No config space access function found\r\n"
KILLED = b"[    4.137971] Out of memory: Killed process 84 (fio) total-vm:23560kB\r\n"
PANIC = (
    b"[    2.1] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n[    2.2] CPU: 0\r\n"
)
OURS = b"iolab-agent: the machine showed no port named agent within 60 s\n"


def test_what_every_guest_says_explains_nothing() -> None:
    assert telling(NO_PCI) == ""
    assert telling(NO_PCI + KILLED) == KILLED.decode().strip()


def test_a_panic_and_our_own_words_come_before_all_else() -> None:
    said = telling(NO_PCI + KILLED + OURS + PANIC + b"[    2.3] Rebooting\r\n")
    assert said == f"{OURS.decode().strip()} / {PANIC.decode().splitlines()[0]}"


def test_else_the_last_lines_are_told() -> None:
    assert telling(b"a\r\nb\n\nc\nd\x1b[0m\n") == "b / c / d\\x1b[0m"
    assert telling(b"") == ""
