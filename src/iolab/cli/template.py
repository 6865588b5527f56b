"""The commented study that a new one starts from."""

from __future__ import annotations

import re

from iolab.errors import UsageError
from iolab.study.values import is_identifier
from iolab.text import quote_value

_TEMPLATE = """\
# A study is a question about storage. What each key means: reference/study.md in the documentation.
#
#   iolab check STUDY_ID.toml                    is it right?
#   iolab plan STUDY_ID.toml --path DIR          what will it do, how long, how much space?
#   iolab run STUDY_ID.toml --path DIR           measure
#   iolab run STUDY_ID.toml --path DIR --scale small

format = 1
id = "STUDY_ID"
title = "How fast is this file system?"
question = "What do small random and large sequential I/Os get, and at what latency?"

[target]
# path = "/mnt/target"     # where the files go; --path DIR says the same for once
# keep_files = true        # leave them there for the next session

# Hosts that make the load. Without any, it is the machine that runs iolab.
#
# [[host]]
# name = "client-1"
# command = ["ssh", "-o", "BatchMode=yes", "client-1"]
#
# [[host]]
# name = "client-2"
# command = ["kubectl", "exec", "-i", "client-2", "--"]

# What to compare. Without any, there is one configuration on all hosts.
#
# [[configuration]]
# id = "six-nodes"
# title = "6 nodes, 10x 7.68 TB SSD each"
# hosts = ["client-1", "client-2"]
# path = "/mnt/six-nodes"
# nodes = 6
# capacity = { raw_tb = 461, usable_tb = 304 }
# cost = { currency = "EUR", servers = 120000, network = 20000, storage = 90000 }
# hardware = { ssd = "10x 7.68 TB a node", nic = "2x 100 Gbit/s a node" }

# Workloads in fio's words. A list makes an axis: one point for each value.

[[workload]]
id = "rand-read-4k"
title = "4 KiB random read"
rw = "randread"
bs = "4k"
iodepth = [1, 8, 32]
numjobs = 4
filesize = "4g"            # each of the 4 jobs has a file of its own: 16 GiB on each host

[[workload]]
id = "rand-70-30-4k"
title = "4 KiB random, 70% read"
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = [1, 8, 32]
numjobs = 4
filesize = "4g"

[[workload]]
id = "seq-write-1m"
title = "1 MiB sequential write"
rw = "write"
bs = "1m"
iodepth = 4
numjobs = 4
filesize = "4g"
# direct = true            # past the page cache; false measures memory and is judged so
# ioengine = "libaio"      # or "io_uring"
# fio = { random_distribution = "zipf:1.1" }  # further options of fio

# Other engines do operations on files or on key-value stores:
#
# [[workload]]
# id = "small-files"
# engine = "metadata"        # makes, looks up, reads and removes files
# ranks = [4, 16]
# files_per_rank = 1000
#
# [[workload]]
# id = "rocksdb-reads"
# engine = "db_bench"        # RocksDB's own benchmark
# benchmark = "readrandom"
# keys = 10000000
# block_size = "4k"
# threads = [4, 16, 64]
# memory = "2g"              # page cache and all: less than the database, so that it is read
#
# [[workload]]
# id = "sessions"
# engine = "ycsb"            # on an embedded store, or the one that --server names
# mix = { read = 0.5, update = 0.5 }
# records = 1000000
# threads = [8, 32, 128]

[method]
warmup = "5s"              # load that is not counted
runtime = "30s"            # load that is
repeats = 3                # each point so many times; the summary shows how far they agree
settle = "2s"              # quiet between runs
order = "randomised"       # so that a slow drift does not look like an effect of the axis
seed = 1                   # the order can be had again

[telemetry]
interval = "1s"            # how often disks, CPUs and ports are read

# Another size of the same study: iolab run STUDY_ID.toml --scale small
[scale.small]
"workload.*.filesize" = "512m"
"workload.*.numjobs" = 2
"method.runtime" = "10s"
"method.repeats" = 1
"""


def study_template(study_id: str) -> str:
    """The text of a new study file; UsageError when the id cannot name a study."""
    if not is_identifier(study_id):
        raise UsageError(
            f"{quote_value(study_id)} cannot be the id of a study.",
            "Use letters, digits, '.', '_' and '-', a letter or digit first.",
        )
    return re.sub(r"\bSTUDY_ID\b", study_id, _TEMPLATE)
