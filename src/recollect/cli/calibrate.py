"""``recollect calibrate``: when to refuse, from test cases with and without an answer."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import LOCAL
from recollect.cli._options import command
from recollect.cli._progress import WorkBar
from recollect.cli._searching import SearchOptions
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.answer.refusal import RefusalRule
    from recollect.evaluation.calibrate import Calibration
    from recollect.evaluation.case_files import Case, Suite
    from recollect.model import RetrievalOptions
    from recollect.model.collection import Collection
    from recollect.pipeline import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "calibrate", collection=True, local=LOCAL)(_calibrate)


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
            if ctx.json:
                ctx.emit({"collection": place.name, "threshold": None, "stored": True})
            else:
                ctx.out.print(f"Answers from {place.name} are refused by the built-in rule again.", soft_wrap=True)
            return 0
        # What a collection keeps from before is its threshold; the weights are this version's.
        before = RefusalRule.from_mapping(place.refusal) if place.refusal else RefusalRule()
        rule = replace(RefusalRule(), threshold=before.threshold)
        options = view.standpoint.answering(search.retrieval(ctx.config))
        scores = _scores(ctx, view, suite, place, options, rule)
        found = calibrate(scores[True], scores[False], target=target, before=before.threshold, seed=seed)
        if not dry_run:
            kept = stored_rule(
                rule, found, embedding_model=place.embedding_model, reranker=reranker_of(ctx.config, options)
            )
            view.store.collections.set_refusal(view.scope, place.name, kept)
    if ctx.json:
        ctx.emit({"collection": place.name, **asdict(found), "stored": not dry_run})
    else:
        _show(ctx, place, found, stored=not dry_run)
    return 0


def _scores(
    ctx: CommandContext, view: View, suite: Suite, place: Collection, options: RetrievalOptions, rule: RefusalRule
) -> dict[bool, list[float]]:
    """The scores of the cases that have an answer (True), and of those that have none."""
    from recollect.evaluation.rag_test import tracked

    # A case that only says what must not be found tells nothing about answers.
    cases = [case for case in suite.cases if case.of_answer]
    scores: dict[bool, list[float]] = {True: [], False: []}
    with WorkBar(ctx.err, "Reading", unit="cases") as bar:
        for case in tracked(cases, bar.update):
            scores[case.answerable is not False].append(_score(view, suite, case, place, options, rule))
    return scores


def _score(
    view: View, suite: Suite, case: Case, place: Collection, options: RetrievalOptions, rule: RefusalRule
) -> float:
    from recollect.answer.extractive import ExtractionOptions, read
    from recollect.evaluation.calibrate import ALWAYS_REFUSED
    from recollect.pipeline.saved_cases import asked_view

    asked = suite.search(case)
    # Passages for an answer, as many as `ask` reads: a case's own number is about the search.
    narrowed = replace(asked.options(options), top_k=options.top_k, relevance_floor=True)
    reply = asked_view(view, asked).search(case.query, narrowed)
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


def _show(ctx: CommandContext, place: Collection, found: Calibration, *, stored: bool) -> None:
    from recollect.cli._terminal import print_table

    rows = {
        "before": found.before,
        "on these cases": found.fitted,
        "on unseen cases (cross-validated)": found.held_out,
    }
    cells = [(name, *(f"{share:.1%}" for share in errors.values())) for name, errors in rows.items() if errors]
    print_table(ctx.out, ("", "False answers", "False refusals"), cells)
    ctx.out.print(
        f"{found.answerable:,} cases with an answer, {found.unanswerable:,} without; at most {found.target:.1%} false "
        "answers wanted",
        style="dim",
    )
    verb = "are" if stored else "would be"
    ctx.out.print(f"Answers from {place.name} {verb} refused below a probability of {found.threshold:.3f}.")
    if not found.enough_cases and found.target:
        needed = round(1 / found.target) - 1
        ctx.note(
            f"Too few cases without an answer to promise {found.target:.1%}: {needed:,} are needed. All there are get "
            "refused."
        )
    if found.fitted["false_refusals"] > 0.5:
        ctx.note(
            "This refuses most questions that have an answer: the cases without one are too much like them. Choose a "
            "higher --target, or use a language model for answers."
        )
