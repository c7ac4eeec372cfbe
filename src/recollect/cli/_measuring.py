"""Data sets measured as the ``eval`` commands measure them: each in a collection of its own, removed afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.cli._evaluation import Engine, fresh_collection
from recollect.cli.ingest import chunking_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.cli._command_context import CommandContext
    from recollect.cli._options import ChunkingOptions
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.memory import MemoryReport
    from recollect.evaluation.memory_files import MemoryDataset
    from recollect.evaluation.pages import PageReport, ShownPages, StoredFiles
    from recollect.evaluation.report import BeirReport, SpanReport
    from recollect.ingest.report import IngestProgress
    from recollect.model import RetrievalOptions, RetrievedContext
    from recollect.model.memory import RecallMode
    from recollect.pipeline import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How data sets are measured.

    Attributes:
        ctx: The command's surroundings.
        options: Of every search.
        depth: Passages asked for; None: as many as a measure needs.
        chunking: How texts are cut; None: as configured.
        collection: The collection that is made; None: one that no other has.
        language: Of the texts; None: as configured.
        keep: Whether what was made stays.
    """

    ctx: CommandContext
    options: RetrievalOptions
    depth: int | None = None
    chunking: ChunkingOptions | None = None
    collection: str | None = None
    language: str | None = None
    keep: bool = False

    def beir(self, folder: Path) -> BeirReport:
        """Documents ranked (`recollect.evaluation.runner.run_beir`)."""
        from recollect.cli._progress import WorkBar
        from recollect.evaluation.datasets import load_beir
        from recollect.evaluation.runner import run_beir

        dataset = load_beir(folder)
        with (
            self._fresh() as fresh,
            WorkBar(self.ctx.err, "Ingesting", unit="documents") as corpus_bar,
            WorkBar(self.ctx.err, "Searching", unit="queries") as query_bar,
        ):
            engine = Engine(fresh, self.options, depth=self.depth)
            return run_beir(
                dataset,
                ingest=lambda documents: engine.ingest_corpus(documents, corpus_bar),
                search=engine.ranked_documents,
                progress=query_bar.update,
            )

    def spans(self, folder: Path, limits: Sequence[tuple[int, int | None]]) -> list[SpanReport]:
        """Characters found (`recollect.evaluation.runner.run_spans`), one report for each limit on what is shown.

        Args:
            folder: The data set's.
            limits: Each a number of characters, and of passages instead or None.
        """
        from recollect.cli._progress import WorkBar
        from recollect.evaluation.datasets import load_spans
        from recollect.evaluation.runner import run_spans

        dataset = load_spans(folder)
        reports = []
        with self._fresh() as fresh:
            engine = Engine(fresh, self.options, depth=self.depth)
            engine.ingest_texts(dataset.documents)
            for budget, passages in limits:
                search = partial(engine.shown_passages, budget=None if passages else budget, least=passages)
                with WorkBar(self.ctx.err, "Searching", unit="questions") as bar:
                    report = run_spans(
                        dataset,
                        ingest=lambda _: None,
                        search=search,
                        budget_chars=budget,
                        passages=passages,
                        progress=bar.update,
                    )
                reports.append(report)
        return reports

    def pages(self, folder: Path) -> PageReport:
        """Pages found (`recollect.evaluation.pages.run_pages`)."""
        from recollect.cli._progress import WorkBar
        from recollect.evaluation.pages import load_pages, run_pages

        dataset = load_pages(folder)
        with (
            self._fresh() as fresh,
            WorkBar(self.ctx.err, "Ingesting", unit="files") as file_bar,
            WorkBar(self.ctx.err, "Searching", unit="questions") as question_bar,
        ):
            run = _Pages(self.ctx, fresh, self.options, file_bar)
            return run_pages(dataset, ingest=run.ingest, search=run.search, progress=question_bar.update)

    def memory(self, dataset: MemoryDataset, mode: RecallMode) -> MemoryReport:
        """Turns found (`recollect.evaluation.memory.run_memory`)."""
        from recollect.cli._memory_run import MemoryRun
        from recollect.cli._progress import WorkBar
        from recollect.evaluation.memory import run_memory

        with self.ctx.view() as view, WorkBar(self.ctx.err, "Recalling", unit="questions") as bar:
            run = MemoryRun(view, mode)
            try:
                return run_memory(dataset, remember=run.remember, recall=run.recall, progress=bar.update)
            finally:
                if not self.keep:
                    run.remove()

    @contextmanager
    def _fresh(self) -> Iterator[View]:
        with self.ctx.view() as view:
            given = self.chunking is not None and self.chunking.given
            chunking = chunking_of(view.config, self.chunking) if given and self.chunking is not None else None
            with fresh_collection(
                view, self.collection, chunking=chunking, keep=self.keep, language=self.language
            ) as fresh:
                yield fresh


class _Pages:
    """Files and searches of a data set of pages."""

    def __init__(self, ctx: CommandContext, view: View, options: RetrievalOptions, bar: WorkBar) -> None:
        self._ctx = ctx
        self._view = view
        # What is measured is the order.
        least = options if options.min_relevance is not None else replace(options, min_relevance=0.0)
        self._options = replace(least, outline=True)
        self._bar = bar

    def ingest(self, folder: Path) -> StoredFiles:
        """Store the files; those that cannot be read are told, and their questions are not answered."""
        from recollect.evaluation.pages import StoredFiles

        report = self._view.ingest(folder, on_progress=self._told)
        for error in report.errors:
            self._ctx.note(f"{error.path}: {error.error}")
        if report.skipped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.skip_reasons.items())
            self._ctx.note(f"{report.skipped:,} files were left aside: {reasons}.")
        return StoredFiles(documents=report.added, chunks=report.chunks)

    def search(self, question: str, document: str | None, count: int) -> Sequence[ShownPages]:
        """The pages of so many passages, best first."""
        source = self._options.source if document is None else (document,)
        found = self._view.search(question, replace(self._options, top_k=count, source=source)).results
        return [_shown(passage) for passage in found]

    def _told(self, progress: IngestProgress) -> None:
        self._bar.update(progress.done, progress.total)


def _shown(passage: RetrievedContext) -> ShownPages:
    from recollect.evaluation.pages import ShownPages

    return ShownPages(passage.source, frozenset(part.page for part in passage.parts if part.page is not None))
