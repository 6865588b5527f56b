"""A session whose every name and text tries to be more than text."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.metric import CheckResult, Verdict, VerdictLevel
from tests.report.studies import sweep
from tests.report.synthetic import Source

SCRIPT = "<script>window.hurt=1</script>"
IMAGE = '"><img src=x onerror="window.hurt=2">'
TEMPLATE = "{{7*7}}{% raw %}"
TURNED = "\u202egpj.exe\u202c\x1b[31m\x00"
EVERY = f"{SCRIPT}{IMAGE}'{TEMPLATE}{TURNED}"


def hostile(source: Source | None = None) -> Source:
    """Study, host, device, check, and evidence of a session, all of them hostile."""
    source = source or sweep(("default", "other"), seconds=6)
    study = source.study
    source.study = replace(
        study,
        title=EVERY,
        question=EVERY,
        source=EVERY,
        text=f"# {EVERY}\n</pre></style>{SCRIPT}",
        overrides=(EVERY,),
        configurations=tuple(
            replace(one, title=EVERY, hardware=((EVERY, EVERY),)) for one in study.configurations
        ),
        workloads=tuple(replace(one, title=EVERY) for one in study.workloads),
    )
    check = CheckResult(EVERY, VerdictLevel.INVALID, EVERY, {EVERY: EVERY, "count": 1})
    source.results_given = tuple(
        replace(result, failure=EVERY, verdict=Verdict(VerdictLevel.INVALID, (check,)))
        for result in source.results()
    )
    facts = source.facts["client-1"]
    source.facts = {
        EVERY: replace(
            facts,
            cpu=replace(facts.cpu, model=EVERY),
            disks=tuple(replace(disk, model=EVERY, serial=EVERY) for disk in facts.disks),
            kernel=replace(facts.kernel, os=EVERY, hostname=EVERY),
            faults=(EVERY,),
        )
    }
    source.session = replace(
        source.session, command=("iolab", EVERY), reason=EVERY, id=EVERY, overrides=(EVERY,)
    )
    return source
