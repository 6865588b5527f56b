"""Power meters beside a host, read by the controller: a program's lines, a BMC, a PDU.

Passwords come from the environment and reach a program through its environment or a file that only
its user can read: never through its arguments, which everybody on the machine sees.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import os
import tempfile
import time
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from iolab.core.host import HostSpec
from iolab.core.limits import NUMBER_MAX
from iolab.core.power import ExternalMeterKind, MeterSpec
from iolab.errors import Fault, HostError
from iolab.hosts.process import exit_and_stderr_text, kill_process_group, run_local_process
from iolab.record import Record
from iolab.text import excerpt, quote_value
from iolab.units import NS_PER_S, format_duration_s

if TYPE_CHECKING:
    import ssl

READ_LIMIT_S: Final = 10.0
"""ipmitool that negotiates needs 10 s where its cipher suite is wrong; a meter answers in 0.1 s."""

CLOCK_DIFFERENCE_MAX_S: Final = 600.0
"""Between a program's times and this machine's: clocks that are set differ less, a forgotten time
zone by 15 minutes at least."""

OUTPUT_BYTES: Final = 64 << 10
ANSWER_BYTES: Final = 1 << 20
"""Of a Redfish resource; a large chassis has some 20 kB."""

WATTS_MAX: Final = 10_000_000.0
"""More than a row of racks takes."""

DCMI_REQUEST: Final = ("raw", "0x2c", "0x02", "0xdc", "0x01", "0x00", "0x00")
"""Get Power Reading, system statistics (DCMI 1.5, 6.6.1); the text form has two values a line."""

DCMI_GROUP: Final = 0xDC
DCMI_BYTES: Final = 18
DCMI_ACTIVE: Final = 0x40

REDFISH_CHASSIS: Final = "/redfish/v1/Chassis"


class MeterError(HostError):
    """A meter that cannot be read, with the reason."""


class MeterReading(Record):
    """What a meter showed: watts, and at which moment of the controller's clock."""

    real_ns: int
    watts: float


class Meter(ABC):
    """One meter while it is watched; `read` waits for the next reading at most `READ_LIMIT_S`."""

    def __init__(self, spec: MeterSpec) -> None:
        self.spec = spec

    @abstractmethod
    async def read(self) -> MeterReading | None:
        """The next reading; None where the meter still shows its last. Raises MeterError."""

    async def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Nothing of it runs any more."""

    def _plausible_reading_or_raise(self, watts: float, real_ns: int | None = None) -> MeterReading:
        if not (math.isfinite(watts) and 0 <= watts <= WATTS_MAX):
            raise MeterError(f"it showed {watts:g} W", "See what the meter shows by hand.")
        return MeterReading(time.time_ns() if real_ns is None else real_ns, watts)


def open_meter(spec: MeterSpec) -> Meter:
    """The reader of a meter of that kind. MeterError where its password is not set."""
    if spec.password_variable and spec.password_variable not in os.environ:
        raise MeterError(
            f"the environment has no variable {quote_value(spec.password_variable)}",
            "Set it to the meter's password or community before you start iolab.",
        )
    reader: type[Meter] = _READERS[spec.kind]
    return reader(spec)


class MeterReadingOrFault(Record):
    """What one reading of a host's meter gave: a reading, or why it cannot be read.

    Both are None where the meter answered and had nothing new.
    """

    spec: MeterSpec
    reading: MeterReading | None = None
    fault: Fault | None = None


async def read_meters_once(hosts: Iterable[HostSpec]) -> tuple[MeterReadingOrFault, ...]:
    """Read each meter of these hosts once, all at the same time."""

    async def read_meter_or_fault(host_name: str, spec: MeterSpec) -> MeterReadingOrFault:
        meter: Meter | None = None
        try:
            meter = open_meter(spec)
            return MeterReadingOrFault(spec, await meter.read())
        except MeterError as error:
            text = f"The meter '{spec.name}' of host '{host_name}' cannot be read: {error.message}."
            return MeterReadingOrFault(spec, fault=Fault(text, error.hint))
        finally:
            if meter is not None:
                await meter.close()

    work = [read_meter_or_fault(host.name, spec) for host in hosts for spec in host.meters]
    return tuple(await asyncio.gather(*work))


async def read_meters_and_get_faults(hosts: Iterable[HostSpec]) -> tuple[Fault, ...]:
    """Why meters of these hosts cannot be read."""
    return tuple(check.fault for check in await read_meters_once(hosts) if check.fault is not None)


class CommandMeter(Meter):
    """A program of the user's that prints `seconds-since-1970 watts`, a line a reading."""

    def __init__(self, spec: MeterSpec) -> None:
        super().__init__(spec)
        self._process: asyncio.subprocess.Process | None = None

    async def read(self) -> MeterReading:
        """See `Meter`."""
        program = self.spec.command[0]
        if self._process is None:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self.spec.command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    limit=OUTPUT_BYTES,
                )
            except OSError as error:
                reason = f"{quote_value(program)} does not start ({error.strerror})"
                raise MeterError(reason, "Correct the meter's command.") from None
        if self._process.stdout is None:
            raise ValueError("a meter's program has a pipe for its output")
        try:
            async with asyncio.timeout(READ_LIMIT_S):
                line = await self._process.stdout.readline()
        except (TimeoutError, ValueError):
            hint = "See what it prints by hand; each line must be flushed."
            raise MeterError(f"{quote_value(program)} printed no line in time", hint) from None
        if not line:
            await self.close()
            raise MeterError(f"{quote_value(program)} ended", "It must print until it is ended.")
        return self._parse_line(line)

    async def close(self) -> None:
        """See `Meter`."""
        process, self._process = self._process, None
        if process is not None:
            await kill_process_group(process)

    def _parse_line(self, line: bytes) -> MeterReading:
        try:
            moment, watts = map(float, line.split())
            real_ns = _unix_time_ns(moment)
        except (ValueError, OverflowError):
            message = f"it printed {quote_value(excerpt(line, 80))}"
            raise MeterError(message, _COMMAND_LINE_HINT) from None
        difference_s = (time.time_ns() - real_ns) / NS_PER_S
        if abs(difference_s) > CLOCK_DIFFERENCE_MAX_S:
            way = "before" if difference_s > 0 else "after"
            away = format_duration_s(abs(difference_s))
            message = f"it printed the time {excerpt(line.split()[0], 40)}, {away} {way} now"
            raise MeterError(message, _COMMAND_LINE_HINT)
        return self._plausible_reading_or_raise(watts, real_ns)


_COMMAND_LINE_HINT: Final = (
    "Print the seconds since 1970 in UTC and the watts, as in `1764432000.5 212.4`."
)


def _unix_time_ns(seconds: float) -> int:
    """ValueError where they are no time that can be stored, as of a program that prints ms."""
    real_ns = round(seconds * NS_PER_S)
    if not 0 <= real_ns <= NUMBER_MAX:
        raise ValueError(f"{seconds:g} s are no time since 1970")
    return real_ns


class _ProgramMeter(Meter):
    """A meter that a program of the system reads, once a reading."""

    manual_check_hint: str
    """How to try the same by hand."""

    async def _run_program(self, *words: str, environment: Mapping[str, str]) -> str:
        try:
            code, output, stderr = await run_local_process(
                words,
                limit_s=READ_LIMIT_S,
                output_bytes=OUTPUT_BYTES,
                environment={**os.environ, **environment},
            )
        except OSError as error:
            hint = f"Install {words[0]} on this machine."
            raise MeterError(f"'{words[0]}' does not start ({error.strerror})", hint) from None
        except TimeoutError:
            hint = "See that its address is right, and try the same by hand."
            raise MeterError(f"'{words[0]}' had no answer in {READ_LIMIT_S:g} s", hint) from None
        if code:
            last_line = stderr.rstrip().rpartition(b"\n")[2]
            reason = exit_and_stderr_text(code, last_line).rstrip(".")
            raise MeterError(f"'{words[0]}': {reason}", self.manual_check_hint)
        return output.decode("utf-8", "replace")

    @property
    def _password(self) -> str:
        return os.environ.get(self.spec.password_variable, "")


class DcmiMeter(_ProgramMeter):
    """A BMC's power reading over lanplus."""

    manual_check_hint = (
        "See its address, user and password, and whether it needs cipher_suite = 3; by hand: "
        "ipmitool -C SUITE -I lanplus -H HOST -U USER -a dcmi power reading."
    )

    async def read(self) -> MeterReading:
        """See `Meter`."""
        began_ns = time.time_ns()
        # Without a cipher suite ipmitool asks for the valid ones, which takes 10 s a call.
        suite = str(self.spec.cipher_suite)
        output = await self._run_program(
            *("ipmitool", "-E", "-C", suite, "-I", "lanplus", "-H", *self._host_arguments()),
            *("-U", self.spec.user, *DCMI_REQUEST),
            environment={"IPMI_PASSWORD": self._password},
        )
        return self._plausible_reading_or_raise(
            dcmi_watts(output), (began_ns + time.time_ns()) // 2
        )

    def _host_arguments(self) -> tuple[str, ...]:
        host, colon, port = self.spec.address.rpartition(":")
        return (host, "-p", port) if colon and port.isdigit() else (self.spec.address,)


def dcmi_watts(output: str) -> float:
    """The watts of Get Power Reading's answer as ipmitool prints its bytes. Raises MeterError."""
    try:
        answer = bytes.fromhex("".join(output.split()))
    except ValueError:
        answer = b""
    if len(answer) != DCMI_BYTES or answer[0] != DCMI_GROUP:
        hint = "See whether the BMC knows `ipmitool dcmi power reading`."
        raise MeterError(f"the BMC answered {quote_value(excerpt(output, 80))}", hint)
    if not answer[-1] & DCMI_ACTIVE:
        raise MeterError(
            "the BMC's power measurement is deactivated: its numbers are old",
            "Activate it by `ipmitool dcmi power activate`.",
        )
    return float(int.from_bytes(answer[1:3], "little"))


class SnmpMeter(_ProgramMeter):
    """One object of a PDU, by SNMP v2c; `scale` are the watts of one."""

    manual_check_hint = (
        "See its address, community and object; by hand: snmpget -v2c -c COMMUNITY HOST OBJECT."
    )

    async def read(self) -> MeterReading:
        """See `Meter`."""
        # The community is a password: as an argument others would see it, and a file that lasted
        # longer than a reading would stay behind when iolab is killed.
        try:
            with tempfile.TemporaryDirectory(prefix="iolab-snmp-") as folder:
                path = Path(folder) / "snmp.conf"
                path.touch(mode=0o600)
                path.write_text(f"defVersion 2c\ndefCommunity {self._password or 'public'}\n")
                output = await self._run_program(
                    *("snmpget", "-Oqvt", "-r", "1", self.spec.address, self.spec.object_id),
                    environment={"SNMPCONFPATH": folder, "SNMP_PERSISTENT_DIR": folder, "MIBS": ""},
                )
        except OSError as error:
            text = f"snmpget could not be given its community: {error.strerror}"
            raise MeterError(text, f"Make room in {tempfile.gettempdir()}.") from None
        try:
            value = float(output.strip().strip('"'))
        except ValueError:
            hint = "Name an object that is a number, and try snmpget by hand."
            message = f"its object is {quote_value(excerpt(output, 80))}"
            raise MeterError(message, hint) from None
        return self._plausible_reading_or_raise(value * self.spec.scale)


class RedfishMeter(Meter):
    """A BMC's power by Redfish: of the resource that its URL names, else of the first chassis."""

    def __init__(self, spec: MeterSpec) -> None:
        super().__init__(spec)
        self._resource = urllib.parse.urlsplit(spec.address).path.rstrip("/")
        self._shown_at: object = None

    async def read(self) -> MeterReading | None:
        """See `Meter`; readings of the same moment are one."""
        began_ns = time.time_ns()
        if not self._resource:
            self._resource = await self._find_resource()
        document = await self._get_json(self._resource)
        watts, moment = redfish_watts_and_time(document)
        if moment is not None and moment == self._shown_at:
            return None
        self._shown_at = moment
        return self._plausible_reading_or_raise(watts, (began_ns + time.time_ns()) // 2)

    async def _find_resource(self) -> str:
        """The first chassis' EnvironmentMetrics, else its Power, by the links that it has."""
        members = (await self._get_json(REDFISH_CHASSIS)).get("Members")
        first = members[0] if isinstance(members, list) and members else {}
        chassis = await self._get_json(_linked_path(first) or "")
        for name in ("EnvironmentMetrics", "Power"):
            if path := _linked_path(chassis.get(name)):
                return path
        raise MeterError(
            f"its chassis has no power at {quote_value(self.spec.address)}",
            "Give the URL of the resource that has its watts.",
        )

    async def _get_json(self, path: str) -> dict[str, Any]:
        base = urllib.parse.urlsplit(self.spec.address)
        url = f"{base.scheme}://{base.netloc}{path}"
        try:
            return await asyncio.to_thread(self._fetch_json, url)
        except (OSError, ValueError) as error:
            status = getattr(error, "code", None)
            reason = excerpt(str(getattr(error, "reason", error)), 200)
            reason = f"HTTP {status} of {quote_value(path)}" if status else reason
        hint = "See that its URL, user and password are right."
        raise MeterError(f"{quote_value(self.spec.address)}: {reason}", hint)

    @cached_property
    def _tls_context(self) -> ssl.SSLContext:
        """Made once: to read the system's certificates takes longer than a reading."""
        import ssl

        return ssl.create_default_context(cafile=self.spec.ca_file or None)

    def _fetch_json(self, url: str) -> dict[str, Any]:
        import http.client  # loads what sessions without such a meter never use
        import urllib.request

        meter_origin = _scheme_and_server(url)

        class SameOriginRedirects(urllib.request.HTTPRedirectHandler):
            """A login is never sent to another server, or by HTTP where it went by HTTPS."""

            def redirect_request(
                self,
                req: urllib.request.Request,
                fp: IO[bytes],
                code: int,
                msg: str,
                headers: http.client.HTTPMessage,
                newurl: str,
            ) -> urllib.request.Request | None:
                """See the base class; ValueError for another server."""
                if _scheme_and_server(newurl) != meter_origin:
                    text = f"it redirects to {quote_value(excerpt(newurl, 120))}, another server"
                    raise ValueError(text)
                return super().redirect_request(req, fp, code, msg, headers, newurl)

        request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - http(s) by the study's rule
        if self.spec.user:
            password = os.environ.get(self.spec.password_variable, "")
            login = base64.b64encode(f"{self.spec.user}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {login}")
        try:
            opener = urllib.request.build_opener(
                urllib.request.HTTPSHandler(context=self._tls_context), SameOriginRedirects
            )
            opened = opener.open(request, timeout=READ_LIMIT_S)
            with contextlib.closing(opened) as answer:
                document = json.loads(answer.read(ANSWER_BYTES))
        except (http.client.HTTPException, RecursionError) as error:
            raise ValueError(f"it answered no HTTP with JSON ({type(error).__name__})") from None
        if not isinstance(document, dict):
            raise ValueError("it answered no JSON object")  # noqa: TRY004 - told as text
        return document


def _scheme_and_server(url: str) -> tuple[str, str]:
    """Scheme and server of a URL."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


def _linked_path(link: object) -> str | None:
    """The path of a Redfish link `{"@odata.id": "/redfish/…"}`; None for anything else."""
    path = link.get("@odata.id") if isinstance(link, dict) else None
    return path.rstrip("/") if isinstance(path, str) and path.startswith("/redfish/") else None


def redfish_watts_and_time(document: Mapping[str, Any]) -> tuple[float, object]:
    """Watts and the moment that the resource names for them (None if none). Raises MeterError.

    Of EnvironmentMetrics, Sensor, or the older Power, whose first control is the whole chassis.
    """
    controls = document.get("PowerControl")
    control = controls[0] if isinstance(controls, list) and controls else {}
    reading = document.get("PowerWatts")
    candidates = (
        reading.get("Reading") if isinstance(reading, dict) else None,
        document.get("Reading") if document.get("ReadingUnits") in ("W", None) else None,
        control.get("PowerConsumedWatts") if isinstance(control, dict) else None,
    )
    for value in candidates:
        if isinstance(value, int | float) and not isinstance(value, bool):
            with contextlib.suppress(OverflowError):  # JSON has integers of any length
                return float(value), document.get("ReadingTime")
    raise MeterError(
        "the resource tells no watts", "Name an EnvironmentMetrics, a Sensor or a Power resource."
    )


_READERS: Final[Mapping[ExternalMeterKind, Any]] = {
    ExternalMeterKind.COMMAND: CommandMeter,
    ExternalMeterKind.DCMI: DcmiMeter,
    ExternalMeterKind.REDFISH: RedfishMeter,
    ExternalMeterKind.SNMP: SnmpMeter,
}
