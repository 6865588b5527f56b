"""Short commands through the real agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.errors import EngineError
from iolab.hosts.host import Host
from iolab.hosts.remote_process import run_and_get_output
from tests.loads.keyvalue.local import on_this_machine

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_a_command_tells_what_it_prints(tmp_path: Path) -> None:
    words = ("printenv", "GREETING")
    printed = on_this_machine(
        lambda host: run_and_get_output(
            host, words, cwd=str(tmp_path), env=(("GREETING", "hello"),)
        )
    )
    assert printed == b"hello\n"


def test_a_command_that_fails_is_an_error_with_its_last_words() -> None:
    with pytest.raises(EngineError, match=r"^ls on host 'local' .* code 2 \(.*nowhere"):
        on_this_machine(lambda host: run_and_get_output(host, ("ls", "/nowhere")))


def test_a_code_that_is_expected_is_fine() -> None:
    assert (
        on_this_machine(
            lambda host: run_and_get_output(host, ("false",), success_codes=frozenset({0, 1}))
        )
        == b""
    )


def test_a_missing_program_is_an_error_that_says_what_to_install() -> None:
    with pytest.raises(EngineError, match=r"no no-such-bench to run") as caught:
        on_this_machine(
            lambda host: run_and_get_output(host, ("no-such-bench",), install_hint="Install it.")
        )
    assert caught.value.hint == "Install it."


def test_a_program_by_path_that_is_missing_or_no_program_is_one_too(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program", encoding="utf-8")

    async def work(host: Host) -> None:
        for path in (tmp_path / "none", plain):
            with pytest.raises(EngineError, match="There is no"):
                await run_and_get_output(host, (str(path),))

    on_this_machine(work)


def test_a_command_that_hangs_is_killed_and_an_error() -> None:
    with pytest.raises(EngineError, match=r"^sleep .* not end within 0.2 s"):
        on_this_machine(lambda host: run_and_get_output(host, ("sleep", "50"), limit_s=0.2))


def test_a_command_that_prints_too_much_is_an_error() -> None:
    with pytest.raises(EngineError, match="printed more than 10 bytes"):
        on_this_machine(
            lambda host: run_and_get_output(host, ("seq", "1", "100"), output_limit_bytes=10)
        )
