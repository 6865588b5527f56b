"""What is wrong with guests, or goes wrong with them: told in time, and nothing stays."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.errors import ExitCode
from iolab.guests.problems import QEMU_BYTES
from tests.e2e.guest_sessions import (
    QEMU,
    Stored,
    await_nothing_on,
    guests_on,
    iolab,
    left_on,
    path_without,
    running,
    study,
    workload,
)
from tests.e2e.targets import tmpfs

pytestmark = [pytest.mark.e2e, pytest.mark.long]

HOST = '[[host]]\nname = "node"\nrole = "hypervisor"\n'
MODELLED = 'disk = "32m"\ndisk_kind = "modelled"\nlatency = "5ms"\naccel = "tcg"\n'
IMAGE = 'disk = "32m"\naccel = "tcg"\niops = 100\n'
READ = workload("read", "randread", numjobs=1)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    place = tmp_path / "target"
    place.mkdir()
    return place


def refused(tmp_path: Path, target: Path, vm: str, *, expect: int = 3, verb: str = "plan") -> str:
    """What a study with such guests is refused with."""
    file = study(tmp_path, vm, READ, hosts=HOST)
    where = ("--out", tmp_path / "S") if verb == "run" else ()
    done = iolab(verb, file, "--path", target, *where, expect=expect)
    assert left_on(target) == []
    return " ".join(done.stderr.split())


def test_a_node_without_qemu_is_named_before_anything_is_done(tmp_path: Path, target: Path) -> None:
    file = study(tmp_path, MODELLED, READ, hosts=HOST)
    env = path_without(tmp_path / "bin", QEMU)
    done = iolab("run", file, "--path", target, "--out", tmp_path / "S", expect=3, env=env)
    said = " ".join(done.stderr.split())
    assert f"There is no {QEMU} on node 'node'." in said
    assert "apt-get install qemu-system-x86" in said
    assert left_on(target) == []


def test_a_kernel_package_that_is_not_there_is_named(tmp_path: Path, target: Path) -> None:
    kernel = f'kernel = "{tmp_path}/linux-image.deb"\n'
    said = refused(tmp_path, target, MODELLED + kernel, expect=4, verb="run")
    assert f"{tmp_path}/linux-image.deb" in said
    await_nothing_on(target)


def test_more_memory_than_there_is_is_refused_with_the_number_that_fits(
    tmp_path: Path, target: Path
) -> None:
    file = study(tmp_path, MODELLED, READ, hosts=HOST)
    done = iolab("plan", file, "--path", target, "--set", "vm.memory=4096g", expect=3)
    assert "none would fit" in " ".join(done.stderr.split())


def test_more_guests_than_memory_carries_are_refused_with_the_number(
    tmp_path: Path, target: Path
) -> None:
    file = study(tmp_path, MODELLED, workload("read", "randread", vms=(180,)), hosts=HOST)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    each = max(total // 100 >> 20, 128)
    done = iolab("plan", file, "--path", target, "--set", f"vm.memory={each}m", expect=3)
    said = " ".join(done.stderr.split())
    assert "180 guests on each take" in said
    fit = int(total * 0.9 / ((each << 20) + QEMU_BYTES))
    assert f"{fit} would fit" in said


def test_images_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with tmpfs(64 << 20) as small:
        vm = IMAGE.replace("32m", "128m")
        file = study(tmp_path, vm, READ, hosts=HOST)
        allowed = ("--set", "target.allow_memory=true")
        done = iolab("plan", file, "--path", small, *allowed, expect=3)
        said = " ".join(done.stderr.split())
        assert "the disks of guests need" in said
        assert left_on(small) == []


def test_a_guest_that_panics_at_boot_is_told_with_its_words(tmp_path: Path, target: Path) -> None:
    cache = tmp_path / "cache"
    file = study(tmp_path, MODELLED + 'boot_limit = "60s"\n', READ, hosts=HOST)
    env = {"XDG_CACHE_HOME": str(cache)}
    with running("run", file, "--path", target, "--out", tmp_path / "A", env=env) as first:
        first.wait_for("run 1/")
    await_nothing_on(target)
    # The first file system of the kit is broken now: the kernel finds no init in it.
    (initrd,) = cache.glob("iolab/kits/guest-*/initrd")
    initrd.chmod(0o600)
    initrd.write_bytes(bytes(512))
    done = iolab("run", file, "--path", target, "--out", tmp_path / "B", expect=3, env=env)
    said = " ".join(done.stderr.split())
    assert "did not boot on node 'node'" in said
    assert "Kernel panic" in said
    await_nothing_on(target)


def test_a_guest_that_hangs_at_boot_is_started_anew_and_then_given_up(
    tmp_path: Path, target: Path
) -> None:
    file = study(tmp_path, MODELLED + 'boot_limit = "5s"\n', READ, hosts=HOST)
    with running("run", file, "--path", target, "--out", tmp_path / "S") as session:
        stopped: set[int] = set()
        deadline = time.monotonic() + 60
        while session.process.poll() is None and time.monotonic() < deadline:
            for qemu in set(guests_on(target)) - stopped:
                os.kill(qemu, signal.SIGSTOP)
                stopped.add(qemu)
            time.sleep(0.05)
        assert session.end() == ExitCode.HOST, session.said
    assert len(stopped) == 2
    assert "said nothing for 5 s" in session.said
    assert "It is restarted" in session.said
    await_nothing_on(target)


def test_a_guest_that_dies_or_falls_silent_fails_its_run_and_the_next_one_goes_on(
    tmp_path: Path, target: Path
) -> None:
    reads = [workload(f"read-{number}", "randread", numjobs=1) for number in (1, 2, 3)]
    file = study(tmp_path, IMAGE, *reads, hosts=HOST, runtime="2s")
    words = ("run", file, "--path", target, "--out", tmp_path / "S")
    with running(*words) as session:
        session.wait_for("run 1/3 cluster: read-1, 1 VM per node: measure")
        (qemu,) = guests_on(target)
        os.kill(qemu, signal.SIGKILL)
        # The second one falls silent, as a guest whose channel is stuck.
        session.wait_for("run 2/3 cluster: read-2, 1 VM per node: measure")
        (qemu,) = guests_on(target)
        os.kill(qemu, signal.SIGSTOP)
        assert session.end() == ExitCode.ENGINE, session.said
    stored = Stored.at(tmp_path / "S")
    results = [result for _, _, result in stored.runs()]
    assert [one.status for one in results] == [RunStatus.FAILED, RunStatus.FAILED, RunStatus.DONE]
    assert "signal 9" in (results[0].failure or ""), results[0].failure
    await_nothing_on(target)


def test_a_killed_controller_leaves_nothing(tmp_path: Path, target: Path) -> None:
    file = study(tmp_path, IMAGE, READ, hosts=HOST, runtime="60s")
    with running("run", file, "--path", target, "--out", tmp_path / "S") as session:
        session.wait_for("run 1/1")
        (qemu,) = guests_on(target)
        # A second session on the same images is refused while this one goes on.
        busy = iolab("run", file, "--path", target, "--out", tmp_path / "T", expect=3)
        assert "held by" in busy.stderr
        assert guests_on(target) == [qemu]
        session.process.kill()
        await_nothing_on(target)


def test_a_node_whose_agent_is_killed_loses_its_guests_and_a_resumed_session_goes_on(
    tmp_path: Path, target: Path
) -> None:
    file = study(tmp_path, IMAGE, READ, hosts=HOST, runtime="2s")
    with running("run", file, "--path", target, "--out", tmp_path / "S") as session:
        session.wait_for("run 1/1 cluster: read, 1 VM per node: measure")
        (qemu,) = guests_on(target)
        stat = Path(f"/proc/{qemu}/stat").read_text("ascii")
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        assert session.end() == ExitCode.HOST, session.said
    assert "Host 'node' broke off" in session.said
    # A new agent has removed what the killed one left: the next session finds nothing.
    assert left_on(target) == []
    again = iolab("resume", tmp_path / "S")
    assert "An earlier session had left" not in again.stderr
    ((_, _, result),) = Stored.at(tmp_path / "S").runs()
    assert result.status is RunStatus.DONE
    await_nothing_on(target)
