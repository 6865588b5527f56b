"""What is published of the format agrees with it: the JSON Schema and the reference page."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from iolab.cli.template import study_template
from iolab.core.engine import EngineOption
from iolab.errors import UsageError
from iolab.guests.vm_table import VmTable
from iolab.loads.fileio.options import FIO_OPTIONS
from iolab.loads.fileio.table import FileTable
from iolab.loads.keyvalue.table import (
    DB_BENCH_OPTIONS,
    YCSB_OPTIONS,
    DbBenchTable,
    MixTable,
    ServerTable,
    YcsbTable,
)
from iolab.loads.metadata.table import MetadataTable
from iolab.loads.metadata.workload import MDTEST_OPTIONS
from iolab.study import file
from iolab.study.file import MethodTable, PreconditionTable, TargetTable
from iolab.study.load_tables import StudyTable
from iolab.study.parse import StudyOverrides
from iolab.study.values import program_option_text
from tests.plans import make_plan, parse_study, study_schema
from tests.site_parts import PLACE
from tests.study.studies import SMALL, workload

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
TOML = re.compile(r"^```toml\n(.*?)^```", re.M | re.S)
HEADINGS: dict[tuple[str, str], type[StudyTable]] = {
    ("study.md", "## Top level"): file.HeadingTable,
    ("study.md", "## `[target]`"): TargetTable,
    ("study.md", "## `[precondition]`"): PreconditionTable,
    ("study.md", "## `[[configuration]]`"): file.ConfigurationTable,
    ("study.md", "### `capacity`"): file.CapacityTable,
    ("study.md", "### `cost`"): file.CostTable,
    ("study.md", "## `[[host]]`"): file.HostTable,
    ("study.md", "## `[telemetry]`"): file.TelemetryTable,
    ("study.md", "## `[meters]`"): file.MetersTable,
    ("study/file-io.md", "## `[[workload]]`"): FileTable,
    ("study/metadata.md", "## `[[workload]]`"): MetadataTable,
    ("study/db_bench.md", "## `[[workload]]`"): DbBenchTable,
    ("study/ycsb.md", "## `[[workload]]`"): YcsbTable,
    ("study/ycsb.md", "## `mix`"): MixTable,
    ("study/ycsb.md", "## `[server]`"): ServerTable,
    ("study/guests.md", "## `[vm]`"): VmTable,
    ("study/method.md", "## `[method]`"): MethodTable,
}


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """The rows of the first table under a heading, by the name in their first cell."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    after = text.split(f"\n{heading}\n", 1)[1]
    section = re.split(r"\n#", after, maxsplit=1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    found = [line.strip("| ").split(" | ") for line in lines]
    return {cells[0].strip("`"): cells for cells in found}


def test_the_schema_is_the_generated_one() -> None:
    written = (ROOT / "schema" / "study.json").read_text(encoding="utf-8")
    assert written == json.dumps(study_schema(), indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize("name", ["cassandra", "cluster-kpi", "rocksdb", "ssd-cluster", "vm-fleet"])
def test_bundled_studies_fit_the_schema(name: str) -> None:
    text = (ROOT / "studies" / f"{name}.toml").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(study_schema()).validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "line", ["iodpeth = 1", "iodepth = 0", "iodepth = []", 'ioengine = "x"', "direct = 1"]
)
def test_the_schema_finds_what_the_loader_finds(line: str) -> None:
    validator = jsonschema.Draft202012Validator(study_schema())
    assert validator.is_valid(tomllib.loads(SMALL))
    assert not validator.is_valid(tomllib.loads(workload(line)))


def test_the_schema_requires_a_pattern_or_a_trace() -> None:
    validator = jsonschema.Draft202012Validator(study_schema())
    table = {"id": "a", "engine": "native", "filesize": "8m"}
    study = {"format": 1, "id": "s", "workload": [table]}
    assert not validator.is_valid(study)
    for keys in ({"trace": "a.iolog"}, {"rw": "read", "bs": "4k"}):
        assert validator.is_valid({**study, "workload": [{**table, **keys}]})


@pytest.mark.parametrize(("page", "heading"), HEADINGS)
def test_every_key_is_documented_and_no_other(page: str, heading: str) -> None:
    assert set(rows(page, heading)) == set(HEADINGS[page, heading].model_fields)


@pytest.mark.parametrize(("page", "heading"), HEADINGS)
def test_required_keys_are_documented_as_such(page: str, heading: str) -> None:
    fields = HEADINGS[page, heading].model_fields
    required = {key for key, cells in rows(page, heading).items() if cells[3] == "required"}
    assert required == {key for key, field in fields.items() if field.is_required()}


def documented_studies() -> dict[str, str]:
    """Every complete study of the documentation by its page and place there."""
    return {
        f"{page.stem}-{number}": block
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for number, block in enumerate(TOML.findall(page.read_text(encoding="utf-8")), 1)
        if block.startswith("format = 1") and "[[workload]]" in block
    }


@pytest.mark.parametrize("text", documented_studies().values(), ids=documented_studies())
def test_a_study_of_the_documentation_can_be_planned(text: str) -> None:
    assert make_plan(parse_study(text, "first.toml", StudyOverrides(requires_path=False))).runs


def test_documented_defaults_are_the_real_ones() -> None:
    for page, heading in (
        ("study/method.md", "## `[method]`"),
        ("study.md", "## `[target]`"),
        ("study.md", "## `[telemetry]`"),
        ("study.md", "## `[meters]`"),
    ):
        table = HEADINGS[page, heading]
        written = {
            key: cells[3].strip("`")
            for key, cells in rows(page, heading).items()
            if cells[3].startswith("`") and cells[3] != "`--path`"
        }
        text = "\n".join(
            f"{key} = {value}"
            if value in ("true", "false") or value.isdigit()
            else f'{key} = "{value}"'
            for key, value in written.items()
        )
        assert table.model_validate(tomllib.loads(text)) == table()


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("study/file-io.md", FIO_OPTIONS),
        ("engines/db_bench.md", DB_BENCH_OPTIONS),
        ("engines/ycsb.md", YCSB_OPTIONS),
    ],
)
def test_every_option_of_an_engine_is_named(page: str, options: Mapping[str, EngineOption]) -> None:
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    named = {name: short for name, short in PLACE.findall(text) if name.startswith("options-")}
    (short,) = named.values()
    assert re.findall(r"`([\w.]+)`", short) == list(options)


def test_every_option_of_mdtest_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "engines" / "mdtest.md").read_text("utf-8")
    for option in MDTEST_OPTIONS.values():
        row = f"\n| `{option.name}` | {option.meaning} | `"
        assert row in page
        # A flag may be written as true; the text of it is what the engine is told.
        example = page.partition(row)[2].partition("` |")[0]
        assert (
            program_option_text(tomllib.loads(f"example = {example}")["example"]) == option.example
        )


@pytest.mark.parametrize("bad", ["", "a b", "../x", "x" * 65, "a\nb"])
def test_a_first_study_needs_an_id(bad: str) -> None:
    with pytest.raises(UsageError, match="cannot be the id"):
        study_template(bad)
