"""Pods that are selected, those that will not do, and the commands that reach them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import HostError, UsageError
from iolab.study.inventory import (
    PodSelection,
    list_pods_command,
    parse_inventory,
    parse_pod_selection,
    pods_inventory,
)
from tests.study.pods import listing, pod

SELECTION = PodSelection("bench", "app=load")


def specs(*pods: dict[str, Any], selection: PodSelection = SELECTION) -> tuple[HostSpec, ...]:
    inventory = pods_inventory(selection, "lab", json.dumps(listing(*pods)))
    return parse_inventory(inventory.text, inventory.file_name)


def faults(*pods: dict[str, Any], selection: PodSelection = SELECTION) -> list[str]:
    with pytest.raises(HostError) as raised:
        specs(*pods, selection=selection)
    return [fault.message for fault in raised.value.faults] or [raised.value.message]


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("bench/app=load", PodSelection("bench", "app=load")),
        ("bench/app=load@fio", PodSelection("bench", "app=load", "fio")),
        ("b/app.kubernetes.io/name=x,tier in (a, b)", None),
        ("b/!gone,tier!=c@x-1", PodSelection("b", "!gone,tier!=c", "x-1")),
    ],
)
def test_a_selection_is_read(text: str, selection: PodSelection | None) -> None:
    expected = selection or PodSelection("b", "app.kubernetes.io/name=x,tier in (a, b)")
    assert parse_pod_selection(text) == expected
    assert str(expected) == f"k8s:{text}"


@pytest.mark.parametrize(
    "text",
    [
        *("", "bench", "bench/", "/app=load", "Bench/app=load", "-n/app=load", "bench/a;b"),
        *("bench/$(id)", "bench/a\nb", "bench/app=load@", "bench/app=load@-c", "bench/app=a@b@c"),
        *("bench/\x1b[2J", "bench/ ", "b" * 64 + "/a", "bench/" + "a" * 2000, "bench/`id`"),
    ],
)
def test_what_is_no_selection_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="selects no pods") as raised:
        parse_pod_selection(text)
    assert raised.value.message.isprintable()


def test_a_selector_is_never_an_option_of_its_own() -> None:
    words = list_pods_command(PodSelection("bench", "-A"))
    assert "-A" not in words
    assert "--selector=-A" in words


def test_every_pod_is_a_host_in_the_order_of_its_number() -> None:
    found = specs(pod("load-10"), pod("load-2"), pod("a.b"))
    assert [host.name for host in found] == ["a.b", "load-2", "load-10"]
    command = ("kubectl", "--context=lab", "exec", "--stdin", "--namespace=bench")
    assert found[1] == HostSpec(
        "load-2",
        HostTransport.COMMAND,
        command_prefix=(*command, "--container=main", "load-2", "--"),
    )


def test_without_a_context_none_is_named() -> None:
    text = pods_inventory(SELECTION, None, json.dumps(listing(pod("a")))).text
    assert "context" not in text


def test_pods_that_are_over_are_left_out() -> None:
    over = [pod("a", phase="Succeeded"), pod("b", phase="Failed"), pod("c", deleted=True)]
    assert [host.name for host in specs(*over, pod("d"))] == ["d"]
    assert faults(*over) == ["'k8s:bench/app=load' selects no running pod."]


def test_every_pod_that_is_not_ready_is_named_at_once() -> None:
    assert faults(pod("a", phase="Pending"), pod("b", ready=False), pod("c")) == [
        "Pod 'a' is not ready ('Pending').",
        "Pod 'b' is not ready ('Running').",
    ]


@pytest.mark.parametrize("name", ["-oX", "a;b", "a b", "A", "a\x1b[1m", "$(id)", "", "a/b", "--"])
def test_a_hostile_name_is_refused(name: str) -> None:
    (found,) = faults(pod(name))
    assert "no name of a pod" in found
    assert found.isprintable()


def test_a_name_too_long_for_a_folder_is_refused() -> None:
    (found,) = faults(pod("a" * 63 + ".b"))
    assert found.endswith("has a name of 65 characters.")


def test_the_container_is_the_chosen_the_default_or_the_only_one() -> None:
    default = {"kubectl.kubernetes.io/default-container": "load"}
    chosen = PodSelection("bench", "app=load", "side")
    assert "--container=main" in specs(pod("a"))[0].command_prefix
    assert (
        "--container=load" in specs(pod("a", "side", "load", annotations=default))[0].command_prefix
    )
    two = pod("a", "side", "load", annotations=default)
    assert "--container=side" in specs(two, selection=chosen)[0].command_prefix
    assert faults(pod("a", "side", "load")) == ["Pod 'a' has 2 containers: ['side', 'load']."]
    assert faults(pod("a"), selection=chosen) == ["Pod 'a' has no container 'side', but ['main']."]


def test_an_ephemeral_container_is_entered_where_it_is_named() -> None:
    """A pod whose own containers have no tools gets one beside them by `kubectl debug`."""
    with_tools = pod("a")
    with_tools["spec"]["ephemeralContainers"] = [{"name": "debug"}]
    (plain,) = specs(with_tools)
    assert "--container=main" in plain.command_prefix
    (named,) = specs(with_tools, selection=PodSelection("bench", "app=load", "debug"))
    assert "--container=debug" in named.command_prefix


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"items": [{}]}', '{"items": 3}', "[" * 100_000, "No pods"]
)
def test_what_is_no_list_of_pods_is_told(text: str) -> None:
    with pytest.raises(HostError, match="no list of pods"):
        pods_inventory(SELECTION, "lab", text)
