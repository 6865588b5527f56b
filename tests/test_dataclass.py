"""Our dataclasses behave as the standard library's, but for freezing, which type checkers do."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property

import pytest
from pydantic import TypeAdapter, ValidationError

from iolab.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Disk:
    """Of two names one is for people."""

    name: str
    size_bytes: int = 4096
    label: str = field(default="", compare=False)
    facts: dict[str, int] = field(default_factory=dict, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class Volume(Disk):
    """Adds a field to another's."""

    zone: str = "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One field, given by name."""

    iops: float


@dataclass(frozen=True, slots=True)
class Nothing:
    """No field at all."""


@dataclass(slots=True)
class Counter:
    """May be assigned to."""

    count: int = 0


@dataclass(frozen=True, eq=False)
class Session:
    """Is only itself, and has room for what it remembers."""

    name: str

    @cached_property
    def length(self) -> int:
        """Counted once."""
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Version:
    """Has methods of its own."""

    major: int
    minor: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and other.major == self.major

    def __hash__(self) -> int:
        return self.major

    def __repr__(self) -> str:
        return f"v{self.major}"


@dataclass(frozen=True, slots=True)
class Word:
    """Compares in its own way, but hashes by its field."""

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and other.text.lower() == self.text.lower()


def test_those_of_one_class_with_the_same_values_are_equal() -> None:
    assert Disk("vda", 1, "system") == Disk("vda", 1, "data")
    assert Disk("vda", 1) != Disk("vda", 2)
    assert Disk("vda", facts={"a": 1}) != Disk("vda", facts={"a": 2})
    assert Disk("vda") != Volume("vda")
    assert Nothing() == Nothing()
    others: list[object] = [Counter(), Rate(iops=1.0), "Nothing()"]
    assert Nothing() not in others


def test_a_value_that_is_not_equal_to_itself_is_compared_as_in_a_tuple() -> None:
    assert Rate(iops=math.nan) == Rate(iops=math.nan)
    assert Rate(iops=math.nan) != Rate(iops=float("nan"))


def test_what_is_equal_has_one_hash() -> None:
    assert hash(Disk("vda", 1, "system", {"a": 1})) == hash(Disk("vda", 1, "data", {"a": 2}))
    assert len({Disk("vda", 1), Disk("vda", 1), Disk("vda", 2), Volume("vda", 1)}) == 3
    assert len({Rate(iops=1.0), Rate(iops=1.0), Nothing(), Nothing()}) == 2


def test_what_may_be_assigned_to_has_no_hash() -> None:
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable type: 'Counter'"):
        hash(counter)


def test_it_is_shown_by_its_fields() -> None:
    assert repr(Disk("vda", 1, facts={"a": 1})) == "Disk(name='vda', size_bytes=1, label='')"
    assert repr(Volume("vda")) == "Volume(name='vda', size_bytes=4096, label='', zone='a')"
    assert repr(Nothing()) == "Nothing()"


def test_methods_of_its_own_stay() -> None:
    assert Version(1, 2) == Version(1, 3)
    assert {Version(1, 2): "a"}[Version(1, 3)] == "a"
    assert repr(Version(1, 2)) == "v1"
    assert Word("A") == Word("a")
    assert hash(Word("A")) == hash(Word("A"))


def test_without_equality_it_is_only_itself() -> None:
    one, other = Session("a"), Session("a")
    assert one != other
    assert len({one, other, one}) == 2
    assert (one.length, one.length) == (1, 1)


def test_type_checkers_hold_what_is_frozen_and_python_does_not() -> None:
    # mypy refuses an ignored error that is none: it takes the field for one that is frozen.
    disk = Disk("vda")
    try:
        disk.name = "vdb"  # type: ignore[misc]
    except FrozenInstanceError:
        pytest.fail("frozen costs two functions for each class, and half the time of an instance")
    assert disk == Disk("vdb")


def test_the_librarys_functions_take_it() -> None:
    disk = Disk("vda", facts={"a": 1})
    assert replace(disk, size_bytes=1) == Disk("vda", 1, facts={"a": 1})
    assert [each.name for each in fields(Volume)] == [
        "name",
        "size_bytes",
        "label",
        "facts",
        "zone",
    ]
    assert asdict(disk) == {"name": "vda", "size_bytes": 4096, "label": "", "facts": {"a": 1}}
    match Volume("vda", 1, "", {}, "b"):
        case Volume(name, _, _, _, zone):
            assert (name, zone) == ("vda", "b")


def test_a_field_by_name_is_not_taken_by_place() -> None:
    with pytest.raises(TypeError, match="positional"):
        Rate(1.0)  # type: ignore[call-arg]


def test_it_is_copied_and_pickled() -> None:
    volume = Volume("vda", 1, "data", {"a": 1}, "b")
    assert copy.deepcopy(volume) == volume
    assert pickle.loads(pickle.dumps(volume)) == volume  # noqa: S301 - our own bytes


def test_slots_leave_no_room_for_another_attribute() -> None:
    with pytest.raises(AttributeError, match="other"):
        Disk("vda").other = 1  # type: ignore[attr-defined]


def test_pydantic_reads_it_from_a_document() -> None:
    adapter = TypeAdapter(dict[str, Disk])
    read = adapter.validate_json('{"a": {"name": "vda", "facts": {"b": 1}}}')
    assert read == {"a": Disk("vda", facts={"b": 1})}
    with pytest.raises(ValidationError, match=r"a\.size_bytes"):
        adapter.validate_json('{"a": {"name": "vda", "size_bytes": "big"}}')
