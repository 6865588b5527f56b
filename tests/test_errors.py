"""Errors say what happened and what to do, with every fault and an exit code of their kind."""

from __future__ import annotations

import pytest

from iolab.errors import EngineError, ExitCode, Fault, HostError, IolabError, StudyError


def test_a_fault_names_file_and_line() -> None:
    fault = Fault("bs is '4 parsecs'.", "Write 4k.", "s.toml", 7)
    assert str(fault) == "s.toml:7: bs is '4 parsecs'. Write 4k."


def test_a_fault_without_a_line_names_its_file() -> None:
    assert str(Fault("It is empty.", "Fill it.", "s.toml")) == "s.toml: It is empty. Fill it."


def test_a_fault_of_no_file_is_its_two_sentences() -> None:
    assert str(Fault("It is empty.", "Fill it.")) == "It is empty. Fill it."


def test_a_study_error_counts_its_faults() -> None:
    fault = Fault("A.", "B.")
    assert StudyError([fault]).message == "The study has a fault."
    assert StudyError([fault, fault]).message == "The study has 2 faults."
    assert StudyError([fault]).faults == (fault,)


def test_a_study_error_without_a_fault_is_a_bug() -> None:
    with pytest.raises(ValueError, match="at least one fault"):
        StudyError([])


def test_an_error_reads_as_two_sentences() -> None:
    error = HostError("Host 'c1' is gone.", "Start it.")
    assert str(error) == "Host 'c1' is gone. Start it."
    assert error.exit_code is ExitCode.HOST
    assert error.faults == ()


def test_exit_codes_are_those_of_the_design() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5, 6, 70, 130]
    assert EngineError("a", "b").exit_code == 4
    assert IolabError("a", "b").exit_code == 70
