"""Logins of a tenant: what is kept of them, and whether what a browser presents is one."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from psycopg.types.json import Jsonb

from recollect.errors import AuthenticationError, NotFoundError, StoreError, TenantSuspendedError
from recollect.model import Principal, Scope
from recollect.model.key import AccessScope, KeyText, Login, LoginMethod
from recollect.store.database import Connection, Repository, rows
from recollect.store.logs import record
from recollect.store.sql import queries

_SQL = queries("logins")
_COLUMNS = tuple(name for name in Login.__dataclass_fields__ if name != "method")
_log = logging.getLogger(__name__)


class LoginRepository(Repository):
    """Keeps logins, of whose cookies it sees nothing but hashes.

    Args:
        database: The store's connections; `presented` wants those of a caretaker, which see suspended tenants.
    """

    def create_with_key(
        self, scope: Scope, text: KeyText, *, key: KeyText, idle_seconds: float, lifetime_seconds: float, actor: str
    ) -> Login:
        """Keep a new login of whoever has presented a key. What it opens is what the key opens at any time.

        Args:
            scope: Whose.
            text: What the cookie holds.
            key: As it was presented.
            idle_seconds: After how long it ends where it is not used.
            lifetime_seconds: After how long it ends in any case.
            actor: Who logs in.
        """
        who = {"key_id": key.key_id, "key_hash": key.hash, "scopes": None, "principal": None, "id_token": None}
        return self._create(scope, text, {**who, **_times(idle_seconds, lifetime_seconds)}, actor)

    def create_with_token(
        self,
        scope: Scope,
        text: KeyText,
        *,
        scopes: Sequence[AccessScope],
        principal: Principal,
        id_token: bytes,
        idle_seconds: float,
        lifetime_seconds: float,
        actor: str,
    ) -> Login:
        """Keep a new login of a user for whom an issuer vouches.

        Args:
            scope: Whose.
            text: What the cookie holds.
            scopes: What it opens.
            principal: As whom.
            id_token: The issuer's token, sealed.
            idle_seconds: After how long it ends where it is not used.
            lifetime_seconds: After how long it ends in any case.
            actor: Who logs in.
        """
        who = {
            "key_id": None,
            "key_hash": None,
            "scopes": list(scopes),
            "principal": Jsonb(asdict(principal)),
            "id_token": id_token,
        }
        return self._create(scope, text, {**who, **_times(idle_seconds, lifetime_seconds)}, actor)

    def get(self, scope: Scope, login_id: str, *, user: str | None = None) -> Login:
        """One login; of a user alone, where one is named.

        Raises:
            NotFoundError: There is none.
        """
        with self._database.transaction(scope) as connection:
            return _one(connection, scope, login_id, user=user)

    def page(
        self, scope: Scope, *, user: str | None = None, before: str | None = None, limit: int = 100
    ) -> list[Login]:
        """Logins, newest first.

        Args:
            scope: Whose.
            user: Only those of this user.
            before: Only those made before the one of this id: the next page.
            limit: Logins at most.
        """
        with self._database.transaction(scope) as connection:
            return [_login(row) for row in _found(connection, scope, user=user, before=before, limit=limit)]

    def end(self, scope: Scope, login_id: str, *, user: str | None = None, actor: str) -> tuple[Login, bytes | None]:
        """Take a login no longer; one that has ended before stays as it was.

        Args:
            scope: Whose.
            login_id: Which.
            user: Only one of this user.
            actor: Who asks.

        Returns:
            The login, and the sealed token of its issuer, which is not kept any more.

        Raises:
            NotFoundError: There is none.
        """
        with self._database.transaction(scope) as connection:
            _one(connection, scope, login_id, user=user)
            ended = rows(connection, _SQL["end"], {**_of(scope, login_id), "user": None})
            login = _one(connection, scope, login_id)
            if ended:
                _record(connection, scope, "end_login", login, actor)
        return login, ended[0][1] if ended else None

    def end_all(self, scope: Scope, *, user: str | None = None, actor: str) -> int:
        """Take no login of a user any longer, or of anybody; returns how many there were."""
        with self._database.transaction(scope) as connection:
            ended = sorted(row[0] for row in rows(connection, _SQL["end"], {**_of(scope, None), "user": user}))
            if ended:
                record(connection, scope, action="end_logins", actor=actor, details={"user": user, "login_ids": ended})
        return len(ended)

    def presented(self, scope: Scope, text: KeyText) -> Login:
        """The login that a browser presents, whose use is noted.

        Args:
            scope: Of the tenant that the cookie names.
            text: What the cookie holds.

        Raises:
            AuthenticationError: There is none, or it has ended, or its key is not taken any more. Only whoever has the
                cookie is told which of the latter.
            TenantSuspendedError: It is a login of a tenant that is suspended.
        """
        with self._database.single_reads(scope) as connection:
            found = _found(connection, scope, login_id=text.key_id)
        kept, tenant, status, note = found[0][len(_COLUMNS) :] if found else (bytes(32), "", "", False)
        if not hmac.compare_digest(bytes(kept), text.hash):
            raise AuthenticationError("The browser's cookie is of no login: log in.")
        login = _login(found[0])
        if login.status != "active":
            raise AuthenticationError(f"The login {login.login_id!r} is {login.status}: log in again.")
        if status != "active":
            raise TenantSuspendedError(
                f"The tenant {tenant!r} is suspended. It can neither be searched nor written to until it is resumed."
            )
        if note:
            self._note_use(scope, login.login_id)
        return login

    def forget(self, scope: Scope) -> None:
        """Remove those that have ended for a month."""
        self._database.run(scope, _SQL["forget"], {"tenant_id": scope.tenant_id})

    def _create(self, scope: Scope, text: KeyText, params: dict[str, Any], actor: str) -> Login:
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["create"], {**_of(scope, text.key_id), "secret_hash": text.hash, **params})
            login = _one(connection, scope, text.key_id)
            _record(connection, scope, "log_in", login, actor)
        return login

    def _note_use(self, scope: Scope, login_id: str) -> None:
        try:
            with self._database.transaction(scope) as connection:
                connection.execute("SET LOCAL synchronous_commit = off")
                connection.execute(_SQL["used"], _of(scope, login_id))
        except StoreError as exc:  # a standby, a full disk: nobody is kept out for that
            _log.info("When the login %s was used is not noted: %s", login_id, exc)


def _one(connection: Connection, scope: Scope, login_id: str, *, user: str | None = None) -> Login:
    found = _found(connection, scope, login_id=login_id, user=user)
    if not found:
        raise NotFoundError(f"There is no login {login_id!r}. `recollect logins list` shows what there is.")
    return _login(found[0])


def _found(
    connection: Connection,
    scope: Scope,
    *,
    login_id: str | None = None,
    user: str | None = None,
    before: str | None = None,
    limit: int = 1,
) -> list[tuple[Any, ...]]:
    params = {**_of(scope, login_id), "user": user, "before": before, "limit": limit}
    return rows(connection, _SQL["page"], params)


def _login(row: tuple[Any, ...]) -> Login:
    values = dict(zip(_COLUMNS, row[: len(_COLUMNS)], strict=True))
    who = values["principal"]
    principal = who and Principal(**{**who, "roles": tuple(who["roles"]), "groups": tuple(who["groups"])})
    method: LoginMethod = "oidc" if values["key_id"] is None else "key"
    return Login(**{**values, "method": method, "scopes": tuple(values["scopes"]), "principal": principal})


def _record(connection: Connection, scope: Scope, action: str, login: Login, actor: str) -> None:
    user = None if login.principal is None else login.principal.user_id
    details = {"login_id": login.login_id, "method": login.method, "key_id": login.key_id, "user": user}
    record(connection, scope, action=action, actor=actor, details=details)


def _times(idle_seconds: float, lifetime_seconds: float) -> dict[str, float]:
    return {"idle_seconds": idle_seconds, "lifetime_seconds": lifetime_seconds}


def _of(scope: Scope, login_id: str | None) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "login_id": login_id}
