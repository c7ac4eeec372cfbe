"""Where the documents of a session are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.pipeline.standpoint import Standpoint
    from recollect.store.document_sessions import SessionPlace


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
