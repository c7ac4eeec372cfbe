"""Who may read documents, and who may do what in a collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired

from recollect.replies._shape import Shape

if TYPE_CHECKING:
    from recollect.model.access import CollectionAccess, DocumentPermissions


class PermissionsJson(Shape):
    """Whom documents are granted and denied: `user:NAME`, `role:NAME`, `department:NAME`, `group:NAME`, `*`."""

    grants: list[str]
    denials: list[str]


class DocumentGrantsJson(PermissionsJson):
    """Who may read a document."""

    document_id: int
    source: str
    collection: str
    department: str | None
    inherited: bool
    """Whether they are the collection's default, and change with it."""


class DocumentGrantsListJson(Shape):
    """Who may read documents."""

    changed: NotRequired[int]
    """How many of them have other permissions now, after a change."""
    documents: list[DocumentGrantsJson]


class CollectionGrantsJson(Shape):
    """Who may do what in a collection."""

    changed: NotRequired[int]
    """How many documents have other permissions now, after a change."""
    collection: str
    owners: list[str]
    """Read everything in it, whatever is denied there, and write."""
    readers: list[str]
    """For anybody else but its owners it does not exist."""
    writers: list[str]
    """Put documents into it and take them out."""
    default: PermissionsJson
    """Who may read the documents that have no permissions of their own."""


class ChangedGrantsJson(Shape):
    """How many documents a change has given other permissions."""

    changed: int


def document_grants_json(one: DocumentPermissions) -> DocumentGrantsJson:
    """Who may read a document."""
    return {
        "document_id": one.document_id,
        "source": one.source,
        "collection": one.collection,
        "department": one.department,
        "grants": list(one.permissions.grants),
        "denials": list(one.permissions.denials),
        "inherited": one.inherited,
    }


def document_grants_list_json(
    found: Sequence[DocumentPermissions], *, changed: int | None = None
) -> DocumentGrantsListJson:
    """Who may read documents.

    Args:
        found: Of each.
        changed: How many of them a change has given other permissions; None: nothing was changed.
    """
    documents = [document_grants_json(one) for one in found]
    return {"documents": documents} if changed is None else {"changed": changed, "documents": documents}


def collection_grants_json(
    access: CollectionAccess, *, collection: str, changed: int | None = None
) -> CollectionGrantsJson:
    """Who may do what in a collection.

    Args:
        access: To it.
        collection: Its name.
        changed: How many documents a change has given other permissions; None: nothing was changed.
    """
    shown: CollectionGrantsJson = {
        "collection": collection,
        "owners": list(access.owners),
        "readers": list(access.readers),
        "writers": list(access.writers),
        "default": {"grants": list(access.default.grants), "denials": list(access.default.denials)},
    }
    return shown if changed is None else {"changed": changed, **shown}


def changed_grants_json(changed: int) -> ChangedGrantsJson:
    """How many documents a change has given other permissions."""
    return {"changed": changed}
