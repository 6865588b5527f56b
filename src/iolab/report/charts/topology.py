"""Who loads what over which network, drawn from the facts: clients, network, nodes and drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Final

from msgspec.structs import replace

from iolab.core.configuration import Configuration
from iolab.core.host import HostFacts
from iolab.core.study import Study
from iolab.record import Record
from iolab.report.brief import Brief
from iolab.report.hardware import HOSTS_SHOWN, stacked_devices_text
from iolab.report.provenance import load_host_count_text
from iolab.study.targets import configuration_facts_by_host
from iolab.text import counted_noun, escape_invisible, list_text
from iolab.units import format_bytes

WIDTH: Final = 720
ROWS_MAX: Final = 4
"""Configurations drawn; the table beside it has all."""

LINE_CHARACTERS: Final = 44
"""What fits into a box at 11 units."""

TITLE_CHARACTERS: Final = 110
"""What fits into a line over both boxes that stand side by side."""

_BOX: Final = 290
"""A box's width, and with it the drawing's where boxes stand one above the other, as on a phone."""

_LINE: Final = 18
_GAP: Final = 8
"""Between rows of boxes."""

_LINK: Final = 26
"""Between two boxes one above the other."""


class TopologyDrawing(Record):
    """The drawing as an SVG element, the same for a narrow screen, and the same in words.

    `is_one_host` where each load comes from one host with storage of its own: the drawing shows
    no more than the table of hardware.
    """

    svg: str
    narrow_svg: str
    alt_text: str
    is_one_host: bool = False


class _TopologyBox(Record):
    """A box: its name and two lines under it."""

    name: str
    lines: tuple[str, str]

    @property
    def wrapped_lines_and_is_name(self) -> list[tuple[str, bool]]:
        """Its lines as they fit, and which of them are the name."""
        names = [(line, True) for line in wrap(escape_invisible(self.name), LINE_CHARACTERS)]
        return [
            *names,
            *(
                (line, False)
                for text in self.lines
                for line in wrap(escape_invisible(text), LINE_CHARACTERS)
            ),
        ]


class _TopologyRow(Record):
    """Who loads what over which network; `hypervisor` is what holds the disks of guests."""

    clients: _TopologyBox
    network_label: str
    storage: _TopologyBox
    hypervisor: _TopologyBox | None = None

    @property
    def boxes(self) -> list[_TopologyBox]:
        """All of its boxes, from the clients on."""
        return [self.clients, self.storage, *([self.hypervisor] if self.hypervisor else [])]


def topology_drawing(brief: Brief) -> TopologyDrawing | None:
    """The clients of each configuration and what they load; None where no host was reached."""
    rows: dict[_TopologyRow, list[str]] = {}
    for configuration in brief.study.configurations:
        facts = tuple(
            configuration_facts_by_host(brief.study, brief.facts, configuration.id).values()
        )
        if facts:
            node_box = _hypervisor_box(brief, configuration)
            drawn = _TopologyRow(
                _clients_box(brief.study, configuration, facts),
                _port_speed_label(configuration, facts),
                _guest_disks_box(configuration, facts)
                if node_box
                else _storage_box(configuration, facts),
                node_box,
            )
            rows.setdefault(drawn, []).append(configuration.title)
    if not rows:
        return None
    has_fleet = any(len(owner.hosts) > 1 for owner in brief.study.configurations)
    has_network = any(row.network_label for row in rows)
    return replace(_draw_topology(rows), is_one_host=not has_fleet and not has_network)


def _clients_box(
    study: Study, configuration: Configuration, facts: Sequence[HostFacts]
) -> _TopologyBox:
    number = len(configuration.hosts)
    text = load_host_count_text(study, configuration.hosts)
    name = counted_noun(number, "client") if text == str(number) else text
    cpu, memory = facts[0].cpu, facts[0].memory
    prefix = "each " if number > 1 else ""
    size = f"{prefix}{counted_noun(cpu.threads, 'CPU')}, {format_bytes(memory.total_bytes)}"
    return _TopologyBox(name, (list_text(configuration.hosts, HOSTS_SHOWN), size))


def _port_speed_label(configuration: Configuration, facts: Sequence[HostFacts]) -> str:
    """The fastest port of a client; nothing where the target is its own."""
    if not _is_remote_storage(configuration, facts):
        return ""
    ports = [nic for nic in facts[0].nics if nic.up and nic.has_hardware]
    speeds = [nic.speed_mbit_s for nic in ports if nic.speed_mbit_s]
    return f"{max(speeds) / 1000:g} Gbit/s" if speeds else "network"


def _is_remote_storage(configuration: Configuration, facts: Sequence[HostFacts]) -> bool:
    return bool(configuration.nodes) or not any(
        fact.target and fact.target.devices for fact in facts
    )


def _storage_box(configuration: Configuration, facts: Sequence[HostFacts]) -> _TopologyBox:
    """Nodes and drives as the study tells them, else the file system and its devices."""
    target = facts[0].target
    where = "" if target is None else f"{target.fs_type} at {_shorten_path(target.path)}"
    parts = [f"{name} {text}" for name, text in configuration.hardware]
    if configuration.nodes:
        raw = configuration.capacity.raw_tb
        drives = next(
            (text for text in parts if "drive" in text.lower() or "ssd" in text.lower()), ""
        )
        size = f"{raw:g} TB raw" if raw else ""
        return _TopologyBox(
            counted_noun(configuration.nodes, "node"),
            (drives or size or where, where if drives else ""),
        )
    if target is None or not target.devices:
        source = "" if target is None else target.mount_source
        return _TopologyBox(where or "target", (source, ""))
    models = Counter(
        (disk.model or disk.name, disk.size_bytes)
        for disk in facts[0].disks
        if disk.name in target.devices
    )
    drives = ", ".join(
        f"{number} × {model} {format_bytes(size)}" for (model, size), number in models.items()
    )
    return _TopologyBox(where, (stacked_devices_text(facts[0]), drives))


def _guest_disks_box(configuration: Configuration, facts: Sequence[HostFacts]) -> _TopologyBox:
    """The disks of guests: each has its own."""
    target = facts[0].target
    box = _storage_box(configuration, facts)
    number = len(configuration.hosts)
    if target is None or number < 2:
        return box
    size = box.lines[1].replace("1 × ", "each ", 1)
    return _TopologyBox(f"{number} disks, one of each guest", (box.name, size))


def _hypervisor_box(brief: Brief, configuration: Configuration) -> _TopologyBox | None:
    """The node that the guests of a configuration live on, with its disks; None without guests."""
    homes = {spec.name: spec.hypervisor for spec in brief.study.hosts}
    names = list(dict.fromkeys(home for host in configuration.hosts if (home := homes.get(host))))
    node = next((brief.facts[name] for name in names if name in brief.facts), None)
    if node is None or node.target is None:
        return None
    below = node.target.devices
    disks = [
        f"{disk.model or disk.name} {format_bytes(disk.size_bytes)}"
        for disk in node.disks
        if disk.name in below
    ]
    name = names[0] if len(names) == 1 else f"each of {counted_noun(len(names), 'node')}"
    where = f"{node.target.fs_type} at {_shorten_path(node.target.path)}"
    holder = list_text(disks) or node.target.mount_source
    return _TopologyBox(f"{name} holds them", (where, f"on {holder}, which all guests share"))


def _shorten_path(path: str) -> str:
    """The last folders of a path that is too long for a box."""
    most = LINE_CHARACTERS - len("bcachefs at ")
    if len(path) <= most:
        return path
    parts = path.split("/")
    while len(parts) > 1 and len("/".join(("…", *parts))) > most:
        del parts[0]
    return "/".join(("…", *parts))


_Rows = Sequence[tuple[_TopologyRow, Sequence[str]]]
"""What is drawn, with the titles of the configurations that it is drawn for."""


def _draw_topology(
    rows: Mapping[_TopologyRow, Sequence[str]],
) -> TopologyDrawing:
    shown = list(rows.items())[:ROWS_MAX]
    several = len(rows) > 1
    notes = []
    for row, titles in shown:
        over = f" over {row.network_label}" if row.network_label else ""
        whose = f"{list_text(titles, 3)}: " if several else ""
        clients, storage, *below = (
            ", ".join(filter(None, (side.name, *side.lines))) for side in row.boxes
        )
        notes.append(f"{whose}{clients}{over} load {storage}.")
        notes += [f"{text}." for text in below]
    hidden = len(rows) - len(shown)
    notes += [f"{counted_noun(hidden, 'configuration')} more in the table."] if hidden > 0 else []
    alt = escape_invisible(" ".join(notes))
    return TopologyDrawing(
        _topology_svg(shown, alt, with_row_titles=several, is_narrow=False),
        _topology_svg(shown, alt, with_row_titles=several, is_narrow=True),
        alt,
    )


def _topology_svg(rows: _Rows, alt: str, *, with_row_titles: bool, is_narrow: bool) -> str:
    """The boxes of each row side by side, or on a narrow screen one above the other."""
    width = _BOX if is_narrow else WIDTH
    characters = LINE_CHARACTERS if is_narrow else TITLE_CHARACTERS
    parts: list[str] = []
    top = 0
    for row, titles in rows:
        if with_row_titles:
            for line in wrap(escape_invisible(list_text(titles, 3)), characters):
                parts.append(_text_svg(line, 0, top + 12, is_bold=True))
                top += _LINE
        clients, storage, *below = row.boxes
        heights = [_LINE * len(side.wrapped_lines_and_is_name) + 12 for side in row.boxes]
        left = 0 if is_narrow else width - _BOX
        if is_narrow:
            link = top + heights[0]
            parts += [
                _box_svg(clients, 0, top, heights[0]),
                _line_svg(width / 2, link, width / 2, link + _LINK),
                _box_svg(storage, 0, link + _LINK, heights[1]),
            ]
            middle, beside, anchor = link + _LINK / 2 + 4, width / 2 + 8, "start"
            top = link + _LINK + heights[1]
        else:
            height = max(heights[:2])
            level = top + height / 2
            parts += [
                _box_svg(clients, 0, top, height),
                _box_svg(storage, left, top, height),
                _line_svg(_BOX, level, left, level),
            ]
            middle, beside, anchor = level - 7, width / 2, "middle"
            top += height
        if row.network_label:
            parts.append(_text_svg(row.network_label, beside, middle, anchor=anchor))
        for box, height in zip(below, heights[2:], strict=True):
            centre = left + _BOX / 2
            parts += [
                _line_svg(centre, top, centre, top + _LINK),
                _box_svg(box, left, top + _LINK, height),
            ]
            top += _LINK + height
        top += _GAP
    return (
        f'<svg class="topology {"narrow" if is_narrow else "wide"}" role="img" '
        f'viewBox="-1 -1 {width + 2} {top - _GAP + 2}" '
        f'aria-label="{escape(alt)}">{"".join(parts)}</svg>'
    )


def _line_svg(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:g}" x2="{x2:g}" y1="{y1:g}" y2="{y2:g}" '
        f'stroke="currentColor" stroke-width="1.4"/>'
    )


def _box_svg(box: _TopologyBox, x: float, y: float, height: float) -> str:
    """A rounded box with its name and lines."""
    frame = (
        f'<rect x="{x}" y="{y}" width="{_BOX}" height="{height}" rx="6" fill="none" '
        f'stroke="currentColor" stroke-width="1.2"/>'
    )
    lines = [
        _text_svg(text, x + 12, y + 20 + _LINE * n, is_bold=bold)
        for n, (text, bold) in enumerate(box.wrapped_lines_and_is_name)
    ]
    return frame + "".join(lines)


def _text_svg(
    text: str, x: float, y: float, *, is_bold: bool = False, anchor: str = "start"
) -> str:
    weight = ' font-weight="600"' if is_bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="11" text-anchor="{anchor}"{weight} '
        f'fill="currentColor">{escape(escape_invisible(text))}</text>'
    )
