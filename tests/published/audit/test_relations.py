"""Each relation of a published set: an honest set passes, and one slip is found by it alone.

The sets are of nobody: their tables and keys have other names than those of the sets that ship, so
a user's own set in the same form is audited as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from iolab.published.audit.audit import RULES, audit_published_set
from iolab.published.audit.document import parse_published_set
from iolab.published.audit.relations import Agreement, AuditOutcome
from tests.facts import tells

CONTRADICTS, DOUBTFUL = Agreement.CONTRADICTS, Agreement.DOUBTFUL


@dataclass(frozen=True)
class Slip:
    """A set that agrees, one figure of it made wrong, and what the finding has to tell."""

    rule: str
    honest: str
    right: str
    wrong: str
    tells: tuple[str, ...]
    level: Agreement = CONTRADICTS


MIX = """
[[workload]]
id = "r"
rw = "randread"
bs = "4k"
[[workload]]
id = "m"
rw = "randrw"
rwmixread = 50
bs = "4k"
[[workload]]
id = "w"
rw = "randwrite"
bs = "4k"
[[lab]]
id = "small"
best_iops = { r = 301000, m = 151000, w = 101000 }
"""
COPIES = """
[method]
nodes = 4
copies = 3
[[result]]
write_percent = 0
max_iops = 1910000
[[result]]
write_percent = 30
max_iops = 1110000
[watched]
write_percent = 30
node_iops = 444000
[[meaning.relation]]
rule = "declared"
figure = "watched.node_iops"
equals = ["result.max_iops / method.nodes * (0.7 + 0.3 * method.copies)"]
"""
GAINS = """
[[result]]
workload = "a"
rate_gain = 25
wait_gain = 20
[[meaning.relation]]
rule = "declared"
figure = "result.wait_gain"
equals = ["rate_gain", "100 - 10000 / (100 + rate_gain)"]
doubt = "of another load"
"""
IN_FLIGHT = """
[[run]]
id = "x"
hosts = 2
read_iops = 400001
read_wait_us.mean = 101
[[meaning.relation]]
rule = "declared"
figure = "run.read_iops"
at_most = ["hosts * 32 / read_wait_us * 1e6", "hosts * 32 / read_wait_us.mean * 1e6"]
"""
SLIPS = [
    Slip("modules", "[rig]\nmemory = '8x 16GB (128GB)'", "(128", "(256", ("256 GB", "8 x 16")),
    Slip("modules", "[rig]\nuse = '5 cores (4 data, 1 rest)'", "5 c", "6 c", ("6 cores", "4 + 1")),
    Slip(
        "raw-capacity",
        "[[configuration]]\nid = 'a'\nnodes = 3\nssds_per_node = 4\nssd_tb = 3.84\nraw_tb = 46.08",
        "46.08",
        "48.08",
        ("48.08 TB", "46.08 TB"),
    ),
    Slip(
        "raw-capacity",
        "[method]\nreplication = 3\n[[configuration]]\nid = 'a'\nraw_tb = 123\nusable_tb = 41",
        "41",
        "61",
        ("61 TB", "3 copies"),
    ),
    Slip(
        "per-terabyte",
        "[[configuration]]\nid = 'a'\nnodes = 2\nraw_tb = 61.4\npeak_iops.r = 614000\n"
        "[[printed_derivation]]\nconfiguration = 'a'\niops_per_tb = 10000.1",
        "10000.1",
        "20000.1",
        ("20000.1 IOPS", "9,992 to 10,008"),
    ),
    Slip(
        "gains",
        "[[result]]\nworkload = 'a'\nops_s = { measured = 12513, competitor = 10007 }\n"
        "max_gain_ops_pct = 25",
        "= 25",
        "= 35",
        ("35 %", "25.03"),
    ),
    Slip(
        "line-rate",
        "[[cluster]]\nid = 'a'\nhosts = 2\nnic = '1x 100Gb/s'\nread_gb_s = 24.1",
        "24.1",
        "26.1",
        ("26.1 GB/s", "2 x 1 x 100", "25 GB/s"),
    ),
    Slip(
        "line-rate",
        "[watched]\nport_tx_mb_s = 150.1\nport_frames_s = 100001",
        "100001",
        "10001",
        ("150.1", "10,001"),
    ),
    Slip(
        "line-rate",
        "[rig]\nport_gbit_s = 25\n[watched]\nport_rx_mb_s = 3001",
        "3001",
        "4001",
        ("4,001", "3.125"),
    ),
    Slip(
        "command",
        "[metadata]\nranks = 16\ncommand_shape = 'mpiexec -np 16 mdtest -i 3'\n"
        "options = { iterations = 3 }\n"
        "[meaning.command_options]\n-np = 'ranks'\n-i = 'options.iterations'",
        "-i 3",
        "-i 5",
        ("-i 5", "3"),
    ),
    Slip(
        "depths",
        "[method]\nrandom_iodepths = [1, 4]\n[[lab]]\npeak_at_iodepth.rand-a = 4",
        "rand-a = 4",
        "rand-a = 8",
        ("iodepth 8", "1, 4"),
    ),
    Slip(
        "depths",
        "[method]\niodepths = [1, 4]\n[[lab]]\npeak_at_iodepth.rand-a = 4",
        "rand-a = 4",
        "rand-a = 8",
        ("iodepth 8", "1, 4"),
    ),
    Slip(
        "shares",
        "[[run]]\nid = 'x'\nhosts = 3\nwrite_gb_s = 36.3\nwrite_gb_s_per_host = 12.1",
        "12.1",
        "11.1",
        ("36.3", "3 x 11.1"),
    ),
    Slip(
        "spread",
        "[[run]]\nid = 'x'\nrepeats = 3\n"
        "stat = { min = 1.0, max = 4.0, mean = 2.0, std_dev = 1.4 }",
        "std_dev = 1.4",
        "std_dev = 0.4",
        ("0.4", "1.0 to 4.0"),
    ),
    Slip(
        "spread",
        "[[run]]\nid = 'x'\nrepeats = 5\n"
        "stat = { min = 1.0, max = 4.0, mean = 2.0, std_dev = 1.2 }",
        "std_dev = 1.2",
        "std_dev = 1.9",
        ("1.9", "5 values"),
    ),
    Slip(
        "spread",
        "[[run]]\nid = 'x'\nrepeats = 3\n"
        "stat = { min = 4001.1, max = 4103.1, mean = 4052.1, std_dev = 41.6 }",
        "{ min = 4001.1, max = 4103.1, mean = 4052.1, std_dev = 41.6 }",
        "{ min = 4001.101, max = 4001.105, mean = 4001.103, std_dev = 0.002 }",
        ("1e-06", "4,001.103"),
        DOUBTFUL,
    ),
    Slip(
        "littles-law",
        "[method]\nclients = 4\njobs_per_client = 8\n[[lab]]\nid = 'a'\n"
        "best_iops = { r = 64100 }\nmean_latency_us = { r = 4003 }\npeak_at_iodepth = { r = 8 }",
        "r = 4003",
        "r = 2003",
        ("256", "64,100", "2,003"),
    ),
    Slip(
        "littles-law",
        "[[curve]]\nvms = 4\nthreads_per_vm = 2\nmax_iops = 16010\n"
        "mean_latency_us = { qd1 = 601, qd4_max = 2001 }",
        "qd1 = 601",
        "qd1 = 301",
        ("8 in flight", "16,010", "301"),
    ),
    Slip(
        "littles-law",
        "[[curve]]\nthreads = 32\nops_s = { a = 8003 }\np99_9_read_ms = { a = 9.1 }",
        "a = 9.1",
        "a = 3.1",
        ("3.998", "3.1"),
    ),
    Slip("mix", MIX, "m = 151000", "m = 211000", ("211,000", "301,000", "101,000"), DOUBTFUL),
    Slip(
        "scaling",
        "[[example]]\nid = 's-single-client'\nhosts = 1\nread_iops = 10001\n"
        "[[example]]\nid = 's-cluster'\nhosts = 4\nread_iops = 40001",
        "40001",
        "60001",
        ("4 clients", "150 %"),
        DOUBTFUL,
    ),
    Slip(
        "part-of",
        "[rig]\ndisk_max_gb_s = 8.01\n[watched]\ndisk_read_gb_s = 2.01\n"
        "disk_read_pct_of_capacity = 25",
        "= 25",
        "= 45",
        ("45 %", "2.01", "8.01", "25.02"),
    ),
    Slip("percentages", "[watched]\ncpu_busy_pct = 91", "91", "191", ("191 %",)),
    Slip(
        "declared",
        COPIES,
        "= 444000",
        "= 277000",
        ("277,000", "1,110,000 / 4 x (0.7 + 0.3 x 3)", "442,000 to 446,000"),
    ),
    Slip("declared", GAINS, "wait_gain = 20", "wait_gain = 33", ("33", "another load"), DOUBTFUL),
    Slip(
        "declared", IN_FLIGHT, "400001", "800001", ("800,001", "2 x 32 / 101", "630,542 to 636,816")
    ),
    Slip(
        "order",
        "[[run]]\nid = 'x'\nread_us = { min = 81, mean = 101, p99 = 205, p99_9 = 307, max = 409 }",
        "p99 = 205",
        "p99 = 355",
        ("p99 is 355", "p99.9 with 307"),
    ),
    Slip("order", "[[run]]\nmean_us.qd1 = [11, 19]", "[11, 19]", "[19, 11]", ("19 to 11",)),
    Slip(
        "order",
        "[[run]]\nid = 'x'\nmax_gain_ops_pct = 54\ngain_ops_pct = 37",
        "= 37",
        "= 67",
        ("67", "54"),
    ),
    Slip(
        "restated",
        "[method]\nguests = 24\n[[also]]\nin = 'method'\nguests = 24\nwhere = 'page 3'",
        "guests = 24\nwhere",
        "guests = 25\nwhere",
        ("24", "page 3", "25"),
    ),
    Slip(
        "restated",
        "[[result]]\nworkload = 'a'\nmax_iops = 1.5e6\n"
        "[[result]]\nworkload = 'b'\nmax_iops = 1.1e6\n"
        "[[also]]\nin = 'result'\nworkload = 'a'\nmax_iops = 1.4e6\nover = true",
        "= 1.4e6",
        "= 1.7e6",
        ("1,500,000", "over 1,700,000"),
    ),
    Slip(
        "repeated",
        "[[result]]\nworkload = 'a'\nmax_ops_s = 12345\n"
        "[[result]]\nworkload = 'b'\nmax_ops_s = 12346",
        "12346",
        "12345",
        ("12,345",),
        DOUBTFUL,
    ),
    Slip(
        "stands-out",
        "".join(
            f"[[result]]\nwrite_percent = {n}\np99_99_latency_ms.qd8 = {n + 20}\n"
            for n in (1, 2, 3)
        ),
        "qd8 = 23",
        "qd8 = 223",
        ("write percent 3", "223"),
        DOUBTFUL,
    ),
]


def audited(text: str) -> tuple[AuditOutcome, ...]:
    return audit_published_set(parse_published_set(text))


@pytest.mark.parametrize("slip", SLIPS, ids=[f"{n}-{one.rule}" for n, one in enumerate(SLIPS)])
def test_an_honest_set_passes_and_a_slip_is_found_by_its_relation_alone(slip: Slip) -> None:
    assert slip.honest.count(slip.right) == 1
    before = audited(slip.honest)
    assert slip.rule == "repeated" or slip.rule in {one.rule for one in before}
    assert [one.message for one in before if one.agreement.severity] == []
    after = [
        one
        for one in audited(slip.honest.replace(slip.right, slip.wrong))
        if one.agreement.severity
    ]
    assert {(one.rule, one.agreement) for one in after} == {(slip.rule, slip.level)}
    assert tells(f"{after[0].subject}: {after[0].message}", *slip.tells)


def test_every_relation_is_tried() -> None:
    assert set(RULES) == {slip.rule for slip in SLIPS}


@pytest.mark.parametrize(
    "text",
    [
        "[[run]]\nread_us = { mean = 101, p50 = 61 }",  # skewed latencies have means above medians
        "[[run]]\nhosts = 3\nread_gb_s = 36.4\nread_gb_s_per_host = 12.1",  # 12.05 to 12.15 each
        "[a]\nread_us = { mean = 300 }\n[b]\nread_us = { p99_9 = 200 }",  # of two things
        "[[curve]]\nthreads = 32\nops_s = { a = 8003 }\np99_9_read_ms = { b = 3.1 }",
        "[[run]]\nmax_gain_ops_pct = 254",
        "[[run]]\nthreads = 32\nread_iops = 4003\nwrite_iops = 1003\nmean_us = 901",
        "[[run]]\nthreads = 32\nmax_iops = 8003\nmean_ssd_latency_us = 87",  # of a layer
        "[[run]]\nrepeats = 3\nread_us = { min = 1, mean = 2, max = 901, std_dev = 3 }",  # of I/Os
        "[a]\nport_tx_mb_s = 150\nport_tx_pct_of_capacity = 6\n[b]\nport_tx_mb_s = 181",  # of none
    ],
)
def test_what_rounding_explains_or_is_of_different_things_is_no_finding(text: str) -> None:
    assert [one.message for one in audited(text) if one.agreement.severity] == []


def test_a_finding_names_where_its_figures_stand() -> None:
    text = "[where]\nrun = 'page 2, table 1'\n[[run]]\nread_us = { mean = 301, max = 201 }"
    (found,) = audited(text)
    assert (found.agreement, found.where) == (CONTRADICTS, "page 2, table 1")
    text = "[where.run]\nx = 'page 7'\n[[run]]\nid = 'x'\nread_us = { mean = 3, max = 5 }"
    assert [one.where for one in audited(text)] == ["page 7"]


@pytest.mark.parametrize(
    "text",
    ["".join(f"a{n} = {n}\n" for n in range(1001)), "[[a]]\n" * 1001],
    ids=["figures", "elements"],
)
def test_more_than_rules_can_hold_against_each_other_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="1,000"):
        parse_published_set(text)


@pytest.mark.parametrize(
    "relation",
    [
        "equals = ['missing * 2']",
        "equals = ['result.rate']",  # of two elements none is meant
        "equals = ['size - 5']",  # not above 0
        "equals = ['1e999 * size']",
        "at_most = ['size / (size - size)']",
    ],
)
def test_a_relation_whose_figures_are_missing_says_nothing(relation: str) -> None:
    text = "[[result]]\nrate = 1\n[[result]]\nrate = 2\n[rig]\nsize = 5\n"
    text += f"[[meaning.relation]]\nrule = 'r'\nfigure = 'rig.size'\n{relation}"
    assert audited(text) == ()


def test_the_highest_of_several_limits_holds_and_a_name_alone_is_a_key() -> None:
    text = "[a]\nb = 120\na = 100\nc = 300\n[[meaning.relation]]\nrule = 'r'\nfigure = 'a.b'\n"
    (found,) = audited(f"{text}at_most = ['a', 'c']")
    assert (found.agreement, tells(found.message, "120", "c 300")) == (Agreement.AGREES, True)
    (found,) = audited(f"{text}at_most = ['a']")
    assert (found.agreement, tells(found.message, "120", "a 100")) == (CONTRADICTS, True)


@pytest.mark.parametrize(
    ("meaning", "word"),
    [
        ("meaning = 3", "object"),
        ("[meaning]\nheading = { a = 'A' }", "heading"),
        ("[meaning.operations]\ncreates_s = 'File create'", "File create"),
        ("[[meaning.relation]]\nrule = 'r'\nfigure = 'a.b'", "a.b"),
        ("[[meaning.relation]]\nrule = 'r'\nfigure = 'a.b'\nequals = [3]", "relation"),
        (
            '[[meaning.relation]]\nrule = "\\u001b[2J"\nfigure = "a.b"\nequals = ["c"]',
            "names no relation",
        ),
        *(
            (f"[[meaning.relation]]\nrule = 'r'\nfigure = 'a.b'\nequals = [{text!r}]", word)
            for text, word in (
                ("c(1)", "c(1)"),
                ("c ** 2", "c ** 2"),
                ("-c", "-c"),
                ("c +", "c +"),
                ("1j", "1j"),
                ("True", "True"),
                ("c * " * 60 + "c", "200"),
            )
        ),
    ],
)
def test_a_meaning_that_cannot_be_is_refused_with_its_words(meaning: str, word: str) -> None:
    with pytest.raises(ValueError, match=re.escape(word)):
        parse_published_set(meaning)


@pytest.mark.parametrize(
    "where",
    ["where = 3", "[where]\nrum = 'page 2'", "[where]\nrun = 2", "[where.run]\ny = 'page 2'"],
)
def test_a_place_of_what_is_not_there_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match="where"):
        parse_published_set(f"{where}\n[[run]]\nid = 'x'\n")
