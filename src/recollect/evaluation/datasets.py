"""Data sets with judgements (BEIR form, spans of characters, pages, conversations), and what runs and scores them."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import Case, CaseSearch, Id, Lenient, Suite, complaints, existing_file
from recollect.evaluation.rag_test import Progress, meets, score, tracked
from recollect.model import Document, RetrievedContext
from recollect.model.written_files import require_writable

SetKind = Literal["beir", "spans", "pages", "memory"]


# The file or folder that marks a data set of each kind.
_SIGNS: tuple[tuple[str, SetKind], ...] = (("corpus.jsonl", "beir"), ("corpora", "spans"), ("pdf", "pages"))


# "1:56 pm on 8 May, 2023" (LoCoMo), "2023/05/20 (Sat) 02:21" (LongMemEval), and what people write.
_DATES = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%d %B, %Y", "%d %B %Y", "%B %d, %Y")


_WEEKDAY = re.compile(r"\s*\([^)]*\)")


_R = TypeVar("_R", bound=Lenient)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and what answers it.

    Attributes:
        question_id: Unique in its data set.
        text: The question.
        answers: By document: its grade (BEIR, 0 for not relevant), the character ranges ``(start, end)`` or the pages
            that answer.
        expected: The same in words.
    """

    question_id: str
    text: str
    answers: Mapping[str, Any]
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Documents, and questions with what answers them.

    Attributes:
        kind: How it is measured.
        path: Its folder.
        questions: Those that have an answer, in the file's order.
        documents: Read the documents, one at a time; of PDF files there are none, they are in the folder ``pdf``.
    """

    kind: SetKind
    path: Path
    questions: tuple[Question, ...]
    documents: Callable[[], Iterable[Document]] = tuple


class _Document(Lenient):
    id: Id = Field(alias="_id")
    title: str | None = None
    text: str


class _Query(Lenient):
    id: Id = Field(alias="_id")
    text: str


class _Span(Lenient):
    start: Annotated[int, Field(ge=0, strict=True)]
    end: Annotated[int, Field(strict=True)]


class _SpanQuestion(Lenient):
    id: Id
    question: str
    document: Id
    references: Annotated[tuple[_Span, ...], Field(min_length=1)]


class _PageQuestion(Lenient):
    question: str
    document: Id
    pages: Annotated[frozenset[Annotated[int, Field(ge=1, strict=True)]], Field(min_length=1)]


def read_date(value: object) -> datetime | None:
    """Read a session's date in any of the forms in use, UTC where it names no zone; None if it cannot be read."""
    plain = _WEEKDAY.sub("", value).strip() if isinstance(value, str) else ""
    with suppress(ValueError):
        found = datetime.fromisoformat(plain)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    for form in _DATES:
        with suppress(ValueError):
            return datetime.strptime(plain, form).replace(tzinfo=UTC)
    return None


class Turn(Lenient):
    """Words of one speaker; ``text`` may be empty."""

    id: Id
    speaker: Id
    text: str


class Session(Lenient):
    """A session; ``date`` is None where it has none that can be read."""

    id: Id
    date: Annotated[datetime | None, BeforeValidator(read_date)] = None
    turns: tuple[Turn, ...]


class MemoryQuestion(Lenient):
    """A question, and the ids of the turns that answer it, each once."""

    question: str
    category: Annotated[str, BeforeValidator(str)] = ""
    evidence: tuple[Id, ...]

    @field_validator("question")
    @classmethod
    def _asks(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value

    @field_validator("evidence")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value))


class Conversation(Lenient):
    """Sessions over some time, and questions about them."""

    id: Id
    sessions: tuple[Session, ...]
    questions: tuple[MemoryQuestion, ...]

    @property
    def turn_ids(self) -> frozenset[str]:
        """The ids of all turns."""
        return frozenset(turn.id for session in self.sessions for turn in session.turns)

    @model_validator(mode="after")
    def _has_distinct_turns(self) -> Conversation:
        ids = [turn.id for session in self.sessions for turn in session.turns]
        if len(set(ids)) < len(ids):
            twice = next(turn_id for turn_id in ids if ids.count(turn_id) > 1)
            raise ValueError(f"two turns have the id {twice!r}; evidence must name one turn")
        return self


class Conversations(Lenient):
    """A file of conversations, in the file's order."""

    conversations: tuple[Conversation, ...]


def load_beir(path: Path | str) -> DataSet:
    """Open a data set in BEIR form (Thakur et al. 2021).

    Args:
        path: A folder with ``corpus.jsonl`` (``_id``, ``title``, ``text``), ``queries.jsonl`` (``_id``, ``text``) and
            ``qrels.tsv`` or ``qrels/test.tsv`` (query id, document id and grade, separated by tabs, with or without
            a header). The corpus is read when :attr:`DataSet.documents` is iterated.

    Raises:
        NotFoundError: The folder or one of its files does not exist.
        UsageError: A line is malformed, or no query has judgements.
    """
    folder = existing_folder(path)
    corpus = existing_file(folder / "corpus.jsonl")
    judgements = _judgements(existing_file(folder / "qrels.tsv", folder / "qrels" / "test.tsv"))
    queries: dict[str, str] = {}
    for query, where in _records(existing_file(folder / "queries.jsonl"), _Query):
        if query.id in queries:
            raise UsageError(f"{where}: the query {query.id!r} is there twice")
        queries[query.id] = query.text
    questions = tuple(
        Question(
            question_id=query_id,
            text=text,
            answers=grades,
            expected=tuple(f"document {name}" for name in sorted(name for name in grades if grades[name] > 0)[:10]),
        )
        for query_id, text in queries.items()
        if (grades := judgements.get(query_id))
    )
    if not questions:
        raise UsageError(f"{folder}: no query of queries.jsonl has judgements; do the ids in the qrels match its _id?")
    return DataSet(kind="beir", path=folder, questions=questions, documents=lambda: _corpus(corpus))


def load_spans(path: Path | str) -> DataSet:
    """Open a data set in span form.

    Args:
        path: A folder with ``corpora/*`` (UTF-8 texts) and ``questions.jsonl`` (``id``, ``question``, ``document``,
            ``references``: a list of ``{"start", "end"}``). Offsets count code points, line ends as in the file.

    Raises:
        NotFoundError: The folder or one of its parts does not exist.
        UsageError: A text is not UTF-8, a line is malformed, or a reference lies outside its document.
    """
    folder = existing_folder(path)
    texts = {
        file.name: _decoded(file.read_bytes(), str(file))
        for file in sorted(existing_folder(folder / "corpora").iterdir())
        if file.is_file() and not file.name.startswith(".")
    }
    questions = []
    for asked, where in _records(existing_file(folder / "questions.jsonl"), _SpanQuestion):
        if asked.document not in texts:
            raise UsageError(f"{where}: the document {asked.document!r} is not in corpora/")
        text = texts[asked.document]
        spans = tuple((one.start, one.end) for one in asked.references)
        for start, end in spans:
            if not start < end <= len(text):
                raise UsageError(
                    f"{where}: {start} to {end} is no range of characters: 0 <= start < end <= {len(text)}"
                )
        questions.append(
            Question(
                question_id=asked.id,
                text=asked.question,
                answers={asked.document: spans},
                expected=tuple(f"{asked.document}: {shortened(text[start:end])}" for start, end in spans),
            )
        )
    documents = [Document(content=text, source=name) for name, text in texts.items() if text.strip()]
    return DataSet(kind="spans", path=folder, questions=_some(questions, folder), documents=lambda: documents)


def load_pages(path: Path | str) -> DataSet:
    """Open a data set of pages.

    Args:
        path: A folder with ``pdf/`` and ``questions.jsonl`` (``question``, ``document``: a file's name below ``pdf/``,
            ``pages``: a list of whole numbers from 1).

    Raises:
        NotFoundError: The folder or one of its parts does not exist.
        UsageError: A line is malformed, or asks about a file that is not there.
    """
    folder = existing_folder(path)
    files = {file.name for file in existing_folder(folder / "pdf").iterdir() if file.is_file()}
    questions = []
    for asked, where in _records(existing_file(folder / "questions.jsonl"), _PageQuestion):
        if asked.document not in files:
            raise UsageError(f"{where}: the document {asked.document!r} is not in {folder / 'pdf'}")
        questions.append(Question(question_id=where, text=asked.question, answers={asked.document: asked.pages}))
    return DataSet(kind="pages", path=folder, questions=_some(questions, folder))


def load_memory(path: Path | str) -> Conversations:
    """Read a file of conversations.

    Args:
        path: JSON: ``{"conversations": [{"id", "sessions": [{"id", "date", "turns": [{"id", "speaker", "text"}]}],
            "questions": [{"question", "category", "evidence": ["turn id", …]}]}]}``, or the list alone.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It has another shape, or no question has evidence; the message says where.
    """
    text = _decoded(existing_file(Path(path)).read_bytes(), str(path)).removeprefix("\ufeff")
    found = _read(text if text.lstrip()[:1] == "{" else f'{{"conversations": {text}}}', Conversations, str(path))
    if len({one.id for one in found.conversations}) < len(found.conversations):
        raise UsageError(f"{path}: two conversations have the same id.")
    if not any(question.evidence for one in found.conversations for question in one.questions):
        raise UsageError(f"{path}: no question names the turns that answer it ('evidence').")
    return found


def kind_of(path: Path) -> SetKind:
    """How a data set is measured, by what is there.

    Raises:
        NotFoundError: There is nothing.
        UsageError: It is no data set.
    """
    if not path.exists():
        raise NotFoundError(f"{path} does not exist")
    found = "memory" if path.is_file() else next((kind for sign, kind in _SIGNS if (path / sign).exists()), None)
    if found is None:
        raise UsageError(
            f"{path} is no data set: it holds neither corpus.jsonl (BEIR form) nor corpora/ (span form) nor pdf/ "
            "(pages). Give a folder that does, a file of conversations or a file of test cases."
        )
    return found


def shortened(text: str, length: int = 300) -> str:
    """One line of at most ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def existing_folder(path: Path | str) -> Path:
    """Return a folder that exists.

    Raises:
        NotFoundError: It does not.
    """
    if not (folder := Path(path)).is_dir():
        raise NotFoundError(f"{folder} is not a folder")
    return folder


def _corpus(path: Path) -> Iterator[Document]:
    for record, _ in _records(path, _Document):
        title = (record.title or "").strip()
        content = f"{title}\n\n{record.text}" if title else record.text
        # Some corpora hold empty documents, which no search can find.
        if content.strip():
            yield Document(content=content, source=record.id, title=title or None)


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) == 4:  # TREC's own form has an unused second column
            del fields[1]
        try:
            query_id, document_id, grade = fields
            judgements.setdefault(query_id.strip(), {})[document_id.strip()] = _whole(grade)
        except ValueError as exc:
            if number > 1:  # the first may be a header
                raise UsageError(
                    f"{path}:{number}: expected query id, document id and a whole number, separated by tabs"
                ) from exc
    return judgements


def _whole(text: str) -> int:
    value = float(text)
    if not value.is_integer():
        raise ValueError(text)
    return int(value)


def _records(path: Path, kind: type[_R]) -> Iterator[tuple[_R, str]]:
    """The records of a file of JSON lines, each with its place."""
    for number, line in _lines(path):
        where = f"{path}:{number}"
        yield _read(line, kind, where), where


def _read(text: str, kind: type[_R], where: str) -> _R:
    try:
        return kind.model_validate_json(text)
    except ValidationError as exc:
        raise UsageError(f"{where}: {complaints(exc.errors(include_url=False))}") from exc


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1; only a line feed ends a line, as JSON Lines has it."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            line = _decoded(raw, f"{path}:{number}").removeprefix("\ufeff").rstrip("\r\n")
            if line.strip():
                yield number, line


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise UsageError(f"{where}: not UTF-8 ({exc.reason}); convert the file to UTF-8") from exc


def _some(questions: list[Question], folder: Path) -> tuple[Question, ...]:
    if not questions:
        raise UsageError(f"{folder / 'questions.jsonl'}: there is no question in it")
    return tuple(questions)


# Data sets by name, and files of what was measured on them before.


#: Values by metric, by the name of a data set.
Figures = Mapping[str, Mapping[str, float]]


def named_sets(given: Sequence[str]) -> dict[str, tuple[SetKind, Path]]:
    """The kinds and paths of the data sets that a command names, by name.

    Args:
        given: Paths, or ``NAME=PATH`` each; a path alone is known by its own name.

    Raises:
        NotFoundError: A path does not exist.
        UsageError: It is no data set, or two have one name.
    """
    sets: dict[str, tuple[SetKind, Path]] = {}
    for text in given:
        name, separator, rest = text.partition("=")
        if Path(text).exists() or not separator:
            name, rest = Path(text).resolve().name, text
        path = Path(rest)
        if name in sets:
            raise UsageError(f"Two data sets are called {name!r}: give one another name, OTHER={path}")
        sets[name] = (kind_of(path), path)
    return sets


def read_baseline(path: Path) -> dict[str, dict[str, float]]:
    """The figures of a file that `write_baseline` wrote, by set and metric.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It is none of these files.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(name): {str(metric): float(value) for metric, value in figures.items()}
            for name, figures in found["sets"].items()
        }
    except FileNotFoundError as exc:
        raise NotFoundError(f"{path} does not exist; --save {path} makes it") from exc
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise UsageError(f"{path} is no baseline: recollect eval all --save writes one ({exc})") from exc


def write_baseline(path: Path, figures: Figures) -> None:
    """Write figures down, to be compared with later."""
    require_writable(path, overwrite=True)
    path.write_text(json.dumps({"sets": figures}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


# Search every question of a data set once, measure the time, and score what was found.


_T = TypeVar("_T")
_F = TypeVar("_F")
_O = TypeVar("_O")

#: Passages counted, for the curves of rankings and of test cases.
DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
#: Characters shown, for the curves of spans.
BUDGETS = (500, 1000, 2000, 4000, 8000)
#: Passages among which an answering page is looked for.
PAGE_DEPTHS = (1, 5, 10)
#: Turns among which recall is measured.
TURN_DEPTHS = (5, 10, 20)
#: A session is found when it is among so many distinct ones.
SESSIONS = 10

_FOUND_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ShownHit:
    """One of the best passages, for people, and whether it is one that was looked for."""

    place: str
    text: str
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one system for one question.

    Attributes:
        query_id: As in the data.
        query: Its text.
        metrics: Figures by name, each better when higher.
        milliseconds: How long the search took.
        curve: Recall at each of the points of its kind of data.
        expected: What was looked for, in words.
        found: The best passages.
    """

    query_id: str
    query: str
    metrics: Mapping[str, float]
    milliseconds: float
    curve: tuple[float, ...] = ()
    expected: tuple[str, ...] = ()
    found: tuple[ShownHit, ...] = ()


def run(
    questions: Sequence[_T],
    search: Callable[[_T], _F],
    outcome: Callable[[_T, _F, float], _O],
    progress: Progress | None = None,
) -> list[_O]:
    """Search every question, one after the other.

    Args:
        questions: Of any kind.
        search: Finds what answers one; this is timed.
        outcome: Scores what was found; its last argument is the milliseconds that the search took.
        progress: Told about each finished question.
    """
    outcomes = []
    for question in tracked(questions, progress):
        started = time.perf_counter()
        found = search(question)
        milliseconds = (time.perf_counter() - started) * 1000
        outcomes.append(outcome(question, found, milliseconds))
    return outcomes


def means(
    figures: Sequence[Mapping[str, float]], total: Callable[[list[float]], float] = math.fsum
) -> dict[str, float]:
    """Average figures by name; ``total`` adds them up. Nothing where there are none."""
    names = list(figures[0]) if figures else []
    return {name: float(total([one[name] for one in figures]) / len(figures)) for name in names}


def times(milliseconds: Sequence[float]) -> dict[str, float]:
    """The median and the 95th percentile."""
    p50, p95 = np.percentile(milliseconds, [50, 95]).tolist()
    return {"p50": round(p50, 3), "p95": round(p95, 3)}


def rank_documents(question: Question, found: Sequence[RetrievedContext], milliseconds: float) -> Outcome:
    """Score the documents found by `query_metrics`; a document ranks by its best passage."""
    ranking = list(dict.fromkeys(hit.source for hit in found))
    wanted = {name for name, grade in question.answers.items() if grade > 0}
    return Outcome(
        query_id=question.question_id,
        query=question.text,
        metrics=query_metrics(ranking, question.answers),
        milliseconds=milliseconds,
        curve=tuple(len(wanted & set(ranking[:depth])) / max(1, len(wanted)) for depth in DEPTHS),
        expected=question.expected,
        found=_shown(found, [hit.source in wanted for hit in found]),
    )


def cover_spans(
    question: Question,
    found: Sequence[RetrievedContext],
    milliseconds: float,
    *,
    budget_chars: int,
    passages: int | None = None,
) -> Outcome:
    """Score the characters shown by `span_scores`.

    Args:
        question: What was asked.
        found: Best first, enough to fill the largest budget.
        milliseconds: What the search took.
        budget_chars: Show the passages that fit in this many characters.
        passages: Show this many passages instead.
    """
    ((document, references),) = question.answers.items()
    spans = [(hit.source, (hit.start_offset, hit.end_offset)) for hit in found]

    def scores(shown: Sequence[tuple[str, Span]]) -> dict[str, float]:
        here = [span for source, span in shown if source == document]
        elsewhere = sum(end - start for source, (start, end) in shown if source != document)
        return span_scores(references, here, shown_elsewhere=elsewhere)

    def answers(source: str, span: Span) -> bool:
        return source == document and any(start < span[1] and span[0] < end for start, end in references)

    return Outcome(
        query_id=question.question_id,
        query=question.text,
        metrics=scores(fitting(spans, budget_chars) if passages is None else spans[:passages]),
        milliseconds=milliseconds,
        curve=tuple(scores(fitting(spans, budget))["recall"] for budget in BUDGETS),
        expected=question.expected,
        found=_shown(found, [answers(*one) for one in spans]),
    )


def fitting(found: Sequence[tuple[str, Span]], budget_chars: int) -> list[tuple[str, Span]]:
    """The passages, best first, up to the first that would exceed the budget.

    That one is neither cut nor skipped in favour of a shorter one further down: a cut passage could not be cited, and
    skipping would reward an engine for the length of its worse results.

    Args:
        found: Documents and their characters, best first.
        budget_chars: How many characters may be shown, repeated ones counted each time.
    """
    shown = []
    room = budget_chars
    for document, (start, end) in found:
        room -= end - start
        if room < 0:
            break
        shown.append((document, (start, end)))
    return shown


def hit_pages(question: Question, found: Mapping[str, Sequence[RetrievedContext]], milliseconds: float) -> Outcome:
    """Look for a passage with an answering page among the first ones of each search."""
    ((document, pages),) = question.answers.items()
    metrics: dict[str, float] = {}
    for place, passages in found.items():
        hits = [
            hit.source == document and any(part.page in pages for part in hit.parts if part.page is not None)
            for hit in passages
        ]
        metrics |= {f"hit@{depth}, {place}": float(any(hits[:depth])) for depth in PAGE_DEPTHS}
    return Outcome(query_id=question.question_id, query=question.text, metrics=metrics, milliseconds=milliseconds)


def recall_turns(
    talk: Conversation, question: MemoryQuestion, found: Sequence[tuple[str, str]], milliseconds: float
) -> Outcome:
    """Measure what memory recalled of a conversation.

    Args:
        talk: The conversation.
        question: With at least one turn that answers it.
        found: Sessions and turns by id, best first; of a turn named twice, the first place counts.
        milliseconds: What recalling took.
    """
    turns = list(dict.fromkeys(turn for _, turn in found))
    sessions = list(dict.fromkeys(session for session, _ in found))[:SESSIONS]
    wanted = set(question.evidence)
    metrics = {f"evidence_recall@{depth}": len(wanted & set(turns[:depth])) / len(wanted) for depth in TURN_DEPTHS}
    holding = {session.id for session in talk.sessions if wanted & {turn.id for turn in session.turns}}
    metrics[f"session_hit@{SESSIONS}"] = float(not holding.isdisjoint(sessions))
    return Outcome(query_id=talk.id, query=question.question, metrics=metrics, milliseconds=milliseconds)


def by_group(names: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Average figures by group; ``names`` are the groups of the outcomes."""
    groups: dict[str, list[Mapping[str, float]]] = {}
    for name, one in zip(names, outcomes, strict=True):
        groups.setdefault(name, []).append(one.metrics)
    return {name: means(groups[name]) for name in sorted(groups)}


def check_cases(
    suite: Suite,
    search: Callable[[CaseSearch], Sequence[RetrievedContext]],
    *,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run the test cases that have must-haves; figures are precision, recall and MRR.

    Each is searched once more, deeply and untimed, for the curve of recall.

    Args:
        suite: The cases; their documents must be in the system already.
        search: Finds the passages that a case asks for, best first.
        progress: Told about each finished case.

    Raises:
        UsageError: No case has must-haves.
    """
    cases = [case for case in suite.cases if case.must_have]
    if not cases:
        raise UsageError("no case has must_have: there is nothing to compare")

    def outcome(case: Case, found: Sequence[RetrievedContext], milliseconds: float) -> Outcome:
        deep = search(replace(suite.search(case), top_k=DEPTHS[-1]))
        return Outcome(
            query_id=case.name,
            query=case.query,
            metrics=score(case, found),
            milliseconds=milliseconds,
            curve=tuple(score(case, deep[:depth])["recall"] for depth in DEPTHS),
            expected=tuple(str(wanted) for wanted in case.must_have),
            found=_shown(found, [any(meets(hit, wanted) for wanted in case.must_have) for hit in found]),
        )

    return run(cases, lambda case: search(suite.search(case)), outcome, progress)


def place_of(passage: RetrievedContext) -> str:
    """Where a passage is, for people: source › section, page."""
    titles = [title for title in (passage.section or "").split(" > ") if title.strip()]
    page = "" if passage.page is None else f", p. {passage.page}"
    return " › ".join(" ".join(part.split()) for part in (passage.source, *titles)) + page


def _shown(found: Sequence[RetrievedContext], good: Iterable[bool]) -> tuple[ShownHit, ...]:
    best = list(zip(found, good, strict=True))[:_FOUND_SHOWN]
    return tuple(ShownHit(place_of(hit), shortened(hit.content), fits) for hit, fits in best)


# The numbers of retrieval quality. Pure: rankings and judgements in, figures out.


Span = tuple[int, int]

#: The measures of :func:`ranking_metrics`, named as ``ir_measures`` names them.
RANKING_METRICS = ("nDCG@10", "R@100", "RR@10", "AP")


def ranking_metrics(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """nDCG@10, recall@100, reciprocal rank@10 and average precision, averaged over the judged queries.

    Defined as ``trec_eval`` defines them, and tested against it; computed here, because the packages that bring it
    would make up a quarter of an installation. nDCG (Järvelin & Kekäläinen 2002) takes the grades as gains; the others
    count every grade of 1 or more as relevant, and documents without judgement as not relevant.

    Args:
        rankings: By query id, the document ids best first; of a document named twice, the first place counts.
        judgements: By query id, grades by document id. A query that is not here is left out of the average; one that
            is here without a ranking, or without a relevant document, counts as 0.

    Returns:
        Figures by the names in ``RANKING_METRICS``, 0 where nothing is judged.
    """
    figures = [query_metrics(rankings.get(query_id, ()), grades) for query_id, grades in judgements.items()]
    count = max(1, len(figures))
    return {name: math.fsum(figure[name] for figure in figures) / count for name in RANKING_METRICS}


def query_metrics(ranking: Sequence[str], grades: Mapping[str, int]) -> dict[str, float]:
    """The measures of a single query, as in `ranking_metrics`."""
    distinct = list(dict.fromkeys(ranking))
    relevant = {document for document, grade in grades.items() if grade >= 1}
    places = [place for place, document in enumerate(distinct, 1) if document in relevant]
    total = len(relevant)
    return {
        "nDCG@10": _ndcg([max(0, grades.get(document, 0)) for document in distinct[:10]], grades.values()),
        "R@100": sum(place <= 100 for place in places) / total if total else 0.0,
        "RR@10": 1 / places[0] if places and places[0] <= 10 else 0.0,
        "AP": math.fsum(found / place for found, place in enumerate(places, 1)) / total if total else 0.0,
    }


def _ndcg(gains: Sequence[int], grades: Iterable[int], *, cutoff: int = 10) -> float:
    ideal = _discounted(sorted((grade for grade in grades if grade > 0), reverse=True)[:cutoff])
    return _discounted(gains) / ideal if ideal else 0.0


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def span_scores(references: Iterable[Span], shown: Iterable[Span], *, shown_elsewhere: int = 0) -> dict[str, float]:
    """``recall``, ``precision`` and ``iou`` (intersection over union) of characters, each 0 to 1.

    Args:
        references: Ranges of a document that answer a question; characters in several of them count once.
        shown: Ranges of the same document that were retrieved. A character that is shown twice counts twice among
            the characters shown, and once among those found.
        shown_elsewhere: Characters shown of other documents.
    """
    wanted = _union(references)
    shown = list(shown)
    total_wanted = _length(wanted)
    total_shown = _length(shown) + shown_elsewhere
    found = _common_length(wanted, _union(shown))
    joined = total_wanted + total_shown - found
    return {
        "recall": found / total_wanted if total_wanted else 0.0,
        "precision": found / total_shown if total_shown else 0.0,
        "iou": found / joined if joined else 0.0,
    }


def _union(spans: Iterable[Span]) -> list[Span]:
    """The same characters as ranges that do not touch, in order."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _length(spans: Iterable[Span]) -> int:
    return sum(max(0, end - start) for start, end in spans)


def _common_length(left: Sequence[Span], right: Sequence[Span]) -> int:
    """Characters in both of two unions."""
    total = i = j = 0
    while i < len(left) and j < len(right):
        total += max(0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total
