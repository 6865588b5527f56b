"""What `iolab calibrate` refuses before it reaches any host."""

from __future__ import annotations

from pathlib import Path

from tests.cli.in_process import call

INVENTORY = 'format = 1\n[[host]]\nname = "a"\n[[host]]\nname = "b"\npath = "/mnt/b"\n'


def test_hosts_are_given_no_path_that_depends_on_where_somebody_stands(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text(INVENTORY, encoding="utf-8")
    done = call("calibrate", "--hosts", inventory, "--path", "scratch", cwd=tmp_path)
    assert done.returncode == 2
    assert "'scratch'" in done.stderr
    assert "has no path" not in done.stderr


def test_hosts_without_a_path_are_all_named(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text('format = 1\n[[host]]\nname = "a"\n[[host]]\nname = "b"\n', "utf-8")
    done = call("calibrate", "--hosts", inventory, cwd=tmp_path)
    assert done.returncode == 2
    assert "a" in done.stderr
    assert "b" in done.stderr


def test_a_size_that_is_no_multiple_is_refused(tmp_path: Path) -> None:
    done = call("calibrate", "--path", tmp_path, "--size", "10k", cwd=tmp_path)
    assert done.returncode == 2
    assert "'10k'" in done.stderr


def test_what_cannot_be_asked_for_is_refused_all_at_once(tmp_path: Path) -> None:
    words = ("--rw", "sideways", "--bs", "4x", "--size", "0", "--ioengine", "rbd")
    done = call("calibrate", "--path", tmp_path, *words, cwd=tmp_path)
    assert done.returncode == 2
    for wrong in ("'sideways'", "'4x'", "'0'", "'rbd'"):
        assert wrong in done.stderr


def test_one_io_at_a_time_is_no_depth(tmp_path: Path) -> None:
    done = call("calibrate", "--path", tmp_path, "--ioengine", "psync", cwd=tmp_path)
    assert done.returncode == 2
    assert "'psync'" in done.stderr


def test_without_a_target_it_says_what_to_give(tmp_path: Path) -> None:
    done = call("calibrate", cwd=tmp_path)
    assert done.returncode == 2
    assert "--path" in done.stderr
