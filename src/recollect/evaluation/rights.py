"""Who may read what, by the rules as they are written down: what searches return is held against this. Pure: no I/O.

It shares nothing with the statements that enforce permissions: their mistakes are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from recollect.model.principal import Permissions, Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRights:
    """A document and its permissions.

    Attributes:
        document_id: It.
        source: Where it comes from.
        department: Of its newest version.
        permissions: Its own, or the default of its collection.
    """

    document_id: int
    source: str
    permissions: Permissions
    department: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionRights:
    """Everything that decides who may read a collection's documents.

    Attributes:
        owners: Tokens of those who read everything in it.
        readers: Tokens of those for whom it exists.
        documents: Those that are known now.
        find: Another document by its id, say one that is known of the past only; None where it does not exist.
        text: A document's content by its id.
        role_departments: By role the departments that it reads as; ``*``: every one.
    """

    owners: tuple[str, ...]
    readers: tuple[str, ...]
    documents: tuple[DocumentRights, ...]
    find: Callable[[int], DocumentRights | None]
    text: Callable[[int], str]
    role_departments: Mapping[str, Sequence[str]] = field(default_factory=dict)


def may_read(principal: Principal, document: DocumentRights | None, rights: CollectionRights) -> bool:
    """Whether somebody may read a document: owners always, others where a grant and no denial includes them."""
    own = {"*"}
    if principal.user_id is not None:
        own.add(f"user:{principal.user_id}")
    if principal.department is not None:
        own.add(f"department:{principal.department}")
    own.update(f"role:{role}" for role in principal.roles)
    own.update(f"group:{group}" for group in principal.groups)
    if not own.isdisjoint(rights.owners):
        return True
    departments = {name for role in principal.roles for name in rights.role_departments.get(role, ())}

    def named(tokens: Sequence[str]) -> bool:
        if not own.isdisjoint(tokens):
            return True
        granted = [token.removeprefix("department:") for token in tokens if token.startswith("department:")]
        return bool(granted) and ("*" in departments or not departments.isdisjoint(granted))

    if document is None or not named(rights.readers):
        return False
    return named(document.permissions.grants) and own.isdisjoint(document.permissions.denials)
