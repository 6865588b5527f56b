"""Relations that a set states of its own figures, computed with what their rounding leaves open."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.published.audit.document import (
    PublishedElement,
    PublishedSet,
    RoundingInterval,
    exact_range,
    flatten_table,
    positive_printed_value_range,
)
from iolab.published.audit.figures import exact_count_range, is_same_element
from iolab.published.audit.relations import (
    Agreement,
    AuditOutcome,
    FigureComparison,
    exact_relation_outcome,
    figure_outcome,
    nested_key_text,
    printed_figure_text,
    range_text,
)
from iolab.published.meaning import ArithmeticRelation, parse_arithmetic

_OPERATORS: Final[
    dict[type[ast.operator], Callable[[RoundingInterval, RoundingInterval], RoundingInterval]]
] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_NAME: Final = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*")


def audit_declared_relations(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Every relation of the set's `[meaning]`, for each element of its table."""
    by_kind: dict[str, list[PublishedElement]] = {}
    for element in published.iterate_elements():
        by_kind.setdefault(element.table_key, []).append(element)
    for relation in published.meaning.relation:
        table_key, _, key = relation.figure.partition(".")
        expressions = {text: parse_arithmetic(text) for text in relation.expressions}
        for element in by_kind.get(table_key, ()):
            figures = _ElementExpressionScope(element, by_kind)
            yield from _audit_declared_relation(relation, key, expressions, figures)


class _ElementExpressionScope:
    """The figures that an expression names, as seen from one element."""

    def __init__(
        self, element: PublishedElement, by_kind: Mapping[str, Sequence[PublishedElement]]
    ) -> None:
        self.element = element
        self._by_kind = by_kind

    def printed_value(self, expression_name: str) -> object:
        """What this element has under a key, or the one of a table that is of the same thing."""
        table = self.element.table
        kind, _, key = expression_name.partition(".")
        others = [
            other.table
            for other in self._by_kind.get(kind, ())
            if is_same_element(table, other.table)
        ]
        if key and len(others) == 1:  # of several none is meant
            table, expression_name = others[0], key
        return dict(flatten_table(table)).get(expression_name)

    def figure_range(self, name: str) -> RoundingInterval | None:
        """The same, a count being exact; None where it is no positive figure."""
        printed = self.printed_value(name)
        return exact_count_range(name, printed) or positive_printed_value_range(printed)

    def evaluate(self, node: ast.expr) -> RoundingInterval | None:
        """None where a figure is missing, or a part is not above 0."""
        result: RoundingInterval | None
        if isinstance(node, ast.BinOp):
            left, right = self.evaluate(node.left), self.evaluate(node.right)
            result = _OPERATORS[type(node.op)](left, right) if left and right else None
        elif isinstance(node, ast.Constant):
            result = exact_range(float(str(node.value)))
        else:
            result = self.figure_range(ast.unparse(node))
        return result if result and 0 < result.low <= result.high < math.inf else None

    def expression_with_figures_text(self, expression: str) -> str:
        """An expression with figures in place of their names."""
        text = _NAME.sub(lambda name: printed_figure_text(self.printed_value(name[0])), expression)
        single = _NAME.fullmatch(expression)
        return f"{nested_key_text(expression)} {text}" if single else text.replace("*", "x")


def _audit_declared_relation(
    relation: ArithmeticRelation,
    key: str,
    expressions: Mapping[str, ast.expr],
    figures: _ElementExpressionScope,
) -> Iterator[AuditOutcome]:
    """The outcome by the expression that comes nearest; none where figures are missing."""
    stated = figures.figure_range(key)
    evaluated = [(text, figures.evaluate(node)) for text, node in expressions.items()]
    computed = {text: value for text, value in evaluated if value is not None}
    if stated is None or not computed:
        return
    if relation.at_most:
        nearest = max(computed, key=lambda text: computed[text].high)
    else:
        nearest = min(computed, key=lambda text: stated.relative_gap_to(computed[text]))
    arithmetic, element = figures.expression_with_figures_text(nearest), figures.element
    name, printed = nested_key_text(key), printed_figure_text(figures.printed_value(key))
    if relation.at_most:
        fine = stated.low <= computed[nearest].high
        limit = f"{arithmetic} = {range_text(computed[nearest], '')}"
        message = f"{name} {printed} is {'within' if fine else 'above'} {limit}."
        outcome = exact_relation_outcome(relation.rule, element, message, is_met=fine)
    else:
        comparison = FigureComparison(
            relation.rule,
            element.name,
            f"{name} {printed}",
            stated,
            computed[nearest],
            "",
            arithmetic,
            element.location,
        )
        outcome = figure_outcome(comparison)
    if relation.doubt and outcome.agreement is Agreement.CONTRADICTS:
        message = f"{outcome.message.removesuffix('.')}: {relation.doubt}."
        outcome = replace(outcome, agreement=Agreement.DOUBTFUL, message=message)
    yield outcome
