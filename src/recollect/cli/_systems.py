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
    from recollect.cli._session import Session
    from recollect.config import RAGConfig
    from recollect.evaluation.cases import CaseSearch, Suite
    from recollect.evaluation.compare import SystemRun
    from recollect.evaluation.datasets import BeirDataset, SpanDataset
    from recollect.evaluation.outcomes import Hit, QueryOutcome
    from recollect.model import RetrievalOptions
    from recollect.pipeline import RAGPipeline


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


def run_systems(session: Session, systems: Sequence[tuple[str, RAGConfig]], task: Task) -> list[SystemRun]:
    """Run every system on the task, in collections of their own that are removed afterwards.

    Systems with the same chunking, embedding model and language share a collection.

    Args:
        session: The running command.
        systems: Names and settings; all use the command's store.
        task: Data and limits.
    """
    from recollect.evaluation.compare import SystemRun

    groups: dict[str, list[int]] = {}
    for index, (_, config) in enumerate(systems):
        groups.setdefault(_shared(config), []).append(index)
    outcomes: dict[int, list[QueryOutcome]] = {}
    for members in groups.values():
        with session.pipeline(systems[members[0]][1]) as first, _filled_collection(session, first, task) as place:
            for index in members:
                name, config = systems[index]
                outcomes[index] = _measure(session, first, config, place, task, name)
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
def _filled_collection(session: Session, rag: RAGPipeline, task: Task) -> Iterator[_Place]:
    from recollect.cli._progress import WorkBar
    from recollect.cli.rag_test import under_test
    from recollect.evaluation.cases import Suite
    from recollect.evaluation.datasets import SpanDataset

    data = task.data
    if isinstance(data, Suite):
        with under_test(session, rag, task.documents, None) as name:
            yield _Place(name)
        return
    with fresh_collection(rag, language=task.language) as name:
        engine = Engine(rag, name, rag.default_options(), depth=None)
        if isinstance(data, SpanDataset):
            engine.ingest_texts(data.documents)
            yield _Place(name)
        else:
            with WorkBar(session.err, "Ingesting", unit="documents") as bar:
                engine.ingest_corpus(data.documents(), bar)
            yield _Place(name, engine.depth)


def _measure(
    session: Session, first: RAGPipeline, config: RAGConfig, place: _Place, task: Task, name: str
) -> list[QueryOutcome]:
    from recollect.cli._progress import WorkBar
    from recollect.pipeline import RAGPipeline

    # The model is loaded once: systems of a group differ in how they search only.
    with (
        RAGPipeline(measured(config), embedder=first.embedder) as rag,
        WorkBar(session.err, f"Searching ({name})", unit="queries") as bar,
    ):
        return _outcomes(rag, place, task, bar.update)


def _outcomes(rag: RAGPipeline, place: _Place, task: Task, progress: Callable[[int, int], None]) -> list[QueryOutcome]:
    from recollect.evaluation.cases import Suite
    from recollect.evaluation.datasets import SpanDataset
    from recollect.evaluation.outcomes import BUDGETS, check_cases, cover_spans, rank_documents

    data, options = task.data, rag.default_options()
    engine = Engine(rag, place.collection, options, depth=place.depth)
    # What the first search loads is no part of any query's time.
    rag.search("warm up", options, collection=place.collection)
    if isinstance(data, Suite):
        search = partial(_case_hits, rag, place.collection, options)
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


def _case_hits(rag: RAGPipeline, collection: str, options: RetrievalOptions, asked: CaseSearch) -> list[Hit]:
    reply = rag.search(
        asked.query,
        options_of(asked, options),
        collection=collection,
        tenant_id=asked.tenant_id,
        as_of=asked.as_of,
    )
    return [hit_of(passage) for passage in reply.results]
