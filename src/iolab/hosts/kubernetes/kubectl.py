"""Requests to a cluster by kubectl, run to its end as a user may do by hand, and its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from iolab.errors import HostError
from iolab.hosts.process import run_local_process
from iolab.record import Record
from iolab.text import excerpt

ANSWER_TIMEOUT_S: Final = 30.0
"""A cluster that answers takes a second; a plugin that asks for a password waits for ever."""

ANSWER_BYTES_MAX: Final = 64 << 20
"""A pod is described in about 10 kB, so thousands fit."""

DEFAULT_HINT: Final = "Try the same with kubectl by hand."
MISSING_RIGHT_HINT: Final = "Have the right given, as deploy/base/role.yaml lists them."

_ERROR_PREFIX: Final = re.compile(
    r"^(?:Error from server(?: \(\w+\))?: |error: )?(?:error when creating \"STDIN\": )?"
)
_WARNING_PREFIX: Final = re.compile(r"^Warning: ")
_LOG_PREFIX: Final = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ")


_UNREACHABLE_MESSAGES: Final = (
    "connection refused",
    "connection reset",
    "connection to the server",
    "i/o timeout",
    "no answer within",
    "server is currently unable",
    "unexpected EOF",
)
"""What kubectl says of an API server that restarts, or of a network that is away."""


class KubectlError(HostError):
    """A request that kubectl did not carry out; `errors` are the cluster's own sentences."""

    def __init__(self, failed_action: str, errors: tuple[str, ...], hint: str = "") -> None:
        self.errors = errors
        hint = hint or (MISSING_RIGHT_HINT if self.is_forbidden else DEFAULT_HINT)
        super().__init__(f"{failed_action}: {'; '.join(errors).rstrip('.?')}.", hint)

    @property
    def is_forbidden(self) -> bool:
        """Whether the user lacks the right, and nothing else is known to be wrong."""
        return bool(self.errors) and all(" cannot " in error for error in self.errors)

    @property
    def is_unreachable(self) -> bool:
        """Whether the cluster did not answer, which may pass."""
        return any(part in error for error in self.errors for part in _UNREACHABLE_MESSAGES)


class Kubectl(Record):
    """kubectl for one namespace, "" for none, and one context, "" for the current one."""

    namespace: str = ""
    context: str = ""

    async def run(self, *words: str, stdin: str | None = None, failed_action: str = "") -> str:
        """What kubectl printed; KubectlError with `failed_action` failed and the cluster's words.

        Options of time are left out: with them kubectl forgets the account of its own pod.
        """
        context = [f"--context={self.context}"] if self.context else []
        namespace = [f"--namespace={self.namespace}"] if self.namespace else []
        failed_action = failed_action or f"'kubectl {words[0]}' failed"
        try:
            code, output, stderr = await run_local_process(
                ["kubectl", *context, *namespace, *words],
                stdin=None if stdin is None else stdin.encode(),
                limit_s=ANSWER_TIMEOUT_S,
                output_bytes=ANSWER_BYTES_MAX + 1,
            )
        except TimeoutError:
            raise KubectlError(
                failed_action, (f"no answer within {ANSWER_TIMEOUT_S:g} s",)
            ) from None
        except OSError as error:
            hint = "Install kubectl, or add it to PATH."
            raise KubectlError(
                failed_action, (f"'kubectl' does not start ({error.strerror})",), hint
            ) from None
        if code != 0:
            raise KubectlError(
                failed_action, kubectl_error_sentences(stderr) or (f"exit code {code}",)
            )
        if len(output) > ANSWER_BYTES_MAX:
            raise KubectlError(
                failed_action, (f"the answer has more than {ANSWER_BYTES_MAX} bytes",)
            )
        return output.decode("utf-8", "replace")

    async def read_object(
        self, *words: str, failed_action: str = "", stdin: str | None = None
    ) -> dict[str, Any]:
        """The JSON object that kubectl printed; KubectlError where it is none."""
        text = await self.run(*words, "--output=json", failed_action=failed_action, stdin=stdin)
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise KubectlError(
                failed_action or "'kubectl' failed", ("its answer is no JSON object",)
            )
        return found

    async def list_objects(self, *words: str, failed_action: str = "") -> list[dict[str, Any]]:
        """The objects of a list."""
        listed = (await self.read_object(*words, failed_action=failed_action)).get("items")
        return (
            [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        )


def kubectl_error_sentences(stderr: bytes) -> tuple[str, ...]:
    """Its errors as sentences, each once; without log lines and warnings."""
    lines = stderr.decode("utf-8", "replace").splitlines()
    kept = [line for line in lines if line.strip() and not _WARNING_PREFIX.match(line)]
    errors = [line for line in kept if not _LOG_PREFIX.match(line)] or kept[-1:]
    return tuple(dict.fromkeys(excerpt(_ERROR_PREFIX.sub("", line)) for line in errors))


def value_at_keys(kubernetes_object: object, *keys: str) -> object:
    """What lies at these keys inside each other in an object of a cluster; None for nothing."""
    for key in keys:
        kubernetes_object = (
            kubernetes_object.get(key) if isinstance(kubernetes_object, Mapping) else None
        )
    return kubernetes_object


def text_at_keys(kubernetes_object: object, *keys: str) -> str:
    """The text there; "" where there is none."""
    found = value_at_keys(kubernetes_object, *keys)
    return found if isinstance(found, str) else ""


def list_at_keys(kubernetes_object: object, *keys: str) -> list[Any]:
    """The list there; an empty one where there is none."""
    found = value_at_keys(kubernetes_object, *keys)
    return found if isinstance(found, list) else []
