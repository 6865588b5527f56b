"""A stand-in for kubectl: it takes kubectl's arguments, but its pods are directories here.

No cluster is behind it. It knows what iolab uses, and refuses everything else as kubectl would:
`config current-context`, `get pods … --output=json`, and `exec --stdin … POD -- WORDS`, which it
executes on this machine with the pod's name in IOLAB_TEST_POD. `KUBECTL_STATE` names a directory:
`pods.json` is what `get pods` prints; `forbidden`, if it is there, holds names of verbs that the
cluster does not allow; `context`, if it is there, is the current context. Every call is noted as a
line of JSON in `calls`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(words: list[str]) -> int:
    """One call of kubectl."""
    state = Path(os.environ["KUBECTL_STATE"])
    with (state / "calls").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(words) + "\n")
    if words == ["config", "current-context"]:
        if not (state / "context").exists():
            return fail("error: current-context is not set")
        print((state / "context").read_text("utf-8"))
        return 0
    cut = words.index("--") if "--" in words else len(words)
    chosen = read_words(words[:cut])
    forbidden = state / "forbidden"
    if forbidden.exists() and chosen.verb in forbidden.read_text("utf-8").split():
        what = "pods/exec" if chosen.verb == "exec" else "pods"
        return fail(
            f'Error from server (Forbidden): {what} is forbidden: User "bench" cannot '
            f'{"create" if chosen.verb == "exec" else "list"} resource "{what}" in API group "" '
            f'in the namespace "{chosen.namespace}"'
        )
    pods = json.loads((state / "pods.json").read_text("utf-8"))
    if chosen.verb == "get":
        print(json.dumps(pods))
        return 0
    return enter(chosen, pods, words[cut + 1 :])


def read_words(words: list[str]) -> argparse.Namespace:
    """The verb and its options, in the spellings that kubectl has."""
    parser = argparse.ArgumentParser(prog="kubectl", allow_abbrev=False)
    parser.add_argument("--context")
    verbs = parser.add_subparsers(dest="verb", required=True)
    get = verbs.add_parser("get", allow_abbrev=False)
    get.add_argument("kind", choices=["pods"])
    get.add_argument("-l", "--selector", required=True)
    get.add_argument("-o", "--output", choices=["json"], required=True)
    run = verbs.add_parser("exec", allow_abbrev=False)
    run.add_argument("-i", "--stdin", action="store_true")
    run.add_argument("-c", "--container", required=True)
    run.add_argument("pod")
    for verb in (get, run):
        verb.add_argument("-n", "--namespace", required=True)
    return parser.parse_args(words)


def enter(chosen: argparse.Namespace, pods: dict[str, Any], words: list[str]) -> int:
    """Execute the words here, as if in the pod."""
    names = [item["metadata"]["name"] for item in pods["items"]]
    if chosen.pod not in names:
        return fail(f'Error from server (NotFound): pods "{chosen.pod}" not found')
    os.environ["IOLAB_TEST_POD"] = chosen.pod
    if not chosen.stdin:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
    os.execvp(words[0], words)  # noqa: S606 - this process is to be the pod's
    return 1


def fail(message: str) -> int:
    """As kubectl does."""
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
