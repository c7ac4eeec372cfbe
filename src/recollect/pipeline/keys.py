"""What programs present to a server, and who is logged in to it with a browser."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from typing_extensions import override

from recollect.errors import PermissionDeniedError, UsageError
from recollect.model import Principal, Scope
from recollect.model.arguments import checked
from recollect.model.key import (
    AccessScope,
    ApiKey,
    KeyMaker,
    KnownUser,
    Login,
    NewApiKey,
    WidgetUse,
    draw_key,
    read_key,
    read_origins,
    read_scopes,
)
from recollect.model.page import Page, name_at
from recollect.model.time import Duration, read_duration
from recollect.operations.declaring import implements
from recollect.operations.people import KeyOperations, LoginOperations
from recollect.pipeline.standpoint import Group
from recollect.store.keys import KeyRepository

if TYPE_CHECKING:
    from recollect.store.logins import LoginRepository


_MOST_NAME_CHARACTERS = 100


@implements(KeyOperations)
@checked
class Keys(Group, KeyOperations):
    """What programs present to a server to say whose and who they are; see `recollect.View`.

    In a view with a principal, keys are those of the principal's user, and a new one is as the principal: a key with
    other roles or groups could read what the principal is denied. No key goes beyond what its maker has.
    """

    def create(
        self,
        name: str,
        *,
        scopes: Sequence[str] | str = "read",
        principal: Principal | None = None,
        expires: Duration | None = None,
        maker: KeyMaker | None = None,
    ) -> NewApiKey:
        """Make a key of the view's tenant. Its secret is in what is returned, and nowhere else.

        Args:
            name: What it is for: 1 to 100 printable characters.
            scopes: What it opens: ``read``, ``write``, ``admin``, ``operator``; none of them includes another.
            principal: As whom, with these roles until it is revoked; None: as the view's principal, and without one as
                the owner of the tenant's store.
            expires: After how long it ends (``90d``); None: when its maker's own credential does.
            maker: What the maker's own credential allows; None: everything.

        Raises:
            UsageError: The name, a scope or the time is not valid.
            PermissionDeniedError: The key would go beyond its maker: in scopes, in time, or as somebody else.
        """
        maker = maker or KeyMaker()
        label = _label(name)
        wanted = read_scopes(scopes)
        _require_scopes(wanted, maker)
        own = self._at.principal
        if own is not None and principal not in {None, own}:
            raise PermissionDeniedError("A key is as whoever makes it: with their user, roles, department and groups.")
        ends = _ending(expires, maker)
        self._require_user()
        scope = self._scope()
        return self._new(
            self._repository.create(
                scope,
                key := draw_key(scope.tenant_id),
                name=label,
                scopes=wanted,
                principal=principal or own,
                expires_at=ends,
                actor=self._at.actor,
            ),
            key.text,
        )

    def create_widget(
        self,
        name: str,
        *,
        collection: str,
        origins: Sequence[str],
        principal: Principal | None = None,
        expires: Duration | None = None,
        maker: KeyMaker | None = None,
    ) -> NewApiKey:
        """Make a key for a widget on pages of other sites: it opens the widget there and nothing else.

        Args:
            name: What it is for: 1 to 100 printable characters.
            collection: Whose documents answer.
            origins: The sites whose pages may show it, such as ``https://intranet.example.com``.
            principal: As whom it reads; None: as nobody in particular, so what is granted to everybody.
            expires: After how long it ends (``90d``); None: when its maker's own credential does.
            maker: What the maker's own credential allows; None: everything.

        Raises:
            UsageError: The name, a site or the time is not valid.
            NotFoundError: There is no such collection.
            PermissionDeniedError: The view has a principal, or the key would go beyond its maker.
        """
        self._at.require_owner()
        maker = maker or KeyMaker()
        label, widget = _label(name), WidgetUse(collection=collection, origins=read_origins(origins))
        _require_scopes(("read",), maker)
        scope = self._scope()
        self._at.store.collections.get(scope, collection)
        key = draw_key(scope.tenant_id)
        made = self._repository.create(
            scope,
            key,
            name=label,
            scopes=("read",),
            principal=principal or Principal(),
            expires_at=_ending(expires, maker),
            actor=self._at.actor,
            widget=widget,
        )
        return self._new(made, key.text)

    @override
    def get(self, key_id: str) -> ApiKey:
        return self._repository.get(self._scope(), key_id, user=self._require_user())

    def rotate(
        self,
        key_id: str,
        *,
        grace: Duration = "1d",
        expires: Duration | None = None,
        maker: KeyMaker | None = None,
    ) -> NewApiKey:
        """Give a key another secret, so that programs can be told of it one after the other.

        Args:
            key_id: Which.
            grace: How long the present secret is still taken beside the new one; 0: no longer. The secret before the
                present one is not taken any more.
            expires: After how long from now the key ends; None: when it would have.
            maker: What the credential of whoever asks allows; None: everything.

        Raises:
            NotFoundError: There is no such key.
            ConflictError: It is revoked, or its time is over.
            PermissionDeniedError: It goes beyond whoever asks: in scopes, in time, or as somebody else.
        """
        maker = maker or KeyMaker()
        seconds = 0.0 if grace == 0 else read_duration(grace, name="grace").total_seconds()
        key, own = self.get(key_id), self._at.principal
        _require_scopes(key.scopes, maker)
        if own is not None and key.principal != own:
            raise PermissionDeniedError(
                f"The key {key_id!r} was made with other roles, another department or other groups than you have now: "
                "make a new one."
            )
        ends = key.expires_at if expires is None else _ending(expires, maker)
        _require_time(ends, maker)
        scope = self._scope()
        text = draw_key(scope.tenant_id, key_id)
        rotated = self._repository.rotate(scope, text, grace_seconds=seconds, expires_at=ends, actor=self._at.actor)
        return self._new(rotated, text.text)

    @override
    def revoke(self, key_id: str) -> ApiKey:
        return self._repository.revoke(self._scope(), key_id, user=self._require_user(), actor=self._at.actor)

    def authenticate(self, key: str) -> ApiKey:
        """The key that somebody presents, of whichever tenant it names; its use is noted.

        Raises:
            AuthenticationError: It is none, or is not taken any more.
            TenantSuspendedError: Its tenant is suspended.
            PermissionDeniedError: The view has a principal.
        """
        self._at.owner()
        given = read_key(key)
        return KeyRepository(self._at.store.caretaking).presented(Scope(tenant_id=given.tenant_id), given)

    def users(self, *, cursor: str | None = None, limit: int = 100) -> Page[KnownUser]:
        """The users whom the tenant's keys and logins name, by name.

        Args:
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Users at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        user, after = self._require_user(), name_at(cursor) or ""
        found = self._repository.users(self._scope(), user=user, after=after, limit=limit + 1)
        return Page.of(found, limit, lambda one: one.principal.user_id or "")

    @override
    def list(self, *, cursor: str | None = None, limit: int = 100) -> Page[ApiKey]:
        user, before = self._require_user(), name_at(cursor)
        found = self._repository.page(self._scope(), user=user, before=before, limit=limit + 1)
        return Page.of(found, limit, lambda key: key.key_id)

    @property
    def _repository(self) -> KeyRepository:
        return self._at.store.keys

    def _scope(self) -> Scope:
        return Scope(tenant_id=self._at.present().tenant_id)

    def _require_user(self) -> str | None:
        """Whose keys they are; None: everybody's."""
        own = self._at.principal
        if own is not None and own.user_id is None:
            raise PermissionDeniedError("Keys are of a user: this view's principal names none.")
        return None if own is None else own.user_id

    @staticmethod
    def _new(key: ApiKey, text: str) -> NewApiKey:
        return NewApiKey(key=key, secret=text)


def _label(name: str) -> str:
    label = name.strip()
    if not label or len(label) > _MOST_NAME_CHARACTERS or not label.isprintable():
        raise UsageError(f"A key's name is 1 to {_MOST_NAME_CHARACTERS} printable characters, not {name[:60]!r}.")
    return label


def _require_scopes(wanted: Sequence[AccessScope], maker: KeyMaker) -> None:
    beyond = [scope for scope in wanted if scope not in maker.scopes]
    if beyond:
        raise PermissionDeniedError(f"A key opens nothing that its maker's does not: {', '.join(beyond)}.")


def _ending(expires: Duration | None, maker: KeyMaker) -> datetime | None:
    if expires is None:
        return maker.expires_at
    ends = datetime.now(UTC) + read_duration(expires, name="expires")
    _require_time(ends, maker)
    return ends


def _require_time(ends: datetime | None, maker: KeyMaker) -> None:
    if maker.expires_at is not None and (ends is None or ends > maker.expires_at):
        raise PermissionDeniedError(
            f"A key does not outlive its maker's, which ends at {maker.expires_at.isoformat(timespec='seconds')}."
        )


# Who is logged in to a server with a browser: listed, and logged out.


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
