"""Further fio options that a study may set: what shapes load, and nothing else.

An option is listed here when it changes how I/Os are drawn, timed or submitted. Options that run
commands, name files, change the output or take over what iolab itself decides (runtime, files,
seeds, logs) are not listed and so never reach a job file. Every value must match its pattern as a
whole: the patterns admit no white space, quotes or line ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from iolab.core.engine import FLAG_PATTERN, EngineOption
from iolab.loads.fileio.engine_facts import AUTO
from iolab.loads.fileio.workload import WHOLE_PERCENT, bssplit_block_bytes_and_percents

_PERCENT: Final = "(?:100|[0-9]{1,2})"
_COUNT: Final = "[0-9]{1,9}"
_SIZE: Final = "[1-9][0-9]{0,5}[km]"
_SPLIT: Final = f"{_SIZE}(?:/{_PERCENT})?(?::{_SIZE}(?:/{_PERCENT})?){{0,63}}"
_CPUS: Final = "[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?){0,63}"
_NUMBER: Final = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
_ZONES: Final = f"{_PERCENT}/{_PERCENT}(?::{_PERCENT}/{_PERCENT}){{0,63}}"
_TIME: Final = "[0-9]{1,9}(?:us|ms|s)?"

METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        AUTO: AUTO,
        "io_uring": "io_uring",
        "libaio": "libaio",
        "psync": "sync",
        "sync": "sync",
        "pvsync": "sync",
        "pvsync2": "sync",
    }
)
"""The native engine's way to the kernel for each of fio's I/O engines that has one."""

OPTIONS_WITHOUT_EFFECT: Final = (
    "clocksource",
    "fixedbufs",
    "iodepth_batch",
    "iodepth_batch_complete_max",
    "iodepth_batch_submit",
    "mem",
    "nonvectored",
    "registerfiles",
    "thread",
    "userspace_reap",
)
"""Options that tune fio and leave the load as it is."""

SIZES_MAX: Final = 32
ZONES_MAX: Final = 64
THETA_MAX: Final = 100.0

PAUSE_MAX_US: Final = 3_600_000_000
"""What the engine takes: sizes of blocks and zones of a job, the steepest zipf, the longest pause
(an hour)."""

_UNITS_US: Final = {"": 1, "us": 1, "ms": 1000, "s": 1_000_000}
_NATIVE_TIME: Final = re.compile(r"([0-9]{1,15})(us|ms|s)?")
_ZONE: Final = "[0-9]{1,3}/[0-9]{1,3}"
_ZERO: Final = "0"

_VALUES: Final[Mapping[str, str]] = {
    # How blocks and offsets are drawn.
    "bssplit": r"[0-9]+[km](?:/[0-9]+)?(?::[0-9]+[km](?:/[0-9]+)?)*",
    "norandommap": FLAG_PATTERN,
    "percentage_random": "100",
    "random_distribution": f"random|(?:zipf|pareto):{_NUMBER}|zoned:{_ZONE}(?::{_ZONE})*",
    "random_generator": ".*",
    "file_service_type": "roundrobin",
    "rw_sequencer": "sequential",
    # When I/Os are issued.
    "rate_process": "linear|poisson",
    "rate_ignore_thinktime": _ZERO,
    "thinktime": ".*",
    "thinktime_spin": _ZERO,
    "thinktime_blocks": "[1-9][0-9]*",
    "thinktime_blocks_type": "complete",
    # How deep and in what batches.
    "iodepth_batch_complete": "[01]",
    "iodepth_batch_complete_min": "[01]",
    "serialize_overlap": _ZERO,
    # How the kernel is asked.
    "hipri": FLAG_PATTERN,
    "force_async": _ZERO,
    "sqthread_poll": FLAG_PATTERN,
    "write_hint": "none",
    # What makes writes durable.
    "fsync": ".*",
    "fdatasync": _ZERO,
    "sync": "none|0",
    "write_barrier": _ZERO,
    # What the blocks hold.
    "buffer_compress_percentage": ".*",
    "dedupe_percentage": ".*",
    **dict.fromkeys(OPTIONS_WITHOUT_EFFECT, ".*"),
}

NATIVE_OPTIONS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {name: re.compile(pattern) for name, pattern in _VALUES.items()}
)
"""Options that a native workload's `fio` table may hold, with the values that mean the same."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "group_reporting": "jobs are always added up, and told by host",
    "time_based": "runs always end by the clock",
    "filename": "where files lie is said by --path or --device",
    "directory": "where files lie is said by --path",
    "filename_format": "files are named by iolab",
    "allrandrepeat": "every run has seeds of its own, which are kept",
    "randrepeat": "every run has seeds of its own, which are kept",
    "randseed": "every run has seeds of its own, which are kept",
    "invalidate": "caches are dropped before every run, and it is proved",
    "fallocate": "files are laid out whole before the first run",
    "create_on_open": "files are laid out whole before the first run",
    "create_serialize": "files are laid out whole before the first run",
    "overwrite": "files are laid out whole before the first run",
    "fill_device": "files are laid out whole before the first run",
    "unlink": "scratch files are always removed at the end",
    "exitall": "each workload is a run by itself",
    "scramble_buffers": "blocks are scrambled unless contents says otherwise",
    "gtod_reduce": "latencies are always measured",
    "disable_lat": "latencies are always measured",
    "disable_clat": "latencies are always measured",
    "disable_slat": "latencies are always measured",
    "unified_rw_reporting": "reads and writes are always told apart",
    "status-interval": "every second is kept",
    "description": "it changes nothing",
    "eta": "it changes nothing",
    "minimal": "it changes nothing",
    "lat_percentiles": "whole latencies are kept in bins",
    "clat_percentiles": "whole latencies are kept in bins",
    "percentile_list": "whole latencies are kept in bins",
    "disk_util": "disks are watched anyway",
    "output-format": "it changes nothing",
    "end_fsync": "the load is timed, not its end",
}
"""Options that a study has no need of, with the reason."""

REFUSED: Final[Mapping[str, str]] = {
    "exec_prerun": "commands of a job are never run",
    "exec_postrun": "commands of a job are never run",
    "startdelay": "all hosts start at one moment",
    "start_delay": "all hosts start at one moment",
    "wait_for": "each workload is a run by itself",
    "bsrange": "block sizes are a list, or shares by fio's bssplit",
    "blocksize_range": "block sizes are a list, or shares by fio's bssplit",
    "buffer_pattern": "contents is scrambled, random or zeros",
    "continue_on_error": "a run with errors is invalid",
    "ioscheduler": "settings of a host are never changed",
    "latency_target": "write objective = 'max-load', which searches the load under a latency limit",
    "steadystate": "write kind = 'adaptive' under [method], which ends runs when they are steady",
    "zonemode": "zoned devices are not measured",
    "flow": "each workload is a run by itself",
    "loops": "runs end by the clock; write repeats under [method]",
    "number_ios": "runs end by the clock",
    "io_size": "runs end by the clock",
    "verify": "write verify = true and engine = 'native', which checks every block",
    "read_iolog": "traces are not replayed",
    "replay_no_stall": "traces are not replayed",
    "opendir": "where files lie is said by --path",
    "offset": "jobs work on whole files or regions",
    "offset_increment": "jobs work on whole files or regions",
    "iomem": "memory is the engine's own",
}
"""Options that a study cannot have, with the reason."""

ALIASES: Final[Mapping[str, str]] = {
    "bsize": "bs",
    "block_size": "bs",
    "blocksize": "bs",
    "readwrite": "rw",
    "size": "filesize",
    "nrfiles": "files",
}
"""Other names of keys of a workload, as fio and people call them."""


class FioOption(EngineOption):
    """With the I/O engines that know it.

    `ioengines` are the only I/O engines of fio that know the option; empty means all do.
    """

    ioengines: tuple[str, ...] = ()


def _option_entry(
    name: str, pattern: str, example: str, meaning: str, *ioengines: str
) -> tuple[str, FioOption]:
    return name, FioOption(name, re.compile(pattern), example, meaning, ioengines)


FIO_OPTIONS: Final[Mapping[str, FioOption]] = MappingProxyType(
    dict(
        (
            # How blocks and offsets are drawn.
            _option_entry("blockalign", _SIZE, "64k", "align random offsets to this size"),
            _option_entry(
                "bssplit", f"{_SPLIT}(?:,{_SPLIT})?", "4k/60:64k/40", "several block sizes"
            ),
            _option_entry(
                "norandommap", FLAG_PATTERN, "1", "do not keep track of blocks already visited"
            ),
            _option_entry(
                "percentage_random", _PERCENT, "50", "share of random I/O in a random job"
            ),
            _option_entry(
                "random_distribution",
                rf"random|(?:zipf|pareto|normal):{_NUMBER}(?::{_NUMBER})?|zoned:{_ZONES}",
                "zipf:1.2",
                "how random offsets are spread over the file",
            ),
            _option_entry(
                "random_generator", "tausworthe|lfsr|tausworthe64", "lfsr", "source of offsets"
            ),
            _option_entry(
                "rw_sequencer", "sequential|identical", "identical", "how offsets follow"
            ),
            _option_entry(
                "file_service_type",
                f"(?:random|roundrobin|sequential)(?::{_COUNT})?",
                "random",
                "which of a job's files comes next",
            ),
            # When I/Os are issued.
            _option_entry("rate_process", "linear|poisson", "poisson", "arrivals under rate_iops"),
            _option_entry(
                "rate_ignore_thinktime", FLAG_PATTERN, "1", "do not catch up after think time"
            ),
            _option_entry("thinktime", _TIME, "100us", "pause after a block of I/Os"),
            _option_entry("thinktime_spin", _TIME, "50us", "part of the pause that burns CPU"),
            _option_entry("thinktime_blocks", _COUNT, "8", "I/Os between two pauses"),
            _option_entry(
                "thinktime_blocks_type", "complete|issue", "issue", "what thinktime_blocks counts"
            ),
            # How deep and in what batches.
            _option_entry("iodepth_batch", _COUNT, "4", "I/Os submitted at once"),
            _option_entry("iodepth_batch_submit", _COUNT, "4", "the same as iodepth_batch"),
            _option_entry("iodepth_batch_complete", _COUNT, "1", "least completions taken at once"),
            _option_entry(
                "iodepth_batch_complete_min", _COUNT, "1", "least completions taken at once"
            ),
            _option_entry(
                "iodepth_batch_complete_max", _COUNT, "16", "most completions taken at once"
            ),
            _option_entry("iodepth_low", _COUNT, "4", "depth to drain to before filling again"),
            _option_entry(
                "serialize_overlap", FLAG_PATTERN, "1", "no two I/Os in flight on one block"
            ),
            # How the kernel is asked.
            _option_entry("hipri", FLAG_PATTERN, "1", "poll for completion", "io_uring", "pvsync2"),
            _option_entry(
                "registerfiles", FLAG_PATTERN, "1", "register files with the ring", "io_uring"
            ),
            _option_entry(
                "fixedbufs", FLAG_PATTERN, "1", "register buffers with the ring", "io_uring"
            ),
            _option_entry(
                "nonvectored", FLAG_PATTERN, "1", "read and write without vectors", "io_uring"
            ),
            _option_entry("force_async", _COUNT, "1", "ask for a worker every N I/Os", "io_uring"),
            _option_entry(
                "sqthread_poll", FLAG_PATTERN, "1", "a kernel thread submits", "io_uring"
            ),
            _option_entry("sqthread_poll_cpu", "[0-9]{1,4}", "3", "CPU of that thread", "io_uring"),
            _option_entry(
                "userspace_reap", FLAG_PATTERN, "1", "reap events in user space", "libaio"
            ),
            _option_entry(
                "write_hint", "none|short|medium|long|extreme", "long", "lifetime of data"
            ),
            _option_entry(
                "mem", "malloc|shm|shmhuge|mmap|mmapshared", "mmap", "kind of memory for buffers"
            ),
            # What makes writes durable.
            _option_entry("fsync", _COUNT, "32", "fsync after this many writes"),
            _option_entry("fdatasync", _COUNT, "32", "fdatasync after this many writes"),
            _option_entry("sync", "none|0|1|sync|dsync", "dsync", "open files synchronous"),
            _option_entry("write_barrier", _COUNT, "16", "every N-th write is a barrier"),
            # What the blocks hold.
            _option_entry("buffer_compress_percentage", _PERCENT, "50", "how well blocks compress"),
            _option_entry(
                "buffer_compress_chunk", f"512|{_SIZE}", "4k", "unit of that compression"
            ),
            _option_entry("dedupe_percentage", _PERCENT, "20", "share of blocks that are alike"),
            # Where and how urgently the jobs run.
            _option_entry(
                "clocksource", "gettimeofday|clock_gettime|cpu", "cpu", "clock of latencies"
            ),
            _option_entry("cpus_allowed", _CPUS, "0-3,8", "CPUs that the jobs may use"),
            _option_entry("cpus_allowed_policy", "shared|split", "split", "share or divide them"),
            _option_entry("numa_cpu_nodes", _CPUS, "0", "NUMA nodes that the jobs may use"),
            _option_entry(
                "numa_mem_policy",
                f"default|local|prefer:[0-9]{{1,4}}|(?:bind|interleave):{_CPUS}",
                "bind:0",
                "NUMA nodes that buffers come from",
            ),
            _option_entry("nice", "-20|-?1?[0-9]", "-5", "CPU priority"),
            _option_entry("prio", "[0-7]", "4", "I/O priority within its class"),
            _option_entry("prioclass", "[0-3]", "2", "I/O priority class"),
            _option_entry("thread", FLAG_PATTERN, "1", "jobs are threads instead of processes"),
        )
    )
)
"""All options that a workload's `fio` table may hold, by name."""


def is_option_supported_natively(option_name: str, value_text: str) -> bool:
    """Whether the native engine does what fio does with that option at that value."""
    pattern = NATIVE_OPTIONS.get(option_name)
    if pattern is None or pattern.fullmatch(value_text) is None:
        return False
    match option_name:
        case "bssplit":
            return _is_valid_bssplit(value_text)
        case "random_distribution":
            return _is_valid_random_distribution(*value_text.partition(":")[::2])
        case "thinktime":
            return parse_microseconds(value_text) <= PAUSE_MAX_US
    return True


def bssplit_percent_total(bssplit: str) -> int:
    """What all its shares come to; of none, or of more than a hundred, nobody could say a mean."""
    return sum(share for _, share in bssplit_block_bytes_and_percents(bssplit))


def parse_microseconds(text: str) -> int:
    """A time as fio's options have it; 0 for what is none."""
    match = _NATIVE_TIME.fullmatch(text)
    return int(match[1]) * _UNITS_US[match[2] or ""] if match else 0


def _is_valid_bssplit(text: str) -> bool:
    """More than a hundred percent fio refuses; it cuts sizes to multiples of the smallest."""
    shares = bssplit_block_bytes_and_percents(text)
    sizes = [size for size, share in shares if share]
    if not sizes or len(sizes) > SIZES_MAX or sum(share for _, share in shares) > WHOLE_PERCENT:
        return False
    least = min(size for size, _ in shares)
    return min(sizes) == least and not any(size % least for size in sizes)


def _is_valid_random_distribution(distribution: str, parameters_text: str) -> bool:
    match distribution:
        case "zipf":
            return 0 < float(parameters_text) <= THETA_MAX
        case "pareto":
            return 0 < float(parameters_text) < 1
        case "zoned":
            zones = [tuple(map(int, zone.split("/"))) for zone in parameters_text.split(":")]
            sums = [sum(column) for column in zip(*zones, strict=True)]
            return len(zones) <= ZONES_MAX and sums == [WHOLE_PERCENT, WHOLE_PERCENT]
    return True


ADVICE: Final[Mapping[str, str]] = {
    **{
        name: f"It is an option of fio: write fio = {{ {name} = '{option.example}' }}."
        for name, option in FIO_OPTIONS.items()
    },
    **{name: f"Leave it out: {why}." for name, why in (*REFUSED.items(), *LEFT_OUT.items())},
    **{name: f"Write {key}, a key of the workload itself." for name, key in ALIASES.items()},
}
"""What to do about an option that stands where it may not."""
