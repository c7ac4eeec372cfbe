"""Several configurations on one data set: what they share is ingested once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.cli._evaluation import Engine, fresh_collection, hit_of, measured
from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_options import options_of

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.config import RAGConfig
    from recollect.evaluation.cases import CaseSearch, Suite
    from recollect.evaluation.compare import SystemRun
    from recollect.evaluation.datasets import BeirDataset, SpanDataset
    from recollect.evaluation.outcomes import Hit, QueryOutcome
    from recollect.model import RetrievalOptions
    from recollect.pipeline import RAGPipeline, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What systems are measured on.

    Attributes:
        data: A data set, or test cases.
        documents: With test cases: the folder to ingest; None: what is in the configured collection.
        budget_chars: With spans: characters shown.
        passages: With spans: passages shown instead.
        language: Of the texts; None: as configured.
    """

    data: BeirDataset | SpanDataset | Suite
    documents: Path | None = None
    budget_chars: int = 4000
    passages: int | None = None
    language: str | None = None


def load_data(path: Path) -> BeirDataset | SpanDataset | Suite:
    """A data set in BEIR or span form, or a file of test cases, by what is there.

    Raises:
        NotFoundError: There is nothing.
        UsageError: It is none of them, or damaged.
    """
    from recollect.evaluation.case_files import load_suite
    from recollect.evaluation.datasets import load_beir, load_spans

    if path.is_file():
        return load_suite(path)
    if not path.is_dir():
        raise NotFoundError(f"{path}: there is no such file or folder")
    if (path / "corpus.jsonl").is_file():
        return load_beir(path)
    if (path / "corpora").is_dir():
        return load_spans(path)
    raise UsageError(
        f"{path} is no data set: it holds neither corpus.jsonl (BEIR form) nor corpora/ (span form). "
        "Give a folder that does, or a YAML file of test cases."
    )


def run_systems(ctx: CommandContext, systems: Sequence[tuple[str, RAGConfig]], task: Task) -> list[SystemRun]:
    """Run every system on the task, in collections of their own that are removed afterwards.

    Systems with the same chunking, embedding model and language share a collection.

    Args:
        ctx: The running command.
        systems: Names and settings; all use the command's store.
        task: Data and limits.
    """
    from recollect.evaluation.compare import SystemRun

    groups: dict[str, list[int]] = {}
    for index, (_, config) in enumerate(systems):
        groups.setdefault(_shared(config), []).append(index)
    outcomes: dict[int, list[QueryOutcome]] = {}
    for members in groups.values():
        with ctx.pipeline(systems[members[0]][1]) as first, _filled_collection(ctx, first, task) as place:
            for index in members:
                name, config = systems[index]
                outcomes[index] = _measure(ctx, first, config, place, task, name)
    return [SystemRun(name=name, outcomes=tuple(outcomes[index])) for index, (name, _) in enumerate(systems)]


@dataclass(frozen=True, slots=True)
class _Place:
    collection: str
    depth: int | None = None


def _shared(config: RAGConfig) -> str:
    embedding = config.embedding
    parts = (config.chunking.model_dump_json(), embedding.provider, embedding.model, embedding.precision)
    return repr((*parts, config.language))


@contextmanager
def _filled_collection(ctx: CommandContext, view: View, task: Task) -> Iterator[_Place]:
    from recollect.cli._progress import WorkBar
    from recollect.cli.rag_test import under_test
    from recollect.evaluation.cases import Suite
    from recollect.evaluation.datasets import SpanDataset

    data = task.data
    if isinstance(data, Suite):
        with under_test(ctx, view, task.documents, None) as cases:
            yield _Place(cases.standpoint.collection)
        return
    with fresh_collection(view, language=task.language) as fresh:
        name = fresh.standpoint.collection
        engine = Engine(fresh, fresh.default_options(), depth=None)
        if isinstance(data, SpanDataset):
            engine.ingest_texts(data.documents)
            yield _Place(name)
        else:
            with WorkBar(ctx.err, "Ingesting", unit="documents") as bar:
                engine.ingest_corpus(data.documents(), bar)
            yield _Place(name, engine.depth)


def _measure(
    ctx: CommandContext, first: RAGPipeline, config: RAGConfig, place: _Place, task: Task, name: str
) -> list[QueryOutcome]:
    from recollect.cli._progress import WorkBar
    from recollect.pipeline import RAGPipeline

    # The model is loaded once: systems of a group differ in how they search only.
    with (
        RAGPipeline(measured(config), embedder=first.embedder) as rag,
        WorkBar(ctx.err, f"Searching ({name})", unit="queries") as bar,
    ):
        return _outcomes(rag.view(collections=place.collection), place.depth, task, bar.update)


def _outcomes(view: View, depth: int | None, task: Task, progress: Callable[[int, int], None]) -> list[QueryOutcome]:
    from recollect.evaluation.cases import Suite
    from recollect.evaluation.datasets import SpanDataset
    from recollect.evaluation.outcomes import BUDGETS, check_cases, cover_spans, rank_documents

    data, options = task.data, view.default_options()
    engine = Engine(view, options, depth=depth)
    # What the first search loads is no part of any query's time.
    view.search("warm up", options)
    if isinstance(data, Suite):
        search = partial(_case_hits, view, options)
        return check_cases(data, search, progress=progress)
    if isinstance(data, SpanDataset):
        budget = max(task.budget_chars, *BUDGETS)
        return cover_spans(
            data,
            lambda question: engine.hits(question, budget=budget, least=task.passages),
            budget_chars=task.budget_chars,
            passages=task.passages,
            progress=progress,
        )
    return rank_documents(data, engine.hits, progress=progress)


def _case_hits(view: View, options: RetrievalOptions, asked: CaseSearch) -> list[Hit]:
    seen = view.view(tenant=asked.tenant_id, as_of=asked.as_of)
    reply = seen.search(asked.query, options_of(asked, options))
    return [hit_of(passage) for passage in reply.results]
