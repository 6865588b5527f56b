"""A node's configuration and command for each version, and what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from iolab.errors import EngineError
from iolab.loads.keyvalue.cassandra.node import (
    DAEMON,
    CassandraNodePlan,
    direct_memory_bytes,
    node_command,
    node_config_files,
    node_folders_to_create,
)
from iolab.loads.keyvalue.cassandra.node_host import (
    java_version_and_support_text,
    parse_supported_version,
    require_java_that_starts_cassandra,
)
from iolab.loads.keyvalue.java import JavaInstallation
from iolab.loads.keyvalue.workload import ServerKind, ServerSettings

JARS = ("/kit/cassandra-all.jar", "/kit/jamm-0.4.0.jar", "/kit/not-jamm-0.4.0.jar.txt")


def plan_of(version: str = "4.0.17", **settings: object) -> CassandraNodePlan:
    given: dict[str, Any] = {"kind": ServerKind.MANAGED, "version": version, **settings}
    return CassandraNodePlan(
        settings=ServerSettings(**given),
        version=parse_supported_version(version),
        data_folder='/a "b": {c}/live',
        config_folder="/a b/conf",
        jars=JARS,
        storage_port=7003,
        jmx_port=7204,
    )


def yaml_of(plan: CassandraNodePlan) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(node_config_files(plan)["cassandra.yaml"])
    return document


@pytest.mark.parametrize(
    ("version", "sync"),
    [
        ("4.0.17", {"commitlog_sync_period_in_ms": 10000, "commitlog_segment_size_in_mb": 32}),
        ("4.1.10", {"commitlog_sync_period": "10000ms", "commitlog_segment_size": "32MiB"}),
        ("5.0.6", {"commitlog_sync_period": "10000ms", "commitlog_segment_size": "32MiB"}),
    ],
)
def test_each_version_gets_its_own_words(version: str, sync: dict[str, object]) -> None:
    yaml = yaml_of(plan_of(version))
    assert {name: value for name, value in yaml.items() if "commitlog_s" in name} == {
        **sync,
        "commitlog_sync": "periodic",
    }


def test_it_listens_where_it_is_told_and_lies_where_it_is_put() -> None:
    yaml = yaml_of(plan_of(listen="10.1.2.3", port=9999))
    assert (yaml["rpc_address"], yaml["native_transport_port"]) == ("10.1.2.3", 9999)
    # With other nodes, of which there are none, it speaks on loopback alone.
    assert (yaml["listen_address"], yaml["storage_port"]) == ("127.0.0.1", 7003)
    assert yaml["seed_provider"][0]["parameters"] == [{"seeds": "127.0.0.1:7003"}]
    places = [value for name, value in yaml.items() if name.endswith(("_directory", "ies"))]
    assert len(places) == 5
    assert all('/a "b": {c}/live/' in str(place) for place in places)
    assert yaml["disk_failure_policy"] == yaml["commit_failure_policy"] == "die"


def test_the_command_states_its_memory_and_opens_java() -> None:
    command = node_command(plan_of(heap_bytes=2 << 30, memory_bytes=4 << 30))
    assert command.argv[0] == "java"
    assert command.argv[-1] == DAEMON
    assert f"-Xms{2 << 30}" in command.argv
    assert f"-Xmx{2 << 30}" in command.argv
    assert f"-XX:MaxDirectMemorySize={1 << 30}" in command.argv
    assert command.memory_limit_bytes == 4 << 30
    assert "-javaagent:/kit/jamm-0.4.0.jar" in command.argv
    assert sum(word.startswith("-javaagent") for word in command.argv) == 1
    # Without it 4.0 dies on Java 17.
    assert "--add-opens=java.base/java.io=ALL-UNNAMED" in command.argv
    assert "-Dcassandra.jmx.local.port=7204" in command.argv
    assert "-Dcassandra.config=file:///a%20b/conf/cassandra.yaml" in command.argv
    assert command.argv[-2] == ":".join(("/a b/conf", *JARS))


def test_nothing_of_it_lies_outside_of_its_folders() -> None:
    plan = plan_of()
    words = [word for word in node_command(plan).argv if word.startswith("-Dj")]
    folders = [word.partition("=")[2] for word in words if "tmpdir" in word]
    assert len(folders) == 2
    assert set(folders) <= set(node_folders_to_create(plan))


def test_a_small_heap_still_has_room_for_buffers() -> None:
    assert direct_memory_bytes(ServerSettings(heap_bytes=128 << 20)) == 256 << 20


def test_memory_without_room_beside_the_heap_is_refused() -> None:
    with pytest.raises(EngineError, match=r"1 GiB .* 1\.25 GiB") as raised:
        node_command(plan_of(memory_bytes=5 << 28))
    assert "1.5 GiB" in raised.value.hint


@pytest.mark.parametrize("text", ["3.11.19", "4.2.1", "5.0", "4.0.17-beta", "4.0.x", ""])
def test_other_versions_are_refused(text: str) -> None:
    with pytest.raises(EngineError, match="cannot run Apache Cassandra"):
        parse_supported_version(text)


@pytest.mark.parametrize("release", [11, 17])
def test_java_on_which_it_starts(release: int) -> None:
    require_java_that_starts_cassandra(
        JavaInstallation("java", f"{release}.0.1", release), parse_supported_version("5.0.6"), "h"
    )


@pytest.mark.parametrize("release", [8, 16, 18, 21, 25])
def test_java_on_which_it_dies(release: int) -> None:
    with pytest.raises(EngineError, match="starts on Java 11 and 17 alone"):
        require_java_that_starts_cassandra(
            JavaInstallation("java", f"{release}.0.1", release),
            parse_supported_version("4.0.17"),
            "h",
        )


@pytest.mark.parametrize(
    ("version", "release", "officially"),
    [("4.0.17", 11, True), ("4.0.17", 17, False), ("4.1.10", 17, False), ("5.0.6", 17, True)],
)
def test_records_say_when_cassandra_does_not_name_that_java(
    version: str, release: int, *, officially: bool
) -> None:
    told = java_version_and_support_text(
        JavaInstallation("java", f"{release}.0.1", release), parse_supported_version(version)
    )
    assert told.startswith(f"{release}.0.1")
    assert ("not officially supported" in told) is not officially
