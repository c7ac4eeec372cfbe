"""Whose, who, when and where: what a view stands for, what it names, and what a search finds there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from recollect.config import DEFAULT_COLLECTION, RAGConfig
from recollect.errors import (
    NotFoundError,
    PermissionDeniedError,
    SessionExpiredError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)
from recollect.model import Principal, RetrievalOptions, Scope, SearchReply
from recollect.model.activity import show
from recollect.model.audit import LIBRARY
from recollect.model.principal import reads_as
from recollect.model.scope import Guest, Target

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.collection import Collection
    from recollect.model.facts import RecalledFact
    from recollect.model.memory import RecallOptions, Recollection
    from recollect.model.remote import Remote
    from recollect.model.source import SourceRecord
    from recollect.pipeline.assembly import Assembly
    from recollect.store.document_sessions import SessionPlace
    from recollect.store.store import Store


#: Stands for every collection of the tenant that the caller may read.
EVERY_COLLECTION = "*"


@dataclass(frozen=True, kw_only=True)
class Standpoint:
    """Whose, who, when and where; see `recollect.View`, whose groups of methods share it.

    Attributes:
        assembly: The parts that everything is done with.
        tenant: By number or name; None: the configured one.
        principal: Who asks; None: the owner of the store.
        collections: By name; ``("*",)``: all; None: the configured one.
        as_of: The moment (time-zone aware); None: the present.
        session: The id of a session with documents, of a conversation, or of both.
        user: Whose conversations.
        remotes: What is searched together with the collections; None: what is configured.
        actor: The name of the caller in the audit log and on receipts.
    """

    assembly: Assembly
    tenant: int | str | None = None
    principal: Principal | None = None
    collections: tuple[str, ...] | None = None
    as_of: datetime | None = None
    session: str | None = None
    user: str | None = None
    remotes: tuple[Remote, ...] | None = None
    actor: str = LIBRARY

    @property
    def config(self) -> RAGConfig:
        """The settings."""
        return self.assembly.config

    @property
    def store(self) -> Store:
        """The open store."""
        return self.assembly.store

    @cached_property
    def everything(self) -> Scope:
        """All that the tenant knows at the view's moment, whoever asks.

        Raises:
            NotFoundError: There is no tenant of that name.
        """
        tenant = self.assembly.default_tenant if self.tenant is None else self.tenant
        number = tenant if isinstance(tenant, int) else self.store.tenants.number(tenant)
        return Scope(tenant_id=number, as_of=self.as_of)

    @cached_property
    def scope(self) -> Scope:
        """The tenant's knowledge at the view's moment, as the principal sees it; what that means is configured.

        Raises:
            NotFoundError: There is no tenant of that name.
        """
        scope, access = self.everything, self.config.access
        match access.mode:
            case "enforce":
                return replace(
                    scope, principal=self.principal, reads_as=reads_as(self.principal, access.role_departments)
                )
            case "preference":
                return replace(scope, ranked_for=self.principal)
            case _:
                return scope

    def present(self) -> Scope:
        """The scope of what there is no past of: writing, and everything that is told as it is now.

        Raises:
            UsageError: The view is of the past.
        """
        if self.as_of is not None:
            raise UsageError(
                f"This view is of the past ({self.as_of.isoformat()}), which is searched, recalled and asked for "
                "facts, and neither changed nor administered: take view(as_of=None)."
            )
        return self.scope

    def owner(self) -> Scope:
        """The scope of what the owner of the store does alone.

        Raises:
            PermissionDeniedError: Somebody in particular asks.
            UsageError: The view is of the past.
        """
        self.require_owner()
        return replace(self.present(), principal=None, reads_as=(), ranked_for=None)

    def require_owner(self) -> None:
        """Refuses what the owner of the store does alone.

        Raises:
            PermissionDeniedError: Somebody in particular asks.
        """
        if self.principal is not None and self.config.access.mode == "enforce":
            raise PermissionDeniedError("This is for the owner of the store, whose view has no principal.")

    @property
    def is_owner(self) -> bool:
        """Whether the owner of the store asks: nobody in particular."""
        return self.principal is None

    @property
    def names(self) -> tuple[str, ...]:
        """The collections by name; ``*`` stands for all."""
        return self.collections or (self.config.collection,)

    @property
    def searched_name(self) -> str:
        """What is searched, as replies call it."""
        return ", ".join(self.names if self.session is None else [f"session:{self.session}", *(self.collections or ())])

    def target(self, *, session: Guest | None = None) -> Target:
        """Where searches look; with a session, in the collections that the view was given beside it."""
        names = self.names if session is None else (self.collections or ())
        collections = None if EVERY_COLLECTION in names else names
        return Target(
            collections=collections,
            optional=frozenset({DEFAULT_COLLECTION}),
            session=session,
            remotes=self._remotes() if names else (),
        )

    def _remotes(self) -> tuple[Remote, ...]:
        """What is searched together with the collections: what is configured is the configured tenant's alone."""
        if self.remotes is not None or not self.assembly.remotes:
            return self.remotes or ()
        return self.assembly.remotes if self.everything.tenant_id == self.assembly.default_tenant else ()

    @property
    def named(self) -> str | None:
        """The one collection that the view was given; None: none, or all.

        Raises:
            UsageError: There are several.
        """
        return None if self.collections in {None, (EVERY_COLLECTION,)} else self.collection

    @property
    def collection(self) -> str:
        """The one collection.

        Raises:
            UsageError: There are several, or all.
        """
        if len(self.names) > 1 or EVERY_COLLECTION in self.names:
            raise UsageError(f"This is of one collection: name one, not {', '.join(self.names)}.")
        return self.names[0]

    def place(self, scope: Scope) -> Collection:
        """The one collection as it is stored.

        Raises:
            NotFoundError: There is none of that name.
            UsageError: There are several, or all.
        """
        return self.store.collections.get(scope, self.collection)

    @property
    def naming(self) -> tuple[str, ...] | None:
        """The collections whose documents names mean; with a session, only those given beside it; None: all."""
        names = self.names if self.session is None else self.collections or ()
        return None if EVERY_COLLECTION in names else names

    def names_documents_of(self, collection: str) -> bool:
        """Return whether names mean documents of this collection."""
        return self.naming is None or collection in self.naming

    def resolve(self, scope: Scope, document: int | str) -> int:
        """Return the id of a document of the view's collections; every method that takes a document begins here.

        Args:
            scope: The scope that the document is looked up in.
            document: A number, a source or a given id.

        Raises:
            NotFoundError: The view's collections have no such document. The message names the collections that do.
            UsageError: Several documents have that source.
        """
        with self._naming(scope):
            return self.store.documents.resolve(scope, document, collections=self.naming)

    def resolve_all(self, scope: Scope, documents: Sequence[int | str]) -> list[int]:
        """Return the ids of documents of the view's collections; of a source that documents with ids share, all.

        Args:
            scope: The scope that the documents are looked up in.
            documents: Numbers, sources and given ids.

        Raises:
            NotFoundError: As of `resolve`.
            UsageError: Several documents have one of the names in another way.
        """
        with self._naming(scope):
            found = [
                self.store.documents.resolve_all(scope, document, collections=self.naming) for document in documents
            ]
        return [number for numbers in found for number in numbers]

    @contextmanager
    def _naming(self, scope: Scope) -> Iterator[None]:
        """Where a document is missing, the collection itself may be."""
        try:
            yield
        except NotFoundError:
            for name in self.collections or ():
                if name not in {EVERY_COLLECTION, DEFAULT_COLLECTION}:
                    self.store.collections.get(scope, name)
            raise

    def answering(self, options: RetrievalOptions | None) -> RetrievalOptions:
        """The options of a search for an answer: for as many passages as configured, if no number is given."""
        given = options or RetrievalOptions()
        return given if given.top_k is not None else replace(given, top_k=self.config.answer.passages)


class Standing(Protocol):
    """What stands somewhere, as every view does."""

    @property
    def standpoint(self) -> Standpoint:
        """Where."""
        ...


class Group:
    """Methods on one subject that a view has; see `recollect.View`.

    Args:
        at: Where the view stands.
    """

    def __init__(self, at: Standpoint) -> None:
        self._at = at


# What a view finds: in its collections, in a session's documents, in conversations, and among facts.


def search(at: Standpoint, query: str, options: RetrievalOptions) -> SearchReply:
    """The passages that answer a query.

    Raises:
        UsageError: The query or an option is not valid.
        NotFoundError: There is no such collection or session. The default collection is empty rather than missing.
        SessionExpiredError: The session's time is over.
    """
    if at.session is None:
        return at.assembly.search(at.scope, query, options, at.target())
    return _in_session(at, query, options)[0]


def search_with_place(at: Standpoint, query: str, options: RetrievalOptions) -> tuple[SearchReply, Collection | None]:
    """As `search`, with the collection whose language and rule of refusal count for what is made of the passages."""
    reply, place = (search(at, query, options), None) if at.session is None else _in_session(at, query, options)
    if place is None and at.target().collections:
        place = at.store.collections.find(replace(at.scope, as_of=None), at.names[0])
    return reply, place


def recall(at: Standpoint, query: str, options: RecallOptions | None) -> list[Recollection]:
    """The turns that answer a question, of a standpoint's conversation or of its user's."""
    show("recall", question=query)
    turns = at.assembly.memory(at.scope.tenant_id).turns
    return turns.recall(at.scope, query, options, session=at.session, user=at.user)


def recall_facts(at: Standpoint, query: str, options: RecallOptions | None) -> list[RecalledFact]:
    """The facts that answer a question, of a standpoint's conversation or of its user's."""
    facts = at.assembly.memory(at.scope.tenant_id).facts
    return facts.recall(at.scope, query, options, session=at.session, user=at.user)


def _in_session(at: Standpoint, query: str, options: RetrievalOptions) -> tuple[SearchReply, Collection | None]:
    try:
        with session_place(at, at.scope) as (scope, place):
            own = Guest(scope=scope, collection=place.name, label=label(at.session))
            return at.assembly.search(scope, query, options, at.target(session=own)), place
    except SessionExpiredError:
        raise
    except NotFoundError:
        # A conversation's id, and no documents of its own: the collections are searched without them.
        if at.collections is None or not is_conversation(at):
            raise
        return search(replace(at, session=None), query, options), None


def is_conversation(at: Standpoint) -> bool:
    """Whether a standpoint's session is a conversation, with or without documents of its own."""
    try:
        at.store.memory.get_session(at.scope, at.session or "", user=at.user)
    except NotFoundError:
        return False
    return True


# Where the documents of a session are.


def checked_id(session_id: str | None) -> str:
    """The id of a session.

    Raises:
        UsageError: It is none.
    """
    from recollect.memory.validation import checked_name

    return checked_name("The session id", session_id or "")


def label(session_id: str | None) -> str:
    """What stands where a collection is named."""
    return f"session:{checked_id(session_id)}"


def living(at: Standpoint, scope: Scope, session_id: str | None) -> SessionPlace:
    """A session whose time is not over; one whose time is is removed, where it asks for it.

    Raises:
        NotFoundError: There is none of that id.
        SessionExpiredError: Its time is over.
    """
    from recollect.store.document_sessions import expired

    sessions = at.store.document_sessions
    found = sessions.get(scope, checked_id(session_id))
    if found.session.expired:
        sessions.end_in_passing(scope, found.session.session_id)
        raise expired(found.session.session_id)
    return found


@contextmanager
def session_place(at: Standpoint, scope: Scope) -> Iterator[tuple[Scope, Collection]]:
    """The scope and the collection of the view's session; whatever ends it meanwhile is told as what it is."""
    found = living(at, scope, at.session)
    try:
        own = found.scope(scope)
        yield own, at.store.collections.get(own, found.collection)
    except StoreUnavailableError:
        raise
    except (NotFoundError, StoreError):
        # A row that should belong to it finds no collection any more, which the database has other words for.
        living(at, scope, at.session)
        raise


# A source of a view's collection, by its name.


def source_record(at: Standpoint, name: str) -> SourceRecord:
    """What is known of a source.

    Raises:
        NotFoundError: There is none of that name.
        PermissionDeniedError: The view has a principal.
    """
    scope = at.owner()
    found = at.store.sources.records(scope, collection=at.place(scope), name=name)
    if not found:
        raise NotFoundError(
            f"There is no source {name!r} in the collection {at.collection!r}. `recollect sources list` shows what "
            "there is."
        )
    return found[0]


def require_refreshable(record: SourceRecord) -> SourceRecord:
    """The source, where something reads it.

    Raises:
        UsageError: Nothing does: documents are put there.
    """
    if record.connector is None and record.type not in {"directory", "web"}:
        raise UsageError(f"Nothing refreshes the source {record.name!r} ({record.type}): documents are put there.")
    return record
