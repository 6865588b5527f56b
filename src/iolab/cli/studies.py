"""`iolab studies`: the studies that come with iolab."""

from __future__ import annotations

from iolab.cli.options import AsJson


def studies(*, as_json: AsJson = False) -> None:
    """List the bundled studies."""
    from iolab.cli.catalogue import bundled
    from iolab.cli.talk import result_json, result_screen
    from iolab.plan.load import scale_names

    found = bundled()
    scales = {study.id: scale_names(study.path.read_text(encoding="utf-8")) for study in found}
    if as_json:
        listing = [
            {
                "id": study.id,
                "title": study.title,
                "question": study.question,
                "scales": list(scales[study.id]),
            }
            for study in found
        ]
        result_json({"format": 1, "studies": listing})
        return
    from iolab.cli.screen import Heading, plain, table

    rows = [
        [plain(study.id, "bold"), plain(study.question), plain(", ".join(scales[study.id]))]
        for study in found
    ]
    headings = [Heading("study"), Heading("question", main=True), Heading("scales")]
    result_screen(table(headings, rows))
