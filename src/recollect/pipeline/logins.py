"""Who is logged in to a server with a browser: listed, and logged out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from recollect.errors import PermissionDeniedError
from recollect.model import Scope
from recollect.model.arguments import checked
from recollect.model.login import Login
from recollect.model.page import Page, name_at
from recollect.operations.declaring import implements
from recollect.operations.people import LoginOperations
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from recollect.store.logins import LoginRepository


@implements(LoginOperations)
@checked
class Logins(Group, LoginOperations):
    """The browsers that are logged in to a server; see `recollect.View`."""

    @override
    def get(self, login_id: str) -> Login:
        return self._repository.get(self._scope(), login_id, user=self._require_user())

    @override
    def revoke(self, login_id: str) -> Login:
        login, _ = self._repository.end(self._scope(), login_id, user=self._require_user(), actor=self._at.actor)
        return login

    @override
    def revoke_all(self, *, user: str | None = None) -> int:
        own = self._require_user()
        if own is not None and user not in {None, own}:
            raise PermissionDeniedError("Logins of others are an administrator's to end.")
        return self._repository.end_all(self._scope(), user=own or user, actor=self._at.actor)

    @override
    def list(self, *, user: str | None = None, cursor: str | None = None, limit: int = 100) -> Page[Login]:
        own, before = self._require_user(), name_at(cursor)
        if own is not None and user not in {None, own}:
            return Page(())
        found = self._repository.page(self._scope(), user=own or user, before=before, limit=limit + 1)
        return Page.of(found, limit, lambda login: login.login_id)

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
