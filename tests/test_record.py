"""Records: frozen while a program runs, equal by value, and passed on as they are."""

from __future__ import annotations

import pickle
from functools import cached_property

import pytest

from iolab.core.target_state import Precondition
from iolab.record import Record, default_values, field_names, nested_field_values


class Disk(Record):
    """Two fields, one with a default, and what is computed once."""

    name: str
    size_bytes: int = 4096


class Host(Record, dict=True):
    """A record that keeps what it has computed."""

    disks: tuple[Disk, ...]
    system: Disk

    @cached_property
    def size_bytes(self) -> int:
        return sum(disk.size_bytes for disk in self.disks)


@pytest.mark.parametrize("name", ["size_bytes", "other"])
def test_an_assignment_is_an_error_and_changes_nothing(name: str) -> None:
    disk, host = Disk("vda"), Host((Disk("vda"),), Disk("vdb"))
    by_disk = {disk: "kept"}
    for record in (disk, host):
        with pytest.raises(AttributeError):
            setattr(record, name, 1)
        with pytest.raises(AttributeError):
            delattr(record, name)
    assert by_disk[Disk("vda", 4096)] == "kept"
    assert host.size_bytes == 4096


def test_equal_values_are_one_key_and_return_from_another_process_equal() -> None:
    assert len({Precondition(), Precondition(fill=1.0), Precondition(fill=2.0)}) == 2
    copy = pickle.loads(pickle.dumps(Precondition(fill=2.0)))  # noqa: S301 - our own
    assert copy == Precondition(fill=2.0)
    assert hash(copy) == hash(Precondition(fill=2.0))


def test_names_defaults_and_values_of_its_fields() -> None:
    assert field_names(Disk) == ("name", "size_bytes")
    assert default_values(Disk) == {"size_bytes": 4096}
    assert default_values(Host) == {}
    assert nested_field_values(Host((), Disk("vdb", 1))) == [(), ["vdb", 1]]
