"""What a view is of: whose knowledge, who asks, when and where; and what the layers below are told of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from recollect.config import DEFAULT_COLLECTION
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model import RetrievalOptions, Scope
from recollect.model.audit import LIBRARY
from recollect.model.principal import reads_as
from recollect.model.scope import Guest, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from recollect.config import RAGConfig
    from recollect.model import Principal
    from recollect.model.collection import Collection
    from recollect.model.remote import Remote
    from recollect.pipeline.assembly import Assembly
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
