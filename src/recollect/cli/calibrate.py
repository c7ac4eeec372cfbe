"""``recollect calibrate``: when to refuse, from test cases with and without an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import SearchOptions, command
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.answer.refusal import RefusalRule
    from recollect.evaluation.calibrate import Calibration, Errors, ScoredCase
    from recollect.evaluation.cases import Case, Suite
    from recollect.model import RetrievalOptions
    from recollect.model.collection import Collection
    from recollect.pipeline import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "calibrate", collection=True, local="it measures what searches and answers do in its own process")(
        _calibrate
    )


def _calibrate(
    ctx: CommandContext,
    search: SearchOptions,
    *,
    cases: Annotated[
        Path | None,
        typer.Option("--cases", metavar="FILE", help="Test cases, some of them answerable: false."),
    ] = None,
    target: Annotated[
        float, typer.Option(min=0, max=0.99, help="False answers allowed, as a share of unanswerable questions.")
    ] = 0.05,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would do.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the built-in rule.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the random folds.")] = 0,
) -> int:
    """Set when answers from a collection are refused: so that few questions without an answer get one.

    The threshold is kept with the collection and holds for answers without a language model.
    """
    from recollect.answer.refusal import RefusalRule
    from recollect.evaluation.calibrate import calibrate, stored_rule
    from recollect.evaluation.case_files import load_suite
    from recollect.pipeline.answering import reranker_of

    if (cases is None) == (not reset):
        raise UsageError("Give --cases FILE to calibrate, or --reset to go back to the built-in rule.")
    suite = None if cases is None else load_suite(cases)
    with ctx.view() as view:
        place = view.store.collections.get(view.scope, ctx.collection)
        if suite is None:
            view.store.collections.set_refusal(view.scope, place.name, None)
            return _show_reset(ctx, place)
        # What a collection keeps from before is its threshold; the weights are this version's.
        before = RefusalRule.from_mapping(place.refusal) if place.refusal else RefusalRule()
        rule = replace(RefusalRule(), threshold=before.threshold)
        options = view.standpoint.answering(search.retrieval(ctx.config))
        scored = _scored(ctx, view, suite, place, options, rule)
        found = calibrate(scored, target=target, before=before.threshold, seed=seed)
        if not dry_run:
            kept = stored_rule(
                rule, found, embedding_model=place.embedding_model, reranker=reranker_of(ctx.config, options)
            )
            view.store.collections.set_refusal(view.scope, place.name, kept)
    if ctx.json:
        ctx.emit(_as_json(place, found, stored=not dry_run))
    else:
        _show(ctx, place, found, stored=not dry_run)
    return 0


def _scored(
    ctx: CommandContext, view: View, suite: Suite, place: Collection, options: RetrievalOptions, rule: RefusalRule
) -> list[ScoredCase]:
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.calibrate import ScoredCase

    # A case that only says what must not be found tells nothing about answers.
    cases = [case for case in suite.cases if case.answerable is not None or case.must_have]
    scored = []
    with WorkBar(ctx.err, "Reading", unit="cases") as bar:
        for done, case in enumerate(cases, start=1):
            score = _score(view, suite, case, place, options, rule)
            scored.append(ScoredCase(case.name, case.answerable is not False, score))
            bar.update(done, len(cases))
    return scored


def _score(
    view: View, suite: Suite, case: Case, place: Collection, options: RetrievalOptions, rule: RefusalRule
) -> float:
    from recollect.answer.extractive import ExtractionOptions, read
    from recollect.evaluation.calibrate import ALWAYS_REFUSED
    from recollect.evaluation.case_options import options_of

    asked = suite.search(case)
    # Passages for an answer, as many as `ask` reads: a case's own number is about the search.
    narrowed = replace(options_of(asked, options), top_k=options.top_k, relevance_floor=True)
    reply = view.view(tenant=asked.tenant_id, as_of=asked.as_of).search(case.query, narrowed)
    passages = [passage for passage in reply.results if passage.content.strip()]
    embedder = view.standpoint.assembly.embedder_for(place)
    reading = read(
        case.query,
        passages,
        embedder=embedder,
        language=place.language,
        options=ExtractionOptions(rule=rule),
        wordings=reply.wordings,
    )
    support = reading.support
    if support is None or not reading.chosen or rule.lacks_what_is_needed(support):
        return ALWAYS_REFUSED
    return rule.probability(support)


def _as_json(place: Collection, found: Calibration, *, stored: bool) -> dict[str, Any]:
    def shares(errors: Errors | None) -> dict[str, float] | None:
        if errors is None:
            return None
        return {"false_answers": errors.false_answers, "false_refusals": errors.false_refusals}

    return {
        "collection": place.name,
        "threshold": found.threshold,
        "target": found.target,
        "answerable": found.answerable,
        "unanswerable": found.unanswerable,
        "before": shares(found.before),
        "fitted": shares(found.fitted),
        "held_out": shares(found.held_out),
        "enough_cases": found.enough,
        "stored": stored,
    }


def _show_reset(ctx: CommandContext, place: Collection) -> int:
    if ctx.json:
        ctx.emit({"collection": place.name, "threshold": None, "stored": True})
    else:
        ctx.out.print(f"Answers from {place.name} are refused by the built-in rule again.", soft_wrap=True)
    return 0


def _show(ctx: CommandContext, place: Collection, found: Calibration, *, stored: bool) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("False answers", justify="right")
    table.add_column("False refusals", justify="right")
    rows = [
        ("before", found.before),
        ("on these cases", found.fitted),
        ("on unseen cases (cross-validated)", found.held_out),
    ]
    for name, errors in rows:
        if errors is not None:
            table.add_row(name, f"{errors.false_answers:.1%}", f"{errors.false_refusals:.1%}")
    ctx.out.print(table)
    ctx.out.print(
        f"{found.answerable:,} cases with an answer, {found.unanswerable:,} without; at most {found.target:.1%} false "
        "answers wanted",
        style="dim",
    )
    verb = "are" if stored else "would be"
    ctx.out.print(f"Answers from {place.name} {verb} refused below a probability of {found.threshold:.3f}.")
    if not found.enough and found.target:
        needed = round(1 / found.target) - 1
        ctx.note(
            f"Too few cases without an answer to promise {found.target:.1%}: {needed:,} are needed. All there are get "
            "refused."
        )
    if found.fitted.false_refusals > 0.5:
        ctx.note(
            "This refuses most questions that have an answer: the cases without one are too much like them. Choose a "
            "higher --target, or use a language model for answers."
        )
