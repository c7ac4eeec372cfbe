"""What a command searches: a collection, or the documents of a session, alone or with collections."""

from __future__ import annotations

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

    def nothing(self) -> str:
        """What is said where nothing is found."""
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

    def nothing(self) -> str:
        if self.principal is not None:
            return "Nothing found in what this user may read. Try other words, or fewer filters."
        found = next((place for place in self.rag.list_collections() if place.name == self.name), None)
        if found is None or found.document_count == 0:
            return f"The collection {self.name!r} is empty. Fill it: recollect ingest FOLDER"
        return "Nothing found. Try other words, fewer filters, or a lower --min-similarity."


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

    def nothing(self) -> str:
        if self._sessions.get_session(self._session_id).document_count == 0 and not self._names:
            return f"The session is empty. Fill it: recollect ingest FOLDER --session {self._session_id}"
        return "Nothing found. Try other words, fewer filters, or a lower --min-similarity."
