"""What is attached to a message, as documents that are stored with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.model import Document

# As a principal's names are: what is longer than an index takes is refused.
_LONGEST_SOURCE_BYTES = 2_000
_INHERITED = ("thread", "message_id")


def attachments_of(message: Document, given: Document, *, keep_originals: bool) -> Iterator[Document]:
    """The attachments of a message, as documents of its source.

    Each has the message's tags, department, time to live and rights, whatever it says itself: it came with the message,
    and a file must not say who may read somebody's mail. Its metadata names the message (``message``) and its thread.
    Where the message was given an id, those of its attachments begin with it.

    Args:
        message: As it is stored.
        given: As it was given, with its attachments.
        keep_originals: Whether their files are kept, as the message's is.
    """
    above = message.source or ""
    identity = message.id or above
    told = {"message": above} | {key: message.metadata[key] for key in _INHERITED if key in message.metadata}
    for one in given.attachments:
        yield replace(
            one,
            source=_below(above, one.source or "attached"),
            id=_below(identity, one.id or one.source or "attached") if message.id or one.id else None,
            metadata={**one.metadata, **told},
            tags=given.tags,
            department=given.department,
            ttl=given.ttl,
            permissions=message.permissions,
            event_time=one.event_time or given.event_time,
            original=one.original if keep_originals else None,
        )


def _below(above: str, name: str) -> str:
    """A source below a message's; of a name that makes it too long, the part of the message is left."""
    source = f"{above}/{name}"
    if len(source.encode("utf-8", "surrogatepass")) <= _LONGEST_SOURCE_BYTES:
        return source
    return f"{above}/{name.partition('-')[0]}"
