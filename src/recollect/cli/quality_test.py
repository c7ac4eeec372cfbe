"""``recollect quality-test``: how good answers are, by model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import LOCAL, measured, under_test
from recollect.cli._options import CollectionOption, command
from recollect.cli._searching import SearchOptions
from recollect.errors import UsageError
from recollect.model.written_files import require_writable

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.evaluation.cases import CaseSearch, Suite
    from recollect.evaluation.quality import ModelJudge, ModelQuality
    from recollect.model import Answer, RetrievalOptions
    from recollect.pipeline import View

# As short as a terminal of 80 columns asks for; JSON and the page have the whole names.
_TITLES = {
    "refusal_accuracy": "refusal",
    "fact_recall": "facts",
    "faithfulness": "faithf.",
    "citation_precision": "cite P",
    "citation_recall": "cite R",
    "answer_relevancy": "relev.",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "quality-test", local=LOCAL)(_quality_test)


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
    """Measure answers: refusals, facts, faithfulness, citations, latency, tokens and cost; a table by model.

    The exit status is 1 if a case fails with some model.
    """
    from recollect.evaluation.case_files import load_suite
    from recollect.evaluation.html_report import render_quality
    from recollect.pipeline.models import model_name, with_model

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
        _show(ctx, models, html)
    return 0 if passed else 1


def _all_models(config: RAGConfig) -> list[str]:
    from recollect.pipeline.models import EXTRACTIVE, model_name
    from recollect.providers.catalogue import PROVIDERS
    from recollect.providers.registry import environment_key, installed

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
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.quality import run_quality
    from recollect.pipeline.models import model_name
    from recollect.pipeline.saved_cases import asked_view
    from recollect.retrieval.validation import validate

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
    from recollect.evaluation.quality import ModelJudge
    from recollect.pipeline.models import embedding_model, language_model
    from recollect.pipeline.saved_cases import found_by

    model = language_model(config)
    if model is None:
        raise UsageError("A judge is a language model: --judge provider/name.")

    def sources(answer: Answer) -> list[str]:
        one = next(one for one in asked if one.query == answer.question)
        return [hit.content for hit in found_by(view, options, one)]

    return ModelJudge(
        model,
        sources=sources,
        embedder=embedding_model(config),
        timeout_seconds=config.answer.timeout_seconds,
    )


def _show(ctx: CommandContext, models: list[ModelQuality], html: Path | None) -> None:
    from recollect.cli._terminal import one_line, print_table
    from recollect.evaluation.html_report import shown
    from recollect.evaluation.quality import METRICS

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
        for result in model.results:
            if not result.passed:
                ctx.out.print()
                ctx.out.print(f"✗ {one_line(model.model)}: {one_line(result.case.query)}", style="bold red")
                for failure in result.failures:
                    ctx.out.print(f"    {one_line(failure)}", style="red", soft_wrap=True)
    if html is not None:
        ctx.out.print(f"Written to {html}", soft_wrap=True)
