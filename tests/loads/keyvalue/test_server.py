"""The server of YCSB workloads, and the file system that a session makes for itself."""

from __future__ import annotations

import pytest

from iolab.core.study import TargetSettings
from iolab.loads.keyvalue.workload import (
    EMBEDDED_SERVER,
    ServerKind,
    ServerSettings,
    YcsbJob,
    server_settings_or_embedded,
)
from iolab.study.parse import StudyOverrides, overrides_for_resume
from tests.loads.keyvalue.key_value_studies import db_bench, ycsb
from tests.plans import make_plan, parse_study
from tests.study.studies import SMALL, load, told

TWO = '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'
NODE = '[[host]]\nname = "n"\nrole = "storage"\n'


def server(*lines: str) -> str:
    """A study of one YCSB workload with these lines under [server]."""
    return ycsb(more="[server]\n" + "\n".join(lines) + "\n")


def test_without_a_table_the_store_is_embedded() -> None:
    assert load(ycsb()).server == EMBEDDED_SERVER == load(server()).server


def test_every_key_of_the_server_reaches_the_study() -> None:
    text = server(
        'kind = "managed"',
        'addresses = "db-1"',
        'host = "local"',
        'version = "5.0"',
        'listen = "192.0.2.7"',
        "port = 9142",
        'heap = "2g"',
        'memory = "4g"',
        'keyspace = "k_1"',
        "replication = 1",
        'consistency = "LOCAL_QUORUM"',
        'ycsb = "/opt/ycsb"',
        'java = "/opt/jdk-17/bin/java"',
    )
    assert load(text).server == ServerSettings(
        kind=ServerKind.MANAGED,
        addresses=("db-1",),
        host="local",
        version="5.0.6",
        listen="192.0.2.7",
        port=9142,
        heap_bytes=2 << 30,
        memory_bytes=4 << 30,
        keyspace="k_1",
        replication=1,
        consistency="LOCAL_QUORUM",
        ycsb="/opt/ycsb",
        java="/opt/jdk-17/bin/java",
    )


def test_the_server_is_set_from_the_command_line_and_remembered() -> None:
    study = load(ycsb(), "server.kind=given", "server.addresses=db-1:9042,[2001:db8::1]:9043")
    assert server_settings_or_embedded(study).kind is ServerKind.EXTERNAL
    assert server_settings_or_embedded(study).addresses == ("db-1:9042", "[2001:db8::1]:9043")
    assert parse_study(study.text, "again.toml", overrides_for_resume(study)) == study
    assert server_settings_or_embedded(
        load(ycsb(), "server.kind=given", "server.addresses=db-1")
    ).addresses == ("db-1",)


def test_another_server_is_another_point_but_another_version_is_not() -> None:
    plans = [
        make_plan(load(ycsb(), *sets))
        for sets in (
            (),
            ("server.kind=managed",),
            ("server.kind=managed", "server.version=4.1"),
            ("server.kind=managed", "server.consistency=ALL"),
        )
    ]
    digests = [plan.points[0].digest for plan in plans]
    assert digests[1] == digests[2]
    assert len({*digests}) == 3
    assert len({plan.digest for plan in plans}) == 4


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (('kind = "manged"',), "kind of [server] is 'manged'. Did you mean 'managed'?"),
        (('kind = "given"',), "[server] has kind = 'given' but no addresses."),
        (('addresses = ["db-1"]',), "[server] has addresses but no kind."),
        (('kind = "given"', 'addresses = ["db-1:0"]'), "addresses of [server] has 'db-1:0'."),
        (('kind = "given"', 'addresses = ["-x"]'), "addresses of [server] has '-x'."),
        (('version = "3.11.2"',), "version of [server] is '3.11.2'."),
        (('listen = "0.0.0.0"',), "listen of [server] is '0.0.0.0'."),
        (('listen = "db-1"',), "listen of [server] is 'db-1'."),
        (("port = 0",), "port of [server] is 0."),
        (('keyspace = "A;b"',), "keyspace of [server] is 'A;b'."),
        (('consistency = "QUORUMS"',), "consistency of [server] is 'QUORUMS'. Did you mean"),
        (('java = "java -version"',), "java of [server] is 'java -version'."),
        (('ycbs = "/opt"',), "Unknown key 'ycbs' in [server]. Did you mean 'ycsb'?"),
        (
            ('kind = "managed"', "replication = 3"),
            "replication of [server] is 3, but a managed one is one node.",
        ),
        (('kind = "managed"', 'memory = "1g"'), "memory of [server] is '1g' for a heap of '1g'."),
        (
            ('kind = "managed"', 'host = "locl"'),
            "host of [server] is 'locl', which is no client or storage node. Did you mean 'local'",
        ),
    ],
)
def test_a_wrong_value_of_the_server(lines: tuple[str, ...], message: str) -> None:
    (fault,) = told(server(*lines))
    assert message in fault


def test_a_server_without_ycsb_has_no_effect() -> None:
    for text in (SMALL, db_bench()):
        assert "[server] has no effect" in told(text, "server.kind=managed")[0]


def test_several_clients_cannot_reach_a_node_that_listens_on_loopback() -> None:
    managed = server('kind = "managed"')
    assert server_settings_or_embedded(load(managed)).listen == "127.0.0.1"
    assert "'a' listens on 127.0.0.1, where 'b' of" in told(managed + TWO)[0]
    elsewhere = server('kind = "managed"', 'host = "n"') + '[[host]]\nname = "a"\n' + NODE
    assert "'n' listens on 127.0.0.1, where 'a' of" in told(elsewhere)[0]
    assert (
        server_settings_or_embedded(load(managed + TWO, "server.listen=192.0.2.7")).listen
        == "192.0.2.7"
    )
    assert server_settings_or_embedded(load(elsewhere, "server.listen=192.0.2.7")).host == "n"


def test_a_hypervisor_is_no_place_for_a_node() -> None:
    text = server('kind = "managed"', 'host = "h"') + (
        '[[host]]\nname = "h"\nrole = "hypervisor"\n[[host]]\nname = "a"\n'
    )
    assert "host of [server] is 'h'" in told(text)[0]


def test_only_a_store_within_its_client_is_bounded_with_it() -> None:
    text = ycsb('memory = "1g"')
    assert io_memory(text) == 1 << 30
    assert io_memory(text, "server.kind=managed", "server.memory=4g") is None
    assert io_memory(text, "server.kind=given", "server.addresses=db-1") is None


def io_memory(text: str, *sets: str) -> int | None:
    """The bound of the client's memory in the only workload."""
    (workload,) = load(text, *sets).workloads
    assert isinstance(workload.job, YcsbJob)
    return workload.job.memory_bytes


def test_a_server_holds_one_set_of_records() -> None:
    second = "\n".join(ycsb("fields = 2").splitlines()[2:]).replace('"w"', '"v"')
    assert load(ycsb() + second).workloads
    assert "Workload 'v' has other records" in told(ycsb() + second, "server.kind=managed")[0]


def target(*lines: str, text: str | None = None) -> str:
    """A study with these lines under [target]."""
    return (db_bench() if text is None else text) + "[target]\n" + "\n".join(lines) + "\n"


def test_a_file_system_is_made_in_an_image_or_on_a_device() -> None:
    made = load(target('filesystem = "xfs"', 'image = "4g"')).target
    assert made == TargetSettings(
        keep_files=False, allow_memory=False, make_xfs=True, image_bytes=4 << 30
    )
    device = ('device = "/dev/sdx"', 'serial = "1"')
    study = load(target('filesystem = "xfs"', *device), path=None)
    assert (study.target.make_xfs, study.target.image_bytes) == (True, None)
    assert make_plan(study).destroyed_device_texts
    found = load(target('filesystem = "as-found"', 'image = "4g"')).target
    assert found == TargetSettings(keep_files=False, allow_memory=False)


def test_another_image_is_another_plan() -> None:
    text = target('filesystem = "xfs"', 'image = "4g"')
    found = {
        make_plan(load(text, *sets)).digest
        for sets in ((), ("target.image=8g",), ("target.filesystem=as-found",))
    }
    assert len(found) == 3


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (target('filesystem = "xfs"'), "/mnt/t", "but nothing is said to make it on."),
        (target('filesystem = "xsf"'), "/mnt/t", "filesystem of [target] is 'xsf'. Did you mean"),
        (target('image = "4g"'), "/mnt/t", "[target] has an image but no filesystem to make in"),
        (target('image = "1m"', 'filesystem = "xfs"'), "/mnt/t", "image of [target] is '1m'."),
        (
            target('filesystem = "xfs"', 'image = "4g"', 'device = "/dev/sdx"', 'serial = "1"'),
            None,
            "[target] has an image, which is a file, but a target is a device.",
        ),
        (
            target('filesystem = "xfs"', 'device = "/dev/sdx"', 'serial = "1"', text=SMALL),
            None,
            "Workload 'rand-read' does not go with a file system on a device.",
        ),
        (
            target('device = "/dev/sdx"', 'serial = "1"'),
            None,
            "Workload 'w' needs a file system, but the target is a device.",
        ),
        (
            target('device = "/dev/sdx"', 'serial = "1"', text=ycsb()),
            None,
            "Workload 'w' needs a file system, but the target is a device.",
        ),
        (
            target('filesystem = "xfs"', 'image = "4g"', "rotate = 1") + TWO,
            "/mnt/t",
            "rotate of [target] does not go with filesystem = 'xfs'",
        ),
    ],
)
def test_a_wrong_file_system(text: str, path: str | None, message: str) -> None:
    assert message in told(text, path=path)[0]


def test_a_device_on_the_command_line_hides_the_image_of_a_scale() -> None:
    text = db_bench() + ('[scale.small]\n"target.filesystem" = "xfs"\n"target.image" = "4g"\n')
    options = StudyOverrides(scale="small", device="/dev/sdx", serial="1")
    study = parse_study(text, "s.toml", options)
    assert (study.target.make_xfs, study.target.image_bytes) == (True, None)
    assert study.configurations[0].serial == "1"
