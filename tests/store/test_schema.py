"""The published schema of a manifest is the one that the code follows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from iolab.core.run import RunStatus
from tests.store.sessions import PLAN, commit, create, record_of

PUBLISHED = Path(__file__).resolve().parents[2] / "schema" / "manifest.json"


def test_the_published_schema_is_current() -> None:
    # In a process of its own: it is of the kinds that are imported, and tests have some of theirs.
    argv = [sys.executable, "-m", "tests.store.manifest_schema"]
    told = subprocess.run(argv, check=True, capture_output=True, cwd=PUBLISHED.parents[1])
    assert json.loads(PUBLISHED.read_bytes()) == json.loads(told.stdout)


@pytest.mark.parametrize("status", RunStatus)
def test_a_manifest_follows_it(tmp_path: Path, status: RunStatus) -> None:
    record = record_of(0, status)
    with create(tmp_path / "S") as writer:
        commit(writer, replace(record, warmup_s=float("nan")))
    run = tmp_path / "S" / "points" / PLAN.runs[0].point.digest / "run-1"
    manifest = json.loads((run / "manifest.json").read_bytes())
    schema = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(manifest, schema, jsonschema.Draft202012Validator)
    for broken in ({**manifest, "status": "perfect"}, {**manifest, "format": 99}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema, jsonschema.Draft202012Validator)
