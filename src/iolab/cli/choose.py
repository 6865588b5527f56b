"""`iolab choose`: which configuration serves what is needed, with how many nodes, how surely."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import (
    OutputFormat,
    path_or_newest_session,
    session_or_set_completions,
    unknown_name_faults,
    with_output_format,
)
from iolab.cli.output import open_session, print_document, print_renderables
from iolab.errors import Fault, UsageError
from iolab.text import counted_noun, list_text, percent_text, quote_value

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.published.choose import (
        Budget,
        Offer,
        OfferEvaluation,
        Requirements,
    )

DEFAULT_SCALING: Final = 0.8
"""What a node beyond those that were measured adds, as a share of what one of them did: a cluster
that loses nothing would have 1. It is an assumption, and every answer says so."""

CURRENCIES_NAMED: Final = 4
"""Currencies in a sentence; more are counted."""

WHOLE_FROM: Final = 1000
"""Margins from here on have no digits after the point."""

_STYLES: Final = {
    "yes": "green",
    "likely": "yellow",
    "one run": "yellow",
    "unknown": "dim",
    "no": "bold red",
}
_BUDGET: Final = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,4})?)\s*([A-Za-z$€£¥]{0,16})\s*")


@with_output_format
def choose(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET",
            help="Sessions, or published sets (see 'iolab reference').",
            autocompletion=session_or_set_completions,
        ),
    ],
    *,
    usable_tb: Annotated[
        float | None,
        typer.Option("--usable-tb", metavar="TB", help="Usable capacity in decimal terabytes."),
    ] = None,
    need: Annotated[
        list[str] | None,
        typer.Option(
            "--need",
            "-n",
            metavar="NEED",
            help="'WORKLOAD >= 1M', 'WORKLOAD >= 50GB/s', 'WORKLOAD p99 <= 2ms' or "
            "'WORKLOAD node-power <= 160W'; repeatable.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="MONEY", help="The highest cost, as '400000 EUR'."),
    ] = None,
    scaling: Annotated[
        float,
        typer.Option(
            "--scaling",
            metavar="SHARE",
            help="What an added node gives, as a share of a measured one.",
        ),
    ] = DEFAULT_SCALING,
    output_format: OutputFormat,
) -> None:
    """Rank configurations against a need."""
    import iolab.registry  # noqa: F401 - needs name metrics of every kind
    from iolab.published.choose import evaluate_offer, evaluations_best_first, known_currencies

    needs = _parse_requirements(usable_tb, need or (), budget, scaling)
    offers = [offer for name in sets for offer in _read_offers(name)]
    _require_known_workloads(needs, offers)
    fits = evaluations_best_first(evaluate_offer(needs, offer, scaling) for offer in offers)
    if output_format is not OutputFormat.TABLE:
        document = {"format": 1, "scaling": scaling, "currencies": list(known_currencies(fits))}
        choices = [_offer_evaluation_document(fitted) for fitted in fits]
        rows = [
            {"configuration": choice["configuration"], "source": choice["source"], **part}
            for choice in choices
            for part in choice["parts"]
        ]
        print_document(output_format, {**document, "fits": choices}, rows)
    else:
        print_renderables(*_offer_evaluation_lines(fits, scaling))


def _parse_requirements(
    usable_tb: float | None, need_texts: Sequence[str], budget_text: str | None, scaling: float
) -> Requirements:
    """What the options ask for; UsageError with every fault."""
    from iolab.published.choose import MinimumRate, Requirements, parse_requirement

    faults: list[Fault] = []
    parsed = []
    for text in need_texts:
        try:
            parsed.append(parse_requirement(text))
        except ValueError as error:
            faults.append(Fault(f"{error}.", "Correct --need."))
    money = _parse_budget(budget_text, faults)
    if usable_tb is not None and not 0 < usable_tb < 1e9:
        faults.append(Fault(f"--usable-tb is {usable_tb:g}.", "Give terabytes above 0."))
    if not 0 < scaling <= 1:
        faults.append(Fault(f"--scaling is {scaling:g}.", "Give a share above 0 and up to 1."))
    if not (usable_tb is not None or need_texts or budget_text):
        hint = "Give --usable-tb, --need or --budget, as --need 'WORKLOAD >= 1M'."
        faults.append(Fault("No need is given.", hint))
    if faults:
        raise UsageError("What is needed is not clear.", "Correct it.", tuple(faults))
    return Requirements(
        usable_tb,
        tuple(need for need in parsed if isinstance(need, MinimumRate)),
        tuple(need for need in parsed if not isinstance(need, MinimumRate)),
        money,
    )


def _parse_budget(budget_text: str | None, faults_to_extend: list[Any]) -> Budget | None:
    from iolab.published.choose import Budget

    if budget_text is None:
        return None
    amount = _BUDGET.fullmatch(budget_text)
    if amount is None or float(amount[1]) <= 0:
        faults_to_extend.append(
            Fault(f"--budget is {quote_value(budget_text)}.", "Write an amount, as '400000 EUR'.")
        )
        return None
    return Budget(float(amount[1]), amount[2])


def _read_offers(session_or_set: str) -> tuple[Offer, ...]:
    """Every configuration of a session or of a published set."""
    from iolab.cli.studies import read_published_set
    from iolab.published.choose import offers_from_published_configurations

    if Path(session_or_set).is_dir():
        return _session_offers(session_or_set)
    offers = offers_from_published_configurations(read_published_set(session_or_set))
    if not offers:
        hint = "Give one that has: 'iolab reference' lists the published sets."
        raise UsageError(
            f"{quote_value(session_or_set)} has no configurations to choose from.", hint
        )
    return offers


def _session_offers(session_name: str) -> tuple[Offer, ...]:
    from iolab.analysis.points import summarise_points
    from iolab.analysis.stored_results import study_and_results_with_session_checks
    from iolab.published.choose import measured_offer

    study, results = study_and_results_with_session_checks(
        open_session(path_or_newest_session(session_name))
    )
    points = summarise_points(results, study)
    return tuple(
        measured_offer(configuration.id, session_name, configuration, points)
        for configuration in study.configurations
    )


def _require_known_workloads(needs: Requirements, offers: Sequence[Offer]) -> None:
    """UsageError for workloads that none of the sets has."""
    workloads = list(dict.fromkeys(name for offer in offers for name in offer.workloads))
    asked = [rate.workload for rate in needs.minimum_rates]
    asked += [latency.workload for latency in needs.maximum_metrics]
    if faults := unknown_name_faults("workload", dict.fromkeys(asked), workloads):
        raise UsageError("Not everything that is needed was measured.", "Correct --need.", faults)


def _margin_factor_text(margin: float) -> str:
    """A margin to three digits; a large one in whole, never as a power of ten."""
    return f"{margin:,.0f}x" if margin >= WHOLE_FROM else f"{margin:.3g}x"


def _node_count_by_mean_suffix(node_count: int | None, nodes_by_mean: int | None) -> str:
    """That the mean asks for fewer nodes than the low end of the interval."""
    return (
        f" ({nodes_by_mean} by the mean)"
        if node_count and nodes_by_mean not in (None, node_count)
        else ""
    )


def _offer_evaluation_lines(
    evaluations: Sequence[OfferEvaluation], scaling: float
) -> Iterator[RenderableType]:
    """A line for each configuration with its answer, then each need with what is had."""
    from rich.text import Text

    from iolab.report.numbers import DASH, axis_values_text, value_text
    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, terminal_table

    sized = any(fit.offer.node_count is not None for fit in evaluations)
    # Without an interval the low end is the mean.
    unsure = any(
        part.margin_low not in (None, part.margin)
        for fit in evaluations
        for part in fit.requirement_results
    )
    for number, fit in enumerate(evaluations):
        if number:
            yield ""
        size = "nodes unknown" if fit.node_count is None else counted_noun(fit.node_count, "node")
        size += _node_count_by_mean_suffix(fit.node_count, fit.node_count_by_mean)
        if fit.node_count is None and fit.offer.node_count is not None:
            size = "no number of nodes would do"
        if fit.node_count is not None and fit.status_when_scaled.value == "unknown":
            size = f"at least {size}"
        cost = "" if fit.cost is None else f", {fit.cost:,.0f} {fit.offer.currency}"
        if fit.energy is not None:
            yearly = f"{fit.energy.cost_per_year:,.0f} {fit.offer.currency} a year"
            watts = value_text(fit.energy.watts, "W")
            machines = (
                " of the machines that made the load" if fit.energy.covers_only_clients else ""
            )
            cost += f", energy {yearly} at {watts}{machines}"
        heading = Text(fit.status_when_scaled.value, _STYLES[fit.status_when_scaled.value])
        yield Text("  ").join(
            [
                heading,
                literal_text(f"{fit.offer.name} ({fit.offer.source})", "bold"),
                literal_text(size + cost),
            ]
        )
        rows: list[list[Text | str]] = [
            [
                Text(f"  {part.status_when_scaled.value}", _STYLES[part.status_when_scaled.value]),
                literal_text(part.name),
                literal_text(
                    part.message
                    + (f" at {axis_values_text(part.axis_values)}" if part.axis_values else "")
                ),
                *(
                    DASH if margin is None else _margin_factor_text(margin)
                    for margin in (part.margin, part.margin_low)[: 1 + unsure]
                ),
                *(
                    DASH if nodes is None else str(nodes)
                    for nodes in (part.node_count, part.node_count_by_mean)[: 1 + unsure]
                    if sized
                ),
            ]
            for part in fit.requirement_results
        ]
        state = (
            "as seen"
            if fit.offer.node_count is None
            else f"with {counted_noun(fit.offer.node_count, 'node')}"
        )
        headings = [
            Column(""),
            Column("need", can_wrap=True),
            Column(state, can_wrap=True),
            *(Column(name, is_number=True) for name in ("margin", "low end")[: 1 + unsure]),
            *(Column(name, is_number=True) for name in ("nodes", "by mean")[: 1 + unsure] if sized),
        ]
        yield terminal_table(headings, rows)
    yield ""
    note = (
        "Each node beyond those measured is taken to add "
        f"{percent_text(scaling)} of what one of them "
        "did, and latencies to stay: an assumption, not a measurement."
    )
    unsized = "How many nodes would do is unknown: the study's configurations have no `nodes`."
    yield Text(note if sized else unsized, "dim")
    yield from _notes_on_mixed_currencies(evaluations)


def _notes_on_mixed_currencies(evaluations: Sequence[OfferEvaluation]) -> Iterator[RenderableType]:
    """What costs in several currencies mean for the order."""
    from iolab.published.choose import known_currencies
    from iolab.report.terminal import literal_text

    money = list(known_currencies(evaluations))
    if len(money) > 1:
        yield literal_text(
            f"Costs are in {list_text(money, CURRENCIES_NAMED)}: they are not "
            "compared with each "
            "other, and decide nothing of the order.",
            "yellow",
        )


def _offer_evaluation_document(evaluation: OfferEvaluation) -> dict[str, Any]:
    return {
        "configuration": evaluation.offer.name,
        "source": evaluation.offer.source,
        "as_is": evaluation.status_as_measured.value,
        "answer": evaluation.status_when_scaled.value,
        "nodes": evaluation.node_count,
        "nodes_by_mean": evaluation.node_count_by_mean,
        "nodes_seen": evaluation.offer.node_count,
        "cost": evaluation.cost,
        "currency": evaluation.offer.currency,
        "watts": evaluation.energy and evaluation.energy.watts,
        "watts_of": evaluation.energy
        and ("clients" if evaluation.energy.covers_only_clients else "nodes"),
        "energy_cost_per_year": evaluation.energy and evaluation.energy.cost_per_year,
        "parts": [
            {
                "need": part.name,
                "message": part.message,
                "as_is": part.status_as_measured.value,
                "answer": part.status_when_scaled.value,
                "margin": part.margin,
                "margin_low": part.margin_low,
                "nodes": part.node_count,
                "nodes_by_mean": part.node_count_by_mean,
                "axis": dict(part.axis_values),
            }
            for part in evaluation.requirement_results
        ],
    }
