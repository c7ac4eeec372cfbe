"""Who may read documents, and who may do what in a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from recollect.model.principal import EVERYONE, Permissions, Principal
from recollect.model.record import Public, PublicIfKnown, Record

#: Why somebody may read a document or may not. ``unasked``: grants are not asked for, by ``[rag.access] mode``;
#: ``owner``: they own its collection; ``granted``: a grant includes them; ``hidden``: its collection does not exist for
#: them; ``denied``: a denial includes them; ``not_granted``: no grant does.
ReadingReason = Literal["unasked", "owner", "granted", "hidden", "denied", "not_granted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionAccess(Record):
    """Who may do what in a collection; tokens, sorted.

    Attributes:
        collection: Its name.
        owners: Read everything in it, whatever is denied there, and write.
        readers: For anybody else but its owners it does not exist.
        writers: Put documents into it and take them out.
        default: Who may read the documents that have no permissions of their own.
    """

    collection: Public[str]
    owners: Public[tuple[str, ...]]
    readers: Public[tuple[str, ...]]
    writers: Public[tuple[str, ...]]
    default: Public[Permissions]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPermissions(Record):
    """Who may read a document.

    Attributes:
        source: Its URI.
        collection: By name.
        department: Of its newest version.
        grants: Whom it is granted to; without any nobody but the collection's owners.
        denials: Whom it is denied to, whatever grants include them.
        inherited: Whether they are the collection's default, and change with it.
    """

    document_id: Public[int]
    source: Public[str]
    collection: Public[str]
    department: Public[str | None]
    grants: Public[tuple[str, ...]]
    denials: Public[tuple[str, ...]]
    inherited: Public[bool]

    @property
    def permissions(self) -> Permissions:
        """Its grants and denials."""
        return Permissions(grants=self.grants, denials=self.denials)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantsReply(Record):
    """Who may read what was named, and what a change of it did.

    Attributes:
        changed: How many documents have other permissions now; None: nothing was to be changed.
        documents: The documents that were named, as they are now.
        collection: That whose default was changed, as it is now.
    """

    changed: PublicIfKnown[int | None] = None
    documents: PublicIfKnown[tuple[DocumentPermissions, ...] | None] = None
    collection: PublicIfKnown[CollectionAccess | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingExplained:
    """Whether somebody may read a document, and by which of the rules.

    Attributes:
        document: It, with its permissions.
        collection: Who may do what in its collection.
        allowed: Whether they may, as the store itself decides.
        reason: What decides.
        owns: Grants that name them among the collection's owners.
        reads: Those among its readers.
        granted: Those that the document is granted to.
        denied: Those that it is denied to.
        by_role: What they read because of a role beside that, by role: grants to departments.
    """

    document: DocumentPermissions
    collection: CollectionAccess
    allowed: bool
    reason: ReadingReason
    owns: tuple[str, ...]
    reads: tuple[str, ...]
    granted: tuple[str, ...]
    denied: tuple[str, ...]
    by_role: Mapping[str, tuple[str, ...]]


def explain_reading(
    principal: Principal,
    document: DocumentPermissions,
    collection: CollectionAccess,
    *,
    allowed: bool,
    asked: bool = True,
    role_departments: Mapping[str, Sequence[str]] | None = None,
) -> ReadingExplained:
    """Say by which rules somebody may read a document or may not.

    Args:
        principal: Somebody.
        document: It.
        collection: That it is in.
        allowed: Whether they may, as the store itself decides.
        asked: Whether grants are asked for at all.
        role_departments: By role the departments whose documents it reads; ``*``: every one.
    """
    own = set(principal.tokens)
    by_role: dict[str, tuple[str, ...]] = {}
    for role in principal.roles:
        names = (role_departments or {}).get(role, ())
        every = EVERYONE in names
        told = [
            token
            for token in sorted({*document.permissions.grants, *collection.readers})
            if token.startswith("department:") and (every or token.removeprefix("department:") in names)
        ]
        if told:
            by_role[role] = tuple(told)
    borrowed = {token for tokens in by_role.values() for token in tokens}

    def named(tokens: Sequence[str], *, with_roles: bool = True) -> tuple[str, ...]:
        return tuple(token for token in tokens if token in own or (with_roles and token in borrowed))

    owns = named(collection.owners, with_roles=False)
    denied = named(document.permissions.denials, with_roles=False)
    reads, granted = named(collection.readers), named(document.permissions.grants)
    return ReadingExplained(
        document=document,
        collection=collection,
        allowed=allowed,
        reason=_reason(asked=asked, owns=owns, reads=reads, granted=granted, denied=denied),
        owns=owns,
        reads=reads,
        granted=granted,
        denied=denied,
        by_role=by_role,
    )


def _reason(
    *,
    asked: bool,
    owns: tuple[str, ...],
    reads: tuple[str, ...],
    granted: tuple[str, ...],
    denied: tuple[str, ...],
) -> ReadingReason:
    """The first of the rules that decides, in the order in which they count."""
    if not asked:
        return "unasked"
    if owns:
        return "owner"
    if not reads:
        return "hidden"
    if denied:
        return "denied"
    return "granted" if granted else "not_granted"
