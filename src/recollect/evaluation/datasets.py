"""Data sets with judgements: BEIR form, spans of characters, pages and conversations; and baselines of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import Id, Lenient, complaints, existing_file
from recollect.model import Document
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
