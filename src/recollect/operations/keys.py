"""What is done with keys."""

from __future__ import annotations

from typing import Protocol

from recollect.model.key import ApiKey
from recollect.model.page import Page
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name


class KeyOperations(Protocol):
    """What programs present to a server to say whose and who they are.

    In a view with a principal, keys are those of the principal's user.
    """

    @operation("GET /v1/keys", "administrator")
    def list(self, *, cursor: Cursor | None = None, limit: Limit = 100) -> Page[ApiKey]:
        """List keys.

        Newest first, those that are expired or revoked among them.

        Args:
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Keys at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("GET /v1/keys/{key_id}", "administrator")
    def get(self, key_id: Name) -> ApiKey:
        """Show a key.

        What is kept of it: nothing of its secret.

        Args:
            key_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...

    @operation("DELETE /v1/keys/{key_id}", "administrator", forgets=True)
    def revoke(self, key_id: Name) -> ApiKey:
        """Revoke a key.

        It is refused from now on, with both secrets if it was rotated; other processes notice within five seconds. A
        key that is revoked already stays as it was.

        Args:
            key_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...
