"""A target that is no folder: a bucket of an object store, reached by S3 over HTTP."""

from __future__ import annotations

from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from iolab.record import Record

STORE_PREFIX: Final = "iolab-"
"""What every key begins with that a session writes."""

DEFAULT_REGION: Final = "us-east-1"

WORK_PATH: Final = "/var/tmp"  # noqa: S108 - a folder that outlives a reboot, for a host's own marks
"""Where hosts keep what belongs to a session, where the target has no folder."""


class Addressing(StrEnum):
    """How requests name the bucket."""

    PATH = "path"
    """`https://host/bucket/key`."""
    VIRTUAL = "virtual"
    """`https://bucket.host/key`."""


class EndpointChoice(StrEnum):
    """Which endpoints a host uses."""

    ALL = "all"
    """Each, in turn by connection."""
    ONE_PER_HOST = "one-per-host"
    """One: the first host the first, and so on."""


class PayloadSigning(StrEnum):
    """How the contents of objects are signed."""

    UNSIGNED = "unsigned"
    STREAMING = "streaming"
    SIGNED = "signed"


class ObjectStore(Record):
    """Where objects lie, and who may tell the keys to it; the keys themselves are nowhere here.

    `profile` is one of AWS's files, `credentials_command` prints them as JSON; without either the
    environment or the default profile has them. `ca_file` is a file of the controller with the
    authorities that certificates are signed by. With `create_bucket` a session makes the bucket.
    """

    endpoints: tuple[str, ...]
    bucket: str
    region: str = DEFAULT_REGION
    addressing: Addressing = Addressing.PATH
    spread: EndpointChoice = EndpointChoice.ALL
    payload: PayloadSigning = PayloadSigning.UNSIGNED
    ca_file: str | None = None
    profile: str | None = None
    credentials_command: tuple[str, ...] = ()
    create_bucket: bool = False

    @property
    def url_text(self) -> str:
        """Its place for people: `http://a:9000, http://b:9000 bucket tests`."""
        return f"{', '.join(self.endpoints)} bucket {self.bucket}"

    @property
    def uses_tls(self) -> bool:
        """Whether any endpoint is encrypted."""
        return any(urlsplit(endpoint).scheme == "https" for endpoint in self.endpoints)

    def endpoints_of_host(self, host_index: int) -> tuple[str, ...]:
        """The endpoints of the host with that place among those that make the load."""
        if self.spread is EndpointChoice.ALL:
            return self.endpoints
        return (self.endpoints[host_index % len(self.endpoints)],)


def session_object_prefix(session_id: str) -> str:
    """Below which a session writes objects."""
    return f"{STORE_PREFIX}{session_id}/"
