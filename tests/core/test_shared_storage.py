"""Pods on one disk are known by a device of one kernel, or by the handle of a volume."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.kubernetes import PodFacts
from iolab.core.shared_storage import shared_pod_storage
from tests.analysis.records import facts_of


def pod(
    name: str, node: str, *, kernel: str = "", claim: str = "", volume: tuple[str, str] = ("", "")
) -> HostFacts:
    kind, volume_id = volume
    facts = PodFacts(
        *("bench", name, node, "Burstable"),
        claim=claim or f"data-{name}",
        volume_kind=kind,
        volume_id=volume_id,
    )
    return replace(facts_of(kernel or name), pod=facts)


def test_local_volumes_of_one_node_may_be_on_one_disk() -> None:
    a, b = (pod(name, "n1", kernel="n1", volume=("local", f"/disks/{name}")) for name in ("a", "b"))
    (group,) = shared_pod_storage({"a": a, "b": b})
    assert group.hosts == ("a", "b")
    assert not group.is_one_claim
    assert "n1" in group.storage
    assert shared_pod_storage({"a": a, "b": replace(b, kernel=facts_of("n2").kernel)}) == ()


def test_one_handle_is_one_volume_on_any_node() -> None:
    first = pod("a", "n1", volume=("csi.example", "v1"))
    same = pod("b", "n2", volume=("csi.example", "v1"))
    other = pod("c", "n3", volume=("csi.example", "v2"))
    (group,) = shared_pod_storage({"a": first, "b": same, "c": other})
    assert group.hosts == ("a", "b")
    local = [pod(name, f"n-{name}", volume=("local", "/disk")) for name in ("a", "b")]
    assert shared_pod_storage({"a": local[0], "b": local[1]}) == ()


def test_pods_of_one_claim_share_it_on_purpose() -> None:
    volume = ("nfs", "filer:/export")
    pods = {name: pod(name, f"n-{name}", claim="data", volume=volume) for name in ("a", "b")}
    (group,) = shared_pod_storage(pods)
    assert group.is_one_claim


def test_hosts_that_are_no_pods_are_not_asked() -> None:
    facts = {name: facts_of("n1") for name in ("a", "b")}
    assert shared_pod_storage(facts) == ()


def test_scratch_space_of_one_node_is_on_one_disk() -> None:
    scratch = ("emptyDir", "on disk")
    a, b = (replace(pod(name, "n1", volume=scratch), target=None) for name in ("a", "b"))
    (group,) = shared_pod_storage({"a": a, "b": b})
    assert group.storage == "emptyDir on disk of n1"
    assert not group.is_one_claim


def test_nodes_of_one_kernel_are_not_named_by_the_first() -> None:
    a, b = (pod(name, f"n-{name}", kernel="k") for name in ("a", "b"))
    (group,) = shared_pod_storage({"a": a, "b": b})
    assert "n-" not in group.storage
