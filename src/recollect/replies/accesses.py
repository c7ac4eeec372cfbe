"""What the server was asked, and which documents it showed to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.shown import Access


class ShownDocumentJson(Shape):
    """A document that was shown."""

    document_id: int
    version_id: int | None
    """Of its version; null: the present one, or all."""


class AccessJson(Shape):
    """Something that was asked, and what was shown for it, or a request that changed something."""

    access_id: int
    at: Timestamp
    actor: str
    """To whom: the user, and the key."""
    action: str
    """`search`, `ask`, `context`, `read`, …; or the method and the route of what changed something.

    Beside an `ask` whose answer was refused, why: `refuse/nothing` (was found), `refuse/identifier` (none of the
    evidence holds it), `refuse/threshold` (not reached), `refuse/unsupported` (all of it), `refuse/model` (knew none).
    """
    request_id: str | None
    question: str | None
    """As it was asked; null: it was not kept, or is past its retention."""
    question_hash: str | None
    """Keyed with the tenant's salt: two of the same question are the same."""
    documents: list[ShownDocumentJson]


class AccessListJson(Shape):
    """Accesses, newest first."""

    accesses: list[AccessJson]
    next_before: int | None
    """Where the next page begins; null: there is none."""


def access_json(access: Access) -> AccessJson:
    """An access."""
    return {
        "access_id": access.access_id,
        "at": iso(access.at),
        "actor": access.actor,
        "action": access.action,
        "request_id": access.request_id,
        "question": access.question,
        "question_hash": access.question_hash,
        "documents": [
            {"document_id": document, "version_id": version or None}
            for document, version in zip(access.documents, access.versions, strict=True)
        ],
    }


def access_list_json(accesses: Sequence[Access], *, more: bool) -> AccessListJson:
    """A page of accesses, newest first.

    Args:
        accesses: Of the page.
        more: Whether another page follows.
    """
    return {
        "accesses": [access_json(one) for one in accesses],
        "next_before": accesses[-1].access_id if accesses and more else None,
    }
