"""Every key is found on its line, whatever TOML allows around it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.study.document import KeyPath, line_number_by_key_path


def test_keys_tables_and_elements_of_arrays_of_tables() -> None:
    text = 'a = 1\n\n[t]\nb = 2\n[[w]]\nid = "x"\n\n[[w]]\n# between\nid = "y"\n'
    lines = line_number_by_key_path(text)
    assert lines[("a",)] == 1
    assert lines[("t",)] == 3
    assert lines[("t", "b")] == 4
    assert lines[("w",)] == 5
    assert lines[("w", 0)] == 5
    assert lines[("w", 0, "id")] == 6
    assert lines[("w", 1)] == 8
    assert lines[("w", 1, "id")] == 10


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_text_of_many_lines_may_look_like_toml(quotes: str) -> None:
    text = f"a = {quotes}\n[t]\nb = 1 # {quotes[0]}\n[[w]]\n{quotes}\nc = 2\n"
    lines = line_number_by_key_path(text)
    assert lines == {("a",): 1, ("c",): 6}


def test_a_text_of_many_lines_may_end_in_five_quotes() -> None:
    text = 'a = """x"""""\nb = \'\'\'y\'\'\'\'\'\nc = """\\"""" \nd = 4\n'
    assert tomllib.loads(text)["d"] == 4
    assert line_number_by_key_path(text) == {("a",): 1, ("b",): 2, ("c",): 3, ("d",): 4}


def test_brackets_and_hashes_within_quotes() -> None:
    text = 'a = "[ # { \\" ]"\nb = \'x # ]\'\nc = [ "]", # ]\n \']\' ]\nd = 1\n'
    lines = line_number_by_key_path(text)
    assert lines[("d",)] == 5
    assert lines[("c", 0)] == 3
    assert lines[("c", 1)] == 4


def test_arrays_over_several_lines_give_each_element_its_line() -> None:
    text = "a = [\n  1, 2,\n\n  # three\n  3,\n]\nb = [[1],\n[2, 3]]\n"
    lines = line_number_by_key_path(text)
    assert [lines[("a", index)] for index in range(3)] == [2, 2, 5]
    assert lines[("b", 1, 1)] == 8


def test_inline_tables_hold_keys() -> None:
    text = "t = { a = 1, b.c = { d = [1, 2] }, 'e f' = 3 }\nw = [\n {id = 1},\n {id = 2}]\n"
    lines = line_number_by_key_path(text)
    for path in [("t",), ("t", "a"), ("t", "b", "c", "d", 1), ("t", "e f")]:
        assert lines[path] == 1
    assert lines[("w", 1, "id")] == 4


def test_quoted_and_dotted_keys() -> None:
    text = '"a.b" = 1\n\'c d\'.e = 2\n"t\\u0061b" = 3\n[scale."x y"]\n"workload.*.bs" = 4\n'
    lines = line_number_by_key_path(text)
    assert lines[("a.b",)] == 1
    assert lines[("c d", "e")] == 2
    assert lines[("tab",)] == 3
    assert lines[("scale", "x y", "workload.*.bs")] == 5


def test_a_table_within_the_last_element_of_an_array() -> None:
    text = "[[w]]\nid = 1\n[w.fio]\na = 1\n[[w]]\nid = 2\n[ w . fio ]\nb = 1\n"
    lines = line_number_by_key_path(text)
    assert lines[("w", 0, "fio", "a")] == 4
    assert lines[("w", 1, "fio", "b")] == 8


def test_windows_line_ends_dates_and_numbers() -> None:
    text = "a = 1979-05-27 07:32:00 # [x]\r\nb = -1.5e3\r\n\r\nc = true\r\n"
    assert line_number_by_key_path(text) == {("a",): 1, ("b",): 2, ("c",): 4}


VALUES = st.recursive(
    st.sampled_from(['"x # ]"', "'{'", "1", "true", '"""a\n[b]\n"""', "1979-05-27", "'''\n'''"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ",\n ".join(items) + "]"),
        st.lists(inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"k{i} = {v}" for i, v in enumerate(items)) + "}"
        ),
    ),
    max_leaves=6,
)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_every_key_of_any_valid_text_is_found(values: list[str]) -> None:
    text, expected = "", {}
    for index, value in enumerate(values):
        expected[(f"key{index}",)] = text.count("\n") + 1
        text += f"key{index} = {value} # end\n"
    tree = tomllib.loads(text)
    lines = line_number_by_key_path(text)
    assert {path: lines[path] for path in expected} == expected
    assert set(_paths(tree, ())) == set(lines)


def _paths(value: object, path: KeyPath) -> list[KeyPath]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _paths(inner, (*path, index))
    return found
