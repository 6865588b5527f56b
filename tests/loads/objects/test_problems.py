"""What studies of objects are refused for, and what plans of them tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.core.object_store import EndpointChoice
from iolab.errors import StudyError
from iolab.loads.objects.workload import ObjectsJob
from iolab.registry import study_kinds
from iolab.study.parse import StudyOverrides, parse_study
from tests.cli.command_line import iolab
from tests.facts import tells

HEAD = """
format = 1
id = "objects"
[target]
endpoint = ["http://127.0.0.1:9000", "http://127.0.0.2:9000"]
bucket = "tests"
"""
LOAD = """
[[workload]]
id = "w"
engine = "s3"
get = 70
put = 30
objects = 1000
size = "64k"
"""


def faults(text: str) -> str:
    """Every fault of a study, one a line."""
    with pytest.raises(StudyError) as raised:
        parse_study(text, "study.toml", StudyOverrides(), study_kinds())
    return "\n".join(f"{fault.message} {fault.hint}" for fault in raised.value.faults)


def test_a_study_without_a_path_is_one() -> None:
    study = parse_study(HEAD + LOAD, "study.toml", StudyOverrides(), study_kinds())
    (configuration,) = study.configurations
    store = configuration.object_store
    assert configuration.path == ""
    assert store is not None
    assert store.endpoints_of_host(5) == store.endpoints
    assert store.spread is EndpointChoice.ALL
    job = ObjectsJob.require_type(study.workloads[0].job)
    assert job.operation_weights == (("get", 70), ("put", 30))
    assert job.object_bytes == 65536


def test_endpoints_go_round_hosts_where_each_has_one() -> None:
    text = HEAD + 'endpoint_use = "one-per-host"\n' + LOAD
    study = parse_study(text, "study.toml", StudyOverrides(), study_kinds())
    store = study.configurations[0].object_store
    assert store is not None
    assert [store.endpoints_of_host(place)[0][-14:-5] for place in range(3)] == [
        "127.0.0.1",
        "127.0.0.2",
        "127.0.0.1",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("get = 70\nput = 30\n", "", ("no operation",)),
        ('size = "64k"', "", ("no size",)),
        ('size = "64k"', 'size = "64k"\nsizes = ["4k:1"]', ("size and sizes",)),
        ('size = "64k"', 'sizes = ["4k"]', ("4k", "64k:30")),
        ("get = 70\n", "get_range = 70\n", ("range = 1m", "64 KiB")),
        ("put = 30", 'put = 30\narrivals = "fixed"', ("no rate",)),
        ("put = 30", "delete = 30", ("delete", "no put")),
        ("put = 30", "read_back = true", ("read_back", "no put")),
        ("put = 30", 'put = 30\nread_back = true\nput_keys = "overwrite"', ("overwrite",)),
        ("put = 30", "put = 30\ndelete = 5\nread_back = true", ("delete", "removes")),
        ("put = 30", 'put = 30\nobjective = "max-load"\nlimit = "p99 <= 2ms"', ("max-load",)),
        ('size = "64k"', 'size_median = "1k"\nsize_min = "4k"', ("size_median", "4k")),
        ('size = "64k"', 'size = "5t"\npart = "5m"', ("1,048,576", "parts")),
        ('bucket = "tests"', "", ("endpoint", "no bucket")),
        ('bucket = "tests"', 'bucket = "No_Bucket"', ("No_Bucket",)),
        ("http://127.0.0.1:9000", "http://a:b@127.0.0.1:9000", ("password", "environment")),
        ("http://127.0.0.1:9000", "ftp://127.0.0.1", ("ftp", "https")),
        ("http://127.0.0.1:9000", "http://127.0.0.1/path", ("127.0.0.1/path",)),
    ],
)
def test_each_fault_is_named_with_its_value(old: str, new: str, words: tuple[str, ...]) -> None:
    text = HEAD + LOAD
    assert old in text
    told = faults(text.replace(old, new, 1))
    assert all(word in told for word in words), told


def test_a_study_of_objects_asks_for_a_store_and_one_of_files_for_a_path() -> None:
    without = 'format = 1\nid = "objects"\n'
    assert tells(faults(without + LOAD), "no object store", "target.endpoint")
    assert "no target path" not in faults(without + LOAD)
    files = '[[workload]]\nid = "f"\nengine = "fio"\nrw = "read"\nbs = "4k"\nfilesize = "1g"\n'
    both = faults(HEAD + LOAD + files)
    assert "no target path" in both
    assert "no object store" not in both


def test_a_plan_tells_requests_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(HEAD + LOAD)
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    done = iolab("plan", path, env=keys)
    assert done.returncode == 0, done.stderr
    assert "1,000 PUT, 16 LIST and 1,000 DELETE requests" in " ".join(done.stdout.split())
    assert "bucket tests" in done.stdout
