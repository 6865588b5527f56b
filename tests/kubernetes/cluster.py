"""The real cluster of `make kubernetes`, and sessions of iolab in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.processes import run_program

TOOLS = Path(__file__).parents[2] / "tools" / "kubernetes"
CACHE = Path(os.environ.get("IOLAB_KUBERNETES", Path("~/.cache/iolab/kubernetes").expanduser()))
RUN = CACHE / "cluster"
IOLAB = str(Path(sys.executable).with_name("iolab"))
ENVIRONMENT = {
    **os.environ,
    "KUBECONFIG": str(RUN / "admin.conf"),
    "PATH": f"{CACHE / 'bin'}:{os.environ['PATH']}",
}
IMAGE = "--image=localhost/iolab:test"
STORAGE_CLASS = os.environ.get("IOLAB_KUBERNETES_CLASS", "fast")
"""That of sessions which do without another: several series at a time take one each."""

NAMESPACE = os.environ.get("IOLAB_KUBERNETES_NAMESPACE", "iolab")

STUDY = f"""\
format = 1
id = "classes"

[method]
warmup = "1s"
runtime = "4s"
repeats = 3
settle = "0s"
generator_limit = false

[kubernetes]
namespace = "{NAMESPACE}"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = 8
filesize = "64m"
"""


def kubectl(*words: str, namespace: str = NAMESPACE, stdin: str | None = None) -> str:
    done = run_program(
        ("kubectl", f"--namespace={namespace}", *words), env=ENVIRONMENT, input=stdin
    )
    assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
    return done.stdout


def cluster(*words: str) -> None:
    subprocess.run([TOOLS / "cluster.sh", *words], env=ENVIRONMENT, check=True)


def objects(namespace: str = NAMESPACE) -> list[str]:
    """All that is in the namespace and could be of a session."""
    kinds = "leases,statefulsets,pods,persistentvolumeclaims"
    return kubectl("get", kinds, "--output=name", namespace=namespace).split()


def load_processes(namespace: str = NAMESPACE) -> list[str]:
    """Agents and engines in the nodes, but for those in pods of other namespaces."""
    pods = json.loads(kubectl("get", "pods", "--all-namespaces", "--output=json"))["items"]
    others = [pod["metadata"]["uid"] for pod in pods if pod["metadata"]["namespace"] != namespace]
    found = []
    for status in Path("/proc").glob("[0-9]*"):
        try:
            groups = (status / "cgroup").read_text("utf-8")
            words = (status / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        command = words.decode("utf-8", "replace")
        is_load = any(word in command for word in ("iolab-agent", "fio "))
        if "/iolab-node" in groups and is_load and not any(uid in groups for uid in others):
            found.append(f"{status.name} {command[:80]}")
    return found


def iolab(*words: str | Path, limit_s: float = 400) -> subprocess.CompletedProcess[str]:
    return run_program([IOLAB, *(str(word) for word in words)], env=ENVIRONMENT, timeout=limit_s)


def begin(study: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    """A session in pods that it makes; returns when it measures."""
    return wait_until_measuring(
        start(study, out, "--runtime=60s", "--repeats=1", *words, storage_class=STORAGE_CLASS)
    )


def start(study: Path, out: Path, *words: str, storage_class: str) -> subprocess.Popen[str]:
    """A session in pods that it makes."""
    pods = (f"--storage-class={storage_class}", "--volume=1Gi", IMAGE)
    return start_session("run", str(study), *pods, f"--out={out}", *words)


def start_session(*words: str) -> subprocess.Popen[str]:
    """A command of iolab."""
    return subprocess.Popen(
        [IOLAB, *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_until_measuring(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """The same process, once it tells a rate."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "IOPS" in line:
            return process
    raise AssertionError(f"the session ended with {process.wait()}: {''.join(lines)}")


def shown_session(out: Path) -> dict[str, Any]:
    """What `iolab show --json` says of a session."""
    done = iolab("show", out, "--json")
    assert done.stdout, done.stderr
    shown = json.loads(done.stdout)
    assert isinstance(shown, dict)
    return shown
