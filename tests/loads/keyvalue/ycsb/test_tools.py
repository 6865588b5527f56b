"""Java and YCSB on a host: iolab's own, or the user's."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.hosts.host import Host
from iolab.loads.keyvalue.workload import EMBEDDED_SERVER, ServerSettings
from iolab.loads.keyvalue.ycsb.clients import YcsbInstall, YcsbInstaller
from iolab.targets.work_directory import WorkDirectory
from tests.loads.keyvalue.local import on_this_machine
from tests.loads.keyvalue.ycsb.play import no_kits
from tests.loads.keyvalue.ycsb.stand_in import java

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def tools_with(settings: ServerSettings) -> YcsbInstall:
    async def work(host: Host) -> YcsbInstall:
        workdir = WorkDirectory(host, "/scratch", None, host.name)
        tools = YcsbInstaller(no_kits)
        found = await tools.find_or_install(workdir, settings, print)
        assert tools.install_found_before(workdir) is found
        return found

    return on_this_machine(work)


def test_iolab_brings_its_own(tmp_path: Path) -> None:
    found = tools_with(replace(EMBEDDED_SERVER, java=str(java(tmp_path))))
    assert found.ycsb_and_java_text == "YCSB 0.17.0, Java 17.0.15"
    assert found.kit.classpath == ("/scratch/ycsb.jar",)


def test_the_users_own_is_used_where_it_is_named(tmp_path: Path) -> None:
    library = tmp_path / "ycsb" / "lib"
    library.mkdir(parents=True)
    (library / "core-0.18.0-SNAPSHOT.jar").touch()
    settings = replace(EMBEDDED_SERVER, java=str(java(tmp_path)), ycsb=f"{tmp_path}/ycsb/")
    found = tools_with(settings)
    assert found.version == "0.18.0-SNAPSHOT"
    assert f"{library}/*" in found.kit.classpath


@pytest.mark.parametrize("made", [False, True])
def test_a_folder_without_ycsb_is_refused(tmp_path: Path, *, made: bool) -> None:
    if made:
        (tmp_path / "ycsb" / "lib").mkdir(parents=True)
    settings = replace(EMBEDDED_SERVER, java=str(java(tmp_path)), ycsb=str(tmp_path / "ycsb"))
    with pytest.raises(EngineError) as caught:
        tools_with(settings)
    assert "/ycsb/lib" in caught.value.message
    assert "server.ycsb" in caught.value.hint
