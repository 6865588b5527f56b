"""What YCSB is told: everything that has a default, and nothing that is not allowed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.loads.keyvalue.workload import KeyDistribution, KeyOperation
from iolab.loads.keyvalue.ycsb.engine import (
    OPERATIONS_MAX,
    build_measurement_command,
    database_fill_command,
    java_kit_of_jars,
    latency_log_names,
    rocksdb_contents_command,
)
from tests.loads.keyvalue.ycsb.fixtures import EMBEDDED, INSERT, KIT, READ, RMW, SERVED, A, C, F


def properties(command: Command) -> dict[str, str]:
    words = command.argv
    pairs = [words[at + 1] for at, word in enumerate(words) if word == "-p"]
    return dict(pair.split("=", 1) for pair in pairs)


def measured(job: object, store: object = EMBEDDED, seconds: int = 5) -> Command:
    assert isinstance(job, type(A))
    assert isinstance(store, type(EMBEDDED))
    return build_measurement_command(
        job, store, KIT, "/scratch", seconds=seconds, log_prefix="cell."
    )


def test_every_default_that_matters_is_told() -> None:
    told = properties(measured(A))
    assert told["requestdistribution"] == "uniform"
    assert told["readproportion"] == told["updateproportion"] == "0.500000000"
    zero = ("insertproportion", "scanproportion", "readmodifywriteproportion")
    assert {told[name] for name in zero} == {"0.000000000"}
    assert (told["fieldcount"], told["fieldlength"]) == ("4", "1024")
    assert (told["fieldlengthdistribution"], told["insertorder"]) == ("constant", "hashed")
    assert (told["readallfields"], told["writeallfields"]) == ("true", "false")
    assert told["measurementtype"] == "hdrhistogram"
    assert told["hdrhistogram.fileoutput"] == "true"
    assert told["hdrhistogram.output.path"] == "/scratch/cell."
    assert (told["status.interval"], told["maxexecutiontime"]) == ("1", "5")
    assert told["operationcount"] == str(OPERATIONS_MAX)
    assert told["db"] == "iolab.ycsb.RocksBinding"
    assert told["iolab.database"] == "/scratch/db"
    assert "iolab.create" not in told


def test_intended_times_are_asked_for_only_under_a_rate() -> None:
    free, bound = measured(C), measured(F)
    assert properties(free)["measurement.interval"] == "op"
    assert "-target" not in free.argv
    assert properties(bound)["measurement.interval"] == "both"
    assert bound.argv[bound.argv.index("-target") + 1] == "2000"


def test_the_logs_of_a_run_are_known_before_it() -> None:
    assert latency_log_names(C, "c_") == ("c_READ.hdr",)
    assert latency_log_names(F, "f_") == (
        "f_READ.hdr",
        "f_UPDATE.hdr",
        "f_READ-MODIFY-WRITE.hdr",
        "f_Intended-READ.hdr",
        "f_Intended-UPDATE.hdr",
        "f_Intended-READ-MODIFY-WRITE.hdr",
    )


def test_a_server_is_told_its_consistency() -> None:
    told = properties(measured(A, SERVED))
    assert told["db"] == "iolab.ycsb.CqlBinding"
    assert told["iolab.hosts"] == "127.0.0.1:9042"
    assert (told["iolab.keyspace"], told["iolab.consistency"]) == ("iolab", "QUORUM")
    with pytest.raises(EngineError, match="no address"):
        measured(A, replace(SERVED, addresses=()))


def test_clients_share_a_load() -> None:
    command = database_fill_command(
        A, EMBEDDED, KIT, "/scratch", first=5000, count=5000, thread_count=16, seconds=60
    )
    told = properties(command)
    assert (told["insertstart"], told["insertcount"]) == ("5000", "5000")
    assert told["recordcount"] == "20000"
    assert told["iolab.create"] == "true"
    assert command.argv[command.argv.index("-threads") + 1] == "16"
    assert "-load" in command.argv
    served = database_fill_command(
        A, SERVED, KIT, "/scratch", first=0, count=3, thread_count=16, seconds=60
    )
    # YCSB would say so and start as many threads as records; the job must say what it does.
    assert served.argv[served.argv.index("-threads") + 1] == "3"
    assert "iolab.create" not in properties(served)


@pytest.mark.parametrize(("first", "count"), [(0, 0), (0, 20_001), (20_000, 1), (-1, 5)])
def test_a_share_lies_within_the_records(first: int, count: int) -> None:
    with pytest.raises(EngineError, match="are not among the job's 20000"):
        database_fill_command(
            A, EMBEDDED, KIT, "/s", first=first, count=count, thread_count=1, seconds=9
        )


def test_loading_and_measuring_speak_of_the_same_records() -> None:
    load = properties(
        database_fill_command(
            A, EMBEDDED, KIT, "/s", first=0, count=20_000, thread_count=1, seconds=9
        )
    )
    measure = properties(measured(A))
    same = ("recordcount", "fieldcount", "fieldlength", "insertorder", "table", "db", "workload")
    assert {name: load[name] for name in same} == {name: measure[name] for name in same}


def test_zipfian_inserts_ask_for_no_more_operations_than_there_can_be() -> None:
    """YCSB draws from as many further keys as a tenth of these operations would insert."""
    mixed = replace(A, mix=((READ, 0.95), (INSERT, 0.05)), distribution=KeyDistribution.ZIPFIAN)
    assert int(properties(measured(mixed))["operationcount"]) == 2_000_000
    rated = replace(mixed, rate_ops_per_s=1000)
    assert int(properties(measured(rated))["operationcount"]) == 10_000


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        (((READ, 0.5), (KeyOperation.DELETE, 0.5)), "makes no delete"),
        (((READ, 0.5), (RMW, 0.4)), "add up to 0.9"),
        (((READ, 1.5), (RMW, -0.5)), "add up to 1"),
    ],
)
def test_a_mix_that_ycsb_cannot_be_told(
    mix: tuple[tuple[KeyOperation, float], ...], message: str
) -> None:
    with pytest.raises(EngineError, match=message):
        measured(replace(A, mix=mix))


def test_options_reach_ycsb_the_binding_or_java() -> None:
    options = (("cache_bytes", "1024"), ("heap", "300m"), ("maxscanlength", "7"))
    command = measured(replace(A, options=options))
    told = properties(command)
    assert told["iolab.cache_bytes"] == "1024"
    assert told["maxscanlength"] == "7"
    assert "-Xmx314572800" in command.argv
    assert "heap" not in told
    assert "cache_bytes" not in told


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("db", "site.ycsb.BasicDB"), "no allowed option 'db'"),
        (("hdrhistogram.output.path", "/etc/x"), "no allowed option"),
        (("requestdistribution", "zipfian"), "no allowed option"),
        (("heap", "1g -XX:OnError=x"), "cannot be"),
        (("direct_reads", "yes"), "cannot be 'yes'"),
        (("maxscanlength", "1\n"), "cannot be"),
    ],
)
def test_options_that_are_not_allowed(option: tuple[str, str], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        measured(replace(A, options=(option,)))


def test_bounded_memory_leaves_room_beside_the_heap() -> None:
    bounded = measured(replace(A, memory_bytes=400 << 20))
    assert bounded.memory_limit_bytes == 400 << 20
    assert f"-Xmx{100 << 20}" in bounded.argv
    assert f"-Xmx{64 << 20}" in measured(replace(A, memory_bytes=100 << 20)).argv
    assert measured(A).memory_limit_bytes is None


def test_nothing_is_left_outside_of_the_directory() -> None:
    argv = measured(A).argv
    assert "-Djava.io.tmpdir=/scratch" in argv
    assert "-XX:-UsePerfData" in argv
    assert "-XX:+ExitOnOutOfMemoryError" in argv


def test_rocksdb_is_loaded_from_where_the_kit_lies() -> None:
    jars = (*KIT.classpath, "/kit/rocksdbjni-7.8.3.jar")
    argv = build_measurement_command(
        A,
        EMBEDDED,
        java_kit_of_jars("java", jars, user_ycsb_folder="/y"),
        "/s",
        seconds=1,
        log_prefix="",
    ).argv
    assert "-Djava.library.path=/kit" in argv


def test_the_users_own_ycsb_runs_with_our_bindings() -> None:
    kit = java_kit_of_jars(
        "/opt/java/bin/java", KIT.classpath, user_ycsb_folder="/opt/ycsb-0.17.0/"
    )
    assert kit.classpath == ("/kit/iolab-ycsb.jar", "/opt/ycsb-0.17.0/lib/*")
    assert java_kit_of_jars("java", KIT.classpath) == KIT
    argv = build_measurement_command(A, EMBEDDED, kit, "/s", seconds=1, log_prefix="").argv
    assert argv[0] == "/opt/java/bin/java"
    assert argv[argv.index("-cp") + 1] == "/kit/iolab-ycsb.jar:/opt/ycsb-0.17.0/lib/*"


def test_a_database_is_settled_with_the_options_it_was_loaded_with() -> None:
    job = replace(A, options=(("block_bytes", "16384"), ("maxscanlength", "7")))
    settled = rocksdb_contents_command(job, EMBEDDED, KIT, "/scratch", does_compact_first=True).argv
    assert settled[-4:] == (
        "iolab.ycsb.RocksTool",
        "settle",
        "iolab.block_bytes=16384",
        "iolab.database=/scratch/db",
    )
    looked = rocksdb_contents_command(A, EMBEDDED, KIT, "/scratch", does_compact_first=False).argv
    assert "settle" not in looked
