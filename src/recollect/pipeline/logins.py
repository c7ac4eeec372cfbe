"""Who is logged in to a server with a browser: listed, and logged out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import PermissionDeniedError
from recollect.model import Scope
from recollect.model.arguments import checked
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from recollect.model.login import Login
    from recollect.store.logins import LoginRepository


@checked
class Logins(Group):
    """The browsers that are logged in to a server; see `recollect.View`.

    A login is made by the server alone, with a key or with an issuer's word. In a view with a principal, logins are
    those of the principal's user.
    """

    def get(self, login_id: str) -> Login:
        """One login, by its public id.

        Raises:
            NotFoundError: There is none.
        """
        return self._repository.get(self._scope(), login_id, user=self._require_user())

    def revoke(self, login_id: str) -> Login:
        """Log a browser out; a server may take up to five seconds.

        Args:
            login_id: Which; one that has ended already stays as it was.

        Raises:
            NotFoundError: There is none.
        """
        login, _ = self._repository.end(self._scope(), login_id, user=self._require_user(), actor=self._at.actor)
        return login

    def revoke_all(self, *, user: str | None = None) -> int:
        """Log out every browser of a user, or of everybody.

        Args:
            user: Whose; None: everybody's.

        Returns:
            How many there were.

        Raises:
            PermissionDeniedError: The view's principal is another user.
        """
        own = self._require_user()
        if own is not None and user not in {None, own}:
            raise PermissionDeniedError("Logins of others are an administrator's to end.")
        return self._repository.end_all(self._scope(), user=own or user, actor=self._at.actor)

    # Last: its name is a type's in what stands before it.
    def list(self, *, user: str | None = None, before: str | None = None, limit: int = 100) -> list[Login]:
        """The logins of the view's tenant, newest first, those that have ended in the last month among them.

        Args:
            user: Only those of this user.
            before: Only those made before the one of this id: the next page.
            limit: Logins at most.
        """
        own = self._require_user()
        if own is not None and user not in {None, own}:
            return []
        return self._repository.page(self._scope(), user=own or user, before=before, limit=limit)

    @property
    def _repository(self) -> LoginRepository:
        return self._at.store.logins

    def _scope(self) -> Scope:
        return Scope(tenant_id=self._at.present().tenant_id)

    def _require_user(self) -> str | None:
        """Whose logins they are; None: everybody's."""
        own = self._at.principal
        if own is not None and own.user_id is None:
            raise PermissionDeniedError("Logins are of a user: this view's principal names none.")
        return None if own is None else own.user_id
