"""``recollect rag-test``, ``quality-test`` and ``calibrate``: what test cases say of searches and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.answer.extractive import ExtractionOptions, read
from recollect.answer.refusal import RefusalRule
from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import LOCAL, measured, under_test
from recollect.cli._options import CollectionOption, command
from recollect.cli._progress import WorkBar
from recollect.cli._searching import SearchOptions
from recollect.cli._terminal import one_line, print_table, shortened
from recollect.errors import UsageError
from recollect.evaluation.calibrate import ALWAYS_REFUSED, calibrate, stored_rule
from recollect.evaluation.case_files import load_suite
from recollect.evaluation.html_report import render_quality, shown
from recollect.evaluation.persona_audit import load_personas
from recollect.evaluation.quality import METRICS, ModelJudge, run_quality
from recollect.evaluation.rag_test import selected, tracked
from recollect.evaluation.scoring import place_of
from recollect.model.search_options import validate
from recollect.model.written_files import require_writable
from recollect.pipeline.answering import reranker_of
from recollect.pipeline.models import EXTRACTIVE, embedding_model, language_model, model_name, with_model
from recollect.pipeline.persona_audit import evaluate_personas, give_permissions
from recollect.pipeline.saved_cases import asked_view, found_by, run_cases
from recollect.providers.catalogue import PROVIDERS
from recollect.providers.registry import environment_key, installed

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.evaluation.calibrate import Calibration
    from recollect.evaluation.case_files import Case, CaseSearch, Suite
    from recollect.evaluation.persona_audit import AsEachResult, PersonaFile
    from recollect.evaluation.quality import ModelQuality
    from recollect.evaluation.rag_test import CaseResult, SuiteResult
    from recollect.model import Answer, RetrievalOptions
    from recollect.model.collection import Collection
    from recollect.pipeline import View


DEFAULT_FILE = Path("rag-tests.yaml")

_MEANS = {"precision": "precision", "recall": "recall", "MRR": "mrr"}
_FOUND_SHOWN = 3
_LEAKS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "rag-test", local=LOCAL)(_rag_test)
    command(app, "quality-test", local=LOCAL)(_quality_test)
    command(app, "calibrate", collection=True, local=LOCAL)(_calibrate)


def _rag_test(
    ctx: CommandContext,
    collection: CollectionOption,
    search: SearchOptions,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Test cases in YAML; by default rag-tests.yaml.")
    ] = DEFAULT_FILE,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", "-t", metavar="NAME", help="Only this case (* and ? allowed); repeat for more."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, max=10_000, help="Searches of each case.")] = 1,
    ingest: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Test this folder, in a collection that is removed afterwards."),
    ] = None,
    as_each: Annotated[
        Path | None,
        typer.Option(
            metavar="PERSONAS",
            help="Run every case as each of these people, and fail if one is shown what they may not read.",
        ),
    ] = None,
) -> int:
    """Run test cases: precision, recall, MRR and latency; the exit status is 1 if a case falls below its thresholds.

    With --as-each it is 1 if somebody is shown what they may not read.
    """
    suite = load_suite(file)
    cases = selected(suite, test or [])
    options = search.retrieval(ctx.config)
    for case in cases:
        validate(case.query, suite.search(case).options(options))
    personas = None if as_each is None else _personas(as_each, runs=runs, ingested=ingest is not None)
    show: Callable[[], None]
    with (
        ctx.view(measured(ctx.config)) as whole,
        under_test(ctx, whole, ingest, collection.collection) as view,
        WorkBar(ctx.err, "Testing", unit="cases") as bar,
    ):
        if personas is None:
            # The first search loads the model, which is no part of any case's latency.
            view.search(cases[0].query, options)
            tested = run_cases(view, suite, options, cases=cases, runs=runs, progress=bar.update)
            passed, report, show = tested.passed, tested.as_json(), partial(_show, ctx, tested)
        else:
            if personas.grants:
                give_permissions(view, personas.permissions())
            askers = personas.principals()
            audit = evaluate_personas(view, suite, askers, options=options, cases=cases, progress=bar.update)
            passed, report, show = audit.passed, audit.as_json(), partial(_show_personas, ctx, audit)
    return ctx.tell(
        {"file": str(file), "collection": view.standpoint.collection, **report},
        show,
        status=0 if passed else 1,
    )


def _personas(file: Path, *, runs: int, ingested: bool) -> PersonaFile:
    """Read the personas that cases run as."""
    if runs != 1:
        raise UsageError("--as-each runs every case once as each persona: leave --runs out.")

    personas = load_personas(file)
    if personas.grants and not ingested:
        raise UsageError(
            f"{file} holds grants, which are for documents that --ingest DIR brings. What is in a collection has its "
            "own: recollect grants list."
        )
    return personas


def _show(ctx: CommandContext, result: SuiteResult) -> None:
    rows: list[tuple[str | Text, ...]] = []
    for one in result.results:
        figures = ("–" if value is None else f"{value:.2f}" for value in one.metrics.values())
        ended = {None: "", "answer": "answered", "passages": "passages", "none": "refused"}[one.outcome]
        mark = Text("✓", "green") if one.passed else Text("✗", "bold red")
        notes = ", ".join(part for part in (ended, "" if one.stable else "varies between runs") if part)
        rows.append((mark, one_line(one.case.name), *figures, f"{one.latency_ms:,.1f}", Text(notes, style="dim")))
    print_table(ctx.out, ("", "Case", "Precision", "Recall", "MRR", "ms", ""), rows, left=(0, 1, 6))
    for one in result.results:
        if not one.passed:
            ctx.out.print()
            ctx.out.print(_failure(one), soft_wrap=True)
    ctx.out.print()
    count, passed = result.counts()["cases"], result.counts()["passed"]
    style = "green" if result.passed else "bold red"
    ctx.out.print(f"{passed:,} of {count:,} case{'' if count == 1 else 's'} passed", style=style)
    means = [(name, result.mean(key)) for name, key in _MEANS.items()]
    if told := ", ".join(f"{name} {mean:.3f}" for name, mean in means if mean is not None):
        ctx.out.print(f"mean {told}")
    runs = f", {result.runs:,} runs each" if result.runs > 1 else ""
    half, most = result.latencies().values()
    ctx.out.print(f"a search: {half:,.1f} ms (median), {most:,.1f} ms (95th percentile){runs}", style="dim")


def _failure(result: CaseResult) -> Text:
    text = Text.assemble(("✗ ", "bold red"), (one_line(result.case.name), "bold"), f": {one_line(result.case.query)}")
    for failure in result.failures:
        text.append(f"\n    {one_line(failure)}", "red")
    for passage in result.found[:_FOUND_SHOWN]:
        text.append(f"\n    found {one_line(place_of(passage))}: {shortened(passage.content, 90)}", "dim")
    return text


def _show_personas(ctx: CommandContext, result: AsEachResult) -> None:
    rows = [
        (
            one_line(one.name),
            f"{one.readable_documents:,} of {one.documents:,}",
            f"{sum(case.recall is not None for case in one.cases):,} of {len(one.cases):,}",
            "–" if one.recall is None else f"{one.recall:.2f}",
            f"{one.withheld:,}",
            Text(f"{len(one.leaks):,}", "bold red" if one.leaks else "green"),
        )
        for one in result.personas
    ]
    print_table(ctx.out, ("Persona", "May read", "Cases", "Recall", "Withheld", "Leaks"), rows)
    ctx.out.print()
    for leak in result.leaks[:_LEAKS_SHOWN]:
        persona, source, case = map(one_line, (leak.persona, leak.source, leak.case))
        text = Text.assemble(("✗ ", "bold red"), f"{persona} was shown {source} by the {leak.place} of {case}")
        ctx.out.print(text, soft_wrap=True)
    if len(result.leaks) > _LEAKS_SHOWN:
        ctx.note(f"… and {len(result.leaks) - _LEAKS_SHOWN:,} more; --json lists all of them")
    if result.passed:
        ctx.out.print("nobody was shown what they may not read", style="green")


# ``recollect quality-test``: how good answers are, by model.


# As short as a terminal of 80 columns asks for; JSON and the page have the whole names.
_TITLES = {
    "refusal_accuracy": "refusal",
    "fact_recall": "facts",
    "passage_recall": "shown",
    "faithfulness": "faithf.",
    "citation_precision": "cite P",
    "citation_recall": "cite R",
    "answer_relevancy": "relev.",
}


def _quality_test(
    ctx: CommandContext,
    collection: CollectionOption,
    search: SearchOptions,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Questions and what is expected of answers, in YAML.")],
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="PROVIDER/NAME", help="Test this model, or extractive; repeat for more."),
    ] = None,
    all_models: Annotated[
        bool,
        typer.Option(
            "--all-models",
            help="Test answers without a model, the configured model, and each installed provider's whose key is set.",
        ),
    ] = False,
    judge: Annotated[
        str | None, typer.Option(metavar="PROVIDER/NAME", help="Let this model judge faithfulness and relevancy.")
    ] = None,
    ingest: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Test this folder, in a collection that is removed afterwards."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page to look at.")] = None,
) -> int:
    """Measure answers: outcomes, facts, faithfulness, citations, latency, tokens and cost; a table by model.

    The exit status is 1 if a case fails with some model.
    """
    suite = load_suite(file)
    if model and all_models:
        raise UsageError("Give --model or --all-models, but not both.")
    if html is not None:
        require_writable(html, overwrite=True)
    asked = _all_models(ctx.config) if all_models else model or [model_name(ctx.config.answer)]
    configurations = [with_model(ctx.config, name) for name in dict.fromkeys(asked)]
    judging = None if judge is None else with_model(ctx.config, judge)
    models = [
        _measured_model(ctx, config, suite, search, judging=judging, ingest=ingest, collection=collection.collection)
        for config in configurations
    ]
    if html is not None:
        when = datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC")
        subtitle = f"{len(suite.cases):,} questions · judge: {judge or 'none'} · {when}"
        html.write_text(render_quality(models, title=f"Answers to {file.name}", subtitle=subtitle), encoding="utf-8")
    passed = all(one.passed for one in models)
    if ctx.json:
        document = {"file": str(file), "judge": judge, "passed": passed, "models": [one.as_json() for one in models]}
        ctx.emit(document | ({"html": str(html)} if html is not None else {}))
    else:
        _show_models(ctx, models, html)
    return 0 if passed else 1


def _all_models(config: RAGConfig) -> list[str]:
    usable = [
        f"{row.name}/{row.default_models['chat']}"
        for row in PROVIDERS.values()
        if "chat" in row.default_models and installed(row) and environment_key(row) is not None
    ]
    return list(dict.fromkeys([EXTRACTIVE, model_name(config.answer), *usable]))


def _measured_model(
    ctx: CommandContext,
    config: RAGConfig,
    suite: Suite,
    search: SearchOptions,
    *,
    judging: RAGConfig | None,
    ingest: Path | None,
    collection: str | None,
) -> ModelQuality:
    given = search.retrieval(config)
    # As `ask` searches, so that a judge sees the answer's sources.
    options = replace(given, top_k=given.top_k or config.answer.passages, relevance_floor=True)
    asked = [suite.search(case) for case in suite.cases]
    for one in asked:
        validate(one.query, one.options(options))
    name = model_name(config.answer)
    with (
        ctx.view(measured(config)) as whole,
        under_test(ctx, whole, ingest, collection) as view,
        WorkBar(ctx.err, f"Asking {name}", unit="questions") as bar,
    ):
        # The first search loads the model of embeddings, which is no part of any answer's latency.
        view.search(asked[0].query, options)
        return run_quality(
            suite,
            model=name,
            ask=lambda one: asked_view(view, one).ask(one.query, one.options(options)),
            judge=None if judging is None else _judge(view, judging, asked, options),
            input_price=config.answer.input_price,
            output_price=config.answer.output_price,
            progress=bar.update,
        )


def _judge(view: View, config: RAGConfig, asked: Sequence[CaseSearch], options: RetrievalOptions) -> ModelJudge:
    model = language_model(config.answer)
    if model is None:
        raise UsageError("A judge is a language model: --judge provider/name.")

    def sources(answer: Answer) -> list[str]:
        one = next(one for one in asked if one.query == answer.question)
        return [hit.content for hit in found_by(view, options, one)]

    return ModelJudge(
        model,
        sources=sources,
        embedder=embedding_model(config.embedding),
        timeout_seconds=config.answer.timeout_seconds,
    )


def _show_models(ctx: CommandContext, models: list[ModelQuality], html: Path | None) -> None:
    metrics = [name for name in METRICS if any(model.mean(name) is not None for model in models)]
    rows = []
    for model in models:
        cost, counts = model.cost(), model.counts()
        rows.append(
            (
                one_line(model.model),
                f"{counts['passed']:,}/{counts['cases']:,}",
                *(shown(model.mean(name)) for name in metrics),
                f"{model.latency_ms(0.5):,.0f}",
                f"{sum(model.tokens().values()):,}",
                "–" if cost is None else f"{cost:.4f}",
            )
        )
    head = ("Model", "passed", *(_TITLES[name] for name in metrics), "ms", "tokens", "cost")
    print_table(ctx.out, head, rows, gap=1)
    for model in models:
        ended = model.outcomes()
        ctx.out.print(
            f"{one_line(model.model)}: of {sum(ended.values()):,} questions with an answer, "
            f"{ended['answer']:,} answered, {ended['passages']:,} with passages, {ended['none']:,} refused",
            style="dim",
            soft_wrap=True,
        )
        for result in model.results:
            if not result.passed:
                ctx.out.print()
                ctx.out.print(f"✗ {one_line(model.model)}: {one_line(result.case.query)}", style="bold red")
                for failure in result.failures:
                    ctx.out.print(f"    {one_line(failure)}", style="red", soft_wrap=True)
    if html is not None:
        ctx.out.print(f"Written to {html}", soft_wrap=True)


# ``recollect calibrate``: when to answer, from test cases with and without an answer.


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
    """Set how strong evidence must be for an answer, so that few questions without an answer get one.

    The threshold is kept with the collection and holds for answers without a language model. Below it, passages that
    may help are shown.
    """
    if (cases is None) == (not reset):
        raise UsageError("Give --cases FILE to calibrate, or --reset to go back to the built-in rule.")
    suite = None if cases is None else load_suite(cases)
    with ctx.view() as view:
        place = view.store.collections.get(view.scope, ctx.collection)
        if suite is None:
            view.store.collections.set_refusal(view.scope, place.name, None)
            return ctx.tell(
                {"collection": place.name, "threshold": None, "stored": True},
                f"The built-in rule decides again whether {place.name} answers.",
                soft_wrap=True,
            )
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
    return ctx.tell(
        {"collection": place.name, **asdict(found), "stored": not dry_run},
        lambda: _show_calibration(ctx, place, found, stored=not dry_run),
    )


def _scores(
    ctx: CommandContext, view: View, suite: Suite, place: Collection, options: RetrievalOptions, rule: RefusalRule
) -> dict[bool, list[float]]:
    """The scores of the cases that have an answer (True), and of those that have none."""
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
    asked = suite.search(case)
    # Passages for an answer, as many as `ask` reads: a case's own number is about the search.
    narrowed = replace(asked.options(options), top_k=options.top_k, relevance_floor=True)
    reply = asked_view(view, asked).search(case.query, narrowed)
    passages = [passage for passage in reply.results if passage.content.strip()]
    assembly = view.standpoint.assembly
    embedder = assembly.embedder_for(place)
    reading = read(
        case.query,
        passages,
        embedder=embedder,
        language=place.language,
        options=ExtractionOptions(rule=rule, reader=assembly.reader_for(embedder)),
    )
    return reading.probability(rule) if reading.support else ALWAYS_REFUSED


def _show_calibration(ctx: CommandContext, place: Collection, found: Calibration, *, stored: bool) -> None:
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
    verb = "shows" if stored else "would show"
    ctx.out.print(f"Below a probability of {found.threshold:.3f}, {place.name} {verb} passages in place of an answer.")
    if not found.enough_cases and found.target:
        needed = round(1 / found.target) - 1
        ctx.note(
            f"Too few cases without an answer to promise {found.target:.1%}: {needed:,} are needed. None of them gets "
            "an answer."
        )
    if found.fitted["false_refusals"] > 0.5:
        ctx.note(
            "Most questions that have an answer get none: the cases without one are too much like them. Choose a "
            "higher --target, or use a language model for answers."
        )
