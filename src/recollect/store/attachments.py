"""What hangs on what: documents that are attached to messages, and share their fate (`recollect.store.closing`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from recollect.model import Scope
from recollect.store.closing import lock_with_attached
from recollect.store.database import Connection, Repository, rows
from recollect.store.prepared import Identity
from recollect.store.rights import access_params, met
from recollect.store.sql import queries

_SQL = queries("writer")


class AttachmentRepository(Repository):
    """Knows and decides what is attached to stored messages."""

    def hang(self, scope: Scope, attached: Mapping[int, Identity]) -> set[int]:
        """Hang documents, which were stored by themselves, on the messages of their source that they are attached to.

        From then on they are closed, erased, granted and tagged with the message. What hung on them hangs on it too.

        Args:
            scope: Whose.
            attached: By document, what identifies its message.

        Returns:
            Those of the documents whose message is not there: they stay as they are.

        Raises:
            PermissionDeniedError: The scope's principal may not change one of them.
        """
        if not attached:
            return set()
        params: dict[str, Any] = {"tenant_id": scope.tenant_id}
        with self._database.transaction(scope) as connection:
            messages = _messages(connection, scope, attached)
            pairs = outermost(messages)
            given = {**params, "document_ids": list(pairs), "messages": list(pairs.values())}
            loose = {row[0]: pairs[row[0]] for row in rows(connection, _SQL["to_hang"], given)}
            if loose:
                lock_with_attached(connection, scope, sorted({*loose, *loose.values()}))
                given = {**params, "document_ids": list(loose), "messages": list(loose.values())}
                connection.execute(_SQL["hang"], given)
        return set(attached) - set(messages)

    def current(self, scope: Scope, document_id: int) -> list[int]:
        """The current documents that are attached to a message."""
        params = {"tenant_id": scope.tenant_id, "document_ids": [document_id], "kept": []}
        return sorted(row[0] for row in self._database.run(scope, _SQL["attached_now"], params))

    def names_apart(self, scope: Scope, document_id: int) -> bool:
        """Whether something hangs on a document that was not read out of the document's own file."""
        params = {"tenant_id": scope.tenant_id, "document_id": document_id}
        return bool(self._database.run(scope, _SQL["named_apart"], params)[0][0])


def _messages(connection: Connection, scope: Scope, attached: Mapping[int, Identity]) -> dict[int, int]:
    found: dict[int, int] = {}
    own: LiteralString = "true" if scope.principal is None else met(scope)
    for is_given_id, same in ((False, _SQL["same_source"]), (True, _SQL["same_given_id"])):
        names = {number: one.name for number, one in attached.items() if one.is_given_id is is_given_id}
        if names:
            params = {
                "tenant_id": scope.tenant_id,
                "document_ids": list(names),
                "uris": list(names.values()),
                "given_ids": list(names.values()),
                **access_params(scope),
            }
            statement: LiteralString = f"{_SQL['messages']} AND {same} AND {own} {_SQL['latest_first']}"
            found |= dict(rows(connection, statement, params))
    return found


def hang_locked(
    connection: Connection, scope: Scope, messages: Mapping[int, int], document_ids: Sequence[int]
) -> dict[int, int]:
    """Hang locked documents on the messages that they are attached to, which are stored with them.

    Args:
        connection: In the transaction that has locked them.
        scope: Whose.
        messages: By document, the message that it is attached to.
        document_ids: Every document that is stored with all of its attachments, where it has any.

    Returns:
        What was attached to these before and is not any more, locked: its current versions by document.
    """
    params = {
        "tenant_id": scope.tenant_id,
        "document_ids": list(messages),
        "messages": list(messages.values()),
    }
    if messages:
        connection.execute(_SQL["attach"], params)
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids), "kept": list(messages)}
    left = [row[0] for row in rows(connection, _SQL["attached_now"], params)]
    if not left:
        return {}
    connection.execute(_SQL["lock_documents_by_id"], {"tenant_id": scope.tenant_id, "document_ids": left})
    return dict(rows(connection, _SQL["attached_now"], params))


def outermost(attached: Mapping[int, int]) -> dict[int, int]:
    """By document, the last that it hangs on where those that it hangs on hang on others; none of a circle.

    Args:
        attached: By document, what it hangs on.
    """
    found: dict[int, int | None] = {}
    for start in attached:
        path: dict[int, None] = {}
        at = start
        while at in attached and at not in found and at not in path:
            path[at] = None
            at = attached[at]
        end = None if at in path else found.get(at, at)
        found |= dict.fromkeys(path, end)
    return {document_id: end for document_id, end in found.items() if end is not None}
