"""What is done with logins."""

from __future__ import annotations

from typing import Protocol

from recollect.model.login import Login
from recollect.model.page import Page
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name


class LoginOperations(Protocol):
    """Browsers that are logged in to a server: listed, and logged out.

    A login is made by the server alone, with a key or with an issuer's word. In a view with a principal, logins are
    those of the principal's user.
    """

    @operation("GET /v1/logins", "administrator")
    def list(self, *, user: Name | None = None, cursor: Cursor | None = None, limit: Limit = 100) -> Page[Login]:
        """List the browsers that are logged in.

        Newest first, those that have ended in the last month among them.

        Args:
            user: Only those of this user; None: of everybody.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Logins at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("DELETE /v1/logins", "administrator", reply="ended", forgets=True)
    def revoke_all(self, *, user: Name | None = None) -> int:
        """Log out every browser of a user, or of everybody.

        Other processes notice within five seconds. Whoever has a key, or is known to the issuer, may log in again.

        Args:
            user: Whose; None: everybody's.

        Returns:
            How many there were.

        Raises:
            PermissionDeniedError: The view's principal is another user.
        """
        ...

    @operation("GET /v1/logins/{login_id}", "administrator")
    def get(self, login_id: Name) -> Login:
        """Show a login.

        What is kept of it: nothing of its cookie.

        Args:
            login_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...

    @operation("DELETE /v1/logins/{login_id}", "administrator", forgets=True)
    def revoke(self, login_id: Name) -> Login:
        """Log a browser out.

        Other processes notice within five seconds. A login that has ended before stays as it was.

        Args:
            login_id: Its public name.

        Raises:
            NotFoundError: There is none.
        """
        ...
