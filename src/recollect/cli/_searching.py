"""What a command searches: a collection, or the documents of a session, alone or with collections."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from recollect.cli._session import Session, argument_text
from recollect.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.context import AssembledContext
    from recollect.model import Answer, Principal, RetrievalOptions, SearchReply
    from recollect.pipeline import RAGPipeline

_PANEL = "Sessions"
# Collections that a message names.
_NAMED = 5


class Searched(Protocol):
    """Something that is searched."""

    @property
    def name(self) -> str:
        """As it is called in JSON."""
        ...

    def language(self) -> str:
        """ISO 639-1, of most of what is found."""
        ...

    def search(self, query: str, options: RetrievalOptions, *, as_of: datetime | None) -> SearchReply:
        """The passages that answer a query."""
        ...

    def context(
        self,
        query: str,
        options: RetrievalOptions,
        *,
        token_budget: int | None,
        max_context_length: int | None,
        as_of: datetime | None,
    ) -> AssembledContext:
        """What a language model should read."""
        ...

    def ask_stream(self, question: str, options: RetrievalOptions, *, as_of: datetime | None) -> Iterator[str | Answer]:
        """The pieces of an answer, and the whole of it at the end."""
        ...

    def empty(self) -> str | None:
        """What is said where there is nothing to find; None where there is something."""
        ...

    def hints(self, options: RetrievalOptions, *, as_of: datetime | None) -> list[str]:
        """What the filters of a search that found nothing name in vain, a line each."""
        ...


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """Whether a command searches the documents of a session, and what with them."""

    in_session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="SESSION",
            help="Search the documents of this session in place of a collection.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="COLLECTION",
            help="With --session: search this collection too, * for all; repeat for more.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def searched(self, session: Session, rag: RAGPipeline, principal: Principal | None) -> Searched:
        """What is searched.

        Raises:
            UsageError: Collections are named in a way that does not go with the session, or without one.
        """
        if self.in_session is None:
            if self.with_:
                raise UsageError("--with says what is searched together with a session: name that with --session.")
            return _CollectionSearched(session, rag, principal)
        if session.names_collection:
            raise UsageError("With --session, name the collections that are searched too by --with.")
        names = tuple(argument_text(name) for name in self.with_ or ())
        return _SessionSearched(rag, principal, argument_text(self.in_session), names)


@dataclass(frozen=True)
class _CollectionSearched:
    session: Session
    rag: RAGPipeline
    principal: Principal | None

    @property
    def name(self) -> str:
        return self.session.collection

    def language(self) -> str:
        return next((place.language for place in self.rag.list_collections() if place.name == self.name), "en")

    def search(self, query: str, options: RetrievalOptions, *, as_of: datetime | None) -> SearchReply:
        return self.rag.search(query, options, as_of=as_of, principal=self.principal)

    def context(
        self,
        query: str,
        options: RetrievalOptions,
        *,
        token_budget: int | None,
        max_context_length: int | None,
        as_of: datetime | None,
    ) -> AssembledContext:
        return self.rag.context(
            query,
            options,
            token_budget=token_budget,
            max_context_length=max_context_length,
            as_of=as_of,
            principal=self.principal,
        )

    def ask_stream(self, question: str, options: RetrievalOptions, *, as_of: datetime | None) -> Iterator[str | Answer]:
        return self.rag.ask_stream(question, options, as_of=as_of, principal=self.principal)

    def empty(self) -> str | None:
        if self.principal is not None:
            return None
        return empty_collection(self.session, self.rag)

    def hints(self, options: RetrievalOptions, *, as_of: datetime | None) -> list[str]:
        return self.rag.filter_hints(options, as_of=as_of, principal=self.principal)


class EverywhereSearched(_CollectionSearched):
    """Every collection together."""

    def search(self, query: str, options: RetrievalOptions, *, as_of: datetime | None) -> SearchReply:
        """The passages that answer a query, of all collections."""
        return self.rag.augment_context(query, self.principal, options, as_of=as_of)

    def empty(self) -> str | None:
        """What is said where no collection holds a document."""
        if self.principal is not None or any(place.document_count for place in self.rag.list_collections()):
            return None
        return "Every collection is empty. Fill one: recollect ingest FOLDER"

    def hints(self, options: RetrievalOptions, *, as_of: datetime | None) -> list[str]:
        """What the filters name in vain in every collection."""
        return self.rag.filter_hints(options, collection="*", as_of=as_of, principal=self.principal)


class _SessionSearched:
    def __init__(self, rag: RAGPipeline, principal: Principal | None, session_id: str, names: tuple[str, ...]) -> None:
        from recollect.pipeline.sessions import EVERY_COLLECTION, SessionRAG

        self._sessions = SessionRAG(rag, principal=principal)
        self._session_id = session_id
        self._names = names
        self._search = self._sessions.session(
            session_id, collections=EVERY_COLLECTION if EVERY_COLLECTION in names else names
        )

    @property
    def name(self) -> str:
        return ", ".join([f"session:{self._session_id}", *self._names])

    def language(self) -> str:
        return self._sessions.get_session(self._session_id).language

    def search(self, query: str, options: RetrievalOptions, *, as_of: datetime | None) -> SearchReply:
        return self._search.search(query, options, as_of=as_of)

    def context(
        self,
        query: str,
        options: RetrievalOptions,
        *,
        token_budget: int | None,
        max_context_length: int | None,
        as_of: datetime | None,
    ) -> AssembledContext:
        return self._search.context(
            query, options, token_budget=token_budget, max_context_length=max_context_length, as_of=as_of
        )

    def ask_stream(self, question: str, options: RetrievalOptions, *, as_of: datetime | None) -> Iterator[str | Answer]:
        return self._search.ask_stream(question, options, as_of=as_of)

    def empty(self) -> str | None:
        if self._sessions.get_session(self._session_id).document_count == 0 and not self._names:
            return f"The session is empty. Fill it: recollect ingest FOLDER --session {self._session_id}"
        return None

    def hints(self, options: RetrievalOptions, *, as_of: datetime | None) -> list[str]:  # noqa: ARG002 - the protocol's
        return []


def empty_collection(session: Session, rag: RAGPipeline) -> str | None:
    """What is said where the collection at hand is empty, and which others are not; None where it is not."""
    there = {place.name: place.document_count for place in rag.list_collections()}
    if there.get(session.collection):
        return None
    fill = "" if session.collection == "default" else f" --collection {shlex.quote(session.collection)}"
    told = f"The collection {session.collection!r} is empty. Fill it: recollect ingest FOLDER{fill}"
    filled = [f"{name!r} ({count:,} document{'' if count == 1 else 's'})" for name, count in there.items() if count]
    more = f" and {len(filled) - _NAMED:,} more" if len(filled) > _NAMED else ""
    return told if not filled else f"{told}\nNot empty: {', '.join(filled[:_NAMED])}{more}. Name one with --collection."


def vain(searched: Searched, options: RetrievalOptions, *, as_of: datetime | None) -> list[str]:
    """Why a search can have found nothing: the collection is empty, or filters name what no document has."""
    empty = searched.empty()
    return [empty] if empty else searched.hints(options, as_of=as_of)
