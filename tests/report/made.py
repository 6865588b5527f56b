"""What makes reports and exports, with all the kinds of load and of hosts that iolab knows."""

from __future__ import annotations

from functools import partial
from typing import Final

from iolab.registry import report_kinds
from iolab.report import gather, results

build_brief: Final = partial(gather.build_brief, report_kinds())
session_document: Final = partial(results.session_document, report_kinds())
session_markdown: Final = partial(results.session_markdown, report_kinds())
