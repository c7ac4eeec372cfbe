"""``recollect eval``: retrieval quality on data sets with judgements."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from recollect.cli import compare
from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import (
    LOCAL,
    MAX_TOP_K,
    Limits,
    fill,
    fresh_collection,
    measured_options,
    outcomes_of,
    ranking,
)
from recollect.cli._options import ChunkingOptions, CollectionOption, Mode, command
from recollect.cli._progress import WorkBar
from recollect.cli._searching import SearchOptions
from recollect.cli._terminal import one_line, print_table
from recollect.cli.ingest import chunking_of
from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import dump_suite
from recollect.evaluation.datasets import (
    load_beir,
    load_memory,
    load_pages,
    load_spans,
    named_sets,
    read_baseline,
    write_baseline,
)
from recollect.evaluation.make import draft_cases
from recollect.evaluation.rag_test import tracked
from recollect.evaluation.scoring import PAGE_DEPTHS, by_group, hit_pages, means, recall_turns, run, times
from recollect.model.memory import RecallOptions, Turn
from recollect.model.written_files import require_writable

if TYPE_CHECKING:
    from recollect.evaluation.datasets import Conversation, Conversations, DataSet, MemoryQuestion, Question, SetKind
    from recollect.evaluation.scoring import Outcome
    from recollect.model import RetrievedContext
    from recollect.model.memory import RecallMode
    from recollect.pipeline import View


app = typer.Typer(help="Measure retrieval quality on data sets with judgements.", no_args_is_help=True)

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The data set's folder.")]

# What `all` shows of texts: so many passages, and as many as fit in so many characters.
_PASSAGES = 5
_CHARACTERS = 4_000
# Enough turns to hold ten sessions wherever there are as many.
_TURNS = 200


@dataclass(frozen=True, kw_only=True)
class RunOptions(SearchOptions, ChunkingOptions):
    """Options of a data set that is measured in a new collection."""

    keep: Annotated[bool, typer.Option("--keep", help="Keep the collection made for this run.")] = False
    language: Annotated[str | None, typer.Option(metavar="CODE", help="Of the texts (ISO 639-1).")] = None


class _Run:
    """Measures data sets, each in a collection of its own, and returns what ``--json`` prints.

    Args:
        ctx: The command's surroundings.
        run: How to search, how texts are cut, and what becomes of what was made.
        collection: The collection that is made; None: one that no other has.
    """

    def __init__(self, ctx: CommandContext, run: RunOptions, collection: str | None = None) -> None:
        self.ctx = ctx
        self.run = run
        self.collection = collection
        self.options = measured_options(ctx, run)

    def beir(self, folder: Path) -> dict[str, Any]:
        """Rank documents."""
        data = load_beir(folder)
        started = time.perf_counter()
        with self._fresh() as view:
            documents, least = fill(self.ctx, view, data)
            outcomes = self._searched(view, data, Limits(least=least), unit="queries")
        return {
            "metrics": means([one.metrics for one in outcomes]),
            "queries": len(outcomes),
            "documents": documents,
            "seconds": round(time.perf_counter() - started, 3),
            "query_ms": times([one.milliseconds for one in outcomes]),
        }

    def spans(self, folder: Path, *limits: Limits) -> list[dict[str, Any]]:
        """Find characters, once for each limit on what is shown."""
        data = load_spans(folder)
        with self._fresh() as view:
            fill(self.ctx, view, data)
            found = [self._searched(view, data, limit, unit="questions") for limit in limits]
        return [
            {
                "metrics": means([one.metrics for one in outcomes], sum),
                "budget_chars": limit.budget,
                "questions": len(outcomes),
            }
            for limit, outcomes in zip(limits, found, strict=True)
        ]

    def pages(self, folder: Path) -> dict[str, Any]:
        """Find pages, in each question's document and in all of them."""
        data = load_pages(folder)
        options = replace(ranking(self.options), outline=True, top_k=max(PAGE_DEPTHS))
        started = time.perf_counter()
        with self._fresh() as view:
            with WorkBar(self.ctx.err, "Ingesting", unit="files") as bar:
                stored = view.ingest(folder / "pdf", on_progress=bar.ingest)
            for error in stored.errors:
                self.ctx.note(f"{error.path}: {error.error}")
            if stored.skipped:
                reasons = ", ".join(f"{count:,} {reason}" for reason, count in stored.skip_reasons.items())
                self.ctx.note(f"{stored.skipped:,} files were left aside: {reasons}.")

            def search(question: Question) -> dict[str, Sequence[RetrievedContext]]:
                within = replace(options, source=tuple(question.answers))
                return {
                    "document": view.search(question.text, within).results,
                    "collection": view.search(question.text, options).results,
                }

            with WorkBar(self.ctx.err, "Searching", unit="questions") as bar:
                outcomes = run(data.questions, search, hit_pages, bar.update)
        found = means([one.metrics for one in outcomes])
        return {
            "metrics": {
                place: {f"hit@{depth}": found[f"hit@{depth}, {place}"] for depth in PAGE_DEPTHS}
                for place in ("document", "collection")
            },
            "questions": len(outcomes),
            "documents": stored.added,
            "chunks": stored.chunks,
            "seconds": round(time.perf_counter() - started, 3),
        }

    def memory(self, data: Conversations, mode: RecallMode) -> dict[str, Any]:
        """Have conversations remembered, and find the turns that answer their questions."""
        asked = {talk.id: [one for one in talk.questions if one.evidence] for talk in data.conversations}
        outcomes: list[Outcome] = []
        turns = 0
        started = time.perf_counter()
        with self.ctx.view() as view, WorkBar(self.ctx.err, "Recalling", unit="questions") as bar:
            memory = _Memory(view, mode)
            try:
                for talk in data.conversations:
                    turns += memory.remember(talk)
                    recall = partial(memory.recall, talk.id)
                    outcomes += run(asked[talk.id], recall, partial(recall_turns, talk), bar.update)
            finally:
                if not self.run.keep:
                    memory.remove()
        questions = [(talk.id, one) for talk in data.conversations for one in asked[talk.id]]
        return {
            "metrics": means([one.metrics for one in outcomes]),
            "by_category": by_group([question.category for _, question in questions], outcomes),
            "by_conversation": by_group([talk_id for talk_id, _ in questions], outcomes),
            "questions": len(outcomes),
            "unanswered": sum(len(talk.questions) - len(asked[talk.id]) for talk in data.conversations),
            "unknown_evidence": sum(
                len(set(one.evidence) - talk.turn_ids) for talk in data.conversations for one in asked[talk.id]
            ),
            "turns": turns,
            "seconds": round(time.perf_counter() - started, 3),
            "query_ms": times([one.milliseconds for one in outcomes]),
        }

    def _searched(self, view: View, data: DataSet, limits: Limits, *, unit: str) -> list[Outcome]:
        with WorkBar(self.ctx.err, "Searching", unit=unit) as bar:
            return outcomes_of(view, data, self.options, replace(limits, depth=self.options.top_k), bar.update)

    @contextmanager
    def _fresh(self) -> Iterator[View]:
        with self.ctx.view() as view:
            chunking = chunking_of(view.config, self.run) if self.run.given else None
            kept, language = self.run.keep, self.run.language
            with fresh_collection(view, self.collection, chunking=chunking, keep=kept, language=language) as fresh:
                yield fresh


class _Memory:
    """Conversations remembered and asked; the sessions of one run have names that no others have."""

    def __init__(self, view: View, mode: RecallMode) -> None:
        self._view = view
        self._mode: RecallMode = mode
        self._prefix = f"eval-{uuid.uuid4().hex[:12]}"
        self._users: dict[str, str] = {}
        self._sessions: dict[str, str] = {}

    def remember(self, talk: Conversation) -> int:
        """Store a conversation as a user's; turns without words are passed over."""
        user = self._users.setdefault(talk.id, f"{self._prefix}/{len(self._users) + 1}")
        stored = 0
        for number, one in enumerate(talk.sessions, start=1):
            name = f"{user}/{number}"
            turns = [
                Turn(content=turn.text, role=turn.speaker, at=one.date, metadata={"eval_turn": turn.id})
                for turn in one.turns
                if turn.text.strip()
            ]
            if turns:
                self._sessions[name] = one.id
                stored += self._view.view(session=name, user=user).remember(turns).added
        return stored

    def recall(self, talk_id: str, question: MemoryQuestion) -> list[tuple[str, str]]:
        """The sessions and turns of a conversation that answer a question, best first."""
        options = RecallOptions(top_k=_TURNS, mode=self._mode, before=0, after=0, counted=False)
        found = self._view.view(user=self._users[talk_id]).recall(question.question, options)
        return [(self._sessions[hit.episode.session], hit.episode.metadata["eval_turn"]) for hit in found]

    def remove(self) -> None:
        """Remove the sessions of this run."""
        for name in self._sessions:
            self._view.memory.delete(name)


def _beir(ctx: CommandContext, collection: CollectionOption, run: RunOptions, *, folder: _Folder) -> int:
    """Rank documents: nDCG@10, recall and precision on a data set in BEIR form.

    DIR holds corpus.jsonl, queries.jsonl and qrels.tsv. The corpus is ingested into a collection of its own, every
    judged query is run, and a document ranks by its best passage.
    """
    report = _Run(ctx, run, collection.collection).beir(folder)
    return _shown(ctx, report, f"{report['queries']:,} queries on {report['documents']:,} documents", a="query")


def _spans(
    ctx: CommandContext,
    collection: CollectionOption,
    run: RunOptions,
    *,
    folder: _Folder,
    budget: Annotated[int, typer.Option(min=1, help="Characters that may be shown for a question.")] = 4_000,
    passages: Annotated[
        int | None, typer.Option(min=1, max=MAX_TOP_K, help="Show this many passages instead, however long.")
    ] = None,
) -> int:
    """Find characters: recall, precision and IoU of the characters that answer a question.

    DIR holds corpora/* and questions.jsonl with character ranges.
    """
    limits = Limits(least=passages, budget=None if passages else budget, shown=budget, passages=passages)
    (report,) = _Run(ctx, run, collection.collection).spans(folder, limits)
    limit = f"{passages:,} passages" if passages else f"{budget:,} characters"
    return _shown(ctx, report, f"{report['questions']:,} questions, {limit} each")


def _pages(ctx: CommandContext, collection: CollectionOption, run: RunOptions, *, folder: _Folder) -> int:
    """Find pages: how often a page that answers is among the first 1, 5 and 10 passages.

    DIR holds pdf/* and questions.jsonl: {"question", "document": a file's name, "pages": [from 1]}. Each question is
    asked of its own document and of all of them.
    """
    report = _Run(ctx, run, collection.collection).pages(folder)
    metrics = report["metrics"]
    rows = {"in its document": metrics["document"], "in all documents": metrics["collection"]}
    documents = f"{report['documents']:,} documents ({report['chunks']:,} chunks)"
    return _shown(ctx, report, f"{report['questions']:,} questions on {documents}", rows)


def _memory(
    ctx: CommandContext,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Conversations with questions, in JSON.")],
    mode: Annotated[Mode, typer.Option(help="Words and meaning, meaning only, or words only.")] = Mode.HYBRID,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the sessions made for this run.")] = False,
) -> int:
    """Find turns: recall of the turns that answer, on a file of conversations with questions.

    FILE holds {"conversations": [{"id", "sessions": [{"id", "date", "turns": [{"id", "speaker", "text"}]}],
    "questions": [{"question", "category", "evidence": ["turn id", …]}]}]}. Every conversation is remembered as one
    user's, its questions are asked, and the sessions are removed again.
    """
    data = load_memory(file)
    report = _Run(ctx, RunOptions(keep=keep)).memory(data, mode.value)
    categories = {f"category {name}" if name else "no category": one for name, one in report["by_category"].items()}
    rows = {"all": report["metrics"], **categories, **report["by_conversation"]}
    _shown(ctx, report, f"{report['questions']:,} questions on {report['turns']:,} turns", rows, a="question")
    if report["unanswered"] and not ctx.json:
        ctx.out.print(f"left out: {report['unanswered']:,} questions that name no evidence")
    if report["unknown_evidence"] and not ctx.json:
        ctx.out.print(f"not found because there is no such turn: {report['unknown_evidence']:,} pieces of evidence")
    undated = sum(one.date is None for talk in data.conversations for one in talk.sessions)
    if undated:
        ctx.note(f"{undated:,} sessions have no date that can be read: their turns have none.")
    return 0


def _all(
    ctx: CommandContext,
    search: SearchOptions,
    chunking: ChunkingOptions,
    *,
    sets: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]DIR…", help="Data sets of any kind: their folders, or files of conversations."),
    ],
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare with these figures, which --save wrote.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the figures down as a baseline.")] = None,
    most_loss: Annotated[
        float | None,
        typer.Option(min=0, metavar="PERCENT", help="Exit with 1 where a figure has lost more than that."),
    ] = None,
) -> int:
    """Judge a change by all data sets at once: one table, and the worst loss against a baseline.

    Each set is measured as its own command does: nDCG@10 of documents (corpus.jsonl), recall and IoU of characters in 5
    passages and recall in 4,000 characters (corpora/), hit@10 of pages (pdf/), recall of turns (a file).
    """
    if most_loss is not None and baseline is None:
        raise UsageError("--most-loss compares with a baseline: name its file with --baseline.")
    measuring = _Run(ctx, RunOptions(**vars(search), **vars(chunking)))
    before = {} if baseline is None else read_baseline(baseline)
    kept = read_baseline(save) if save is not None and save.exists() else {}
    chosen = named_sets(sets)
    started = time.perf_counter()
    found = {name: _figures(measuring, kind, path) for name, (kind, path) in chosen.items()}
    seconds = time.perf_counter() - started
    if save is not None:
        write_baseline(save, kept | found)
    rows: list[dict[str, Any]] = []
    for name, figures in found.items():
        for metric, value in figures.items():
            past = before.get(name, {}).get(metric)
            change = value / past - 1 if past else None
            row = {"set": name, "kind": chosen[name][0], "metric": metric, "value": value}
            rows.append({**row, "baseline": past, "change": change})
    compared = [row for row in rows if row["change"] is not None]
    least = min(compared, key=lambda row: row["change"], default=None)
    worst = None if least is None else {key: least[key] for key in ("set", "metric", "change")}
    return ctx.tell(
        {"sets": rows, "worst": worst, "seconds": round(seconds, 3)},
        lambda: _show_all(ctx, rows, worst, f"{len(found):,} data sets in {seconds:,.1f} s"),
        status=1 if worst is not None and most_loss is not None and -100 * worst["change"] > most_loss else 0,
    )


def _figures(measuring: _Run, kind: SetKind, path: Path) -> dict[str, float]:
    """Return the figures of a data set that `eval all` compares."""
    match kind:
        case "beir":
            return {"nDCG@10": measuring.beir(path)["metrics"]["nDCG@10"]}
        case "spans":
            few, short = Limits(least=_PASSAGES, passages=_PASSAGES), Limits(budget=_CHARACTERS, shown=_CHARACTERS)
            passages, characters = (report["metrics"] for report in measuring.spans(path, few, short))
            return {
                f"recall, {_PASSAGES} passages": passages["recall"],
                f"IoU, {_PASSAGES} passages": passages["iou"],
                f"recall, {_CHARACTERS:,} characters": characters["recall"],
            }
        case "pages":
            metrics = measuring.pages(path)["metrics"]
            return {f"hit@10, {place}": figures["hit@10"] for place, figures in metrics.items()}
        case "memory":
            mode = cast("RecallMode", measuring.options.mode or "hybrid")
            figures = measuring.memory(load_memory(path), mode)["metrics"]
            return {name: figures[name] for name in ("evidence_recall@10", "session_hit@10")}


def _shown(
    ctx: CommandContext,
    report: Mapping[str, Any],
    of: str,
    rows: Mapping[str, Mapping[str, float]] | None = None,
    *,
    a: str = "",
) -> int:
    """Print what was measured, as JSON or for people: its metrics, or ``rows`` of them, of what, and the times."""
    if ctx.json:
        ctx.emit(report)
        return 0
    if rows is None:
        print_table(ctx.out, (), [(name, f"{value:.4f}") for name, value in report["metrics"].items()])
    else:
        names = [name.replace("evidence_", "").replace("session_hit", "session") for name in next(iter(rows.values()))]
        figures = [(one_line(name), *(f"{value:.4f}" for value in one.values())) for name, one in rows.items()]
        print_table(ctx.out, ("", *names), figures)
    ctx.out.print(f"{of} in {report['seconds']:,.1f} s" if "seconds" in report else of)
    if a:
        p50, p95 = report["query_ms"].values()
        ctx.out.print(f"a {a}: {p50:,.1f} ms (median), {p95:,.1f} ms (95th percentile)")
    return 0


def _show_all(ctx: CommandContext, rows: Sequence[Mapping[str, Any]], worst: Mapping[str, Any] | None, of: str) -> None:
    compared = any(row["baseline"] is not None for row in rows)
    cells = [
        (
            *(one_line(row["set"]), row["metric"], f"{row['value']:.4f}"),
            *(
                ("" if row["baseline"] is None else f"{row['baseline']:.4f}", _percent(row["change"]))
                if compared
                else ()
            ),
        )
        for row in rows
    ]
    print_table(ctx.out, ("set", "metric", "now", *(("before", "change") if compared else ())), cells, left=(0, 1))
    if worst is not None:
        ctx.out.print(f"worst: {_percent(worst['change'])} ({one_line(worst['set'])}, {worst['metric']})")
    ctx.out.print(of)


def _percent(change: float | None) -> str:
    return "" if change is None else f"{100 * change:+.1f} %"


# ``recollect eval make``: test cases to start from.


# Reading every document of a large collection would take long and add little.
_MAX_DOCUMENTS = 500

_COMMENT = """\
Drafted from the documents by `recollect eval make`, without a language model. Read every case: delete what
nobody would ask, put questions into the words that people use, and shorten each text to what the answer needs.
Add questions that the documents do not answer, with `answerable: false`."""


def _make(
    ctx: CommandContext,
    *,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="Cases at most.")] = 50,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write them; else they are printed.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> int:
    """Draft test cases from a collection, without a language model, for a person to choose from and improve."""
    if out is not None:
        if out.exists() and not force:
            raise UsageError(f"{out} exists: choose another name, or --force to overwrite it.")
        require_writable(out, overwrite=force)
    with ctx.view() as view:
        place = next((one for one in view.collections.each() if one.name == ctx.collection), None)
        if place is None or not place.document_count:
            raise NotFoundError(f"The collection {ctx.collection!r} is empty. Fill it: recollect ingest FOLDER")
        cases = draft_cases(_documents(ctx, view), count=count, language=place.language)
    if not cases:
        raise NotFoundError(f"No sentence of {ctx.collection!r} can be asked for: the texts hold no whole sentences.")
    text = dump_suite(cases, comment=_COMMENT)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if ctx.json:
        ctx.emit({"file": None if out is None else str(out), "cases": cases})
    elif out is None:
        ctx.out.print(text, end="", soft_wrap=True)
    else:
        ctx.out.print(f"{len(cases):,} drafts in {out}. Try: recollect rag-test {out}", soft_wrap=True)
    return 0


def _documents(ctx: CommandContext, view: View) -> Iterator[tuple[str, str]]:
    """The collection's documents; of many, some from all over it."""
    ids = [record.document_id for record in view.documents.each(status="embedded")]
    chosen = ids[:: max(1, -(-len(ids) // _MAX_DOCUMENTS))]
    with WorkBar(ctx.err, "Reading", unit="documents") as bar:
        for document_id in tracked(chosen, bar.update):
            record = view.documents.get(document_id)
            yield record.source, record.content or ""


command(app, "beir", local=LOCAL)(_beir)
command(app, "spans", local=LOCAL)(_spans)
command(app, "pages", local="it reads pages with this machine's parsers")(_pages)
command(app, "memory", local=LOCAL)(_memory)
command(app, "all", local=LOCAL, paths=("sets",))(_all)
compare.register(app)
command(app, "make", collection=True, local="it draws cases from every document of a collection")(_make)
