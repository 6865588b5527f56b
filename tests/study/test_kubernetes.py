"""`[kubernetes]`: what it stands for, and what is wrong with it, before any cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.core.study import Study
from iolab.errors import Fault, StudyError
from iolab.loads.metadata.workload import MetadataJob
from iolab.study.inventory import Inventory
from iolab.study.kubernetes import unique_short_storage_class_names, volume_size_bytes
from iolab.study.parse import StudyOverrides
from tests.plans import parse_study
from tests.study.studies import SMALL

STUDIES = Path(__file__).resolve().parents[2] / "studies"

TABLE = """
[kubernetes]
storage_class = ["fast", "rook.ceph-block"]
pods = 2
volume = "20Gi"
name = "iolab-1"
context = "lab"
node_selector = "disk=ssd"
"""


def study(*sets: str, table: str = TABLE, inventory: Inventory | None = None) -> Study:
    overrides = StudyOverrides(set_arguments=sets, inventory=inventory)
    return parse_study(SMALL + table, "s.toml", overrides)


def faults(*sets: str, table: str = TABLE) -> tuple[Fault, ...]:
    with pytest.raises(StudyError) as raised:
        study(*sets, table=table)
    return raised.value.faults


def test_each_class_is_a_configuration_of_pods_that_kubectl_reaches() -> None:
    made = study()
    assert [(item.id, item.hosts) for item in made.configurations] == [
        ("fast", ("fast-0", "fast-1")),
        ("rook.ceph-block", ("rook-ceph-block-0", "rook-ceph-block-1")),
    ]
    assert made.host("rook-ceph-block-1").command_prefix == (
        *("kubectl", "--context=lab", "exec", "--stdin", "--namespace=iolab", "--container=load"),
        *("iolab-1-rook-ceph-block-1", "--"),
    )
    assert {item.path for item in made.configurations} == {"/data"}
    assert made.kubernetes is not None
    assert made.kubernetes.volume_bytes == 20 << 30
    assert made.kubernetes.node_selector == (("disk", "ssd"),)


def test_a_configuration_of_that_name_keeps_what_it_says_of_cost() -> None:
    own = (
        '[[configuration]]\nid = "fast"\ntitle = "Fast"\nhardware.price = "0.12 EUR a GiB-month"\n'
    )
    first, second = study(table=TABLE + own).configurations
    assert (first.title, first.hardware) == ("Fast", (("price", "0.12 EUR a GiB-month"),))
    assert second.title == "rook.ceph-block"


def test_a_price_becomes_the_monthly_cost_of_the_volumes() -> None:
    made = study("kubernetes.price=fast=0.17EUR")
    first, second = made.configurations
    assert first.cost is not None
    assert (first.cost.currency, round(first.cost.total, 6)) == ("EUR/month", 6.8)
    assert second.cost is None
    shared = study("kubernetes.price=fast=0.17EUR", "kubernetes.access=RWX")
    assert shared.configurations[0].cost is not None
    assert round(shared.configurations[0].cost.total, 6) == 3.4
    (fault,) = faults("kubernetes.price=fats=1EUR")
    assert "'fats'" in fault.message
    (fault,) = faults("kubernetes.price=fast=1EUR,fast=2EUR")
    assert fault.message == "price has 2 prices of the class 'fast'."


@pytest.mark.parametrize(("access", "shift"), [("RWO", 0), ("RWX", 136)])
def test_pods_with_volumes_of_their_own_work_on_the_files_that_they_made(
    access: str, shift: int
) -> None:
    """The bundled study has clients read what their neighbours made, on one file system of all."""
    text = (STUDIES / "cluster-kpi.toml").read_text(encoding="utf-8")
    values = {"storage_class": "fast", "pods": 3, "volume": "20Gi", "access": access}
    sets = tuple(f"kubernetes.{key}={value}" for key, value in values.items())
    made = parse_study(text, "cluster-kpi", StudyOverrides(set_arguments=sets))
    (job,) = (item.job for item in made.workloads if isinstance(item.job, MetadataJob))
    assert job.rank_shift == shift


def test_hosts_that_are_there_take_the_place_of_pods() -> None:
    text = 'format = 1\n[defaults]\npath = "/mnt"\n[[host]]\nname = "a"\nkind = "local"\n'
    made = study(inventory=Inventory(text, "hosts.toml"))
    assert [spec.name for spec in made.hosts] == ["a"]
    assert made.kubernetes is None


def test_a_block_volume_is_a_device() -> None:
    made = study("kubernetes.volume_mode=block")
    assert {item.path for item in made.configurations} == {"/dev/iolab"}
    assert all(item.serial for item in made.configurations)


@pytest.mark.parametrize(
    ("assignment", "key"),
    [
        ("storage_class=Fast", "storage_class"),
        ("storage_class=a;b", "storage_class"),
        ("storage_class=a,a", "storage_class"),
        ("pods=0", "pods"),
        ("pods=1001", "pods"),
        ("volume=20GiX", "volume"),
        ("volume=1k", "volume"),
        ("volume_mode=raw", "volume_mode"),
        ("access=ROX", "access"),
        ("node_selector=ssd", "node_selector"),
        ("node_selector=disk=a b", "node_selector"),
        ("image=-rm", "image"),
        ("image=a b", "image"),
        ("namespace=Kube", "namespace"),
        ("namespace=-n", "namespace"),
        ("context=--kubeconfig", "context"),
        ("name=Iolab", "name"),
        ("name=1", "name"),
        ("cpu=-1", "cpu"),
        ("memory=4gib", "memory"),
        ("wait=0", "wait"),
        ("price=fast", "price"),
        ("price=fast=0.17 euros", "price"),
    ],
)
def test_a_value_that_does_not_do_is_named(assignment: str, key: str) -> None:
    (fault,) = faults(f"kubernetes.{assignment}")
    assert fault.message.startswith(f"{key} of [kubernetes] ")
    assert fault.hint


def test_all_faults_are_told_at_once() -> None:
    told = faults("kubernetes.pods=0", "kubernetes.image=-x", "kubernetes.storage_class=A")
    assert len(told) == 3


def test_what_is_missing_is_told_and_no_target_is_missed() -> None:
    (fault,) = faults(table='[kubernetes]\nstorage_class = "a"\n')
    assert fault.message == "[kubernetes] has no volume."


@pytest.mark.parametrize(
    ("text", "count"),
    [("20Gi", 20 << 30), ("1Ti", 1 << 40), ("20g", 20 << 30), ("512Mi", 512 << 20), ("4096", 4096)],
)
def test_sizes_are_read_as_kubernetes_writes_them(text: str, count: int) -> None:
    assert volume_size_bytes(text) == count


def test_classes_that_look_alike_have_names_of_their_own() -> None:
    long = "a-class-with-a-name-longer-than-twenty"
    names = unique_short_storage_class_names(["a.b", "a-b", f"{long}-1", f"{long}-2"])
    assert len(set(names)) == 4
    assert all(len(name) <= 20 for name in names)
