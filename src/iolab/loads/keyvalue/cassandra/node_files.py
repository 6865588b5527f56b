"""What a node of iolab's own is told: its configuration and its command, made of plain numbers."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.loads.keyvalue.cassandra.node_host import Version
from iolab.loads.keyvalue.workload import ServerSettings
from iolab.units import format_bytes

LOOPBACK: Final = "127.0.0.1"
"""Where a node speaks to other nodes, of which it has none, and answers to JMX."""

DAEMON: Final = "org.apache.cassandra.service.CassandraDaemon"

LIFE_LIMIT_S: Final = 30 * 86400.0
"""A node lives as long as its session; the longest studies take days."""

LOG_LIMIT_BYTES: Final = 64 << 20
"""What a node may say of itself; beyond it is read and thrown away."""

OFF_HEAP_LEAST_BYTES: Final = 256 << 20
BESIDE_HEAP_BYTES: Final = 512 << 20
"""What a node needs beside its heap: code, threads, and its buffers before they are full."""

OPENED: Final = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.transport.tcp",
    "jdk.management/com.sun.management.internal",
)
EXPORTED: Final = (
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.perf",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
)
"""Inner parts of Java that Cassandra reaches into: what its own jvm11 and jvm17 options allow, in
one set that serves all versions and both Javas."""

LOGBACK: Final = b"""\
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{ISO8601,UTC} %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
"""

_JAMM: Final = re.compile(r"jamm-[0-9.]+\.jar")


@dataclass(frozen=True, slots=True)
class NodePlan:
    """All that a node's files and command are made of.

    `root` is the folder of its data, `conf` that of its configuration, both absolute;
    `storage_port` and `jmx_port` are on loopback.
    """

    settings: ServerSettings
    version: Version
    root: str
    conf: str
    jars: tuple[str, ...]
    storage_port: int
    jmx_port: int


def node_files(plan: NodePlan) -> Mapping[str, bytes]:
    """The files of its configuration by name."""
    # YAML has all of JSON in it, and JSON leaves no doubt about quotes.
    yaml = json.dumps(_options(plan), indent=1).encode() + b"\n"
    return {"cassandra.yaml": yaml, "logback.xml": LOGBACK}


def node_folders(plan: NodePlan) -> tuple[str, ...]:
    """The folders that must be there before it is started."""
    return plan.conf, plan.root, unpacked_folder(plan)


def unpacked_folder(plan: NodePlan) -> str:
    """Where it unpacks its own libraries, which a node that is killed leaves there."""
    return f"{plan.conf}/unpacked"


def node_command(plan: NodePlan) -> Command:
    """The node in the foreground. EngineError when its memory cannot hold it."""
    require_memory(plan.settings)
    argv = (plan.settings.java, *_java_options(plan), DAEMON)
    return Command(
        argv=argv,
        cwd=plan.conf,
        stdin=b"",
        job_file="\n".join(argv),
        wall_limit_s=LIFE_LIMIT_S,
        output_limit_bytes=LOG_LIMIT_BYTES,
        memory_limit_bytes=plan.settings.memory_bytes,
    )


def direct_bytes(settings: ServerSettings) -> int:
    """Memory for buffers outside of the heap: half as much as in it, as was seen to serve."""
    return max(OFF_HEAP_LEAST_BYTES, settings.heap_bytes // 2)


def require_memory(settings: ServerSettings) -> None:
    """EngineError when the bound on all memory leaves no room beside the heap."""
    bound = settings.memory_bytes
    least = settings.heap_bytes + BESIDE_HEAP_BYTES
    if bound is not None and bound < least:
        raise EngineError(
            f"A node with a heap of {format_bytes(settings.heap_bytes)} does not fit into "
            f"{format_bytes(bound)} of memory.",
            f"Set server.memory to {format_bytes(least)} or more, or server.heap to less.",
        )


def _options(plan: NodePlan) -> dict[str, Any]:
    """The settings that differ from Cassandra's own defaults, and the places."""
    sync: dict[str, Any] = {
        "commitlog_sync_period_in_ms": 10000,
        "commitlog_segment_size_in_mb": 32,
    }
    if plan.version.has_units:
        sync = {"commitlog_sync_period": "10000ms", "commitlog_segment_size": "32MiB"}
    seeds = {"seeds": f"{LOOPBACK}:{plan.storage_port}"}
    return {
        "cluster_name": "iolab",
        "num_tokens": 16,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [seeds],
            }
        ],
        "listen_address": LOOPBACK,
        "storage_port": plan.storage_port,
        "rpc_address": plan.settings.listen,
        "native_transport_port": plan.settings.port,
        "start_native_transport": True,
        "data_file_directories": [f"{plan.root}/data"],
        "commitlog_directory": f"{plan.root}/commitlog",
        "saved_caches_directory": f"{plan.root}/saved_caches",
        "hints_directory": f"{plan.root}/hints",
        "cdc_raw_directory": f"{plan.root}/cdc_raw",
        "commitlog_sync": "periodic",
        **sync,
        # A full disk or a broken one ends the node at once: one that lives on and serves nothing
        # would be measured.
        "disk_failure_policy": "die",
        "commit_failure_policy": "die",
        # A dropped table would stay on disk.
        "auto_snapshot": False,
    }


def _java_options(plan: NodePlan) -> Sequence[str]:
    heap = plan.settings.heap_bytes
    agents = [jar for jar in plan.jars if _JAMM.fullmatch(posixpath.basename(jar))]
    return (
        f"-Xms{heap}",
        f"-Xmx{heap}",
        f"-XX:MaxDirectMemorySize={direct_bytes(plan.settings)}",
        "-Xss256k",
        "-XX:+UseG1GC",
        "-XX:+ExitOnOutOfMemoryError",
        # What Java leaves among temporary files would outlive it.
        "-XX:+PerfDisableSharedMem",
        f"-Djava.io.tmpdir={unpacked_folder(plan)}",
        f"-Djna.tmpdir={unpacked_folder(plan)}",
        *(f"-javaagent:{jar}" for jar in agents),
        *(f"--add-exports={part}=ALL-UNNAMED" for part in EXPORTED),
        *(f"--add-opens={part}=ALL-UNNAMED" for part in OPENED),
        "-Djdk.attach.allowAttachSelf=true",
        f"-Dcassandra.config=file://{quote(plan.conf)}/cassandra.yaml",
        f"-Dcassandra.storagedir={plan.root}",
        f"-Dlogback.configurationFile={plan.conf}/logback.xml",
        f"-Dcassandra.jmx.local.port={plan.jmx_port}",
        "-Dcassandra-foreground=yes",
        # There is nobody whose gossip could be waited for.
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        "-Dcassandra.ring_delay_ms=1",
        "-cp",
        ":".join((plan.conf, *plan.jars)),
    )
