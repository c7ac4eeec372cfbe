"""Erasing documents for good, with a receipt: what went, that nothing of it is found any more, what remains where."""

from __future__ import annotations

import hashlib
import random
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import TupleRow

from recollect.model import Scope
from recollect.model.history import ErasedDocument, ErasureProbe, ErasureReceipt, ScrubReport
from recollect.store.admission import forget_replies
from recollect.store.closing import count_closed, lock_with_attached
from recollect.store.database import Connection, Repository, rows
from recollect.store.files import delete_of_documents
from recollect.store.logs import record
from recollect.store.memory import reader
from recollect.store.scrub import Scrubber
from recollect.store.sql import queries

# Turns of conversations that quote documents, found word by word: what an erasure of the documents takes along.


_WORD = re.compile(r"\w+")

#: So many words in a row that stand in the erased documents, and in no other, are a quote.
QUOTE_WORDS = 7

# A text of fewer words than this has nothing that could be told from a coincidence, unless it is repeated whole.
_FEWEST_WORDS = 3

_PAGE = 500

# Of one turn so many stretches are compared with the other documents; one that stands in none of them is enough.
_STRETCHES = 5


@dataclass(frozen=True, slots=True)
class _Candidate:
    session: tuple[str, str | None]
    position: int
    stretches: list[str]


@dataclass(slots=True)
class WordRuns:
    """Every run of a text's words, of one length; shorter texts count whole.

    Attributes:
        runs: Hashes of runs, by their length in words.
    """

    runs: dict[int, set[int]] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Take in a text, case and punctuation aside."""
        words = [match.group().casefold() for match in _WORD.finditer(text)]
        if len(words) < _FEWEST_WORDS:
            return
        length = min(QUOTE_WORDS, len(words))
        self.runs.setdefault(length, set()).update(_runs(words, length))

    def quoted_in(self, text: str) -> Iterator[str]:
        """The stretches of another text that are runs of these."""
        matches = list(_WORD.finditer(text))
        words = [match.group().casefold() for match in matches]
        for length, runs in self.runs.items():
            for start, run in enumerate(_runs(words, length)):
                if run in runs:
                    yield text[matches[start].start() : matches[start + length - 1].end()]


def _runs(words: Sequence[str], length: int) -> Iterator[int]:
    return (hash(tuple(words[start : start + length])) for start in range(len(words) - length + 1))


def is_quote(phrase: str) -> bool:
    """Whether a phrase has words enough to be a quote wherever it stands."""
    return len(_WORD.findall(phrase)) >= QUOTE_WORDS


class QuoteRepository(Repository):
    """Finds the turns that quote documents."""

    def of_documents(self, scope: Scope, document_ids: Sequence[int]) -> dict[tuple[str, str | None], list[int]]:
        """Turns that repeat so many words in a row which no other document of the tenant holds.

        Every turn is read once: it takes some ten seconds for a million.

        Args:
            scope: Whose documents and conversations; with a principal, their own conversations.
            document_ids: The documents, with all of their versions.

        Returns:
            Positions of turns, by session: its id and its user.
        """
        params: dict[str, Any] = {**reader(scope), "document_ids": list(document_ids)}
        with self._database.transaction(scope) as connection:
            candidates = list(self._candidates(connection, params))
            elsewhere = self._elsewhere(connection, params, candidates)
        found: dict[tuple[str, str | None], list[int]] = {}
        for one in candidates:
            if any(stretch not in elsewhere for stretch in one.stretches):
                found.setdefault(one.session, []).append(one.position)
        return found

    @staticmethod
    def _runs(connection: Connection, params: Mapping[str, Any]) -> WordRuns:
        runs = WordRuns()
        version_ids = params["version_ids"]
        for start in range(0, len(version_ids), _PAGE):
            page = {**params, "version_ids": version_ids[start : start + _PAGE]}
            for (content,) in rows(connection, _SQL["contents"], page):
                runs.add(content)
        return runs

    @classmethod
    def _candidates(cls, connection: Connection, params: dict[str, Any]) -> Iterator[_Candidate]:
        after, runs = 0, None
        while page := rows(connection, _SQL["turns"], {**params, "after": after, "limit": _PAGE}):
            if runs is None:
                # Copies in sessions are erased with the documents, so they are no other ones.
                params["document_ids"] += [row[0] for row in rows(connection, _SQL["session_copies"], params)]
                params["version_ids"] = [row[1] for row in rows(connection, _SQL["versions"], params)]
                runs = cls._runs(connection, params)
            if not runs.runs:
                return
            for episode_id, session, user, position, content in page:
                after = episode_id
                stretches = list(islice(dict.fromkeys(runs.quoted_in(content)), _STRETCHES))
                if stretches:
                    yield _Candidate((session, user), position, stretches)

    @staticmethod
    def _elsewhere(connection: Connection, params: Mapping[str, Any], candidates: Sequence[_Candidate]) -> set[str]:
        """Which of the stretches stand in other documents too."""
        stretches = sorted({stretch for one in candidates for stretch in one.stretches})
        if not stretches:
            return set()
        return {row[0] for row in rows(connection, _SQL["shared_phrases"], {**params, "phrases": stretches})}


_SQL = queries("erasure")

_WRITER = queries("writer")

_ORIGINALS = queries("originals")

#: Phrases that are looked for afterwards, of all documents erased at once.
PROBE_PHRASES = 12

#: Titles, paths, tags, headings and metadata values, likewise; shorter ones say too little to be looked for.
PROBE_NAMES = 40

SHORTEST_NAME_BYTES = 6

_PHRASE_WORDS = 7

_SHORT_QUOTES = (
    f"Conversations: turns that repeat fewer than {QUOTE_WORDS} words in a row of a document, which anybody may say, "
    "until they are removed (recollect sessions forget)."
)

_SHORTEST_PHRASE = 12

_CONTENTS_A_PAGE = 16

_KINDS = (
    "documents",
    "versions",
    "chunks",
    "vectors",
    "lexical_rows",
    "token_vectors",
    "acronyms",
    "texts",
    "originals",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traces:
    """What can be looked for of documents, and what else holds the same."""

    version_ids: list[int]
    documents: tuple[ErasedDocument, ...]
    salt: str
    phrases: list[str]
    chunk_hashes: list[bytes]
    version_hashes: list[bytes]
    copies: tuple[int, ...]
    names: list[str]


class ErasureRepository(Repository):
    """Erases documents."""

    def erase(
        self,
        scope: Scope,
        document_ids: Sequence[int],
        *,
        actor: str,
        reason: str | None = None,
        removed: Mapping[str, int] | None = None,
        finish: Callable[[], None] | None = None,
        scrubber: Scrubber | None = None,
    ) -> ErasureReceipt:
        """Remove documents with every version, chunk, vector, lexical row, cached embedding and original, and prove it.

        What other documents hold as well stays theirs: equal texts, with their cached embeddings, and originals of the
        same bytes. Copies in sessions go too, and test cases that quote the documents or name their sources.

        Args:
            scope: Whose documents.
            document_ids: Which ones; those that do not exist are passed over.
            actor: Who asks, for the receipt.
            reason: Why, for the receipt; None: nothing is said.
            removed: What was removed elsewhere for the same sake, by kind, for the receipt.
            finish: What is to be done after the removal.
            scrubber: Writes the store anew afterwards, and looks for what was erased in its files; None: nothing does.

        Returns:
            The receipt, which the audit keeps too.
        """
        with self._database.autocommit() as connection:
            # Before: what is not sampled now is not sampled of rows that are gone.
            connection.execute(_SQL["forget_samples"])
        with self._database.transaction(scope) as connection:
            given = {"document_ids": list(document_ids), **reader(scope)}
            # What was put into sessions is nobody's to name, so it goes with the document that it is a copy of.
            uploaded = [row[0] for row in rows(connection, _SQL["session_copies"], given)]
            ids = lock_with_attached(connection, scope, [*document_ids, *uploaded])
            _hold_shared(connection, scope, ids)
            versions = rows(connection, _SQL["versions"], _of(scope, ids))
            traces = _traces(connection, scope, ids, versions)
            counts = _remove(connection, scope, ids, traces) | dict(removed or {})
            forget_replies(connection, scope)
            # Within the transaction, so that no erasure lacks its proof; before the counters, which writers wait for.
            probe, settings = _probe(connection, scope, traces)
            _count(connection, scope, versions)
            details = {"reason": reason, "counts": counts, **_told(traces)}
            receipt_id, at = record(connection, scope, action="erase", actor=actor, details=details)
            remains = _remains(settings, at)
            proof = {"receipt_id": receipt_id, "probe": asdict(probe), "remains": list(remains)}
            record(connection, scope, action="erase_proof", actor=actor, details=proof)
        with self._database.autocommit() as connection:
            connection.execute(_SQL["sample_lexemes"])
        if finish is not None:
            finish()
        done: ScrubReport | None = None
        if scrubber is not None:
            hashes = [*traces.chunk_hashes, *traces.version_hashes]
            done = scrubber.scrub(scope, actor=actor, texts=[*traces.phrases, *traces.names], hashes=hashes)
            remains = (*done.remains, _SHORT_QUOTES)
        return ErasureReceipt(
            receipt_id=receipt_id,
            tenant_id=scope.tenant_id,
            erased_at=at,
            erased_by=actor,
            reason=reason,
            documents=traces.documents,
            salt=traces.salt,
            counts=counts,
            copies=traces.copies,
            probe=probe,
            remains=remains,
            scrub=done,
        )


def _probe(connection: Connection, scope: Scope, traces: _Traces) -> tuple[ErasureProbe, dict[str, str]]:
    """Look for what stood in the erased documents alone, in every column that could hold it.

    Returns:
        What was found, and the server's settings that `_remains` needs.
    """
    hashes = [*traces.chunk_hashes, *traces.version_hashes]
    given = {"tenant_id": scope.tenant_id, "hashes": hashes}
    ((awaited, sampled, settings),) = rows(connection, _SQL["remains"], given)
    # The same bytes, which somebody has sent and a job is to read yet, are another document's.
    others = set(map(bytes, awaited))
    hashes = [one for one in hashes if one not in others]
    params = {"tenant_id": scope.tenant_id, "phrases": traces.phrases, "hashes": hashes, "names": traces.names}
    found: dict[str, int] = {}
    mentions: dict[str, int] = {}
    places = rows(connection, _SQL["places"])
    for table, columns, of_phrases, of_names in connection.execute(_looking(places), params, binary=True):
        counted = zip(columns, of_phrases, of_names, strict=True)
        for column, phrases, names in counted:
            found |= {f"{table}.{column}": phrases} if phrases else {}
            mentions |= {f"{table}.{column}": names} if names else {}
    found |= {f"pg_statistic of {column}": 1 for column in sampled}
    probe = ErasureProbe(
        phrases=len(traces.phrases),
        hashes=len(hashes),
        places=len(places),
        found=found,
        names=len(traces.names),
        mentions=mentions,
    )
    return probe, settings


def _remains(settings: Mapping[str, str], at: datetime) -> tuple[str, ...]:
    archived = settings.get("archive_mode", "off") != "off"
    removed = settings.get("wal_recycle") == "off"
    until = "until checkpoints remove them" if removed else "until they are used again and written over"
    log = (
        f"Write-ahead log: its segments hold the former rows, {until} (checkpoint_timeout "
        f"{settings.get('checkpoint_timeout')}, max_wal_size {settings.get('max_wal_size')}, "
        f"wal_keep_size {settings.get('wal_keep_size')})"
    )
    kept = "; archiving is on: archived segments hold them until they are deleted." if archived else "."
    return (
        f"Backups, dumps and snapshots made before {at.isoformat()}: until they are deleted.",
        log + kept,
        "Database files: the bytes of removed rows, which no query reads, until something is written over them. "
        "Neither VACUUM nor a checkpoint does that; `recollect db scrub`, or erasing with --scrub, does.",
        "Other running processes: cached replies that no search is answered from, until they fall out or the "
        "process ends.",
        _SHORT_QUOTES,
    )


def _of(scope: Scope, ids: list[int]) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "document_ids": ids}


def _told(traces: _Traces) -> dict[str, Any]:
    """What the audit holds of the documents."""
    return {
        "salt": traces.salt,
        "documents": [
            {"document_id": one.document_id, "versions": one.version_count, "hashes": list(one.hashes)}
            for one in traces.documents
        ],
        "copies": list(traces.copies),
    }


def _hold_shared(connection: Connection, scope: Scope, ids: list[int]) -> None:
    """Hold what other documents may have as well, in the order of whoever stores it; files go with their documents.

    Before it is looked who has: of two who erase the last two at once, one must see it.
    """
    given = _of(scope, ids)
    connection.execute(_SQL["hold_texts"], given)
    delete_of_documents(connection, scope, ids)
    connection.execute(_ORIGINALS["hold_of_documents"], given)
    connection.execute(_SQL["hold_cached"], given)


def _traces(connection: Connection, scope: Scope, ids: list[int], versions: Sequence[TupleRow]) -> _Traces:
    params = _of(scope, ids)
    version_ids = [row[1] for row in versions]
    salt = secrets.token_hex(16)
    hashes: dict[int, list[str]] = {}
    for document_id, _, content_hash, *_ in versions:
        hashes.setdefault(document_id, []).append(salted(salt, content_hash))
    params |= {
        "version_ids": version_ids,
        "content_hashes": [row[2] for row in versions],
        "hashes": [one for row in versions for one in row[2:4] if one is not None],
    }
    phrases, short = _candidates(connection, params)
    shared = {row[0] for row in rows(connection, _SQL["shared_phrases"], {**params, "phrases": [*phrases, *short]})}
    found = rows(connection, _SQL["traces"], {**params, "shortest": SHORTEST_NAME_BYTES})
    ((names, chunk_hashes, version_hashes, copies),) = found
    names = random.SystemRandom().sample(names, min(len(names), PROBE_NAMES))
    return _Traces(
        version_ids=version_ids,
        documents=tuple(
            ErasedDocument(document_id=document_id, version_count=len(own), hashes=tuple(own))
            for document_id, own in hashes.items()
        ),
        salt=salt,
        phrases=[phrase for phrase in phrases if phrase not in shared],
        names=sorted({*names, *short} - shared),
        chunk_hashes=[*map(bytes, chunk_hashes)],
        version_hashes=[*map(bytes, version_hashes)],
        copies=tuple(copies),
    )


def _candidates(connection: Connection, params: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Phrases of the contents, drawn by lot over all of them; a fixed seed has no say in what is looked for.

    Somebody may say the same few words without quoting; what is longer is a quote, and was removed as one. So the short
    ones come apart, unless there are no others.
    """
    lot = random.SystemRandom()
    version_ids = list(params["version_ids"])
    chosen = lot.sample(version_ids, min(len(version_ids), _CONTENTS_A_PAGE))
    contents = rows(connection, _SQL["contents"], {**params, "version_ids": chosen})
    found = [phrase for row in contents for phrase in phrases_of(row[0])]
    long = [phrase for phrase in found if is_quote(phrase)]
    short = [phrase for phrase in found if not is_quote(phrase)] if long else []
    chosen_ones = (lot.sample(some, min(len(some), PROBE_PHRASES)) for some in (long or found, short))
    phrases, apart = chosen_ones
    return phrases, apart


def phrases_of(content: str) -> list[str]:
    """Stretches of some words of a text, each within a line and in its very characters, none of them overlapping.

    Args:
        content: A line shorter than a phrase is one itself, unless it is too short to mean anything.
    """
    found: list[str] = []
    for line in content.splitlines():
        words = line.split(" ")
        for start in range(0, len(words), _PHRASE_WORDS):
            phrase = " ".join(words[start : start + _PHRASE_WORDS]).strip()
            # JSON would write these in another way, and the phrase would not be met in it.
            if len(phrase) >= _SHORTEST_PHRASE and not {'"', "\\", "\t"} & set(phrase):
                found.append(phrase)
    return list(dict.fromkeys(found))


def salted(salt: str, content_hash: bytes) -> str:
    """What a receipt says of a content: SHA-256 of the salt (as bytes) followed by the SHA-256 of the content."""
    return hashlib.sha256(bytes.fromhex(salt) + content_hash).hexdigest()


def _remove(connection: Connection, scope: Scope, ids: list[int], traces: _Traces) -> dict[str, int]:
    params = _of(scope, ids) | {
        "version_ids": traces.version_ids,
        "chunk_hashes": traces.chunk_hashes,
        "phrases": traces.phrases,
    }
    counts = dict(zip(_KINDS, map(int, rows(connection, _SQL["counts"], params)[0]), strict=True))
    counts["cached_embeddings"] = connection.execute(_SQL["erase_cached"], params).rowcount
    counts["saved_cases"] = connection.execute(_SQL["erase_saved_cases"], params).rowcount
    connection.execute(_WRITER["erase_documents"], params)
    return counts


def _count(connection: Connection, scope: Scope, versions: Sequence[TupleRow]) -> None:
    current = [(collection_id, chunks) for *_, collection_id, chunks, is_current in versions if is_current]
    count_closed(connection, scope, current)
    for collection_id in sorted({row[4] for row in versions} - {collection for collection, _ in current}):
        # Replies about the past may quote them too: a new revision is a new key for every cache.
        nothing: dict[str, Any] = {
            "collection_id": collection_id,
            "documents": 0,
            "chunks": 0,
            "pending": 0,
            "next_expiry": None,
            "languages": [],
        }
        connection.execute(_WRITER["count"], {"tenant_id": scope.tenant_id, **nothing})


def _looking(places: Sequence[tuple[str, str, bool]]) -> sql.Composed:
    """A statement that reads each table once, and counts by column the rows that hold a phrase or hash, or a name."""
    tables: dict[str, dict[str, bool]] = {}
    for table, column, is_hash in places:
        tables.setdefault(table, {})[column] = is_hash
    one = sql.SQL(
        "SELECT {name}::text, {columns}::text[], ARRAY[{phrases}]::bigint[], ARRAY[{names}]::bigint[] "
        "FROM {table} t WHERE tenant_id = %(tenant_id)s"
    )
    return sql.SQL(" UNION ALL ").join(
        one.format(
            name=table,
            columns=list(columns),
            phrases=sql.SQL(", ").join(
                _with_hash(column) if is_hash else _with_text(column, "phrases") for column, is_hash in columns.items()
            ),
            names=sql.SQL(", ").join(
                sql.SQL("0") if is_hash else _with_text(column, "names") for column, is_hash in columns.items()
            ),
            table=sql.Identifier("recollect", table),
        )
        for table, columns in tables.items()
    )


def _with_hash(column: str) -> sql.Composed:
    held = "count(*) FILTER (WHERE t.{column} = ANY (%(hashes)b::bytea[]))"
    return sql.SQL(held).format(column=sql.Identifier(column))


def _with_text(column: str, texts: LiteralString) -> sql.Composed:
    held = (
        "count(*) FILTER (WHERE EXISTS (SELECT FROM unnest({texts}::text[]) AS p (said) "
        "WHERE strpos(t.{column}::text, p.said) > 0))"
    )
    return sql.SQL(held).format(column=sql.Identifier(column), texts=sql.Placeholder(texts))
