"""Keys of object stores: where they come from, and that nothing shows them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from iolab.core.object_store import ObjectStore
from iolab.errors import HostError
from iolab.loads.objects.credentials import load_credentials
from iolab.loads.objects.engine import ObjectStoreAccess, engine_command
from tests.facts import tells

STORE = ObjectStore(("http://127.0.0.1:9000",), "tests")
KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI", "session-token"


def store(**changes: object) -> ObjectStore:
    """A store with keys of another source."""
    return ObjectStore(STORE.endpoints, STORE.bucket, **changes)  # type: ignore[arg-type]


def test_the_environment_wins_over_profiles(tmp_path: Path) -> None:
    environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    found = load_credentials(STORE, {**environment, "HOME": str(tmp_path)}).secret_document()
    assert found == {"access_key": KEY, "secret_key": SECRET, "session_token": None}
    with_token = load_credentials(STORE, {**environment, "AWS_SESSION_TOKEN": TOKEN})
    assert with_token.secret_document()["session_token"] == TOKEN


def test_half_of_the_keys_are_named(tmp_path: Path) -> None:
    with pytest.raises(HostError) as raised:
        load_credentials(STORE, {"AWS_ACCESS_KEY_ID": KEY, "HOME": str(tmp_path)})
    assert tells(raised.value.message, "AWS_SECRET_ACCESS_KEY")
    assert KEY not in raised.value.message + raised.value.hint


def test_profiles_of_both_files_are_read(tmp_path: Path) -> None:
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        f"[default]\naws_access_key_id = D\naws_secret_access_key = E\n"
        f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    (folder / "config").write_text(
        f"[profile far]\naws_access_key_id={KEY}\n"
        f"aws_secret_access_key={SECRET}\naws_session_token={TOKEN}\n"
    )
    environment = {"HOME": str(tmp_path)}
    assert load_credentials(STORE, environment).secret_document()["access_key"] == "D"
    lab = load_credentials(store(profile="lab"), environment).secret_document()
    assert lab["secret_key"] == SECRET
    assert load_credentials(STORE, {**environment, "AWS_PROFILE": "lab"}).secret_document() == lab
    far = load_credentials(store(profile="far"), environment).secret_document()
    assert far["session_token"] == TOKEN
    with pytest.raises(HostError) as raised:
        load_credentials(store(profile="gone"), environment)
    assert tells(raised.value.message, "gone", "credentials")


def test_a_damaged_file_of_profiles_is_named_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{SECRET}\n[default\n")
    with pytest.raises(HostError) as raised:
        load_credentials(STORE, {"AWS_SHARED_CREDENTIALS_FILE": str(path)})
    assert tells(raised.value.message, "keys")
    assert SECRET not in raised.value.message


def command(document: object, code: int = 0) -> ObjectStore:
    """A store whose keys a command prints."""
    program = f"import sys; print({json.dumps(document)!r}); sys.exit({code})"
    return store(credentials_command=(sys.executable, "-c", program))


def test_a_command_prints_keys() -> None:
    printed = {"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET, "SessionToken": TOKEN}
    assert load_credentials(command(printed)).secret_document()["secret_key"] == SECRET
    for document, code in (({"AccessKeyId": KEY}, 0), ([], 0), (printed, 3)):
        with pytest.raises(HostError) as raised:
            load_credentials(command(document, code))
        assert SECRET not in raised.value.message
    with pytest.raises(HostError) as raised:
        load_credentials(store(credentials_command=("/nonexistent/vault",)))
    assert tells(raised.value.message, "/nonexistent/vault")


def test_keys_are_in_the_standard_input_of_a_process_alone() -> None:
    environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    access = ObjectStoreAccess(STORE, None, load_credentials(STORE, environment))
    told = access.document_without_keys(STORE.endpoints, 5.0)
    made = engine_command(access, {**told, "task": "check"}, "/tmp", limit_s=5.0)
    assert SECRET.encode() in made.stdin
    others = f"{made.argv}{made.job_file}{made.env}{access!r}{access.credentials!r}{told}"
    assert SECRET not in others
    assert KEY not in others
