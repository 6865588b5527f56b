"""What is wrong with a study is told all at once: file, line, value, nearest spelling."""

from __future__ import annotations

import pytest

from iolab.study.document import FAULTS_MAX, TEXT_CHARACTERS_MAX
from tests.study.studies import SMALL, faults, load, told, workload

MANY = list(range(1, 101))
REFUSED = {
    "s.toml:1: format is 2.": (SMALL.replace("format = 1", "format = 2"), "/mnt/t"),
    "s.toml:12: Workload 'rand-read' has": (SMALL.replace('"mix"', '"rand-read"'), "/mnt/t"),
    "has 1001 values. Give at most 1000.": (workload(f"iodepth = {list(range(1001))}"), "/mnt/t"),
    "has 101000 runs: 101 points, 1000 repeats.": (
        workload(f"iodepth = {[*MANY, 101]}\n[method]\nrepeats = 1000"),
        "/mnt/t",
    ),
    # They are counted, not made.
    "has 1000000 points, 1000000 in": (
        workload(f"iodepth = {MANY}\nnumjobs = {MANY}\nrate_iops = {MANY}"),
        "/mnt/t",
    ),
    "There is no target path": (SMALL, None),
    "--path: path of [target] is 'here'.": (SMALL, "here"),
    "path of [target] is '/', the root": (SMALL, "/"),
    "268,435,456 I/Os in flight on one host": (
        workload("iodepth = 65536\nnumjobs = 4096"),
        "/mnt/t",
    ),
    "usable_tb = 2, more than raw_tb = 1": (
        f'{SMALL}[[configuration]]\nid = "c"\ncapacity = {{ raw_tb = 1, usable_tb = 2 }}\n',
        "/mnt/t",
    ),
    "servers of configuration 'c' is 1e+308": (
        f'{SMALL}[[configuration]]\nid = "c"\n'
        'cost = { currency = "EUR", servers = 1e308, network = 1, storage = 1 }\n',
        "/mnt/t",
    ),
    "runtime of [method] is '1ns'": (f'{SMALL}[method]\nruntime = "1ns"\n', "/mnt/t"),
    "has a command without a word": (f'{SMALL}[[host]]\nname = "a"\ncommand = []\n', "/mnt/t"),
    "two target paths, '/b' and its own '/a'": (
        f'{SMALL}[[host]]\nname = "a"\npath = "/a"\n[[configuration]]\nid = "c"\npath = "/b"\n',
        None,
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_study_that_is_refused_for_one_fault(message: str) -> None:
    text, path = REFUSED[message]
    (fault,) = told(text, path=path)
    assert message in fault


def test_all_faults_of_a_file_come_at_once_in_its_order() -> None:
    text = (
        'format = 1\nid = "s"\ntitel = "x"\n[method]\nruntime = "5 lightyears"\nrepeats = 0\n'
        '[[workload]]\nid = "w"\nrw = "raed"\nbs = "4 parsecs"\nfilesize = "1m"\niodpeth = 3\n'
    )
    message = [
        "s.toml:3: Unknown key 'titel'. Did you mean 'title'?",
        "s.toml:5: runtime of [method] is '5 lightyears'",
        "s.toml:6: repeats of [method] is 0.",
        "s.toml:9: rw of workload 'w' is 'raed'. Did you mean 'read'?",
        "s.toml:10: bs of workload 'w' is '4 parsecs'",
        "s.toml:12: Unknown key 'iodpeth' in workload 'w'. Did you mean 'iodepth'?",
    ]
    assert [
        fault[: len(words)] for fault, words in zip(told(text), message, strict=True)
    ] == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("iodepth = 0", "iodepth of workload 'w' is 0."),
        ("iodepth = 65537", "iodepth of workload 'w' is 65537."),
        ("iodepth = true", "iodepth of workload 'w' is true."),
        ("iodepth = 1.5", "iodepth of workload 'w' is 1.5."),
        ('iodepth = "8"', "iodepth of workload 'w' is '8'."),
        ("iodepth = []", "iodepth of workload 'w' is an empty list."),
        ("iodepth = [1, 8, 1]", "iodepth of workload 'w' has 1 twice."),
        ("iodepth = [[1]]", "iodepth of workload 'w' is [1]."),
        ("iodepth = {a = 1}", "iodepth of workload 'w' is a table."),
        ("numjobs = 4097", "numjobs of workload 'w' is 4097."),
        ("files = 0", "files of workload 'w' is 0."),
        ("numjobs = 4096\nfiles = 10000", "has 40960000 files on each host."),
        ("rate_iops = 0", "rate_iops of workload 'w' is 0."),
        ("direct = 1", "direct of workload 'w' is 1."),
        ('ioengine = "io_urin"', "ioengine of workload 'w' is 'io_urin'. Did you mean 'io_uring'?"),
        ('ioengine = "/tmp/x.so"', "ioengine of workload 'w' is '/tmp/x.so'."),
        ('contents = "zero"', "contents of workload 'w' is 'zero'. Did you mean 'zeros'?"),
        ('indicator = "bandwith"', "Did you mean 'bandwidth'?"),
        ('engine = "fi"', "engine of workload 'w' is 'fi'. Did you mean 'fio'?"),
        ("rwmixread = 70", "has rwmixread = 70 but rw = 'randread' does not mix."),
        ('ioengine = "psync"\niodepth = [1, 8]', "has iodepth = 8 but ioengine = 'psync' keeps"),
        ("title = 3", "title of workload 'w' is 3."),
        (f'title = "{"x" * 201}"', "title of workload 'w' has 201 characters."),
        ("fio = 3", "fio of workload 'w' is 3."),
        ("fio = { a = [1] }", "fio.a of workload 'w' is [1]."),
    ],
)
def test_a_wrong_value_of_a_workload(line: str, message: str) -> None:
    (fault,) = told(workload(line))
    assert message in fault
    assert fault.startswith("s.toml:")


@pytest.mark.parametrize(
    ("bs", "message"),
    [
        ('"513"', "bs of workload 'w' is '513', which is not a multiple of 512."),
        ("256", "bs of workload 'w' is 256."),
        ('"2g"', "bs of workload 'w' is '2g'."),
        ('"1kb"', "is '1kb' or 1000 bytes, which is not a multiple of 512."),
        ("-4096", "bs of workload 'w' is -4096."),
        ("1e3", "bs of workload 'w' is 1000.0."),
        ('["4k", "4096"]', "bs of workload 'w' has '4096' twice."),
        ('"2m"', "Workload 'w' has filesize = '1m', which is not a multiple of bs = '2m'."),
        ('"768k"', "Workload 'w' has filesize = '1m', which is not a multiple of bs = '768k'."),
        ('["4k", "24k"]', "= '1m', which is not a multiple of bs = '24k'."),
    ],
)
def test_a_wrong_block_size(bs: str, message: str) -> None:
    (fault,) = told(workload(bs=bs))
    assert message in fault


def test_a_fault_in_a_list_stands_on_its_element_line() -> None:
    (fault,) = faults(workload("iodepth = [\n1,\n0,\n]"))
    assert (fault.line, "is 0" in fault.message) == (10, True)


def test_missing_keys_are_named_with_an_example() -> None:
    missing = faults('format = 1\nid = "s"\n[[workload]]\nid = "w"\n')
    assert {fault.line for fault in missing} == {3}
    for fault, example in zip(missing, ("rw = ", "bs = ", "filesize = "), strict=True):
        assert example in fault.hint


def test_an_empty_study() -> None:
    message = told("")
    assert message[0].startswith("s.toml: The study has no workload.")
    assert message[1].startswith("s.toml: There is no format.")
    assert len(message) == 3


@pytest.mark.parametrize("bad", ["a b", "", ".x", "-x", "a/b", "x" * 65, "ü", "a\\nb", "<b>x</b>"])
def test_an_id_is_a_file_name(bad: str) -> None:
    (fault,) = told(SMALL.replace('id = "small"', f'id = "{bad}"'))
    assert "Use letters, digits" in fault
    assert "\n" not in fault


def test_hosts_are_checked_against_those_there_are() -> None:
    extra = (
        '[[host]]\nname = "client-1"\n[[configuration]]\nid = "a"\nhosts = [\n"client-1",\n'
        '"cleint-1"]\n[[configuration]]\nid = "b"\nhosts = ["client-1", "client-1"]\n'
    )
    first, second = faults(SMALL + extra)
    assert "'cleint-1', which is no host." in first.message
    assert first.hint == "Did you mean 'client-1'?"
    assert first.line == SMALL.count("\n") + 7
    assert "has 'client-1' twice" in second.message


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ('name = "<b>x</b>"', "name of host '<b>x</b>' is '<b>x</b>'."),
        ('name = "a"\nkind = "command"', "Host 'a' has kind = 'command' but no command."),
        ('name = "a"\nkind = "comand"', "Did you mean 'command'?"),
        ('name = "a"\nkind = "local"\ncommand = ["x"]', "has a command but is of kind 'local'."),
        ('name = "a"\ncommand = "ssh x"', "command of host 'a' is 'ssh x'."),
        ('name = "a"\ncommand = ["a\\u0000b"]', "command of host 'a' is 'a\\x00b'."),
        ('name = "a"\npath = "x"', "path of host 'a' is 'x'."),
        ("", "Host 1 has no name."),
    ],
)
def test_a_wrong_host(host: str, message: str) -> None:
    (fault,) = told(f"{SMALL}[[host]]\n{host}\n")
    assert message in fault


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nodes = 0", "nodes of configuration 'a' is 0."),
        ("capacity = { raw_tbb = 4 }", "Unknown key 'raw_tbb' in configuration 'a'. Did you mean"),
        ("capacity = { raw_tb = -4 }", "capacity.raw_tb of configuration 'a' is -4."),
        ("capacity = { raw_tb = nan }", "capacity.raw_tb of configuration 'a' is nan."),
        ("cost = 3", "cost of configuration 'a' is 3."),
        (
            'cost = { currency = "EUR", servers = 1, network = 2 }',
            "Configuration 'a' has no cost.storage.",
        ),
        ("hosts = []", "hosts of configuration 'a' is an empty list."),
        ('hosts = "local"', "hosts of configuration 'a' is 'local'."),
        ('path = "a/b"', "path of configuration 'a' is 'a/b'."),
    ],
)
def test_a_wrong_configuration(line: str, message: str) -> None:
    (fault,) = told(
        f'{SMALL}[[configuration]]\nid = "a"\npath = "/x"\n{line}\n'.replace(
            'path = "/x"\npath', "path"
        ),
        path=None,
    )
    assert message in fault


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("method = 3", "method is 3, not a table."),
        ("workload = 3", "workload is 3, not a list of tables."),
        ("workload = [3]", "workload 1 is 3."),
        ("scale = 3", "scale is 3, not a table."),
        ("scale.x = 3", "scale 'x' is 3, not a table."),
    ],
)
def test_a_section_that_is_no_table(section: str, message: str) -> None:
    text = f'format = 1\nid = "s"\n{section}\n'
    if not section.startswith("workload"):
        text += '[[workload]]\nid = "w"\nrw = "read"\nbs = "4k"\nfilesize = "1m"\n'
    (fault,) = told(text)
    assert fault.startswith(f"s.toml:3: {message}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = = 2\n", 2),
        ('a = 1\nb = "x\nc = 2\n', 2),
        ("a = [\n1,\n", 2),
        ("a = 1\na = 2\n", 2),
        ("[a]\n[a]\n", 2),
        ("a = 1979-13-40\n", 1),
        ("\x00", 1),
        ('a = "\x1b[31m"', 1),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(text: str, line: int) -> None:
    (fault,) = faults(text)
    assert fault.message.startswith("This is not TOML: ")
    assert fault.line == line
    assert fault.message.isprintable()


def test_a_file_out_of_all_proportion_is_refused() -> None:
    (long,) = told("#" * (TEXT_CHARACTERS_MAX + 1))
    assert f"has {TEXT_CHARACTERS_MAX + 1} characters" in long
    (deep,) = told("a = " + "[" * 100_000)
    assert "too deeply" in deep
    (number,) = told("a = " + "9" * 5000)
    assert "thousands of digits" in number


def test_a_hundred_faults_are_enough() -> None:
    text = workload() + "".join(f"bad{index} = 1\n" for index in range(FAULTS_MAX + 20))
    found = faults(text)
    assert len(found) == FAULTS_MAX + 1
    assert found[-1].message == "There are 20 more faults."


def test_untrusted_text_is_escaped_and_cut() -> None:
    (fault,) = faults(workload(f'ioengine = "\\u001b[2J{"x" * 500}"'))
    assert "\\x1b[2J" in fault.message
    assert fault.message.isprintable()
    assert len(fault.message) < 130


def test_a_path_that_would_have_no_effect() -> None:
    (fault,) = told(f'{SMALL}[[configuration]]\nid = "c"\npath = "/b"\n', path="/c")
    assert "--path /c has no effect" in fault
    assert "configuration.ID.path" in fault


def test_a_path_given_on_the_command_line_twice() -> None:
    (fault,) = told(SMALL, "target.path=/a", path="/b")
    assert "--path /b and --set target.path=/a give the target twice." in fault
    assert load(SMALL, "target.path=/a", path="/a").configurations[0].path == "/a"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('exec_prerun = "touch x"', "Leave it out: commands of a job are never run."),
        ("randrepeat = 1", "Leave it out: every run has seeds of its own"),
        ('write_iops_log = "x"', "is not allowed."),
        ("norandommp = 1", "Did you mean 'norandommap'?"),
        ("iodepth = 4", "Write iodepth as a key of the workload itself."),
        ('thinktime = "1 parsec"', "fio option thinktime of workload 'w' is '1 parsec'."),
        ('cpus_allowed = "0\\nexec_prerun=x"', "is '0\\nexec_prerun=x'."),
        ("registerfiles = 1", "registerfiles and ioengine = 'libaio'"),
        ("nice = 20", "fio option nice of workload 'w' is 20."),
    ],
)
def test_a_wrong_fio_option(options: str, message: str) -> None:
    (fault,) = told(workload(f"fio = {{ {options} }}"))
    assert message in fault


@pytest.mark.parametrize("value", ['"-5s"', '"inf"', "inf", "nan", "-1", "true", "[1]", '"2d"'])
def test_a_wrong_duration(value: str) -> None:
    (fault,) = told(workload(f"[method]\nwarmup = {value}"))
    assert "warmup of [method] is" in fault


def test_faults_of_every_scale_are_found() -> None:
    text = SMALL + '[scale.other]\n"workload.*.filesize" = "6k"\n"method.runtim" = 3\n'
    first, second = told(text)
    assert first.startswith("s.toml:21: Workload 'rand-read' has filesize = '6k'")
    assert second == "s.toml:22: Unknown key 'runtim'. Did you mean 'runtime'?"
