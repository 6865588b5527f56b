"""A session on fake nodes that boot fake guests."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from iolab.core.host import ToolFacts
from tests.fakes.guests import FakeNodeAgent, FakeQemu
from tests.fakes.machine import machine_facts
from tests.fakes.script import FakeGuest, FakeScript
from tests.session.stage import Stage

STUDY = """
format = 1
id = "fleet"
title = "A fleet"
question = "How many?"

[target]
path = "/mnt/bench"

[vm]
vcpus = 1
memory = "192m"
disk = "64m"
boot_limit = "60s"
{vm}

[[host]]
name = "node-[1-2]"
kind = "command"
command = ["reach"]
role = "hypervisor"

[[configuration]]
id = "cluster"
title = "Two nodes"

[[workload]]
id = "mix"
title = "Mix"
engine = "fio"
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = 4
numjobs = 1
filesize = "16m"
vms_per_node = {per_node}

[method]
warmup = "1s"
runtime = "4s"
repeats = 1
settle = "0s"
order = "as-written"
{method}
"""

Boots = Callable[[str, int], FakeGuest]
NODES = ("node-1", "node-2")


def well(_: str, __: int) -> FakeGuest:
    """Every boot goes well, with KVM too."""
    return FakeGuest()


def emulated(name: str, _: int) -> FakeGuest:
    """Every boot goes well, but with KVM none does."""
    return FakeGuest(hangs=name == "kvm-trial")


def node_script(boots: Boots = well, **more: object) -> FakeScript:
    """A node with all that it needs to boot guests."""

    facts = machine_facts("/mnt/bench")
    tools = (*facts.tools, ToolFacts("qemu-system-x86_64", "/usr/bin/qemu-system-x86_64", "7.2"))
    script = FakeScript(facts=replace(facts, tools=tools), guests=boots)
    return replace(script, **more)


def fleet(
    boots: Boots = well,
    *,
    per_node: str = "[1, 2]",
    vm: str = "",
    method: str = "",
    **more: object,
) -> Stage:
    """A session on two nodes, not played yet."""
    text = STUDY.format(vm=vm, per_node=per_node, method=method)
    scripts = {name: node_script(boots, **more) for name in NODES}
    return Stage(scripts, text=text, again={})


def boots_of(stage: Stage, node: str) -> list[FakeQemu]:
    """Every boot on a node, in order."""
    agent = stage.hosts[node].agent
    assert isinstance(agent, FakeNodeAgent)
    return agent.booted
