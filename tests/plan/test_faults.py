"""What is wrong with a study is told all at once: file, line, value, nearest spelling."""

from __future__ import annotations

import pytest

from iolab.plan.document import FAULTS_MAX, TEXT_CHARACTERS_MAX
from tests.plan.studies import SMALL, faults, load, told, workload


def test_all_faults_of_a_file_come_at_once_in_its_order() -> None:
    text = (
        'format = 1\nid = "s"\ntitel = "x"\n[method]\nruntime = "5 lightyears"\nrepeats = 0\n'
        '[[workload]]\nid = "w"\nrw = "raed"\nbs = "4 parsecs"\nfilesize = "1m"\niodpeth = 3\n'
    )
    assert told(text) == [
        "s.toml:3: Unknown key 'titel'. Did you mean 'title'?",
        "s.toml:5: runtime of [method] is '5 lightyears', which is not a duration. "
        "Write for example 500ms, 30s, 10min or 2h.",
        "s.toml:6: repeats of [method] is 0. Give a whole number from 1 to 1000.",
        "s.toml:9: rw of workload 'w' is 'raed'. Did you mean 'read'?",
        "s.toml:10: bs of workload 'w' is '4 parsecs', which is not a size. "
        "Write for example 4k, 128k, 1m, 2g or 4096.",
        "s.toml:12: Unknown key 'iodpeth' in workload 'w'. Did you mean 'iodepth'?",
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("iodepth = 0", "iodepth of workload 'w' is 0. Give a whole number from 1 to 65536."),
        ("iodepth = 65537", "iodepth of workload 'w' is 65537. Give a whole number from 1 to"),
        ("iodepth = true", "iodepth of workload 'w' is true."),
        ("iodepth = 1.5", "iodepth of workload 'w' is 1.5."),
        ('iodepth = "8"', "iodepth of workload 'w' is '8'."),
        ("iodepth = []", "iodepth of workload 'w' is an empty list."),
        ("iodepth = [1, 8, 1]", "iodepth of workload 'w' has 1 twice."),
        ("iodepth = [[1]]", "iodepth of workload 'w' is [1]."),
        ("iodepth = {a = 1}", "iodepth of workload 'w' is a table."),
        ("numjobs = 4097", "numjobs of workload 'w' is 4097. Give a whole number from 1 to 4096."),
        ("files = 0", "files of workload 'w' is 0."),
        ("numjobs = 4096\nfiles = 10000", "makes 40960000 files on each host."),
        ("rate_iops = 0", "rate_iops of workload 'w' is 0."),
        ("direct = 1", "direct of workload 'w' is 1. Give true or false."),
        ('ioengine = "io_urin"', "ioengine of workload 'w' is 'io_urin'. Did you mean 'io_uring'?"),
        ('ioengine = "/tmp/x.so"', "ioengine of workload 'w' is '/tmp/x.so'. The I/O engines are"),
        ('contents = "zero"', "contents of workload 'w' is 'zero'. Did you mean 'zeros'?"),
        ('indicator = "bandwith"', "Did you mean 'bandwidth'?"),
        ('engine = "fi"', "engine of workload 'w' is 'fi'. Did you mean 'fio'?"),
        ("rwmixread = 70", "has rwmixread = 70 but rw = 'randread' does not mix."),
        ('ioengine = "psync"\niodepth = [1, 8]', "has iodepth = 8 but ioengine = 'psync' keeps"),
        ("title = 3", "title of workload 'w' is 3. Give text in quotes."),
        (f'title = "{"x" * 201}"', "title of workload 'w' has 201 characters. Give at most 200."),
        ("fio = 3", "fio of workload 'w' is 3. Give a table."),
        ("fio = { a = [1] }", "fio.a of workload 'w' is [1]."),
    ],
)
def test_a_wrong_value_of_a_workload(line: str, says: str) -> None:
    (fault,) = told(workload(line))
    assert says in fault
    assert fault.startswith("s.toml:")


@pytest.mark.parametrize(
    ("bs", "says"),
    [
        ('"513"', "bs of workload 'w' is '513', which is not a multiple of 512."),
        ("256", "bs of workload 'w' is 256. Give from 512 to"),
        ('"2g"', "bs of workload 'w' is '2g'. Give from 512 to"),
        ('"1kb"', "is '1kb', which is not a multiple of 512."),
        ("-4096", "bs of workload 'w' is -4096."),
        ("1e3", "bs of workload 'w' is 1000.0."),
        ('["4k", "4096"]', "bs of workload 'w' has '4096' twice."),
        ('"2m"', "filesize of workload 'w' is '1m', which is not a multiple of bs = '2m'."),
        ('"768k"', "filesize of workload 'w' is '1m', which is not a multiple of bs = '768k'."),
        ('["4k", "24k"]', "is '1m', which is not a multiple of bs = '24k'. Give a multiple of 24"),
    ],
)
def test_a_wrong_block_size(bs: str, says: str) -> None:
    (fault,) = told(workload(bs=bs))
    assert says in fault


def test_a_fault_in_a_list_stands_on_its_element_line() -> None:
    (fault,) = faults(workload("iodepth = [\n1,\n0,\n]"))
    assert (fault.line, "is 0" in fault.happened) == (10, True)


def test_missing_keys_are_named_with_an_example() -> None:
    assert told('format = 1\nid = "s"\n[[workload]]\nid = "w"\n') == [
        "s.toml:3: Workload 'w' has no rw. Write for example rw = \"randread\".",
        "s.toml:3: Workload 'w' has no bs. Write for example bs = \"4k\".",
        "s.toml:3: Workload 'w' has no filesize. Write for example filesize = \"2g\".",
    ]


def test_an_empty_study() -> None:
    says = told("")
    assert says[0] == "s.toml: The study has no workload. Describe at least one under [[workload]]."
    assert "s.toml: There is no format. Write for example format = 1." in says
    assert len(says) == 3


def test_another_format_is_refused() -> None:
    (fault,) = told(SMALL.replace("format = 1", "format = 2"))
    assert fault == "s.toml:1: format is 2. This iolab reads format = 1."


@pytest.mark.parametrize("bad", ["a b", "", ".x", "-x", "a/b", "x" * 65, "ü", "a\\nb", "<b>x</b>"])
def test_an_id_is_a_file_name(bad: str) -> None:
    (fault,) = told(SMALL.replace('id = "small"', f'id = "{bad}"'))
    assert "Use letters, digits" in fault
    assert "\n" not in fault


def test_two_workloads_of_one_id() -> None:
    (fault,) = told(SMALL.replace('"mix"', '"rand-read"'))
    assert fault == (
        "s.toml:12: Workload 'rand-read' has the id of another at line 5. "
        "Give each an id of its own."
    )


def test_hosts_are_checked_against_those_there_are() -> None:
    extra = (
        '[[host]]\nname = "client-1"\n[[configuration]]\nid = "a"\nhosts = [\n"client-1",\n'
        '"cleint-1"]\n[[configuration]]\nid = "b"\nhosts = ["client-1", "client-1"]\n'
    )
    first, second = faults(SMALL + extra)
    assert "'cleint-1', which is no host." in first.happened
    assert first.do == "Did you mean 'client-1'?"
    assert first.line == SMALL.count("\n") + 7
    assert "has 'client-1' twice" in second.happened


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ('name = "<b>x</b>"', "name of host '<b>x</b>' is '<b>x</b>'. Use letters"),
        ('name = "a"\nkind = "command"', "Host 'a' is of kind 'command' but has no command."),
        ('name = "a"\nkind = "comand"', "Did you mean 'command'?"),
        ('name = "a"\nkind = "local"\ncommand = ["x"]', "is of kind 'local' but has a command."),
        ('name = "a"\ncommand = "ssh x"', "command of host 'a' is 'ssh x'. Give a list."),
        ('name = "a"\ncommand = ["a\\u0000b"]', "command of host 'a' is 'a\\x00b'. Leave control"),
        ('name = "a"\npath = "x"', "path of host 'a' is 'x'. Give an absolute path"),
        ("", "Host 1 has no name. Write for example name"),
    ],
)
def test_a_wrong_host(host: str, says: str) -> None:
    (fault,) = told(f"{SMALL}[[host]]\n{host}\n")
    assert says in fault


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nodes = 0", "nodes of configuration 'a' is 0."),
        ("capacity = { raw_tbb = 4 }", "Unknown key 'raw_tbb' in configuration 'a'. Did you mean"),
        ("capacity = { raw_tb = -4 }", "capacity.raw_tb of configuration 'a' is -4."),
        ("capacity = { raw_tb = nan }", "capacity.raw_tb of configuration 'a' is nan."),
        ("cost = 3", "cost of configuration 'a' is 3. Give a table."),
        (
            'cost = { currency = "EUR", servers = 1, network = 2 }',
            "Configuration 'a' has no cost.storage. Write for example cost.storage = 90000.",
        ),
        ("hosts = []", "hosts of configuration 'a' is an empty list."),
        ('hosts = "local"', "hosts of configuration 'a' is 'local'. Give a list"),
        ('path = "a/b"', "path of configuration 'a' is 'a/b'. Give an absolute path"),
    ],
)
def test_a_wrong_configuration(line: str, says: str) -> None:
    (fault,) = told(
        f'{SMALL}[[configuration]]\nid = "a"\npath = "/x"\n{line}\n'.replace(
            'path = "/x"\npath', "path"
        ),
        path=None,
    )
    assert says in fault


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("method = 3", "method is 3, not a table. Write [method] on a line of its own"),
        ("workload = 3", "workload is 3, not a list of tables. Write [[workload]]"),
        ("workload = [3]", "workload 1 is 3. Write [[workload]]"),
        ("scale = 3", "scale is 3, not a table."),
        ("scale.x = 3", "scale 'x' is 3, not a table."),
    ],
)
def test_a_section_that_is_no_table(section: str, says: str) -> None:
    text = f'format = 1\nid = "s"\n{section}\n'
    if not section.startswith("workload"):
        text += '[[workload]]\nid = "w"\nrw = "read"\nbs = "4k"\nfilesize = "1m"\n'
    (fault,) = told(text)
    assert fault.startswith(f"s.toml:3: {says}")


def test_single_brackets_around_workload() -> None:
    (fault,) = told('format = 1\nid = "s"\n[workload]\nid = "w"\n')
    assert fault.startswith("s.toml:3: workload is a table, not a list of tables.")


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
    assert fault.happened.startswith("This is not TOML: ")
    assert fault.line == line
    assert fault.happened.isprintable()


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
    assert found[-1].happened == "There are 20 more faults."


def test_untrusted_text_is_escaped_and_cut() -> None:
    (fault,) = faults(workload(f'ioengine = "\\u001b[2J{"x" * 500}"'))
    assert "\\x1b[2J" in fault.happened
    assert fault.happened.isprintable()
    assert len(fault.happened) < 130


def test_a_million_points_are_counted_not_made() -> None:
    hundred = ",".join(str(number) for number in range(1, 101))
    text = workload(f"iodepth = [{hundred}]\nnumjobs = [{hundred}]\nrate_iops = [{hundred}]")
    (fault,) = told(text)
    assert fault == (
        "s.toml:3: The study has 1000000 points, 1000000 in workload 'w'. "
        "Vary less: at most 10000 are planned."
    )


def test_too_many_repeats_are_too_many_runs() -> None:
    hundred = ",".join(str(number) for number in range(1, 102))
    text = workload(f"iodepth = [{hundred}]\n[method]\nrepeats = 1000")
    (fault,) = told(text)
    assert "The study has 101000 runs: 101 points, 1000 repeats." in fault


def test_a_list_of_a_thousand_values_is_the_longest() -> None:
    numbers = ",".join(str(number) for number in range(1, 1002))
    (fault,) = told(workload(f"iodepth = [{numbers}]"))
    assert "has 1001 values. Give at most 1000." in fault


def test_there_must_be_a_target() -> None:
    (fault,) = told(SMALL, path=None)
    assert fault.endswith(
        "There is no target path. Give --path DIR, or path = 'DIR' under [target]."
    )


def test_a_relative_path_is_the_only_fault_it_makes() -> None:
    assert told(SMALL, path="here") == [
        "--path: path of [target] is 'here'. Give an absolute path, as in '/mnt/target'."
    ]


def test_two_paths_for_one_place() -> None:
    extra = '[[host]]\nname = "a"\npath = "/a"\n[[configuration]]\nid = "c"\npath = "/b"\n'
    (fault,) = told(SMALL + extra, path=None)
    assert "Host 'a' of configuration 'c' has two target paths, '/b' and its own '/a'." in fault


def test_a_path_that_would_have_no_effect() -> None:
    (fault,) = told(f'{SMALL}[[configuration]]\nid = "c"\npath = "/b"\n', path="/c")
    assert "--path /c has no effect" in fault
    assert "configuration.ID.path" in fault


def test_a_path_given_on_the_command_line_twice() -> None:
    (fault,) = told(SMALL, "target.path=/a", path="/b")
    assert "--path /b and --set target.path=/a give the target twice." in fault
    assert load(SMALL, "target.path=/a", path="/a").configurations[0].path == "/a"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ('exec_prerun = "touch x"', "is not allowed. docs/reference/study.md lists"),
        ('write_iops_log = "x"', "is not allowed."),
        ("norandommp = 1", "Did you mean 'norandommap'?"),
        ("iodepth = 4", "Write iodepth as a key of the workload itself."),
        ('thinktime = "1 parsec"', "fio option thinktime of workload 'w' is '1 parsec'. Write for"),
        ('cpus_allowed = "0\\nexec_prerun=x"', "is '0\\nexec_prerun=x'. Write for example '0-3,8'"),
        ("registerfiles = 1", "does not go with ioengine = 'libaio'. It belongs to io_uring."),
        ("nice = 20", "fio option nice of workload 'w' is 20."),
    ],
)
def test_a_wrong_fio_option(options: str, says: str) -> None:
    (fault,) = told(workload(f"fio = {{ {options} }}"))
    assert says in fault


def test_fio_options_are_told_also_when_the_workload_lacks_something() -> None:
    both = told(workload("fio = { exec_prerun = 'touch x', nice = 20 }", bs='"4x"'))
    assert [fault.partition(": ")[2][:12] for fault in both] == [
        "bs of worklo",
        "fio option '",
        "fio option n",
    ]


@pytest.mark.parametrize("value", ['"-5s"', '"inf"', "inf", "nan", "-1", "true", "[1]", '"2d"'])
def test_a_wrong_duration(value: str) -> None:
    (fault,) = told(workload(f"[method]\nwarmup = {value}"))
    assert "warmup of [method] is" in fault


def test_a_runtime_of_nothing() -> None:
    (fault,) = told(workload("[method]\nruntime = 0"))
    assert "Give more than 0 and at most 604800 seconds." in fault


def test_telemetry_has_its_limits() -> None:
    (fault,) = told(workload('[telemetry]\ninterval = "50ms"'))
    assert "Give at least 0.1 and at most 60 seconds." in fault


def test_faults_of_every_scale_are_found() -> None:
    text = SMALL + '[scale.other]\n"workload.*.filesize" = "6k"\n"method.runtim" = 3\n'
    first, second = told(text)
    assert first.startswith("s.toml:21: filesize of workload 'rand-read' is '6k'")
    assert second == "s.toml:22: Unknown key 'runtim'. Did you mean 'runtime'?"
