"""Short names of configurations: what fits beside a plot, and in a column of a screen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from iolab.core.configuration import Configuration
from iolab.core.study import Study
from iolab.text import distinct_parts_and_common_part, escape_invisible, excerpt

LABEL_CHARACTERS: Final = 18
"""What fits beside a plot at 12 units."""

COLUMN_CHARACTERS: Final = 14
"""What fits over a column of figures, of which a screen of 80 characters has three."""


def screen_name_by_configuration(study: Study) -> dict[str, str]:
    """What a screen calls the configurations of a study, by their ids: its tables and sentences."""
    owners = study.configurations
    names = short_configuration_names(owners, COLUMN_CHARACTERS)
    return {owner.id: name for owner, name in zip(owners, names, strict=True)}


def short_plot_label(text: str) -> str:
    """A label beside a plot: cleaned and cut to what fits there."""
    return excerpt(text, LABEL_CHARACTERS)


def short_configuration_names(
    configurations: Sequence[Configuration], max_length: int = LABEL_CHARACTERS
) -> list[str]:
    """Names of at most so many characters: titles, those without brackets, what tells them apart.

    Then as many of its first words as fit, or ids. Where nothing fits, what tells the titles apart
    is cut, and names that are then alike are numbered.
    """
    titles = [escape_invisible(configuration.title) for configuration in configurations]
    ids = [configuration.id for configuration in configurations]
    plain = [title.partition(" (")[0] for title in titles]
    distinct_titles = distinct_parts_and_common_part(titles)[0]
    first_words = [_words_that_fit(name, max_length) for name in distinct_titles]
    distinct_ids = distinct_parts_and_common_part(ids, "-_.")[0]
    for names in (titles, plain, distinct_titles, first_words, ids, distinct_ids):
        are_short = all(0 < len(name) <= max_length for name in names)
        if are_short and len(set(names)) == len(names):
            return names
    cut = [excerpt(name, max_length) for name in distinct_titles]
    return [
        name if cut.count(name) == 1 else f"{excerpt(name, max_length - 4)} {number}"
        for number, name in enumerate(cut, 1)
    ]


def _words_that_fit(name: str, max_length: int) -> str:
    """As many of the first words of a name as have room; none where the first has not."""
    beginnings = accumulate(name.split(" "), "{} {}".format)
    return max((text for text in beginnings if len(text) <= max_length), key=len, default="")
