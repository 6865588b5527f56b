"""What is not what was committed is told on every page, also where the page was shown before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from iolab.serve.sessions import SessionStampReader, find_sessions
from tests.serve.asking import WRITES, Site


@pytest.mark.parametrize("name", ["manifest.json", "manifest.sha256", "bins.parquet"])
def test_a_run_that_is_changed_in_place_is_named_by_every_page(
    session: Path, folder: Path, tmp_path: Path, name: str
) -> None:
    shutil.copytree(session, tmp_path / "sound")
    site = Site(tmp_path)
    ids = {one: site.id_of(one) for one in ("one", "sound")}
    compared = f"/compare?baseline={ids['sound']}&candidate={ids['one']}"
    paths = ["/", compared, *(f"/sessions/{ids['one']}/{end}" for end in ("live", "show.json"))]
    for page in site.ask(paths):
        assert (page.status, "amaged" in page.text.replace('"damaged": []', "")) == (200, False)
    run = next(folder.glob("points/*/run-1"))
    with (run / name).open("r+b") as file:  # its folder does not tell
        file.truncate(3)
    place = str(run.relative_to(folder))
    listing, *pages = site.ask(paths)
    assert "1 damaged" in listing.text
    for page in pages:
        assert (page.status, place in page.text) == (200, True)
    (damage,) = json.loads(pages[-1].text)["damaged"]
    assert damage["path"] == place


def test_a_report_is_made_anew_when_a_file_of_a_run_was_changed_in_place(folder: Path) -> None:
    (place,) = find_sessions(folder.parent).folders
    reader = SessionStampReader()
    seen = [reader.read_stamp(place.path).digest]
    for name in ("manifest.json", "manifest.sha256", "bins.parquet"):
        path = next(folder.glob(f"points/*/run-1/{name}"))
        path.write_bytes(path.read_bytes()[:-3])
        seen.append(reader.read_stamp(place.path).digest)
    assert len(set(seen)) == len(seen)


def test_a_report_that_leaves_damaged_runs_out_is_shown(folder: Path) -> None:
    told = 'print(\'{"format":1,"written":"p"}\'); raise SystemExit(5)'
    site = Site(folder.parent, script=f"{WRITES}; {told}")
    assert site.get(f"/sessions/{site.id_of('one')}").status == 200
