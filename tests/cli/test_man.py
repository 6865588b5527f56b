"""`iolab --man`: the manual page holds every command and option, and nothing of it is a request."""

from __future__ import annotations

import re

from iolab.cli.commands import COMMANDS
from tests.cli.flags import parameters
from tests.cli.in_process import call

REQUESTS = {".TH", ".SH", ".SS", ".TP", ".PP", ".B"}


def test_the_manual_page_has_every_command_and_option() -> None:
    page = call("--man").stdout.replace("\\-", "-")
    headings = re.findall(r'^\.SS "iolab (\w+) ', page, re.M)
    assert sorted(headings) == sorted(COMMANDS)
    names = {one.name for one in parameters() if not one.is_argument}
    assert [name for name in names if name not in page] == []


def test_no_text_of_the_help_is_a_request() -> None:
    lines = [line for line in call("--man").stdout.splitlines() if line.startswith((".", "'"))]
    assert {line.split(" ")[0] for line in lines} == REQUESTS
