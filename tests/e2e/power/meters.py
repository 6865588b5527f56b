"""Real meters on the loopback: a BMC by IPMI over lanplus, a Redfish service, an SNMP agent."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
START_LIMIT_S: Final = 20.0
PASSWORD: Final = "a-password-of-the-tests"
SNMP_OBJECT: Final = "1.3.6.1.4.1.318.1.1.26.4.3.1.5.1"
"""APC's rPDU2 device power, in hundredths of a kW."""


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    """A port of the loopback that nobody has."""
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(argv: list[str], folder: Path, answers: Callable[[], bool]) -> Iterator[None]:
    """The program until it answers, and for as long as what is within lasts."""
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as process,
    ):
        try:
            deadline = time.monotonic() + START_LIMIT_S
            while not answers():
                assert process.poll() is None, (folder / "log").read_text("utf-8", "replace")
                assert time.monotonic() < deadline, argv
                time.sleep(0.1)
            yield
        finally:
            process.kill()


class Bmc:
    """A simulated BMC that shows the watts of a file; without it the reading fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port(socket.SOCK_DGRAM)
        self.show(212)

    def show(self, watts: int | None, *, is_active: bool = True) -> None:
        path = self.folder / "watts"
        if watts is None:
            path.unlink()
            return
        (self.folder / "new").write_text(f"{watts} {int(is_active)}", encoding="utf-8")
        (self.folder / "new").rename(path)

    @contextmanager
    def running(self) -> Iterator[None]:
        module = self.folder / "dcmi.so"
        compiler = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(module), str(HERE / "dcmi.c")]
        subprocess.run(compiler, check=True)
        (self.folder / "bmc.emu").write_text(
            "mc_setbmc 0x20\n"
            "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n"
            "mc_enable 0x20\n",
            encoding="utf-8",
        )
        auths = "\n".join(
            f"    allowed_auths_{level} none md2 md5 straight"
            for level in ("callback", "user", "operator", "admin")
        )
        (self.folder / "lan.conf").write_text(
            f'name "bmc"\nloadlib "{module}" "{self.folder}/watts"\nset_working_mc 0x20\n'
            f"  startlan 1\n    addr 127.0.0.1 {self.port}\n    priv_limit admin\n{auths}\n"
            "    guid a123456789abcdefa123456789abcdef\n  endlan\n"
            f'  user 2 true "bench" "{PASSWORD[:16]}" admin 10 none md2 md5 straight\n',
            encoding="utf-8",
        )
        argv = ["ipmi_sim", "-n", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state"]
        with running(argv, self.folder, self._answers):
            yield

    def _answers(self) -> bool:
        words = ["ipmitool", "-C", "3", "-I", "lanplus", "-H", "127.0.0.1", "-p", str(self.port)]
        words += ["-U", "bench", "-P", PASSWORD[:16], "mc", "info"]
        done = subprocess.run(words, capture_output=True, check=False, timeout=START_LIMIT_S)
        return done.returncode == 0


class RedfishService:
    """sushy's static service with one chassis, whose EnvironmentMetrics has the watts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        chassis = "/redfish/v1/Chassis"
        self._write(chassis, {"Members": [{"@odata.id": f"{chassis}/1"}]})
        links = {
            name: {"@odata.id": f"{chassis}/1/{name}"} for name in ("EnvironmentMetrics", "Power")
        }
        self._write(f"{chassis}/1", {"Id": "1", **links})
        self._write(f"{chassis}/1/Power", {"PowerControl": [{"PowerConsumedWatts": 350}]})
        self.show(344.2)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def show(self, watts: float) -> None:
        path = "/redfish/v1/Chassis/1/EnvironmentMetrics"
        self._write(path, {"PowerWatts": {"Reading": watts}})

    @contextmanager
    def running(self) -> Iterator[None]:
        program = Path(sys.executable).with_name("sushy-static")
        argv = [str(program), "-m", str(self.folder), "-i", "127.0.0.1", "-p", str(self.port)]
        with running(argv, self.folder, self._answers):
            yield

    def _answers(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def _write(self, path: str, document: dict[str, object]) -> None:
        folder = self.folder / path.removeprefix("/redfish/v1/")
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / "draft"
        draft.write_text(json.dumps({"@odata.id": path, **document}), encoding="utf-8")
        draft.rename(folder / "index.json")


@contextmanager
def snmp_agent(folder: Path, hundredths_of_kw: int, community: str = PASSWORD) -> Iterator[int]:
    """net-snmp's agent as a PDU; gives its port. It writes into its persistent folder alone."""
    port = free_port(socket.SOCK_DGRAM)
    (folder / "state").mkdir()
    (folder / "snmpd.conf").write_text(
        f"agentaddress udp:127.0.0.1:{port}\nrocommunity {community} 127.0.0.1\n"
        f"override .{SNMP_OBJECT} integer {hundredths_of_kw}\n",
        encoding="utf-8",
    )
    program = shutil.which("snmpd") or "/usr/sbin/snmpd"
    argv = [program, "-f", "-Lo", "-C", "-c", "snmpd.conf", "-p", "pid", "--persistentDir=state"]

    def answers() -> bool:
        words = ["snmpget", "-v2c", "-c", community, f"127.0.0.1:{port}", SNMP_OBJECT]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    with running(argv, folder, answers):
        yield port
