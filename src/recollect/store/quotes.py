"""Turns of conversations that quote documents, found word by word: what an erasure of the documents takes along."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from recollect.model import Scope
from recollect.store.database import Connection, Database, rows
from recollect.store.memory import reader
from recollect.store.sql import queries

_SQL = queries("erasure")
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


class QuoteRepository:
    """Finds the turns that quote documents.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

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
            # Copies in sessions are erased with the documents, so they are no other ones.
            params["document_ids"] += [row[0] for row in rows(connection, _SQL["session_copies"], params)]
            params["version_ids"] = [row[1] for row in rows(connection, _SQL["versions"], params)]
            runs = self._runs(connection, params)
            candidates = list(self._candidates(connection, params, runs)) if runs.runs else []
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

    @staticmethod
    def _candidates(connection: Connection, params: Mapping[str, Any], runs: WordRuns) -> Iterator[_Candidate]:
        after = 0
        while page := rows(connection, _SQL["turns"], {**params, "after": after, "limit": _PAGE}):
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
