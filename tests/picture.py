"""The picture of the readme: the first screen of the report on two SSDs, as Chromium shows it.

`python -m tests.picture` writes it, as `make samples` does where there is a Chromium. No test
compares it, because letters differ between machines.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from tests.cli.in_process import call
from tests.conftest import CHROMIUM
from tests.samples import ROOT, unpack

PICTURE: Final = ROOT / "docs" / "images" / "report.png"
WIDTH: Final = 1280
HEIGHT: Final = 1250


def main() -> None:
    """Write the picture."""
    program = shutil.which(CHROMIUM)
    if program is None:
        print(f"{PICTURE.name} was left as it is: {CHROMIUM} is not installed.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        unpack(folder)
        done = call("report", "ssds", "--html", "brief.html", cwd=folder)
        assert done.returncode == 0, done.stderr
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((folder / "brief.html").as_uri())
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
