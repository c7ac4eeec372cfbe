"""Answers without a language model: whether they hold the answer, nothing beside it, and refuse near misses.

Questions whose answers are known, and near misses, whose words stand in a document that does not answer them:

- handbook: tests/data/handbook_questions.jsonl, on examples/handbook; "handbook, more" are those of
  tests/data/answer_questions.jsonl, asked of it too;
- filings: annual reports of two companies together; among the near misses are questions of what only the other company
  tells, and of years that no report covers;
- XQuAD: paragraphs on many subjects; a near miss is a question asked without the paragraph that answers it. Only the
  English questions have answers in answer_questions.jsonl: elsewhere a quote of the right paragraph counts, and whether
  anything stands beside it is not known;
- chunking: the span data; a near miss is a question asked without the passages that answer it, which is hard on the
  rule: what remains may answer too.

An answer *holds* it where the quotes, with the sections they are cited from, have every part of the known answer.
There is *nothing beside* it where every quote is of a labelled sentence, list item or table row, or of what introduces
it (the line before a list or at the head of a table), and the quotes go at most ``SLACK`` characters beyond.

Searches run through the engine, with its defaults. Run from the repository root (the first run takes some minutes;
``--cache`` keeps searches and vectors, so that the next one takes seconds)::

    python benchmarks/answers_without_model.py [--shared ../shared/data] [--cache FILE] [--wrong SET]
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from harness import SHARED, machine, model_cache, percentile, say, store_folder, table, versions

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.answer import ExtractionOptions, extract_answer
from recollect.documents.reader import read_file
from recollect.documents.walk import FoundFile, walk
from recollect.embedding.local import LocalEmbedder
from recollect.embedding.models import ModelCache
from recollect.model import Answer, Citation, RetrievedContext
from recollect.model.passage import Wording

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests/data"
TOP_K = 10
#: Characters of the quotes that may be of neither the labelled sentences nor what introduces them.
SLACK = 150
XQUAD_LANGUAGES = ("en", "de", "zh", "ar", "tr")
#: Annual reports that are searched together, two by two.
REPORTS = {
    "filings": ("3M_2022_10K.pdf", "PFIZER_2021_10K.pdf"),
    "filings, fresh": ("CVSHEALTH_2022_10K.pdf", "ACTIVISIONBLIZZARD_2019_10K.pdf"),
}
#: Sets of answer_questions.jsonl that are asked of the handbook, and what they are called.
HANDBOOK = {"handbook": "handbook, more", "handbook, fresh": "handbook, fresh"}
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a set.

    Attributes:
        answer: Every part of it must be among the quotes and their sections; none: a quote of ``spans`` must be.
        spans: Of the labelled sentences and rows, by source.
        without: Passages that touch these spans are not shown, by source.
    """

    set_name: str
    text: str
    answerable: bool
    answer: tuple[str, ...] = ()
    spans: dict[str, list[Span]] = field(default_factory=dict)
    without: dict[str, list[Span]] = field(default_factory=dict)
    kind: str = "near_miss"
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents that are searched together, and what is asked of them."""

    name: str
    language: str
    documents: Sequence[Document]
    questions: Sequence[Question]

    @property
    def contents(self) -> dict[str, str]:
        return {document.source or "": document.content for document in self.documents}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question, the answer given, and what is to be said of it."""

    question: Question
    reply: Answer
    holds: bool
    alone: bool


class Embeddings:
    """The local embedder, which remembers what it embedded."""

    def __init__(self, known: dict[str, np.ndarray]) -> None:
        self.embedder = LocalEmbedder(cache=ModelCache(model_cache()))
        self.known = known
        self.model_name, self.dimension = self.embedder.model_name, self.embedder.dimension

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        missing = [text for text in dict.fromkeys(texts) if text not in self.known]
        if missing:
            self.known.update(zip(missing, self.embedder.embed_documents(missing), strict=True))
        return np.array([self.known[text] for text in texts], np.float32).reshape(len(texts), self.dimension)

    def embed_query(self, text: str) -> np.ndarray:
        return self.embed_documents([text])[0]


# Collections


def collections(shared: Path, cache: Path | None = None) -> Iterator[Collection]:
    labelled = list(rows(DATA / "answer_questions.jsonl"))
    yield _handbook(labelled)
    if shared.exists():
        for name, files in REPORTS.items():
            yield _filings(name, files, shared / "filings/pdf", [r for r in labelled if r["collection"] == name], cache)
        for language in XQUAD_LANGUAGES:
            yield _xquad(shared / "xquad" / language, language, [r for r in labelled if r["collection"] == "xquad-en"])
        yield from _chunking(shared / "chunking")
    else:
        say(f"{shared} is not there: only the handbook is measured")


def _handbook(labelled: Sequence[dict]) -> Collection:
    found = [one for one in walk([ROOT / "examples/handbook"]) if isinstance(one, FoundFile)]
    documents = [read_file(one.path, source=one.source) for one in found if one.path.suffix != ".yaml"]
    contents = {document.source or "": document.content for document in documents}
    asked = [
        *(
            ("handbook", row | {"answer": row.get("answer_contains", ())})
            for row in rows(DATA / "handbook_questions.jsonl")
        ),
        *((HANDBOOK[row["collection"]], row) for row in labelled if row["collection"] in HANDBOOK),
    ]
    return Collection("handbook", "en", documents, [_question(name, row, contents) for name, row in asked])


def _filings(name: str, files: Sequence[str], folder: Path, labelled: Sequence[dict], cache: Path | None) -> Collection:
    kept = cache.with_name(f"{cache.name}.{name} read") if cache else None
    if kept and kept.exists():
        documents = pickle.loads(kept.read_bytes())
    else:
        documents = [read_file(folder / file, source=file) for file in files]
        if kept:
            kept.write_bytes(pickle.dumps(documents))
    contents = {document.source or "": document.content for document in documents}
    return Collection(name, "en", documents, [_question(name, row, contents) for row in labelled])


def _xquad(folder: Path, language: str, labelled: Sequence[dict]) -> Collection:
    paragraphs = {row["_id"]: row["text"] for row in rows(folder / "corpus.jsonl")}
    texts = {row["_id"]: row["text"] for row in rows(folder / "queries.jsonl")}
    judged = [line.split("\t") for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    right = {query: paragraph for query, paragraph, _ in judged}
    documents = [Document(content=text, source=name) for name, text in paragraphs.items()]
    name, exact = f"XQuAD {language}", language == "en"
    questions = []
    for row in labelled:
        text, source = texts[row["id"]], right[row["id"]]
        whole = {source: [(0, len(paragraphs[source]))]}
        spans = {source: _labelled(paragraphs[source], source, row["answer"])} if exact else whole
        answer = tuple(row["answer"]) if exact else ()
        questions.append(Question(name, text, True, answer, spans, exact=exact))
        questions.append(Question(name, text, False, without=whole))
    return Collection(f"xquad-{language}", language, documents, questions)


def _chunking(folder: Path) -> Iterator[Collection]:
    asked = list(rows(folder / "questions.jsonl"))
    for path in sorted((folder / "corpora").glob("*.md")):
        document = read_file(path, source=path.name)
        questions = []
        for row in (row for row in asked if row["document"] == path.name):
            spans = {path.name: [(one["start"], one["end"]) for one in row["references"]]}
            questions.append(Question("chunking", row["question"], True, (), spans))
            questions.append(Question("chunking", row["question"], False, without=spans))
        yield Collection(f"chunking-{path.stem}", "en", [document], questions)


def _question(set_name: str, row: dict, contents: dict[str, str]) -> Question:
    if not row["answerable"]:
        return Question(set_name, row["question"], False, kind=row["kind"])
    evidence = row.get("evidence") or row["answer"]
    spans = {source: _labelled(contents[source], source, evidence) for source in row["sources"]}
    return Question(set_name, row["question"], True, tuple(row["answer"]), spans)


def rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


# Labelled sentences and rows

_ROW = re.compile(r"\s*(?:\||[-*•]\s|\(?\d{1,2}[.)]\s)|\s*\S.*?\S {3,}\S|[^:;\n]{1,60}: [^;\n]+; ")
_SENTENCE_END = re.compile(r"[.!?][\"”')\]*]*(?=\s)|[。！？]")


def _labelled(content: str, source: str, parts: Iterable[str]) -> list[Span]:
    """The sentences and rows that these parts stand in."""
    spans = []
    for part in parts:
        pattern = r"\s+".join(re.escape(word) for word in part.split())
        spans += [_extent(content, source, *m.span()) for m in re.finditer(pattern, content, re.IGNORECASE)]
    return spans


def _extent(content: str, source: str, start: int, end: int) -> Span:
    """The sentence, list item or row around a place. Lines are wrapped in Markdown and plain text alone."""
    wrapped = source.endswith((".md", ".txt"))
    first, last = _line(content, start)[0], _line(content, max(start, end - 1))[1]
    if wrapped:
        while first > 0 and not _ROW.match(content[first:last]) and _line(content, first - 1)[0] < first - 1:
            first = _line(content, first - 1)[0]
        table_row = "|" in content[first:last] or re.search(r"\S {3,}\S", content[first:last])
        while last < len(content) and not table_row:
            following = _line(content, last + 1)
            if following[1] <= following[0] or not content[slice(*following)].strip():
                break
            if _ROW.match(content[slice(*following)]):
                break
            last = following[1]
    begin = max((m.end() for m in _SENTENCE_END.finditer(content, first, start + 1) if m.end() <= start), default=first)
    stop = next((m.end() for m in _SENTENCE_END.finditer(content, max(start, end - 1), last)), last)
    return begin, stop


def _line(content: str, at: int) -> Span:
    start = content.rfind("\n", 0, at) + 1
    end = content.find("\n", at)
    return start, len(content) if end < 0 else end


def _introduces(content: str, citation: Citation, spans: Sequence[Span]) -> bool:
    """Whether a quote is the line above a labelled list item, or the head of the labelled row's table."""
    if citation.end_offset - citation.start_offset > 2 * SLACK:
        return False
    for start, _ in spans:
        between = content[citation.end_offset : start]
        if 0 <= start - citation.end_offset <= 6000 and between.count("\n\n") <= 1 and "\n#" not in between:
            return True
    return False


# Judging


def judge(question: Question, reply: Answer, contents: dict[str, str]) -> Outcome:
    if reply.refused or not question.answerable:
        return Outcome(question, reply, holds=False, alone=False)
    quoted = _plain(" ".join(f"{one.quote} {one.section or ''}" for one in reply.citations))
    touched = [_overlap(one, question.spans.get(one.source, [])) for one in reply.citations]
    holds = all(_plain(part) in quoted for part in question.answer) if question.answer else any(touched)
    beside = 0
    for one, shared in zip(reply.citations, touched, strict=True):
        spans = question.spans.get(one.source, [])
        if shared:
            beside += one.end_offset - one.start_offset - shared
        elif not _introduces(contents[one.source], one, spans):
            return Outcome(question, reply, holds, alone=False)
    return Outcome(question, reply, holds, alone=holds and beside <= SLACK)


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").split()).casefold()


def _overlap(citation: Citation, spans: Sequence[Span]) -> int:
    shared: set[int] = set()
    for start, end in spans:
        shared.update(range(max(start, citation.start_offset), min(end, citation.end_offset)))
    return len(shared)


# Searching


@dataclass(frozen=True, slots=True)
class Found:
    """What is shown for a question, and what the search knows of its words."""

    passages: list[RetrievedContext]
    wordings: tuple[Wording, ...]


def searched(collection: Collection, cache: Path | None, known: dict[str, np.ndarray]) -> list[Found]:
    """What each question finds; from the cache where that is there."""
    kept = cache.with_name(f"{cache.name}.{collection.name}") if cache else None
    wanted = [question.text for question in collection.questions]
    if kept and kept.exists():
        stored = pickle.loads(kept.read_bytes())
        if stored["questions"] == wanted and "found" in stored:
            return stored["found"]
    say(f"searching {collection.name}: {len(collection.documents)} documents, {len(wanted)} questions")
    found = _search(collection, known)
    if kept:
        kept.write_bytes(pickle.dumps({"questions": wanted, "found": found}))
    return found


def _search(collection: Collection, known: dict[str, np.ndarray]) -> list[Found]:
    with store_folder() as folder:
        config = RAGConfig.load(storage={"data_dir": str(Path(folder) / "data")}, language=collection.language)
        with RAGPipeline(config, embedder=Embeddings(known)) as rag:
            rag.ingest(list(collection.documents))
            return [_found(rag, question) for question in collection.questions]


def _found(rag: RAGPipeline, question: Question) -> Found:
    most = TOP_K if not question.without else 4 * TOP_K
    reply = rag.search(question.text, RetrievalOptions(top_k=most, outline=True, use_cache=False))
    left = [one for one in reply.results if not _touches(one, question.without.get(one.source, ()))]
    return Found(left[:TOP_K], reply.wordings)


def _touches(passage: RetrievedContext, spans: Iterable[Span]) -> bool:
    return any(passage.start_offset < end and start < passage.end_offset for start, end in spans)


def measure(arguments: argparse.Namespace, options: ExtractionOptions | None = None) -> list[Outcome]:
    kept = arguments.cache.with_name(f"{arguments.cache.name}.vectors") if arguments.cache else None
    known = pickle.loads(kept.read_bytes()) if kept and kept.exists() else {}
    size = len(known)
    outcomes = []
    for collection in collections(arguments.shared, arguments.cache):
        if arguments.only and not collection.name.startswith(tuple(arguments.only)):
            continue
        contents = collection.contents
        for question, found in zip(collection.questions, searched(collection, arguments.cache, known), strict=True):
            reply = extract_answer(
                question.text,
                found.passages,
                embedder=Embeddings(known),
                language=collection.language,
                options=options,
                wordings=found.wordings,
            )
            outcomes.append(judge(question, reply, contents))
    if kept and len(known) > size:
        kept.write_bytes(pickle.dumps(known))
    return outcomes


# Reporting


def report(outcomes: Sequence[Outcome]) -> str:
    by_set: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_set[outcome.question.set_name].append(outcome)
    lines = []
    for name, own in by_set.items():
        good = [one for one in own if one.question.answerable]
        held = [one for one in good if one.holds]
        bad = [one for one in own if not one.question.answerable and one.question.kind == "near_miss"]
        exact = good[0].question.exact
        given = [one for one in good if not one.reply.refused]
        lines.append(
            (
                name,
                len(good),
                _share(len(held), len(good)),
                _share(sum(one.alone for one in held), len(held)) if exact else "",
                _share(sum(one.reply.refused for one in good), len(good)),
                f"{sum(len(one.reply.citations) for one in given) / max(1, len(given)):.2f}",
                len(bad),
                _share(sum(one.reply.refused for one in bad), len(bad)),
            )
        )
    head = (
        "questions",
        "answerable",
        "hold the answer",
        "of these nothing beside",
        "false refusals",
        "quotes",
        "near misses",
        "refused",
    )
    return table(head, lines)


def others(outcomes: Sequence[Outcome]) -> str:
    """What is refused of the unanswerable questions that are no near misses."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        if not one.question.answerable and one.question.kind != "near_miss":
            groups[f"{one.question.set_name}: {one.question.kind.replace('_', ' ')}"].append(one)
    shares = [(name, len(own), _share(sum(one.reply.refused for one in own), len(own))) for name, own in groups.items()]
    return table(("other questions without an answer", "number", "refused"), shares)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def show_wrong(outcomes: Sequence[Outcome], set_name: str) -> None:
    for one in outcomes:
        if one.question.set_name != set_name:
            continue
        if one.question.answerable:
            verdict = "refused" if one.reply.refused else "not held" if not one.holds else "" if one.alone else "beside"
        else:
            verdict = "" if one.reply.refused else f"answered ({one.question.kind})"
        if verdict:
            print(f"\n{verdict.upper()}: {one.question.text}  {list(one.question.answer)}")
            quotes = one.reply.citations or ((one.reply.nearest.evidence,) if one.reply.nearest else ())
            for quote in quotes:
                print(f"   [{quote.marker}] {quote.source} > {quote.section}: {' '.join(quote.quote.split())[:300]}")
            if one.reply.nearest:
                print(f"   probability {one.reply.nearest.probability:.2f}")


def speed(arguments: argparse.Namespace) -> str:
    """Milliseconds an answer takes behind the search, with nothing remembered."""
    collection = next(collections(arguments.shared, arguments.cache))
    found = searched(collection, arguments.cache, {})[:120]
    embedder = LocalEmbedder(cache=ModelCache(model_cache()))
    took = []
    for question, one in zip(collection.questions, found, strict=False):
        began = time.perf_counter()
        extract_answer(question.text, one.passages, embedder=embedder, wordings=one.wordings)
        took.append((time.perf_counter() - began) * 1000)
    took = took[10:]
    return f"an answer of the handbook takes {percentile(took, 50):.0f} ms (p50), {percentile(took, 95):.0f} ms (p95)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--cache", type=Path, help="keeps searches and vectors between runs")
    parser.add_argument("--only", metavar="NAME", action="append", help="measure these collections only")
    parser.add_argument("--wrong", metavar="SET", action="append", default=[], help="show what went wrong in a set")
    parser.add_argument("--speed", action="store_true", help="also measure how long an answer takes")
    arguments = parser.parse_args()
    outcomes = measure(arguments)
    for set_name in arguments.wrong:
        show_wrong(outcomes, set_name)
    print(f"\n{machine()}\n{', '.join(versions())}\n")
    print(report(outcomes))
    print()
    print(others(outcomes))
    if arguments.speed:
        print()
        print(speed(arguments))


if __name__ == "__main__":
    main()
