"""Rights, keys, tenants and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.client.calls.base import Call, Calls, as_it_is, reading, segment
from recollect.client.place import Place, given
from recollect.client.wire import duration_text, moment_text
from recollect.model import Principal
from recollect.model.access import CollectionAccess, DocumentPermissions
from recollect.model.key import NewApiKey
from recollect.model.record import json_of
from recollect.model.tenant import PersonalDataPolicy, Tenant, TenantQuota
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
            read=lambda told: reading(list[DocumentPermissions])(told["documents"]),
        )

    def of_collection(self) -> Call[CollectionAccess]:
        """Who may do what in the view's collection."""
        self._at.require_present()
        return Call(
            method="GET", path="/v1/grants", query={"collection": self._at.written}, read=reading(CollectionAccess)
        )

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
        return Call(
            method="PATCH", path="/v1/grants", body=body, headers=_matching(if_match), read=reading(CollectionAccess)
        )

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
        return Call(method="POST", path="/v1/keys", body=body, read=reading(NewApiKey))

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
        return Call(method="POST", path="/v1/keys", body=body, read=reading(NewApiKey))

    def rotate(self, key_id: str, *, grace: Duration = "1d", expires: Duration | None = None) -> Call[NewApiKey]:
        """Give it another secret; the present one is taken beside it for the grace time."""
        self._at.require_present()
        body = given(
            grace="0" if grace == 0 else duration_text(grace),
            expires=None if expires is None else duration_text(expires),
        )
        return Call(method="POST", path=f"/v1/keys/{segment(key_id)}/rotate", body=body, read=reading(NewApiKey))


class TenantCalls(Calls):
    """The tenants of the store, for whoever runs it; see `recollect.View.tenants`."""

    def create(self, name: str, *, quota: TenantQuota | None = None) -> Call[Tenant]:
        """Make one."""
        self._at.require_present()
        body = {"name": name, **({} if quota is None else {"quota": json_of(quota)})}
        return Call(method="POST", path="/v1/tenants", body=body, read=reading(Tenant))

    def suspend(self, tenant: int | str, *, if_match: str | None = None) -> Call[Tenant]:
        """From now on it can neither be searched nor written to."""
        return self._change(tenant, {"status": "suspended"}, if_match)

    def resume(self, tenant: int | str, *, if_match: str | None = None) -> Call[Tenant]:
        """End a suspension."""
        return self._change(tenant, {"status": "active"}, if_match)

    def set_quota(self, tenant: int | str, quota: TenantQuota, *, if_match: str | None = None) -> Call[Tenant]:
        """Say how much it may store."""
        return self._change(tenant, {"quota": json_of(quota)}, if_match)

    def set_pii(
        self, tenant: int | str, policy: PersonalDataPolicy | None, *, if_match: str | None = None
    ) -> Call[Tenant]:
        """Say what becomes of personal data in what it stores; None: what is configured."""
        return self._change(tenant, {"pii": policy}, if_match)

    def _change(self, tenant: int | str, body: Mapping[str, Any], if_match: str | None) -> Call[Tenant]:
        self._at.require_present()
        path = f"/v1/tenants/{segment(tenant)}"
        return Call(method="PATCH", path=path, body=body, headers=_matching(if_match), read=reading(Tenant))


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


def _matching(if_match: str | None) -> dict[str, str]:
    return {} if if_match is None else {"If-Match": if_match}
