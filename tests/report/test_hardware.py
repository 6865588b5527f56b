"""The tables of what hosts are."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.host import MachineFacts
from iolab.report.hardware import group_identical_hosts, hardware_tables, host_table
from tests.report.machines import facts_of
from tests.report.studies import one_configuration
from tests.report.synthetic import study_of

EC2 = MachineFacts("Amazon EC2", "i4i.2xlarge", "i-1")


def test_the_machine_stands_in_a_hosts_table_where_it_is_told() -> None:
    untold = facts_of("a")
    told = replace(untold, machine=EC2)
    rows = {cells[0].text: cells[1].text for cells in host_table(told).rows}
    assert rows["Machine"] == "Amazon EC2 i4i.2xlarge"
    assert "Machine" not in {cells[0].text for cells in host_table(untold).rows}


def test_instances_of_two_types_stand_side_by_side() -> None:
    small = replace(EC2, product="i4i.xlarge")
    facts = {
        name: replace(facts_of(name), machine=machine)
        for name, machine in (("a", EC2), ("b", EC2), ("c", small))
    }
    study = study_of("s", "S", "?", one_configuration(*facts), ())
    (table,) = hardware_tables(study, facts)
    (row,) = (cells for cells in table.rows if cells[0].text == "Machine")
    assert row[1].text == "Amazon EC2 i4i.2xlarge (a and b); Amazon EC2 i4i.xlarge (c)"
    assert [names for names, _ in group_identical_hosts(facts)] == [["a", "b"], ["c"]]
