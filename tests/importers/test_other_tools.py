"""GPU storage, Ceph, fleets of virtual machines, language models: figures as they are printed."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.importers.files import read_foreign_files
from iolab.importers.foreign_run import ForeignRun, OperationFigures
from iolab.importers.registry import IMPORTERS
from iolab.units import GIB, MIB
from tests.importers.importing import LEVELS, found_in, lay_down, results
from tests.recorded import recorded


def runs_of(folder: Path, *names: str) -> list[ForeignRun]:
    found = found_in(folder, *names)
    assert not found.faults
    assert not found.unknown_files
    return [run for _, run in found.runs]


def only_figures(run: ForeignRun) -> OperationFigures:
    (client,) = run.clients
    return client.details.figures[0]


def test_gdsio_lines(tmp_path: Path) -> None:
    read, write, cpu = runs_of(tmp_path, "import/gpu/gdsio.txt")
    figures = only_figures(read)
    assert (figures.operation, figures.count, figures.bytes) == ("read", 62_960, 16_117_760 << 10)
    assert figures.bw_bytes_per_s == pytest.approx(1.564272 * GIB)
    assert figures.lat_mean_ns == pytest.approx(155_969.457)
    assert figures.seconds == 9.826353
    assert figures.rate_per_s == pytest.approx(62_960 / 9.826353)
    assert only_figures(write).operation == "write"
    assert (write.in_flight, read.details.buffered, cpu.details.buffered) == (4, False, None)
    assert dict(cpu.settings)["XferType"] == "CPUONLY"


def test_gdsio_lines_that_a_terminal_broke(tmp_path: Path) -> None:
    text = recorded("import/gpu/gdsio.txt").decode().replace(" Throughput:", "\nThroughput:")
    path = tmp_path / "gdsio.log"
    path.write_text(text)
    found = read_foreign_files([path], IMPORTERS)
    assert len(found.runs) == 3
    assert not found.left_out_lines


def test_gdsio_batches_have_a_depth(tmp_path: Path) -> None:
    path = tmp_path / "gdsio.log"
    path.write_text(
        "IoType: WRITE XferType: GPU_BATCH Threads: 1 IoDepth: 10 DataSetSize: 80/80(KiB) "
        "IOSize: 4(KiB) Throughput: 0.010523 GiB/sec, Avg_Latency: 3476.650000 usecs ops: 20 "
        "total_time 0.007250 secs\n"
    )
    ((_, run),) = read_foreign_files([path], IMPORTERS).runs
    assert dict(run.settings)["IoDepth"] == "10"
    assert run.in_flight is None
    figures = only_figures(run)
    assert (figures.count, figures.bytes, figures.lat_mean_ns) == (20, 80 << 10, 3_476_650)


def test_nixlbench_rows_with_their_configuration(tmp_path: Path) -> None:
    first, _, large = runs_of(tmp_path, "import/gpu/nixlbench-write.txt")
    figures = only_figures(first)
    assert figures.operation == "write"
    assert figures.bw_bytes_per_s == pytest.approx(0.958841e9)
    assert figures.lat_mean_ns == pytest.approx(4300)
    assert dict(first.settings)["backend"] == "POSIX"
    assert (first.indicator, large.indicator) == ("iops", "bandwidth")


def test_nixlbench_in_a_log_of_ci_and_of_an_older_version(tmp_path: Path) -> None:
    old, _ = runs_of(tmp_path, "import/gpu/nixlbench-legacy.txt")
    assert only_figures(old).bw_bytes_per_s == pytest.approx(0.193457e9)
    lines = recorded("import/gpu/nixlbench-write.txt").decode().splitlines()
    path = tmp_path / "ci.log"
    path.write_text("\n".join(f"[2026-07-28T10:17:33.487Z] {line}" for line in lines))
    found = read_foreign_files([path], IMPORTERS)
    assert len(found.runs) == 3
    assert not found.left_out_lines


def test_nixlbench_with_fewer_columns_and_indented(tmp_path: Path) -> None:
    path = tmp_path / "guide.txt"
    path.write_text(
        "    Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)  P99 Tx (us)\n"
        f"    {'-' * 80}\n"
        "    4096                1              0.670064       6.1            47.0\n"
    )
    found = read_foreign_files([path], IMPORTERS)
    ((_, run),) = found.runs
    assert only_figures(run).bw_bytes_per_s == pytest.approx(0.670064e9)
    assert only_figures(run).lat_mean_ns == pytest.approx(6100)
    assert not found.left_out_lines


def test_rados_bench_writes_and_reads(tmp_path: Path) -> None:
    write, read = runs_of(tmp_path, "import/ceph/output.0.c1")
    figures = only_figures(write)
    assert (figures.count, figures.bytes, figures.seconds) == (544, 544 << 22, 10.32)
    assert figures.bw_bytes_per_s == pytest.approx(210.854 * MIB)
    assert (figures.lat_mean_ns, figures.lat_max_ns) == (300_001_000, 862_328_000)
    assert (write.in_flight, read.in_flight) == (16, None)
    assert figures.rate_per_s == pytest.approx(544 / 10.32), "and not the printed 52"
    assert only_figures(read).operation == "read"
    for name in (
        "import/ceph/output.0.c1",
        "import/gpu/gdsio.txt",
        "import/gpu/nixlbench-write.txt",
    ):
        judged = results(tmp_path, name)
        assert {LEVELS[one.verdict.level] for one in judged.values()} == {"indicative"}, name


RADOS_BEFORE_JEWEL = """\
    11      16        80        64   23.2657         4   3.54682   2.15723
    12      15        80        65   21.6604         4   3.15252   2.17254
 Total time run:         12.499256
Total writes made:      80
Write size:             4194304
Bandwidth (MB/sec):     25.602\x20

Stddev Bandwidth:       16.0831
Average Latency:        2.48922
Max latency:            6.14039
Min latency:            0.088134
"""


def test_rados_bench_as_it_printed_before_jewel(tmp_path: Path) -> None:
    path = tmp_path / "bench.log"
    path.write_text(RADOS_BEFORE_JEWEL)
    found = read_foreign_files([path], IMPORTERS)
    ((_, run),) = found.runs
    figures = only_figures(run)
    assert (figures.count, figures.seconds) == (80, 12.499256)
    assert figures.bw_bytes_per_s == pytest.approx(25.602 * MIB)
    assert (figures.lat_mean_ns, figures.lat_max_ns) == (2_489_220_000, 6_140_390_000)
    assert not found.left_out_lines


def test_rados_bench_as_json(tmp_path: Path) -> None:
    path = tmp_path / "write.json"
    document = {
        "concurrent_ios": "16",
        "op_size": "4194304",
        "datas": [{"sec": "0"}],
        "total_time_run": "10.320000",
        "total_writes_made": "544",
        "write_size": "4194304",
        "object_size": "4194304",
        "bandwidth": "210.854000",
        "average_iops": "52",
        "average_latency": "0.300001",
        "max_latency": "0.862328",
    }
    path.write_text(json.dumps(document))
    found = read_foreign_files([path], IMPORTERS)
    ((_, run),) = found.runs
    figures = only_figures(run)
    assert (figures.count, figures.bytes, figures.seconds) == (544, 544 << 22, 10.32)
    assert (figures.lat_mean_ns, figures.lat_max_ns) == (300_001_000, 862_328_000)
    assert run.in_flight == 16
    assert not found.left_out_lines


def test_the_json_of_cbt_counts_once_beside_its_text(tmp_path: Path) -> None:
    (alone,) = runs_of(tmp_path, "import/ceph/json_output.0.c1")
    assert only_figures(alone).lat_mean_ns == 300_001_000
    both = runs_of(tmp_path, "import/ceph/output.0.c1", "import/ceph/json_output.0.c1")
    assert len(both) == 2


def test_hcibench_of_fio_and_of_vdbench(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, "import/fleets/hcibench-fio-res.txt")
    mixed, write = run.clients[0].details.figures
    assert (mixed.operation, mixed.rate_per_s) == ("mixed", 26_833.38)
    assert mixed.bw_bytes_per_s == 107 * MIB
    assert (write.operation, write.lat_mean_ns, write.weight) == ("write", 11_280_000, 0)
    (early,) = runs_of(tmp_path, "import/fleets/hcibench-vdbench-res.txt")
    assert only_figures(early).lat_mean_ns == 3_020_000
    assert "7 out of 8" in early.clients[0].details.errors[0]
    assert early.details.version == "vdbench50407"


def test_vmfleet_sweeps_and_single_vms(tmp_path: Path) -> None:
    baseline, limited = runs_of(tmp_path, "import/fleets/result.tsv")
    read, write = baseline.clients[0].details.figures
    assert (read.rate_per_s, read.bw_bytes_per_s) == (28_672, 117_440_512)
    assert (write.lat_mean_ns, write.percentiles) == (1_250_000, ())
    assert dict(limited.settings)["QOSperVM"] == "500"
    (vm,) = runs_of(tmp_path, "import/fleets/result-vm-a.tsv")
    (read,) = vm.clients[0].details.figures
    assert read.percentiles == ((50.0, 400_000), (90.0, 900_000), (99.0, 2_500_000))


def test_a_table_of_vmfleet_with_an_endless_cell_is_refused(tmp_path: Path) -> None:
    (path,) = lay_down(tmp_path, "import/fleets/result.tsv")
    path.write_bytes(path.read_bytes() + b"x" * 200_000)
    found = read_foreign_files([path], IMPORTERS)
    assert not found.runs
    assert "no table" in str(found.faults)
    path.write_bytes(recorded("import/fleets/result.tsv").replace(b"\t", b"\t\r", 90))
    outcome = read_foreign_files([path], IMPORTERS)
    assert "universal-newline" not in str(outcome.faults)


def test_aiperf_requests_and_first_tokens(tmp_path: Path) -> None:
    found = found_in(tmp_path, "import/aiperf/profile_export_aiperf.json")
    ((_, run),) = found.runs
    request, token = run.clients[0].details.figures
    assert (request.count, request.rate_per_s, request.failed) == (340, 3.4, 2)
    assert dict(request.percentiles)[99.0] == 4_100_000_000
    assert token.lat_mean_ns == pytest.approx(255_886_568)
    assert run.in_flight == 16
    assert {entry.first_line for entry in found.left_out_lines} != set()


def test_a_concurrency_beyond_all_bounds_is_refused(tmp_path: Path) -> None:
    document = json.loads(recorded("import/aiperf/profile_export_aiperf.json"))
    document["input_config"]["loadgen"]["concurrency"] = "9" * 30
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document))
    found = read_foreign_files([path], IMPORTERS)
    assert not found.runs
    assert "in flight" in str(found.faults)


@pytest.mark.parametrize(
    ("packer", "compress"),
    [
        ("gzip", gzip.compress),
        ("bzip2", bz2.compress),
        ("xz", lzma.compress),
    ],
    ids=["gzip", "bzip2", "xz"],
)
def test_files_that_others_compressed_are_named(
    packer: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(compress(b"text"))
    (fault,) = read_foreign_files([path], IMPORTERS).faults
    assert packer in fault.message


def test_aiperf_phases_are_options_of_the_load(tmp_path: Path) -> None:
    document = json.loads(recorded("import/aiperf/profile_export_aiperf.json"))
    for name, concurrency in (("low", 8), ("high", 400)):
        document["input_config"] = {
            "models": {"items": [{"name": "Qwen/Qwen3-0.6B"}]},
            "endpoint": {"urls": ["http://host:8000"], "streaming": True, "api_key": "secret"},
            "datasets": [{"name": "default", "type": "synthetic", "path": "/data"}],
            "phases": [
                {"name": "warmup", "concurrency": 2, "requests": 10},
                {"name": "profiling", "concurrency": concurrency, "requests": concurrency},
            ],
        }
        document["is_complete"] = name == "low"
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    found = read_foreign_files(sorted(tmp_path.iterdir()), IMPORTERS)
    high, low = (run for _, run in found.runs)
    assert (high.name, high.in_flight, low.in_flight) == ("AIPerf Qwen/Qwen3-0.6B", 400, 8)
    assert dict(low.load_settings)["phases.1.concurrency"] == 8
    assert "phases.1.requests" not in dict(low.load_settings)
    assert not {"secret", "/data", "http://host:8000"} & set(dict(low.settings).values())
    assert (bool(high.clients[0].details.errors), low.clients[0].details.errors) == (True, ())


@pytest.mark.parametrize(
    "name",
    [
        "import/gpu/nixlbench-write.txt",
        "import/ceph/output.0.c1",
        "import/fleets/hcibench-fio-res.txt",
        "import/fleets/result.tsv",
        "import/aiperf/profile_export_aiperf.json",
    ],
)
def test_a_cut_file_is_refused_or_read_as_far_as_it_goes(name: str, tmp_path: Path) -> None:
    (path,) = lay_down(tmp_path, name)
    whole = path.read_bytes()
    for share in range(1, 10):
        path.write_bytes(whole[: len(whole) * share // 10])
        found = read_foreign_files([path], IMPORTERS)
        assert found.runs or found.faults
