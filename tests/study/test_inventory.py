"""Inventories: what hosts they give, how they take a study's place, and every fault with a line."""

from __future__ import annotations

import contextlib
import json
import tomllib

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.core.host import HostRole, HostSpec, HostTransport, JumpHost, SshRoute
from iolab.core.study import Study
from iolab.errors import StudyError
from iolab.study.inventory import Inventory, inventory_schema, parse_inventory
from iolab.study.parse import StudyOverrides, overrides_for_resume
from iolab.study.ssh_addresses import parse_jump_host
from tests.plans import make_plan, parse_study
from tests.study.studies import SMALL
from tests.test_repository import ROOT

FLEET = """\
format = 1
[defaults]
user = "bench"
key = "~/.ssh/bench"
path = "/mnt/target"
[[host]]
name = "client[01-03]"
[[host]]
name = "storage[1-2]"
role = "storage"
user = "root"
port = 2222
jump = ["gate", "admin@[2001:db8::1]:2200"]
[[host]]
name = "here"
kind = "local"
[[host]]
name = "pod"
command = ["kubectl", "exec", "-i", "pod-1", "--"]
"""


def hosts(text: str) -> tuple[HostSpec, ...]:
    return parse_inventory(text, "fleet.toml")


def told(text: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        hosts(text)
    return [str(fault) for fault in caught.value.faults]


def one(lines: str) -> str:
    return f"format = 1\n[[host]]\n{lines}\n"


def load(text: str, inventory: str, *sets: str, path: str | None = "/mnt/t") -> Study:
    options = StudyOverrides(path, set_arguments=sets, inventory=Inventory(inventory, "fleet.toml"))
    return parse_study(text, "s.toml", options)


def test_hosts_have_what_they_write_and_else_the_defaults() -> None:
    found = {spec.name: spec for spec in hosts(FLEET)}
    assert list(found) == [
        "client01",
        "client02",
        "client03",
        "storage1",
        "storage2",
        "here",
        "pod",
    ]
    key = "~/.ssh/bench"
    assert found["client02"] == HostSpec(
        "client02",
        HostTransport.SSH,
        path="/mnt/target",
        ssh=SshRoute("client02", user="bench", key=key),
    )
    jump = (JumpHost("gate"), JumpHost("2001:db8::1", "admin", 2200))
    assert found["storage1"].role is HostRole.STORAGE
    assert found["storage1"].ssh == SshRoute("storage1", "root", 2222, jump, key)
    assert found["here"] == HostSpec("here", HostTransport.LOCAL, path="/mnt/target")
    assert found["pod"].transport is HostTransport.COMMAND
    assert found["pod"].ssh is None


def test_names_and_addresses_go_in_step() -> None:
    found = hosts(one('name = "c[09-11]"\naddress = "192.0.2.[9-11]"'))
    assert [(spec.name, spec.ssh.address) for spec in found if spec.ssh] == [
        ("c09", "192.0.2.9"),
        ("c10", "192.0.2.10"),
        ("c11", "192.0.2.11"),
    ]


def test_an_inventory_takes_the_place_of_a_studys_hosts() -> None:
    here = parse_study(SMALL, "s.toml", StudyOverrides("/mnt/t"))
    fleet = load(SMALL, FLEET)
    assert [spec.name for spec in here.hosts] == ["local"]
    assert fleet.hosts == hosts(FLEET)
    assert fleet.configurations[0].hosts == ("client01", "client02", "client03", "here", "pod")
    assert fleet.workloads == here.workloads
    assert len(make_plan(fleet).runs) == len(make_plan(here).runs)


def test_a_resumed_session_finds_the_same_hosts() -> None:
    study = load(SMALL, FLEET, "host.client02.path=/mnt/other")
    assert parse_study(study.text, "study.toml", overrides_for_resume(study)) == study
    assert study.host("client02").path == "/mnt/other"


def test_a_configuration_may_list_ranges() -> None:
    text = SMALL + '[[configuration]]\nid = "a"\nhosts = ["client[01-02]"]\n'
    assert load(text, FLEET).configurations[0].hosts == ("client01", "client02")


def test_a_study_may_hold_ranges_and_ssh_hosts_itself() -> None:
    text = SMALL + '[[host]]\nname = "c[1-2]"\nuser = "bench"\n[[host]]\nname = "c3"\n'
    study = parse_study(text, "s.toml", StudyOverrides("/mnt/t"))
    kinds = {spec.name: spec.transport for spec in study.hosts}
    assert kinds == {"c1": HostTransport.SSH, "c2": HostTransport.SSH, "c3": HostTransport.LOCAL}


def test_faults_of_the_study_and_of_the_inventory_each_name_their_own_line() -> None:
    text = SMALL + '[[configuration]]\nid = "a"\nhosts = ["cleint01", "storage1"]\n'
    with pytest.raises(StudyError) as caught:
        load(text, FLEET + 'usr = "x"\n')
    key, unknown, wrong = map(str, caught.value.faults)
    assert key.startswith("fleet.toml:20: Unknown key 'usr' in host 'pod'.")
    assert unknown.startswith("s.toml:22: hosts of configuration 'a' names 'cleint01'")
    assert wrong.startswith("s.toml:22: hosts of configuration 'a' names 'storage1'")


def test_a_fleet_without_a_client_is_refused() -> None:
    with pytest.raises(StudyError) as caught:
        load(SMALL, one('name = "s1"\nrole = "storage"'))
    assert "has no client" in str(caught.value.faults[0])


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = (
        'format = 2\nhots = 1\n[defaults]\nport = 0\nname = "x"\n[[host]]\nname = "c[3-1]"\n'
        '[[host]]\nname = "-oProxyCommand=reboot"\n[[host]]\nuser = "a b"\n'
    )
    message = [
        "fleet.toml:1: format is 2.",
        "fleet.toml:2: Unknown key 'hots'. Did you mean 'host'?",
        "fleet.toml:4: port of [defaults] is 0.",
        "fleet.toml:5: Unknown key 'name' in [defaults].",
        "fleet.toml:7: name of host 1 is 'c[3-1]'",
        "fleet.toml:9: name of host '-oProxyCommand=reboot' is '-oProxyCommand=reboot'.",
        "fleet.toml:10: Host 2 has no name.",
        "fleet.toml:11: user of host 2 is 'a b'.",
    ]
    assert [
        fault[: len(words)] for fault, words in zip(told(text), message, strict=True)
    ] == message


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('name = "a;reboot"', "name of host 'a;reboot' is 'a;reboot'."),
        ('name = "a\\u001b[31m"', "name of host 1 is 'a\\x1b[31m'."),
        ('name = "$(id)"', "name of host '$(id)' is '$(id)'."),
        ('name = "a b"', "name of host 'a b' is 'a b'."),
        ('name = "a"\naddress = "-oProxyCommand=x"', "address of host 'a' is '-oProxyCommand=x'."),
        ('name = "a"\naddress = "a..b"', "address of host 'a' is 'a..b'."),
        ('name = "a"\naddress = "a\\u202eb"', "address of host 'a' is 'a\\u202eb'."),
        ('name = "a"\naddress = "u@h"', "address of host 'a' is 'u@h'."),
        ('name = "a"\nuser = "-l"', "user of host 'a' is '-l'."),
        ('name = "a"\nuser = "$(id)"', "user of host 'a' is '$(id)'."),
        ('name = "a"\nport = 65536', "port of host 'a' is 65536."),
        ('name = "a"\nport = "22"', "port of host 'a' is '22'."),
        ('name = "a"\njump = "-J"', "jump of host 'a' has '-J'."),
        ('name = "a"\njump = "g:0"', "jump of host 'a' has 'g:0'."),
        ('name = "a"\njump = "g;reboot"', "jump of host 'a' has 'g;reboot'."),
        ('name = "a"\nkey = "id"', "key of host 'a' is 'id'."),
        ('name = "a"\nrole = "clinet"', "role of host 'a' is 'clinet'. Did you mean 'client'?"),
        ('name = "a"\nkind = "shh"', "kind of host 'a' is 'shh'. Did you mean 'ssh'?"),
        ('name = "a"\nkind = "local"\nport = 22', "has port but is of kind 'local'."),
        ('name = "a"\nkind = "ssh"\ncommand = ["x"]', "has a command but is of kind 'ssh'."),
        ('name = "a"\n[[host]]\nname = "a"', "has the name of another at line 3."),
        ('name = "a[1-2]"\n[[host]]\nname = "a2"', "has the name of another at line 3."),
        (
            'name = "a"\naddress = "192.0.2.1"\n[[host]]\nname = "b"\naddress = "192.0.2.1"',
            "Host 'b' is the same machine as 'a'.",
        ),
        ('name = "a[1-3]"\naddress = "192.0.2.[1-2]"', "stands for 3 hosts, its address"),
        ('name = "a[1-1000]"\n[[host]]\nname = "b"', "There are 1001 hosts."),
    ],
)
def test_each_fault_is_told_with_its_value(lines: str, message: str) -> None:
    faults = told(one(lines))
    assert any(message in fault for fault in faults), faults
    assert all(fault.startswith("fleet.toml:") and fault.isprintable() for fault in faults)


@pytest.mark.parametrize("text", ["format = 1\n", "format = 1\nhost = []\n"])
def test_an_inventory_without_hosts_is_a_fault(text: str) -> None:
    assert told(text)[0].startswith("fleet.toml: The inventory has no host.")


def test_what_is_no_toml_is_told_with_its_line() -> None:
    assert told('format = 1\n[[host]]\nname = "a\n')[0].startswith("fleet.toml:3: This is not TOML")


@pytest.mark.parametrize("text", ["host = 3", "defaults = 3", "host = [3]", "[host]\nname = 'a'"])
def test_tables_of_the_wrong_kind_are_faults(text: str) -> None:
    assert all("bug" not in fault for fault in told(f"format = 1\n{text}\n"))


def test_defaults_of_ssh_are_not_for_other_kinds() -> None:
    text = 'format = 1\n[defaults]\nuser = "u"\n[[host]]\nname = "a"\nkind = "local"\n'
    assert hosts(text) == (HostSpec("a", HostTransport.LOCAL),)


def test_the_schema_is_the_generated_one_and_takes_the_example() -> None:
    written = (ROOT / "schema" / "inventory.json").read_text(encoding="utf-8")
    assert written == json.dumps(inventory_schema(), indent=2, sort_keys=True) + "\n"
    validator = jsonschema.Draft202012Validator(inventory_schema())
    validator.validate(tomllib.loads(FLEET))
    assert not validator.is_valid(tomllib.loads(one('name = "-oProxyCommand=x"')))
    page = (ROOT / "docs" / "reference" / "inventory.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    validator.validate(tomllib.loads(example))
    assert len(hosts(example)) == 16


@given(st.text(max_size=60))
def test_any_text_is_an_inventory_or_a_study_error(text: str) -> None:
    with contextlib.suppress(StudyError):
        assert hosts(text)


@given(
    st.from_regex(r"([a-z]{1,8}@)?[a-z0-9]{1,9}(\.[a-z]{2,3})?(:[1-9][0-9]{0,3})?", fullmatch=True)
)
def test_a_jump_host_is_shown_as_it_was_written(text: str) -> None:
    assert str(parse_jump_host(text)) == text
