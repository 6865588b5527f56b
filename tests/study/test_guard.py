"""A plan that cannot run is refused before anything is written, with every reason at once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import (
    CpuFacts,
    HostFacts,
    KernelFacts,
    MemoryFacts,
    TargetFacts,
    TargetFault,
    TargetFaultCode,
    TargetProbe,
    ToolFacts,
)
from iolab.errors import EngineError, ExitCode, HostError, IolabError
from iolab.loads.fileio.engine_facts import parse_fio_version
from iolab.study.targets import targets_of_study
from tests.plans import check_ready, make_plan
from tests.study.studies import SMALL, load

TARGET = TargetFacts(
    path="/mnt/t",
    fs_type="xfs",
    mount_point="/mnt/t",
    mount_source="/dev/loop0",
    mount_options="rw",
    total_bytes=1 << 40,
    free_bytes=1 << 40,
    free_inodes=1000,
    device="loop0",
    devices=("loop0",),
    in_memory=False,
    memory_backed=False,
    network=False,
    writable=True,
)
FACTS = HostFacts(
    cpu=CpuFacts("cpu", 1, 1, 1, None, None, ()),
    memory=MemoryFacts(1 << 30, ()),
    disks=(),
    nics=(),
    kernel=KernelFacts("6.1", "Linux", "x86_64", "h", "b", None, None, None),
    target=TARGET,
    tools=(ToolFacts("fio", "/usr/bin/fio", "fio-3.33"),),
    faults=(),
)
PROBE = TargetProbe(direct_error=None, direct_align_bytes=512, held_by=None)


def refusal(
    facts: HostFacts | None = FACTS,
    probe: TargetProbe | None = PROBE,
    text: str = SMALL,
    present: int = 0,
) -> IolabError:
    study = load(text)
    with pytest.raises((HostError, EngineError)) as caught:
        check_ready(
            study,
            make_plan(study),
            {} if facts is None else {"local": facts},
            {} if probe is None else {"local": probe},
            {"local": present},
        )
    return caught.value


def on(**changes: object) -> HostFacts:
    return replace(FACTS, target=replace(TARGET, **changes))


def gone(code: TargetFaultCode, message: str = "") -> HostFacts:
    return replace(FACTS, target=None, target_fault=TargetFault(code, message))


def fio(path: str | None, version: str | None) -> HostFacts:
    return replace(FACTS, tools=(ToolFacts("fio", path, version),))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (None, "'local' told nothing"),
        (replace(FACTS, target=None), "no directory '/mnt/t' on host 'local'"),
        (gone(TargetFaultCode.MISSING), "no directory '/mnt/t' on host"),
        (
            gone(TargetFaultCode.UNREACHABLE, "Permission denied (EACCES)"),
            "'Permission denied (EACCES)'",
        ),
        (gone(TargetFaultCode.NO_DIRECTORY), "'/mnt/t' on host 'local' is not a directory"),
        (
            gone(TargetFaultCode.NOT_FOR_FILES, "proc"),
            "'/mnt/t' on host 'local' is no place for load: its file system is proc",
        ),
        (gone(TargetFaultCode.NO_MOUNT), "/proc/self/mountinfo has no mount"),
        (on(writable=False), "written to '/mnt/t' on host 'local'"),
        (on(in_memory=True, fs_type="tmpfs"), "'/mnt/t' on host 'local' is tmpfs"),
        (on(free_bytes=1 << 20), "1 MiB free, the files need 65.1 MiB"),
        (on(free_inodes=0, free_bytes=0), "has 0 B free"),
    ],
)
def test_a_host_that_cannot_serve(facts: HostFacts | None, message: str) -> None:
    error = refusal(facts)
    assert error.exit_code is ExitCode.HOST
    (fault,) = error.faults
    assert message in str(fault)


@pytest.mark.parametrize(("boots", "refused"), [("aaa", True), ("abc", False)])
def test_a_file_system_of_several_hosts_has_room_for_all_their_files(
    boots: str,
    refused: bool,  # noqa: FBT001
) -> None:
    """Each needs 65.1 MiB, of which 64 are left free; three need more, unless each has a disk."""
    hosts = "".join(f'\n[[host]]\nname = "{name}"\npath = "/mnt/t"\n' for name in "xyz")
    study = load(SMALL + hosts)
    facts = {
        name: replace(
            on(free_bytes=66 << 20), kernel=replace(FACTS.kernel, boot_id=boot, hostname=name)
        )
        for name, boot in zip("xyz", boots, strict=True)
    }
    looked_at = study, make_plan(study), facts, dict.fromkeys("xyz", PROBE)
    if not refused:
        check_ready(*looked_at)
        return
    with pytest.raises(HostError) as caught:
        check_ready(*looked_at)
    (fault,) = caught.value.faults
    assert all(text in fault.message for text in ("3 hosts", "66 MiB free"))
    # What already lies there needs no room again.
    check_ready(*looked_at, dict.fromkeys("xy", 1 << 20))


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        (None, "was not tried."),
        (replace(PROBE, direct_error="EINVAL: open"), "takes no O_DIRECT: 'EINVAL: open'."),
        (replace(PROBE, direct_align_bytes=8192), "in multiples of 8192 bytes, not 4096."),
        (replace(PROBE, held_by="s-1 \x1b[2J"), "is held by another session, 's-1 \\x1b[2J'."),
    ],
)
def test_a_target_that_cannot_serve(probe: TargetProbe | None, message: str) -> None:
    error = refusal(probe=probe)
    assert isinstance(error, HostError)
    assert [message in str(fault) for fault in error.faults] == [True]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (replace(FACTS, tools=()), "fio on host 'local' is not installed."),
        (fio(None, None), "fio on host 'local' is not installed."),
        (fio("/bin/fio", "fio-3.15"), "fio on host 'local' is 'fio-3.15', where fio 3.16"),
        (fio("/bin/fio", "fio-2.99"), "3.16 or newer"),
        (fio("/bin/fio", "segfault\n"), "of unknown version: 'segfault\\n'"),
        (fio("/bin/fio", None), "is of unknown version"),
    ],
)
def test_an_engine_that_cannot_serve(facts: HostFacts, message: str) -> None:
    error = refusal(facts)
    assert isinstance(error, EngineError)
    assert error.exit_code is ExitCode.ENGINE
    (fault,) = error.faults
    assert message in str(fault)


def test_the_native_engine_needs_nothing_installed() -> None:
    bare, ready = {"local": replace(FACTS, tools=())}, {"local": PROBE}
    assert any("--engine native" in fault.hint for fault in refusal(bare["local"]).faults)
    study = load(SMALL, "workload.*.engine=native")
    check_ready(study, make_plan(study), bare, ready, {"local": 0})
    mixed = load(SMALL, "workload.mix.engine=native")
    with pytest.raises(EngineError):
        check_ready(mixed, make_plan(mixed), bare, ready, {"local": 0})


def test_all_reasons_come_at_once_and_a_host_decides_the_code() -> None:
    facts = replace(on(free_bytes=0), tools=())
    error = refusal(facts, replace(PROBE, direct_error="EINVAL", held_by="s-1"))
    assert isinstance(error, HostError)
    assert len(error.faults) == 4
    assert "4 reasons" in error.message


def test_buffers_must_fit_into_memory() -> None:
    facts = replace(FACTS, memory=MemoryFacts(1 << 20, ()))
    (fault,) = refusal(facts, text=SMALL.replace("[1, 8]", "[1, 129]")).faults
    assert fault.message.startswith("rand-read iodepth=129 keeps 516 KiB in")
    study = load(SMALL.replace("[1, 8]", "[1, 128]"))
    check_ready(study, make_plan(study), {"local": facts}, {"local": PROBE})


def test_files_that_lie_there_already_need_no_room() -> None:
    study = load(SMALL)
    full = {"local": on(free_bytes=0, free_inodes=0)}
    check_ready(study, make_plan(study), full, {"local": PROBE}, {"local": 1 << 20})
    assert "need 64.5 MiB" in str(refusal(full["local"], present=1 << 19).faults[0])


def test_too_few_inodes() -> None:
    study = SMALL.replace('filesize = "1m"', 'filesize = "1m"\nfiles = 8')
    (fault,) = refusal(on(free_inodes=7), text=study).faults
    assert {"7", "8"} <= {*fault.message.split()}


def test_a_memory_target_may_be_allowed() -> None:
    study = load(SMALL, "target.allow_memory=true")
    check_ready(study, make_plan(study), {"local": on(in_memory=True)}, {"local": PROBE})


def test_buffered_workloads_need_no_o_direct() -> None:
    study = load(SMALL, "workload.*.direct=false")
    probe = TargetProbe("EINVAL", None, None)
    check_ready(study, make_plan(study), {"local": FACTS}, {"local": probe})


def test_every_directory_of_a_host_is_looked_at() -> None:
    text = (
        SMALL + '[[configuration]]\nid = "a"\npath = "/mnt/t"\n'
        '[[configuration]]\nid = "b"\npath = "/mnt/u"\n'
        '[[configuration]]\nid = "c"\npath = "/mnt/t"\n'
    )
    study = load(text, path=None)
    first, second = targets_of_study(study)
    assert (first.key, first.path, first.configurations) == ("local", "/mnt/t", ("a", "c"))
    assert (second.key, second.path, second.configurations) == ("local /mnt/u", "/mnt/u", ("b",))
    facts = {"local": on(free_bytes=66 << 20), "local /mnt/u": on(free_bytes=66 << 20)}
    with pytest.raises(HostError) as caught:
        check_ready(study, make_plan(study), facts, {"local": PROBE, "local /mnt/u": PROBE})
    (fault,) = caught.value.faults
    assert str(fault).startswith("'/mnt/t' on host 'local' has 66 MiB")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("fio-3.33", (3, 33)),
        ("fio-3.39-66-gd8f9", (3, 39)),
        ("fio-3.16\n", (3, 16)),
        ("3.16", None),
        ("", None),
        (None, None),
    ],
)
def test_versions_of_fio(text: str | None, version: tuple[int, int] | None) -> None:
    assert parse_fio_version(text) == version


KV_CACHE = """
format = 1
id = "kv"

[[workload]]
id = "kv"
engine = "kv-cache"
kv_bytes_per_token = 512
capacity = "1g"
requests_per_s = 8
"""
TRAINING = """
format = 1
id = "training"

[[workload]]
id = "training"
engine = "training-read"
accelerators = 1
dataset = "unet3d"
files = 100
"""


@pytest.mark.parametrize(
    ("text", "keys"),
    [(SMALL, "filesize or numjobs"), (KV_CACHE, "capacity"), (TRAINING, "files")],
    ids=["files", "kv-cache", "training-read"],
)
def test_too_little_space_names_the_keys_that_the_load_has(text: str, keys: str) -> None:
    (fault,) = refusal(on(free_bytes=1 << 20), text=text).faults
    assert f"smaller workload.*.{keys}." in str(fault)
