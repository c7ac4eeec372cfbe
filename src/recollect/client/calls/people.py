"""Rights, keys, tenants and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.client.calls.base import Call, Calls, Pages, Steps, as_it_is, listed, nothing, segment
from recollect.client.options import duration_text, moment_text
from recollect.client.place import Place, given
from recollect.client.reading import Json, read
from recollect.model import Principal
from recollect.model.access import CollectionAccess, DocumentPermissions
from recollect.model.key import ApiKey, NewApiKey
from recollect.model.page import cursor_at
from recollect.model.principal import Permissions
from recollect.model.tenant import PersonalDataPolicy, SharedCollection, Tenant, TenantErasure, TenantQuota
from recollect.model.time import Duration, Moment


class GrantCalls(Calls):
    """Who may read what; see `recollect.View.grants`."""

    def add(
        self,
        grants: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        default: bool = False,
        only: bool = False,
    ) -> Call[int]:
        """Let somebody read documents, those of a source, or by default those of the collection; how many changed."""
        return self._change("add", grants, documents, source, default, only=only)

    def deny(
        self,
        denials: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        default: bool = False,
    ) -> Call[int]:
        """Let somebody not read them, whatever grants include them."""
        return self._change("deny", denials, documents, source, default)

    def remove(
        self,
        grants: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        default: bool = False,
    ) -> Call[int]:
        """Take grants away, and with ``!`` before them denials."""
        return self._change("remove", grants, documents, source, default)

    def of_documents(self, documents: Sequence[int | str] | int | str) -> Call[list[DocumentPermissions]]:
        """Who may read documents."""
        self._at.require_present()
        query = {"document": [str(one) for one in _each(documents)], "collection": self._at.written}
        return Call(
            method="GET",
            path="/v1/grants/documents",
            query=query,
            read=lambda told: [
                read(DocumentPermissions, one, permissions=read(Permissions, one)) for one in told["documents"]
            ],
        )

    def of_collection(self) -> Call[CollectionAccess]:
        """Who may do what in the view's collection."""
        self._at.require_present()
        return Call(method="GET", path="/v1/grants", query={"collection": self._at.written}, read=_access)

    def set_collection(
        self,
        *,
        owners: Sequence[str] | None = None,
        readers: Sequence[str] | None = None,
        writers: Sequence[str] | None = None,
        if_match: str | None = None,
    ) -> Call[CollectionAccess]:
        """Say who owns, reads and writes it; what is None stays. ``if_match``: only while its ETag is this one."""
        said = {"owner": owners, "reader": readers, "writer": writers}
        body = self._said() | {name: list(_each(who)) for name, who in said.items() if who is not None}
        return Call(method="PATCH", path="/v1/grants", body=body, headers=_matching(if_match), read=_access)

    def _change(
        self,
        change: str,
        who: Sequence[str] | str,
        documents: Sequence[int | str] | int | str,
        source: str | None,
        default: bool,
        *,
        only: bool = False,
    ) -> Call[int]:
        body = self._said() | {
            **given(source=source),
            "change": change,
            "who": list(_each(who)),
            "documents": list(_each(documents)),
            "default": default,
            "only": only,
        }
        return Call(method="POST", path="/v1/grants", body=body, read=lambda told: int(told["changed"]))

    def _said(self) -> dict[str, Any]:
        return {**given(collection=self._at.written), **self._at.asker()}


class KeyCalls(Calls):
    """What programs present to a server; see `recollect.View.keys`."""

    def create(
        self,
        name: str,
        *,
        scopes: Sequence[str] | str = "read",
        principal: Principal | None = None,
        expires: Duration | None = None,
    ) -> Call[NewApiKey]:
        """Make a key; its secret is in what this returns and nowhere else."""
        self._at.require_present()
        body = {
            "name": name,
            "scopes": list(_each(scopes)),
            **given(expires=None if expires is None else duration_text(expires)),
            **Place(principal=principal).asker(),
        }
        return Call(method="POST", path="/v1/keys", body=body, read=_new_key)

    def create_widget(
        self,
        name: str,
        *,
        collection: str,
        origins: Sequence[str],
        principal: Principal | None = None,
        expires: Duration | None = None,
    ) -> Call[NewApiKey]:
        """Make a key for a widget on pages of other sites: it opens the widget there and nothing else."""
        self._at.require_present()
        body = {
            "name": name,
            "widget": {"collection": collection, "origins": list(origins)},
            **given(expires=None if expires is None else duration_text(expires)),
            **Place(principal=principal).asker(),
        }
        return Call(method="POST", path="/v1/keys", body=body, read=_new_key)

    def get(self, key_id: str) -> Call[ApiKey]:
        """What is kept of a key: nothing of its secret."""
        self._at.require_present()
        return Call(method="GET", path=_key_path(key_id), read=_kept_key)

    def rotate(self, key_id: str, *, grace: Duration = "1d", expires: Duration | None = None) -> Call[NewApiKey]:
        """Give it another secret; the present one is taken beside it for the grace time."""
        self._at.require_present()
        body = given(
            grace="0" if grace == 0 else duration_text(grace),
            expires=None if expires is None else duration_text(expires),
        )
        return Call(method="POST", path=_key_path(key_id, "/rotate"), body=body, read=_new_key)

    def revoke(self, key_id: str) -> Call[ApiKey]:
        """Have it refused from now on."""
        self._at.require_present()
        return Call(method="DELETE", path=_key_path(key_id), read=_kept_key)

    def list(self, *, before: str | None = None, limit: int = 100) -> Steps[list[ApiKey]]:
        """Newest first, those that are not taken any more among them."""
        self._at.require_present()
        call: Call[Json] = Call(method="GET", path="/v1/keys", read=dict)
        return (yield from Pages(call=call, items=listed("keys", _key), cursor=_before(before)).first(limit))


class TenantCalls(Calls):
    """The tenants of the store, for whoever runs it; see `recollect.View.tenants`."""

    def create(self, name: str, *, quota: TenantQuota | None = None) -> Call[Tenant]:
        """Make one."""
        self._at.require_present()
        body = {"name": name, **({} if quota is None else {"quota": _quota(quota)})}
        return Call(method="POST", path="/v1/tenants", body=body, read=_tenant)

    def get(self, tenant: int | str) -> Call[Tenant]:
        """By name or number: what it stores, and how much it may."""
        return self._of(tenant, _tenant)

    def shared(self, tenant: int | str) -> Call[list[SharedCollection]]:
        """What others let it read."""
        return self._of(
            tenant,
            lambda told: [read(SharedCollection, one, tenant_name=one["tenant"]) for one in told["shared_with_it"]],
        )

    def suspend(self, tenant: int | str, *, if_match: str | None = None) -> Call[Tenant]:
        """From now on it can neither be searched nor written to."""
        return self._change(tenant, {"status": "suspended"}, if_match)

    def resume(self, tenant: int | str, *, if_match: str | None = None) -> Call[Tenant]:
        """End a suspension."""
        return self._change(tenant, {"status": "active"}, if_match)

    def set_quota(self, tenant: int | str, quota: TenantQuota, *, if_match: str | None = None) -> Call[Tenant]:
        """Say how much it may store."""
        return self._change(tenant, {"quota": _quota(quota)}, if_match)

    def set_pii(
        self, tenant: int | str, policy: PersonalDataPolicy | None, *, if_match: str | None = None
    ) -> Call[Tenant]:
        """Say what becomes of personal data in what it stores; None: what is configured."""
        return self._change(tenant, {"pii": policy}, if_match)

    def erase(self, tenant: int | str, *, reason: str | None = None) -> Call[TenantErasure]:
        """Remove it with everything that belongs to it, for good."""
        self._at.require_present()
        return Call(
            method="DELETE",
            path=_tenant_path(tenant),
            query={"reason": reason},
            read=lambda told: read(TenantErasure, told),
        )

    def share(self, tenant: int | str, collection: str, reader: int | str) -> Call[None]:
        """Let another tenant read a collection of one."""
        self._at.require_present()
        body = {"collection": collection, "reader": str(reader)}
        return Call(method="POST", path=f"{_tenant_path(tenant)}/shares", body=body, read=nothing)

    def unshare(self, tenant: int | str, collection: str, reader: int | str) -> Call[None]:
        """Keep another tenant from a collection of one again."""
        self._at.require_present()
        query = {"collection": collection, "reader": str(reader)}
        return Call(method="DELETE", path=f"{_tenant_path(tenant)}/shares", query=query, read=nothing)

    def list(self, *, after: str = "", limit: int = 100) -> Steps[list[Tenant]]:
        """By name, behind ``after``."""
        self._at.require_present()
        call: Call[Json] = Call(method="GET", path="/v1/tenants", read=dict)
        return (
            yield from Pages(call=call, items=listed("tenants", _tenant), cursor=_before(after or None)).first(limit)
        )

    def _of(self, tenant: int | str, read_reply: Any) -> Call[Any]:  # noqa: ANN401 - of each its own
        self._at.require_present()
        return Call(method="GET", path=_tenant_path(tenant), read=read_reply)

    def _change(self, tenant: int | str, body: Mapping[str, Any], if_match: str | None) -> Call[Tenant]:
        self._at.require_present()
        return Call(method="PATCH", path=_tenant_path(tenant), body=body, headers=_matching(if_match), read=_tenant)


class AuditCalls(Calls):
    """What was done, by whom and when; see `recollect.View.audit`. Of the credential's tenant."""

    def export(
        self, *, action: str | None = None, since: Moment | None = None, until: Moment | None = None
    ) -> Call[Any]:
        """Entries as lines of JSON with their hashes, oldest first, as they are read."""
        self._at.require_present()
        sides = {"since": since, "until": until}
        between = {name: moment_text(side) for name, side in sides.items() if side is not None}
        return Call(method="GET", path="/v1/audit/export", query={"action": action, **between}, read=as_it_is)


def _each(one_or_several: Any) -> Sequence[Any]:  # noqa: ANN401 - names, numbers, or several of them
    return [one_or_several] if isinstance(one_or_several, str | int) else one_or_several


def _before(position: int | str | None) -> str | None:
    return None if position is None else cursor_at(position)


def _matching(if_match: str | None) -> dict[str, str]:
    return {} if if_match is None else {"If-Match": if_match}


def _of_document(told: Json) -> DocumentPermissions:
    return read(DocumentPermissions, told, permissions=read(Permissions, told))


def _access(told: Json) -> CollectionAccess:
    return read(CollectionAccess, told, default=read(Permissions, told["default"]))


def _key_path(key_id: str, more: str = "") -> str:
    return f"/v1/keys/{segment(key_id)}{more}"


def _key(told: Json) -> ApiKey:
    who = told["principal"]
    return read(ApiKey, told, principal=None if who is None else read(Principal, who), scopes=tuple(told["scopes"]))


def _kept_key(told: Json) -> ApiKey:
    return _key(told["key"])


def _new_key(told: Json) -> NewApiKey:
    return NewApiKey(key=_key(told["key"]), secret=told["secret"])


def _tenant_path(tenant: int | str) -> str:
    return f"/v1/tenants/{segment(tenant)}"


def _tenant(told: Json) -> Tenant:
    return read(Tenant, told)


def _quota(quota: TenantQuota) -> dict[str, int | None]:
    return {"max_documents": quota.max_documents, "max_chunks": quota.max_chunks, "max_bytes": quota.max_bytes}
