"""`iolab check`: is a study file right? No host is touched."""

from __future__ import annotations

from iolab.cli.options import (
    AsJson,
    EngineOption,
    HostsFile,
    Scale,
    ServerOption,
    Sets,
    StudyName,
    TargetPath,
    load_study,
)


def check(
    study: StudyName,
    *,
    path: TargetPath = None,
    hosts: HostsFile = None,
    scale: Scale = "full",
    sets: Sets = None,
    server: ServerOption = None,
    engine: EngineOption = None,
    as_json: AsJson = False,
) -> None:
    """Check a study file; touch no host."""
    from iolab.cli.screen import one_line
    from iolab.cli.talk import result, result_json
    from iolab.plan.schedule import make_plan
    from iolab.report.wording import count

    read = load_study(
        study, path, scale, sets, hosts=hosts, server=server, engine=engine, path_required=False
    )
    made = make_plan(read)
    if as_json:
        result_json(
            {
                "format": 1,
                "study": read.id,
                "title": read.title,
                "scale": read.scale,
                "configurations": len(read.configurations),
                "hosts": len(read.hosts),
                "workloads": len(read.workloads),
                "points": len(made.points),
                "runs": len(made.runs),
            }
        )
        return
    counted = ", ".join(
        (
            count(len(read.configurations), "configuration"),
            count(len(read.workloads), "workload"),
            count(len(made.points), "point"),
            count(len(made.runs), "run"),
        )
    )
    result(f"{one_line(study)} is right: {one_line(read.id)}, scale {read.scale}, {counted}.")
