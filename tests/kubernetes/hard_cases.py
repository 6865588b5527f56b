"""What sessions in pods survive, each case ten times: `python -m tests.kubernetes.hard_cases`.

Cases that hit pods alone may run at the same time in namespaces of their own
(`IOLAB_KUBERNETES_NAMESPACE`), each on a class of its own (`IOLAB_KUBERNETES_CLASS`). With
`--sessions 4` a fault hits four sessions at a time, each of which is a trial.

Prints a row for each case: runs lost, trials in which the cause was told, trials that were whole at
the end (by a retry or by `iolab resume`), and trials after which anything was left.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.kubernetes.cluster import (
    IMAGE,
    NAMESPACE,
    RUN,
    STORAGE_CLASS,
    STUDY,
    cluster,
    iolab,
    kubectl,
    load_processes,
    objects,
    shown_session,
    start,
    wait_until_measuring,
)

BENCH = "bench"
"""The namespace of pods that iolab does not make."""

REPEATS = 2
SHORT = (f"--repeats={REPEATS}", "--pods=3")
CLASSES = (STORAGE_CLASS, "slow")
"""Of sessions at a time, in turn: a class has volumes for two on each node."""

SESSIONS_MAX = 4
AWAY_S = 25.0
"""How long a node is gone: longer than the cluster takes to notice it."""


class Trial:
    """What came of one try: runs that were lost, whether that was told and mended, what is left."""

    def __init__(self, lost: int, *, is_told: bool, is_whole: bool, left: list[str]) -> None:
        self.lost = lost
        self.is_told = is_told
        self.is_whole = is_whole
        self.left = left


class Session:
    """A session that measures in pods of its own, one on each node."""

    def __init__(self, study: Path, out: Path, number: int, policy: str, runtime: str) -> None:
        self.out = out
        self.name = f"hard-{number}"
        self.storage_class = CLASSES[number % len(CLASSES)]
        options = (f"--set=kubernetes.name={self.name}", f"--set=method.on_failure={policy}")
        self.process = start(
            study, out, *SHORT, f"--runtime={runtime}", *options, storage_class=self.storage_class
        )

    def pods(self, *words: str) -> list[str]:
        """The names of its pods, in order."""
        selector = f"--selector=iolab-session={self.name}"
        names = kubectl("get", "pods", "--output=name", selector, *words).split()
        return sorted(name.removeprefix("pod/") for name in names)


def delete_pod(session: Session) -> str:
    (pod, *_) = session.pods()
    kubectl("delete", "pod", pod, "--wait=false")
    return pod


def delete_pod_by_force(session: Session) -> str:
    (pod, *_) = session.pods()
    kubectl("delete", "pod", pod, "--force", "--grace-period=0")
    return pod


def evict_pod(session: Session) -> str:
    (pod, *_) = session.pods()
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": NAMESPACE},
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(eviction))
    return pod


def cut_exec(session: Session) -> str:
    (pod, *_) = session.pods()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if parent == str(session.process.pid) and pod.encode() in words:
            os.kill(int(folder.name), signal.SIGKILL)
    return pod


def each(fault: Callable[[Session], str]) -> Callable[[list[Session]], list[str]]:
    """Does it to every session."""
    return lambda sessions: [fault(session) for session in sessions]


def lose_node(sessions: list[Session]) -> list[str]:
    (pod, *_) = sessions[0].pods()
    node = kubectl("get", "pod", pod, "--output=jsonpath={.spec.nodeName}")
    on_node = f"--field-selector=spec.nodeName={node}"
    hit = [session.pods(on_node)[0] for session in sessions]
    cluster("kill-node", node.removeprefix("node"))
    time.sleep(AWAY_S)
    cluster("start-node", node.removeprefix("node"))
    return hit


def restart_api(sessions: list[Session]) -> list[str]:
    """All hosts are lost at once; one of them is named."""
    cluster("kill-api")
    cluster("start-api")
    return [f"{session.name}-{session.storage_class}" for session in sessions]


FAULTS: dict[str, Callable[[list[Session]], list[str]]] = {
    "pod deleted": each(delete_pod),
    "pod deleted by force": each(delete_pod_by_force),
    "pod evicted": each(evict_pod),
    "exec cut": each(cut_exec),
    "API server restarted": restart_api,
    "node gone": lose_node,
}
"""Each gives the pod of every session that it hit, which is to be named where a run is lost."""


def try_fault(
    fault: Callable[[list[Session]], list[str]], *, numbers: range, folder: Path, runtime: str
) -> list[Trial]:
    """Sessions that meet the fault in their first run; every second one ends with it."""
    cluster("volumes")
    sessions = [
        Session(
            folder / "study.toml",
            folder / f"session-{number}",
            number,
            "stop" if number % 4 > 1 else "retry",
            runtime,
        )
        for number in numbers
    ]
    for session in sessions:
        wait_until_measuring(session.process)
    hit = fault(sessions)
    outputs = [session.process.communicate(timeout=500)[0] for session in sessions]
    trials = []
    for session, pod, output in zip(sessions, hit, outputs, strict=True):
        if session.process.returncode:
            cluster("volumes")
            done = iolab("resume", session.out)
            print(done.stderr[-600:] if done.returncode else "", end="", flush=True)
        statuses = [run["status"] for run in shown_session(session.out)["results"]]
        done_count = statuses.count("done")
        again = len(list(session.out.glob("points/*/run-*.attempt-*")))
        lost = again + len(statuses) - done_count
        is_told = not lost or f"Host '{pod.removeprefix(f'{session.name}-')}" in output
        is_whole = done_count == REPEATS
        if not (is_whole and is_told and lost <= 1):
            print(f"{statuses} {output[-3000:]}", flush=True)
        trials.append(Trial(lost, is_told=is_told, is_whole=is_whole, left=[]))
    trials[-1].left = left_over()
    return trials


def left_over(namespace: str = NAMESPACE) -> list[str]:
    """Objects, processes, labels of nodes, and files on volumes."""
    for _ in range(20):
        left = [*objects(namespace), *load_processes(namespace)]
        if not left:
            break
        time.sleep(1)
    items = json.loads(kubectl("get", "nodes,namespaces", "--output=json"))["items"]
    left += [label for item in items for label in item["metadata"]["labels"] if "iolab" in label]
    return left


def pod_document(name: str, container: dict[str, object], **spec: object) -> str:
    whole = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "load"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
            "containers": [
                {
                    "name": "load",
                    "image": IMAGE.partition("=")[2],
                    "imagePullPolicy": "Never",
                    "command": ["sleep", "infinity"],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    **container,
                }
            ],
            **spec,
        },
    }
    return json.dumps(whole)


MOUNTS = [{"name": "data", "mountPath": "/data"}]
WITH_TMP = [*MOUNTS, {"name": "tmp", "mountPath": "/tmp"}]
SIDECAR = {
    "name": "side",
    "image": IMAGE.partition("=")[2],
    "imagePullPolicy": "Never",
    "command": ["sleep", "infinity"],
}


def measure_in_bench(folder: Path, number: int, hosts: str, *words: str) -> tuple[int, str]:
    out = folder / f"session-{number}"
    done = iolab(
        *("run", folder / "study.toml", f"--hosts=k8s:{BENCH}/app=load{hosts}", "--path=/data"),
        *("--runtime=3s", "--repeats=1", f"--out={out}", *words),
    )
    return done.returncode, done.stderr + done.stdout


def try_pod(
    document: str, steps: list[tuple[str, int, str]], *, number: int, folder: Path
) -> Trial:
    """Measure in a pod; each step is what follows the selector, the exit code, and what is told."""
    kubectl("create", "--filename=-", namespace=BENCH, stdin=document)
    try:
        kubectl("wait", "--for=condition=Ready", "pod/load", "--timeout=120s", namespace=BENCH)
        results = []
        for place, (hosts, _, _) in enumerate(steps):
            if hosts == "@debug":
                add_ephemeral_container()
            results.append(measure_in_bench(folder, number * 10 + place, hosts))
        left = load_processes(BENCH)
    finally:
        kubectl("delete", "pod", "load", "--wait", namespace=BENCH)
    right = [
        code == expected and words in output
        for (code, output), (_, expected, words) in zip(results, steps, strict=True)
    ]
    for (code, output), is_right in zip(results, right, strict=True):
        if not is_right:
            print(f"exit code {code}: {output[-2500:]}", flush=True)
    left += left_over(BENCH)
    return Trial(0, is_told=all(right), is_whole=all(right), left=left)


def add_ephemeral_container() -> None:
    """Into the running pod, with its volume: an agent beside an application without tools."""
    path = f"/api/v1/namespaces/{BENCH}/pods/load"
    pod = json.loads(kubectl("get", "--raw", path))
    pod["spec"]["ephemeralContainers"] = [
        {**SIDECAR, "name": "debug", "targetContainerName": "load", "volumeMounts": MOUNTS}
    ]
    kubectl(
        "replace", "--raw", f"{path}/ephemeralcontainers", "--filename=-", stdin=json.dumps(pod)
    )
    for _ in range(60):
        text = kubectl("get", "--raw", path)
        states = json.loads(text)["status"].get("ephemeralContainerStatuses", [])
        if any("running" in state["state"] for state in states):
            return
        time.sleep(1)


PODS: dict[str, tuple[str, list[tuple[str, int, str]]]] = {
    "two containers": (
        pod_document("load", {}).replace(
            '"containers": [', f'"containers": [{json.dumps(SIDECAR)}, '
        ),
        [("", 3, "2 containers"), ("@load", 0, "IOPS")],
    ),
    "read-only root": (
        pod_document(
            "load", {"volumeMounts": WITH_TMP, "securityContext": {"readOnlyRootFilesystem": True}}
        ),
        [("", 0, "IOPS")],
    ),
    "not root": (
        pod_document(
            "load",
            {"securityContext": {"runAsUser": 12345, "runAsNonRoot": True}},
            securityContext={"fsGroup": 12345},
        ),
        [("", 0, "IOPS")],
    ),
    "no writable /tmp": (
        pod_document("load", {"securityContext": {"readOnlyRootFilesystem": True}}),
        [("", 3, "Read-only file system")],
    ),
    "ephemeral container": (pod_document("load", {}), [("@debug", 0, "IOPS")]),
}
"""Pods of others, with what comes of sessions in them."""


def try_device(*, number: int, folder: Path) -> Trial:
    """A device with a file system of somebody is refused, an empty one is measured."""
    cluster("volumes")
    devices = [(RUN / "disks" / f"block{node}.device").read_text().strip() for node in (1, 2, 3)]
    for device in devices:
        subprocess.run(["mkfs.ext4", "-qF", device], check=True)
    words = ("--storage-class=block", "--volume-mode=block", "--volume=1Gi", IMAGE)
    command = ("run", str(folder / "study.toml"), *words, "--runtime=3s", "--repeats=1")
    refused = iolab(*command, f"--out={folder / f'refused-{number}'}")
    for device in devices:
        subprocess.run(["wipefs", "--quiet", "--all", device], check=True)
    cluster("volumes")
    done = iolab(*command, f"--out={folder / f'session-{number}'}")
    is_told = refused.returncode == 3 and "ext4" in refused.stderr
    if not is_told or done.returncode:
        print(refused.returncode, refused.stderr[-2500:], done.stderr[-2500:], flush=True)
    return Trial(0, is_told=is_told, is_whole=done.returncode == 0, left=left_over())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=1, choices=range(1, SESSIONS_MAX + 1))
    parser.add_argument("--runtime", default="10s", help="of each run that a fault may hit")
    parser.add_argument("--minutes", type=float, default=600.0, help="no trial of a case after it")
    parser.add_argument("cases", nargs="*", default=[*PODS, "block volume", *FAULTS])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="iolab-hard-cases-"))
    there = kubectl("get", "namespaces", "--output=name").split()
    for name in (NAMESPACE, BENCH):
        if f"namespace/{name}" not in there:
            kubectl("create", "namespace", name)
    print("| case | tried | runs lost | told | whole | left |", flush=True)
    print("|---|--:|--:|--:|--:|--:|", flush=True)
    for case in options.cases:
        trials: list[Trial] = []
        deadline = time.monotonic() + options.minutes * 60
        place = folder / case.replace(" ", "-").replace("/", "")
        place.mkdir(exist_ok=True)
        (place / "study.toml").write_text(STUDY, encoding="utf-8")
        while (number := len(trials)) < options.times:
            if trials and time.monotonic() > deadline:
                break
            if case in FAULTS:
                numbers = range(number, min(number + options.sessions, options.times))
                trials += try_fault(
                    FAULTS[case], numbers=numbers, folder=place, runtime=options.runtime
                )
            elif case in PODS:
                document, steps = PODS[case]
                trials.append(try_pod(document, steps, number=number, folder=place))
            else:
                trials.append(try_device(number=number, folder=place))
            if trials[-1].left:
                print(f"left after {case}: {trials[-1].left}", flush=True)
            print(f"{case} {len(trials)}", file=sys.stderr, flush=True)
        lost = sum(trial.lost for trial in trials)
        worst = max(trial.lost for trial in trials)
        told = sum(trial.is_told for trial in trials)
        whole = sum(trial.is_whole for trial in trials)
        left = sum(bool(trial.left) for trial in trials)
        print(
            f"| {case} | {len(trials)} | {lost} (at most {worst}) | {told} | {whole} | {left} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
