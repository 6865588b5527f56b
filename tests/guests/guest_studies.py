"""Studies of guests for tests: booted on two nodes, and such that exist already."""

from __future__ import annotations

from iolab.core.study import Study
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides
from tests.plans import parse_study
from tests.study.studies import FILE

LOADS = """\
[[workload]]
id = "w"
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = [1, 8]
filesize = "16m"
vms_per_node = [1, 2, 3]
"""
"""Six points."""

NODES = """\
[[host]]
name = "node-1"
role = "hypervisor"
[[host]]
name = "node-2"
role = "hypervisor"
"""

VM = '[vm]\nvcpus = 2\nmemory = "256m"\ndisk = "64m"\n'

FLEET = f'format = 1\nid = "fleet"\n{LOADS}{NODES}{VM}'
"""Three guests on each of two nodes. `[vm]` is line 17."""

GUESTS = """\
format = 1
[defaults]
path = "/data"
[[host]]
name = "hv-[1-2]"
role = "hypervisor"
[[host]]
name = "hv-[1-2]-g[1-3]"
node = "hv-[1-2]"
"""
"""An inventory of as many that exist already."""


def with_hosts(text: str, inventory: str = GUESTS, path: str | None = None) -> Study:
    """The study on the hosts of an inventory."""
    options = StudyOverrides(path, inventory=Inventory(inventory, "fleet.toml"))
    return parse_study(text, FILE, options)
