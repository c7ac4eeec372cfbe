"""What a view finds: in its collections, in a session's documents, in conversations, and among facts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, SessionExpiredError, StoreError, StoreUnavailableError
from recollect.model.scope import Guest
from recollect.model.shown import show

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions, Scope, SearchReply
    from recollect.model.collection import Collection
    from recollect.model.facts import RecalledFact
    from recollect.model.memory import RecallOptions, Recollection
    from recollect.pipeline.standpoint import Standpoint
    from recollect.store.document_sessions import SessionPlace


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
