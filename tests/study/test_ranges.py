"""Ranges of names: what they stand for, and that a slip never makes a million hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.study.host_ranges import HOSTS_MAX, HostNamesError, expand_names, has_ranges


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("client[1-3]", ["client1", "client2", "client3"]),
        ("client[08-11]", ["client08", "client09", "client10", "client11"]),
        ("c[9-11]", ["c9", "c10", "c11"]),
        ("c[1-2,7]", ["c1", "c2", "c7"]),
        ("c[007]", ["c007"]),
        ("r[1-2]-n[1-2]", ["r1-n1", "r1-n2", "r2-n1", "r2-n2"]),
        ("head, c[1-2]", ["head", "c1", "c2"]),
        ("10.0.0.[254-255]", ["10.0.0.254", "10.0.0.255"]),
        ("c[1-2].example.org", ["c1.example.org", "c2.example.org"]),
    ],
)
def test_ranges_stand_for_names(text: str, names: list[str]) -> None:
    assert list(expand_names(text)) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c[12-01]", "runs backwards."),
        ("c[1-012]", "zeros do not agree"),
        ("c[1-", "Write ranges as in"),
        ("c[]", "Write ranges as in"),
        ("c[a-c]", "Write ranges as in"),
        ("c[[1-2]]", "Write ranges as in"),
        ("c1]", "Write ranges as in"),
        ("c1,,c2", "Write ranges as in"),
        ("", "Write ranges as in"),
        ("c[-1]", "Write ranges as in"),
        ("c[1-1001]", "more than 1000 hosts"),
        ("c[0-999999999]", "more than 1000 hosts"),
        ("c[1-100][1-100][1-100]", "more than 1000 hosts"),
        ("a[1-600],b[1-600]", "more than 1000 hosts"),
        ("c[1-9999999999]", "Write ranges as in"),
        ("c" * 5000, "has 5000 characters"),
        ("c[\x1b[31m]", "Write ranges as in"),
    ],
)
def test_ranges_that_make_no_sense_are_faults(text: str, message: str) -> None:
    with pytest.raises(HostNamesError) as caught:
        expand_names(text)
    assert message in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_as_many_as_the_limit_are_expanded() -> None:
    assert len(expand_names(f"c[1-{HOSTS_MAX}]")) == HOSTS_MAX


@given(st.integers(0, 10**6), st.integers(0, 200), st.integers(1, 8))
def test_a_range_is_every_number_once_in_order(first: int, more: int, width: int) -> None:
    start = str(first).zfill(width)
    names = expand_names(f"c[{start}-{str(first + more).zfill(len(start))}]")
    assert [int(name[1:]) for name in names] == list(range(first, first + more + 1))
    assert len(names[0]) == 1 + len(start)


@given(st.text(alphabet="ab01-,[]", max_size=20))
def test_any_text_is_expanded_or_refused(text: str) -> None:
    try:
        names = expand_names(text)
    except HostNamesError:
        return
    assert 1 <= len(names) <= HOSTS_MAX
    assert not any(has_ranges(name) for name in names)
