"""What a set says of its own keys: headings, names of operations, options, and relations.

`[meaning]` holds what one document has alone. All else follows from how keys are written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Final

from msgspec import DecodeError, convert, field

from iolab.core.metric_spec import is_known_metric, phase_rate_key
from iolab.record import Record

MEANING_KEY: Final = "meaning"
"""The table of a set that holds all of this; none of it was printed."""

EXPRESSION_MAX: Final = 200
"""Characters of an expression; those of the sets that ship have up to 80."""

RELATIONS_MAX: Final = 100
"""Relations of a set; those that ship have up to 6. Each is looked at for every element."""

ALTERNATIVES_MAX: Final = 10
"""Expressions of a relation."""

_RULE: Final = re.compile(r"[a-z-]{1,32}")
_ARITHMETIC: Final = (
    *(ast.Expression, ast.BinOp, ast.Constant, ast.Name, ast.Attribute, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div),
)


class ArithmeticRelation(Record, forbid_unknown_fields=True):
    """A figure (`TABLE.KEY`) that equals what arithmetic on others gives, or is at most that.

    A name alone is a key of the figure's own table, `TABLE.KEY` of the element of another that is
    of the same thing. Any of several expressions will do. With a `doubt` nothing forbids another
    figure, and it says what that would mean.
    """

    rule: str
    figure: str
    equals: tuple[str, ...] = ()
    at_most: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def expressions(self) -> tuple[str, ...]:
        """Those of either kind."""
        return self.equals or self.at_most


class SetMeaning(Record, forbid_unknown_fields=True):
    """All of `[meaning]`.

    `headings` has the columns of tables by key, `operations` those of metrics by the names that the
    document has for them, `command_options` the keys by the options of `command_shape`.
    """

    headings: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    operations: Mapping[str, str] = field(default_factory=dict)
    command_options: Mapping[str, str] = field(default_factory=dict)
    relation: tuple[ArithmeticRelation, ...] = ()


def read_meaning(table: object) -> SetMeaning:
    """The meaning; ValueError for what it cannot hold."""
    try:
        meaning = convert(table, SetMeaning)
    except DecodeError as error:
        raise ValueError(f"{MEANING_KEY!r}: {error}") from None
    for operation in meaning.operations.values():
        if not is_known_metric(phase_rate_key(operation)):
            raise ValueError(f"{MEANING_KEY!r} has the operation {operation!r}, which is none")
    if len(meaning.relation) > RELATIONS_MAX:
        raise ValueError(f"{MEANING_KEY!r} has more than {RELATIONS_MAX} relations")
    for relation in meaning.relation:
        if len(relation.expressions) > ALTERNATIVES_MAX:
            raise ValueError(f"a relation of {relation.figure!r} has more than {ALTERNATIVES_MAX}")
        if not _RULE.fullmatch(relation.rule):
            raise ValueError(f"{relation.rule!r} names no relation: write letters and dashes")
        if bool(relation.equals) == bool(relation.at_most):
            raise ValueError(f"the relation of {relation.figure!r} needs 'equals' or 'at_most'")
        for expression in relation.expressions:
            parse_arithmetic(expression)
    return meaning


def parse_arithmetic(text: str) -> ast.expr:
    """Sums, differences, products and quotients of names and numbers; ValueError for all else."""
    if len(text) > EXPRESSION_MAX:
        raise ValueError(f"an expression has more than {EXPRESSION_MAX} characters")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        tree = None
    if tree is None or not all(map(_is_arithmetic, ast.walk(tree))):
        raise ValueError(f"{text!r} is no arithmetic on keys and numbers")
    return tree.body


def _is_arithmetic(node: ast.AST) -> bool:
    number = not isinstance(node, ast.Constant) or type(node.value) in (int, float)
    return isinstance(node, _ARITHMETIC) and number
