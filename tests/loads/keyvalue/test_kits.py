"""Kits are built once, whole or not at all, and every failure says what to do."""

from __future__ import annotations

import asyncio
import os
import time
import zipfile
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import EngineError
from iolab.hosts.connect import LocalHost
from iolab.hosts.kit_cache import TOKEN
from iolab.loads.keyvalue.java import (
    SOURCES,
    JavaKitName,
    create_java_kit_builder_of_user,
    install_java_kit_jars,
)
from tests.loads.keyvalue.kit_maven import Bench

NO_NETWORK = (
    b"\x1b[0m[ERROR] Plugin org.apache.maven.plugins:maven-resources-plugin:3.3.1 or one of its "
    b"dependencies could not be resolved: Could not transfer artifact x from/to central: Connect "
    b"to 127.0.0.1:9 [/127.0.0.1] failed: Connection refused -> [Help 1]\n[ERROR] \n"
)
NO_ARTIFACT = (
    b"[ERROR] Failed to execute goal on project iolab-cassandra: Could not resolve dependencies: "
    b"Could not find artifact org.apache.cassandra:cassandra-all:jar:9.9.9 in central -> [Help 1]"
)
NO_JAVA = (
    b"The JAVA_HOME environment variable is not defined correctly,\n"
    b"this environment variable is needed to run this program.\n"
)
OLD_JAVA = (
    b"[ERROR] Failed to execute goal compile (default-compile) on project iolab-ycsb: Fatal error "
    b"compiling: error: release version 8 not supported -> [Help 1]\n"
)
NO_BUILD = (
    b"[ERROR] COMPILATION ERROR : \n"
    b"[ERROR] RocksTool.java:[21,11] invalid method declaration; return type required\n"
    b"[ERROR] Failed to execute goal compile\n"
)


def test_a_kit_is_built_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first = asyncio.run(bench.folder_of())
    again = asyncio.run(bench.folder_of())
    assert first == again
    assert len(bench.calls) == 1
    assert bench.calls[0].endswith("-Dycsb.version=0.17.0 package -o")
    assert ["YCSB 0.17.0" in said for said in bench.said] == [True]
    assert sorted(path.name for path in first.glob("*.jar")) == [
        "core-0.17.0.jar",
        "iolab-ycsb.jar",
        "rocksdbjni-7.8.3.jar",
    ]
    assert bench.hidden == []


def test_the_network_is_used_only_where_something_is_missing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tell("offline", NO_NETWORK)
    asyncio.run(bench.folder_of())
    assert [call.endswith("-o") for call in bench.calls] == [True, False]


def test_other_sources_and_other_versions_are_other_kits(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tell("jars", "cassandra-all-{version}.jar iolab-ycsb.jar")
    names = {
        asyncio.run(bench.folder_of()).name,
        asyncio.run(bench.folder_of(version="0.18.0")).name,
        asyncio.run(bench.folder_of(JavaKitName.CASSANDRA, "4.1.10")).name,
    }
    (bench.sources / "ycsb" / "target").mkdir()
    (bench.sources / "ycsb" / "target" / "x.jar").touch()
    assert asyncio.run(bench.folder_of()).name in names
    (bench.sources / "ycsb" / "src" / "A.java").write_text("class A {}")
    names.add(asyncio.run(bench.folder_of()).name)
    assert len(names) == 4
    assert "cassandra-4.1.10-" in " ".join(names)


def test_libraries_lie_beside_their_jar_and_those_of_other_systems_nowhere(tmp_path: Path) -> None:
    folder = asyncio.run(Bench(tmp_path).folder_of())
    with zipfile.ZipFile(folder / "rocksdbjni-7.8.3.jar") as jar:
        assert sorted(jar.namelist()) == [
            "librocksdbjni-linux-aarch64-musl.so",
            "org/rocksdb/RocksDB.class",
        ]
        assert jar.testzip() is None
    assert [path.name for path in folder.glob("*.so")] == ["librocksdbjni-linux64.so"]
    library = (folder / "librocksdbjni-linux64.so").read_bytes()
    assert library == b"librocksdbjni-linux64.so" * 100


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (NO_NETWORK, "Maven could not fetch what YCSB is built of", "reaches Maven Central"),
        (NO_ARTIFACT, "Central has no org.apache.cassandra:cassandra-all:jar:9.9.9.", "exists"),
        (NO_JAVA, "found no Java compiler here that can build YCSB (The JAVA_HOME", "JDK"),
        (OLD_JAVA, "found no Java compiler here that can build YCSB (Failed", "JDK"),
        (NO_BUILD, "could not build YCSB (COMPILATION ERROR : RocksTool.java:[21,11]", "Correct"),
        (b"", "Maven could not build YCSB.", "Correct"),
    ],
)
def test_a_failed_build_says_what_to_do(
    tmp_path: Path, said: bytes, message: str, hint: str
) -> None:
    bench = Bench(tmp_path)
    bench.tell("offline", said)
    bench.tell("online", said)
    with pytest.raises(EngineError) as caught:
        asyncio.run(bench.folder_of())
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "\x1b" not in str(caught.value)
    assert bench.left == []


def test_without_maven(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    shop = create_java_kit_builder_of_user(
        {"PATH": str(empty), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    )
    with pytest.raises(EngineError, match=r"Maven, .* is not on"):
        asyncio.run(shop.get_or_build_kit(JavaKitName.CASSANDRA, "4.0.17", print))


def test_a_maven_that_hangs_is_killed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, limit_s=1.0)
    bench.tell("hangs", "")
    with pytest.raises(EngineError, match="YCSB within 1 s"):
        asyncio.run(bench.folder_of())
    assert not _alive(bench)
    assert bench.left == []


def test_a_build_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tell("hangs", "")

    async def cancelled() -> None:
        building = asyncio.ensure_future(bench.folder_of())
        await asyncio.to_thread(_appears, bench.tool / "pid")
        building.cancel()
        await asyncio.gather(building, return_exceptions=True)

    asyncio.run(cancelled())
    assert not _alive(bench)
    assert bench.left == []


def test_what_a_killed_build_left_is_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    folder = asyncio.run(bench.folder_of())
    (folder / TOKEN).unlink()
    (folder.parent / f".{folder.name}.abc" / "project").mkdir(parents=True)
    assert asyncio.run(bench.folder_of()) == folder
    assert len(bench.calls) == 2
    assert bench.left == [folder.name]


def test_a_build_without_its_main_jar_is_no_kit(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tell("jars", "core-{version}.jar")
    with pytest.raises(EngineError, match=r"without iolab-ycsb\.jar"):
        asyncio.run(bench.folder_of())
    assert bench.left == []


@pytest.mark.parametrize("version", ["", "4", "latest", "4.0.17/../x", "4.0.17 -o", "4.0.17\n"])
def test_a_version_is_plain(tmp_path: Path, version: str) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(EngineError, match="is not a version"):
        asyncio.run(bench.folder_of(JavaKitName.CASSANDRA, version))
    assert bench.calls == []


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.cache.write_text("a file")
    with pytest.raises(EngineError, match="cannot be made") as caught:
        asyncio.run(bench.folder_of())
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_this_machine_uses_the_cache_itself(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    host = LocalHost(HostSpec("local", HostTransport.LOCAL))
    jars = asyncio.run(
        install_java_kit_jars(
            host, JavaKitName.YCSB, "0.17.0", "/scratch", bench.said.append, builder=bench.workshop
        )
    )
    assert Path(jars[0]).name == "core-0.17.0.jar"
    assert all(Path(jar).is_file() and jar.startswith(str(bench.cache)) for jar in jars)


@pytest.mark.parametrize("name", JavaKitName)
def test_every_kit_has_its_sources_in_the_package(name: JavaKitName) -> None:
    assert (SOURCES / name / "pom.xml").is_file()


def _appears(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


def _alive(bench: Bench) -> bool:
    try:
        os.kill(int((bench.tool / "pid").read_text()), 0)
    except ProcessLookupError:
        return False
    return True
