"""Keys of a tenant: what is kept of them, and whether what somebody presents is one."""

from __future__ import annotations

import hmac
import logging
from dataclasses import asdict
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from recollect.errors import AuthenticationError, ConflictError, NotFoundError, StoreError, TenantSuspendedError
from recollect.model import Principal, Scope
from recollect.model.key import AccessScope, ApiKey, KeyText, KnownUser, WidgetUse
from recollect.store.admission import note_effect
from recollect.store.database import Connection, Repository, rows
from recollect.store.logs import record
from recollect.store.sql import queries

_SQL = queries("keys")
_COLUMNS = (*(name for name in ApiKey.__dataclass_fields__ if name != "widget"), "collection", "origins")
_log = logging.getLogger(__name__)


class KeyRepository(Repository):
    """Keeps keys, of which it sees no secret but as its hash.

    Args:
        database: The store's connections; `presented` wants those of a caretaker, which see suspended tenants.
    """

    def create(
        self,
        scope: Scope,
        key: KeyText,
        *,
        name: str,
        scopes: tuple[AccessScope, ...],
        principal: Principal | None,
        expires_at: datetime | None,
        actor: str,
        widget: WidgetUse | None = None,
    ) -> ApiKey:
        """Keep a new key.

        Args:
            scope: Whose.
            key: As it was drawn.
            name: What it is for.
            scopes: What it opens.
            principal: As whom; None: as the store's owner.
            expires_at: When it ends.
            actor: Who makes it.
            widget: What it is for, where it is a widget's.
        """
        params = {
            **_of(scope, key.key_id),
            "name": name,
            "secret_hash": key.hash,
            "scopes": list(scopes),
            "principal": None if principal is None else Jsonb(asdict(principal)),
            "created_by": actor,
            "expires_at": expires_at,
            "collection": None if widget is None else widget.collection,
            "origins": None if widget is None else list(widget.origins),
        }
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["create"], params)
            note_effect(connection, scope)
            made = _one(connection, scope, key.key_id)
            _record(connection, scope, "create_key", made, actor)
        return made

    def get(self, scope: Scope, key_id: str, *, user: str | None = None) -> ApiKey:
        """One key; of a user alone, where one is named.

        Raises:
            NotFoundError: There is none.
        """
        with self._database.transaction(scope) as connection:
            return _one(connection, scope, key_id, user=user)

    def page(
        self, scope: Scope, *, user: str | None = None, before: str | None = None, limit: int = 100
    ) -> list[ApiKey]:
        """Keys, newest first.

        Args:
            scope: Whose.
            user: Only those of this user.
            before: Only those made before the one of this id: the next page.
            limit: Keys at most.
        """
        with self._database.transaction(scope) as connection:
            return _found(connection, scope, user=user, before=before, limit=limit)

    def revoke(self, scope: Scope, key_id: str, *, user: str | None = None, actor: str) -> ApiKey:
        """Refuse a key from now on; one that was revoked before stays as it was.

        Raises:
            NotFoundError: There is none.
        """
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["lock"], _of(scope, key_id))
            if _one(connection, scope, key_id, user=user).status == "revoked":
                return _one(connection, scope, key_id)
            connection.execute(_SQL["revoke"], _of(scope, key_id))
            revoked = _one(connection, scope, key_id)
            _record(connection, scope, "revoke_key", revoked, actor)
        return revoked

    def rotate(
        self, scope: Scope, key: KeyText, *, grace_seconds: float, expires_at: datetime | None, actor: str
    ) -> ApiKey:
        """Give a key another secret.

        Args:
            scope: Whose.
            key: With the new secret.
            grace_seconds: How long the present one is still taken; one from before that is not any more.
            expires_at: When the key ends.
            actor: Who asks.

        Raises:
            NotFoundError: There is none.
            ConflictError: It is revoked, or its time is over.
        """
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["lock"], _of(scope, key.key_id))
            status = _one(connection, scope, key.key_id).status
            if status != "active":
                raise ConflictError(f"The key {key.key_id!r} is {status}: make a new one.")
            params = {"secret_hash": key.hash, "grace": grace_seconds, "expires_at": expires_at}
            connection.execute(_SQL["rotate"], {**_of(scope, key.key_id), **params})
            note_effect(connection, scope)
            rotated = _one(connection, scope, key.key_id)
            _record(connection, scope, "rotate_key", rotated, actor)
        return rotated

    def presented(self, scope: Scope, key: KeyText) -> ApiKey:
        """The key that somebody presents, whose use is noted.

        Args:
            scope: Of the tenant that the key names.
            key: As it was presented.

        Raises:
            AuthenticationError: There is none, it is not its secret, or it is revoked, or its time is over. Only
                whoever has the secret is told which of the latter.
            TenantSuspendedError: It is a key of a tenant that is suspended.
        """
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["presented"], _of(scope, key.key_id))
            current, previous, tenant, status, note = found[0] if found else (b"", None, "", "", False)
            given = key.hash
            fits = [hmac.compare_digest(bytes(kept or bytes(len(given))), given) for kept in (current, previous)]
            if not any(fits):
                raise AuthenticationError("The API key is not valid.")
            known = _one(connection, scope, key.key_id)
        if known.status != "active":
            raise AuthenticationError(f"The API key {key.key_id!r} is {known.status}.")
        if status != "active":
            raise TenantSuspendedError(
                f"The tenant {tenant!r} is suspended. It can neither be searched nor written to until it is resumed."
            )
        if note:
            self._note_use(scope, key)
        return known

    def users(self, scope: Scope, *, user: str | None = None, after: str = "", limit: int = 100) -> list[KnownUser]:
        """The users whom keys and logins name, by name.

        Args:
            scope: Whose.
            user: Only this one.
            after: The last name of the page before.
            limit: Users at most.
        """
        params = {"tenant_id": scope.tenant_id, "user": user, "after": after, "limit": limit}
        found = self._database.run(scope, _SQL["users"], params)
        return [
            KnownUser(principal=_principal(who), keys=keys, logins=logins, last_used_at=used)
            for _, who, keys, logins, used in found
        ]

    def any_active(self, scope: Scope) -> bool:  # noqa: ARG002 - a store's keys are those of all tenants
        """Whether any tenant of the store has a key that is taken."""
        with self._database.autocommit() as connection:
            return bool(rows(connection, _SQL["any_active"])[0][0])

    def _note_use(self, scope: Scope, key: KeyText) -> None:
        try:
            with self._database.transaction(scope) as connection:
                connection.execute("SET LOCAL synchronous_commit = off")
                connection.execute(_SQL["used"], _of(scope, key.key_id))
        except StoreError as exc:  # a standby, a full disk: nobody is kept out for that
            _log.info("When the key %s was used is not noted: %s", key.key_id, exc)


def _one(connection: Connection, scope: Scope, key_id: str, *, user: str | None = None) -> ApiKey:
    found = _found(connection, scope, key_id=key_id, user=user)
    if not found:
        raise NotFoundError(f"There is no key {key_id!r}. `recollect keys list` shows what there is.")
    return found[0]


def _found(
    connection: Connection,
    scope: Scope,
    *,
    key_id: str | None = None,
    user: str | None = None,
    before: str | None = None,
    limit: int = 1,
) -> list[ApiKey]:
    params = {"tenant_id": scope.tenant_id, "key_id": key_id, "user": user, "before": before, "limit": limit}
    return [_key(dict(zip(_COLUMNS, row, strict=True))) for row in rows(connection, _SQL["page"], params)]


def _key(values: dict[str, Any]) -> ApiKey:
    who = values["principal"]
    principal = who and _principal(who)
    collection, origins = values.pop("collection"), values.pop("origins")
    widget = None if collection is None else WidgetUse(collection=collection, origins=tuple(origins))
    return ApiKey(**{**values, "widget": widget, "scopes": tuple(values["scopes"]), "principal": principal})


def _principal(who: dict[str, Any]) -> Principal:
    return Principal(**{**who, "roles": tuple(who["roles"]), "groups": tuple(who["groups"])})


def _record(connection: Connection, scope: Scope, action: str, key: ApiKey, actor: str) -> None:
    user = None if key.principal is None else key.principal.user_id
    details: dict[str, Any] = {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": list(key.scopes),
        "user": user,
        "expires_at": key.expires_at and key.expires_at.isoformat(),
    }
    if key.widget is not None:
        details["widget"] = {"collection": key.widget.collection, "origins": list(key.widget.origins)}
    if action == "rotate_key":
        details["previous_until"] = key.previous_until and key.previous_until.isoformat()
    record(connection, scope, action=action, actor=actor, details=details)


def _of(scope: Scope, key_id: str) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "key_id": key_id}
