"""What the pages on checks give to a report."""

from __future__ import annotations

from iolab.report.check_pages import check_page_path_by_code, check_remedy


def test_every_check_has_a_remedy_without_markup() -> None:
    remedies = {code: check_remedy(code) for code in check_page_path_by_code()}
    assert remedies
    for code, remedy in remedies.items():
        assert remedy.endswith((".", "!")), code
        assert not {"`", "[", "]", "#"} & {*remedy}, code
    assert check_remedy("no-such-check") == ""
