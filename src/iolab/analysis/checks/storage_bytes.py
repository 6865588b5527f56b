"""The bytes that clients claim against the bytes that the disks of the storage nodes moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.storage_bytes import ByteBalance, storage_byte_balance
from iolab.analysis.view import RunView
from iolab.text import percent_text
from iolab.units import format_bytes

MISSING_GOOD: Final = 0.90
"""Share of the expected bytes that the disks must have moved. Wider than at a client's own device:
nodes round to stripes, keep a little in memory, and are looked at a moment earlier and later."""

MISSING_BAD: Final = 0.50
"""Less than half of what was read came from disks: it is the memory of the storage nodes that was
measured, unless one wanted that."""

EXCESS_SHARE: Final = 0.25
"""Beyond what is expected: metadata, journals and checksums of the storage itself stay below."""

BACKGROUND_BYTES_PER_S: Final = 1 << 20
"""What each idle disk writes and reads by itself: an excess below is not told."""


@check("storage-bytes", "Bytes claimed and bytes moved by storage nodes")
def check_storage_bytes(view: RunView) -> CheckAnswer:
    """Whether the storage nodes' disks moved the clients' bytes times the declared factors."""
    balance = storage_byte_balance(view.record, view.facts)
    if balance is None:
        return not_applicable_answer(
            "No storage node is watched: there is nothing to hold against the clients."
        )
    return worst_answer(_byte_balance_answers(view, balance))


def can_compare_with_storage_nodes(view: RunView) -> bool:
    """Whether the storage nodes' disks can be held against the clients at all."""
    balance = storage_byte_balance(view.record, view.facts)
    return (
        balance is not None
        and balance.expected_read_bytes is not None
        and balance.moved_read_bytes is not None
    )


def _byte_balance_answers(view: RunView, balance: ByteBalance) -> Iterator[CheckAnswer]:
    evidence = _byte_balance_evidence(balance)
    claimed = balance.claimed_read_bytes + balance.claimed_write_bytes
    if balance.expected_read_bytes is None or balance.expected_write_bytes is None:
        yield not_applicable_answer(
            f"Clients claim {format_bytes(claimed)}; no redundancy is declared, so it is "
            "compared with nothing.",
            **evidence,
        )
        return
    if balance.moved_read_bytes is None or balance.moved_write_bytes is None:
        blind = next(node.host for node in balance.node_bytes if node.read_bytes is None)
        yield unchecked_answer(f"the disks of {blind} were not counted", **evidence)
        return
    yield from _missing_disk_byte_answers(balance, evidence)
    yield from _excess_byte_answers(view, balance, evidence)
    moved = balance.moved_read_bytes + balance.moved_write_bytes
    expected = balance.expected_read_bytes + balance.expected_write_bytes
    yield valid_answer(
        f"The storage nodes' disks moved {format_bytes(moved)} where {format_bytes(expected)} "
        f"were expected for the {format_bytes(claimed)} that clients claim.",
        **evidence,
    )


def _missing_disk_byte_answers(
    balance: ByteBalance, evidence: EvidenceValues
) -> Iterator[CheckAnswer]:
    reads, writes = balance.expected_read_bytes or 0.0, balance.expected_write_bytes or 0.0
    if reads and (balance.moved_read_bytes or 0) < MISSING_GOOD * reads:
        share = (balance.moved_read_bytes or 0) / reads
        verdict = invalid_answer if share < MISSING_BAD else indicative_answer
        yield verdict(
            f"The storage nodes' disks read {percent_text(share)} of the {format_bytes(reads)} "
            "expected: the rest came from memory.",
            **evidence,
        )
    if writes and (balance.moved_write_bytes or 0) < MISSING_GOOD * writes:
        share = (balance.moved_write_bytes or 0) / writes
        yield indicative_answer(
            f"The storage nodes' disks wrote {percent_text(share)} of the {format_bytes(writes)} "
            "expected: the rest was still in memory, or never written so often.",
            **evidence,
        )


def _excess_byte_answers(
    view: RunView, balance: ByteBalance, evidence: EvidenceValues
) -> Iterator[CheckAnswer]:
    expected = (balance.expected_read_bytes or 0.0) + (balance.expected_write_bytes or 0.0)
    disks = sum(len(node.devices) for node in balance.node_bytes)
    spans = [span.seconds for span in view.load.measured_part.whole_run_windows if span is not None]
    limit = max(EXCESS_SHARE * expected, BACKGROUND_BYTES_PER_S * disks * max(spans, default=0.0))
    for way, moved, wanted in (
        ("read", balance.moved_read_bytes, balance.expected_read_bytes),
        ("wrote", balance.moved_write_bytes, balance.expected_write_bytes),
    ):
        if (moved or 0) - (wanted or 0.0) > limit:
            yield indicative_answer(
                f"The storage nodes' disks {way} {format_bytes(moved or 0)} where "
                f"{format_bytes(wanted or 0.0)} were expected: amplification, or others' work.",
                **evidence,
            )


def _byte_balance_evidence(balance: ByteBalance) -> EvidenceValues:
    received = [
        node.received_bytes for node in balance.node_bytes if node.received_bytes is not None
    ]
    sent = [node.sent_bytes for node in balance.node_bytes if node.sent_bytes is not None]
    return {
        "storage_nodes": len(balance.node_bytes),
        "claimed_read_bytes": balance.claimed_read_bytes,
        "claimed_write_bytes": balance.claimed_write_bytes,
        "expected_read_bytes": balance.expected_read_bytes,
        "expected_write_bytes": balance.expected_write_bytes,
        "disks_read_bytes": balance.moved_read_bytes,
        "disks_write_bytes": balance.moved_write_bytes,
        "ports_received_bytes": sum(received) if received else None,
        "ports_sent_bytes": sum(sent) if sent else None,
    }
