"""Data sets with judgements: the BEIR form (documents that answer) and the span form (characters that answer)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import NotFoundError, UsageError

JsonObject = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeirDocument:
    """A document of a BEIR corpus; ``title`` may be empty."""

    document_id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question of a BEIR data set."""

    query_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeirDataset:
    """A corpus, queries, and how relevant which document is to which query.

    Attributes:
        path: The folder it was read from.
        queries: Those that have judgements, in the file's order.
        judgements: By query id: grade by document id, 0 for not relevant.
    """

    path: Path
    queries: tuple[Query, ...]
    judgements: Mapping[str, Mapping[str, int]]

    def documents(self) -> Iterator[BeirDocument]:
        """Read the corpus, one document at a time.

        Raises:
            UsageError: A line is malformed; the message names file and line.
        """
        for record, where in records(self.path / "corpus.jsonl"):
            title = record.get("title")
            yield BeirDocument(
                document_id=identifier(record, "_id", where),
                title="" if title is None else text_of(record, "title", where),
                text=text_of(record, "text", where),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanQuestion:
    """A question and the character ranges ``(start, end)`` of one document that answer it."""

    question_id: str
    text: str
    document: str
    references: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanDataset:
    """Texts, and questions that are answered by ranges of their characters.

    Attributes:
        path: The folder it was read from.
        documents: Content by file name; offsets count its code points, line ends as they stand in the file.
        questions: In the file's order.
    """

    path: Path
    documents: Mapping[str, str]
    questions: tuple[SpanQuestion, ...]


def load_beir(path: Path | str) -> BeirDataset:
    """Open a data set in BEIR form (Thakur et al. 2021).

    Args:
        path: A folder with ``corpus.jsonl`` (``_id``, ``title``, ``text``), ``queries.jsonl`` (``_id``, ``text``) and
            ``qrels.tsv`` or ``qrels/test.tsv`` (query id, document id and grade, separated by tabs, with or without
            a header). The corpus is read when :meth:`BeirDataset.documents` is iterated.

    Raises:
        NotFoundError: The folder or one of its files does not exist.
        UsageError: A line is malformed, or no query has judgements.
    """
    folder = existing_folder(path)
    existing_file(folder / "corpus.jsonl")
    judgements = _judgements(existing_file(folder / "qrels.tsv", folder / "qrels" / "test.tsv"))
    queries: dict[str, Query] = {}
    for record, where in records(existing_file(folder / "queries.jsonl")):
        query_id = identifier(record, "_id", where)
        if query_id in queries:
            message = f"{where}: the query {query_id!r} is there twice"
            raise UsageError(message)
        queries[query_id] = Query(query_id=query_id, text=text_of(record, "text", where))
    judged = tuple(query for query_id, query in queries.items() if query_id in judgements)
    if not judged:
        message = f"{folder}: no query of queries.jsonl has judgements; do the ids in the qrels match its _id?"
        raise UsageError(message)
    return BeirDataset(path=folder, queries=judged, judgements=judgements)


def load_spans(path: Path | str) -> SpanDataset:
    """Open a data set in span form.

    Args:
        path: A folder with ``corpora/*`` (UTF-8 texts) and ``questions.jsonl`` (``id``, ``question``, ``document``,
            ``references``: a list of ``{"start", "end"}``).

    Raises:
        NotFoundError: The folder or one of its parts does not exist.
        UsageError: A text is not UTF-8, a line is malformed, or a reference lies outside its document.
    """
    folder = existing_folder(path)
    documents = {
        file.name: _read(file)
        for file in sorted(existing_folder(folder / "corpora").iterdir())
        if file.is_file() and not file.name.startswith(".")
    }
    questions = tuple(
        _span_question(record, where, documents) for record, where in records(existing_file(folder / "questions.jsonl"))
    )
    if not questions:
        message = f"{folder / 'questions.jsonl'}: there is no question in it"
        raise UsageError(message)
    return SpanDataset(path=folder, documents=documents, questions=questions)


def _span_question(record: JsonObject, where: str, documents: Mapping[str, str]) -> SpanQuestion:
    document = text_of(record, "document", where)
    if document not in documents:
        message = f"{where}: the document {document!r} is not in corpora/"
        raise UsageError(message)
    references = record.get("references")
    if not isinstance(references, list) or not references:
        message = f'{where}: \'references\' must be a list of at least one {{"start", "end"}}'
        raise UsageError(message)
    return SpanQuestion(
        question_id=identifier(record, "id", where),
        text=text_of(record, "question", where),
        document=document,
        references=tuple(_span(reference, where, len(documents[document])) for reference in references),
    )


def _span(reference: object, where: str, length: int) -> tuple[int, int]:
    if isinstance(reference, dict):
        start, end = reference.get("start"), reference.get("end")
        if type(start) is int and type(end) is int and 0 <= start < end <= length:
            return start, end
    message = f"{where}: the reference {reference!r} is no range of characters 0 <= start < end <= {length}"
    raise UsageError(message)


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) == 4:  # TREC's own form has an unused second column
            del fields[1]
        grade = _grade(fields[-1])
        if len(fields) == 3 and grade is not None:
            judgements.setdefault(fields[0].strip(), {})[fields[1].strip()] = grade
        elif number > 1:
            message = f"{path}:{number}: expected query id, document id and a whole number, separated by tabs"
            raise UsageError(message)
    return judgements


def _grade(field: str) -> int | None:
    try:
        value = float(field)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None


def records(path: Path) -> Iterator[tuple[JsonObject, str]]:
    """The JSON objects of a file of lines, each with where it stands.

    Raises:
        UsageError: A line is none.
    """
    for number, line in _lines(path):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as exc:
            message = f"{where}: not a line of JSON ({exc})"
            raise UsageError(message) from exc
        if not isinstance(record, dict):
            message = f"{where}: expected a JSON object, found {type(record).__name__}"
            raise UsageError(message)
        yield record, where


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1; only a line feed ends a line, as JSON Lines has it."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as exc:
                message = f"{path}:{number}: not UTF-8 ({exc.reason}); convert the file to UTF-8"
                raise UsageError(message) from exc
            if line.strip():
                yield number, line


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as exc:
        message = f"{path}: not UTF-8 ({exc.reason}); convert the file to UTF-8"
        raise UsageError(message) from exc


def existing_folder(path: Path | str) -> Path:
    """A folder that is there.

    Raises:
        NotFoundError: It is not.
    """
    folder = Path(path)
    if not folder.is_dir():
        message = f"{folder} is not a folder"
        raise NotFoundError(message)
    return folder


def existing_file(*alternatives: Path) -> Path:
    """The first of some files that is there.

    Raises:
        NotFoundError: None is.
    """
    for path in alternatives:
        if path.is_file():
            return path
    message = f"{' or '.join(map(str, alternatives))} is missing"
    raise NotFoundError(message)


def _field(record: JsonObject, name: str, where: str, accepts: Callable[[object], bool]) -> str:
    value = record.get(name)
    if not accepts(value):
        message = f"{where}: {name!r} must be text, not {value!r}" if name in record else f"{where}: no {name!r}"
        raise UsageError(message)
    return str(value)


def text_of(record: JsonObject, name: str, where: str) -> str:
    """A text of a record.

    Raises:
        UsageError: It is missing, or none.
    """
    return _field(record, name, where, lambda value: isinstance(value, str))


def identifier(record: JsonObject, name: str, where: str) -> str:
    """An id: text, or a whole number written as one."""
    return _field(record, name, where, lambda value: type(value) is int or (isinstance(value, str) and value != ""))
