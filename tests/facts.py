"""The figures and names that a text tells, whatever its wording."""

from __future__ import annotations

import re


def tells(text: str, *facts: str) -> bool:
    """Whether a line has the facts in this order, each as a whole: "2 %" is not in "12 %"."""
    each = (rf"(?<![\w.,+−-]){re.escape(one)}(?!\w|[.,]\d)" for one in facts)
    return re.search(".*?".join(each), text) is not None
