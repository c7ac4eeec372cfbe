"""Bodies and pages of tenants, rights, the audit and requests to providers."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from recollect.errors import UsageError
from recollect.model.tenant import PersonalDataPolicy, TenantQuota
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.server.schemas.base import Asker, Body, acting_as

_Limit = Annotated[int, Field(ge=0, le=2**62)]
_MAX_DOCUMENTS = 10_000


class QuotaBody(Body):
    """How much a tenant may store; null: any amount. What is left out stays as it is."""

    max_documents: _Limit | None = None
    max_chunks: _Limit | None = None
    max_bytes: _Limit | None = None

    def changed(self, quota: TenantQuota) -> TenantQuota:
        """A quota with what is given."""
        return replace(quota, **self.model_dump(exclude_unset=True))


class TenantBody(Body):
    """A new tenant."""

    name: Name = Field(description="Its name, which is not a number.")
    quota: QuotaBody = QuotaBody()


class TenantChanges(Body):
    """What becomes of a tenant; what is left out stays as it is."""

    status: Literal["active", "suspended"] | None = Field(
        None, description="A suspended tenant can neither be searched nor written to."
    )
    quota: QuotaBody | None = None
    pii: PersonalDataPolicy | None = Field(
        None, description="What becomes of personal data in what it stores; null: what is configured."
    )


class _Permissions(Body):
    """Whose rights, and as whom they are changed."""

    collection: Name | None = Field(None, description="The collection; left out: the configured one.")
    as_: Asker | None = Field(None, alias="as", description="For whom the owner of the store does it.")

    def of(self, view: View) -> View:
        """The view that does it."""
        return acting_as(view, self.as_).view(collections=self.collection)


class GrantChange(_Permissions):
    """A change of who may read documents: those that are named, those of a source, or the collection's default."""

    change: Literal["add", "remove", "deny"] = Field(
        description="add: they may read; remove: takes grants away, and with ! before them denials; deny: they may "
        "not, whatever grants include them."
    )
    who: tuple[Name, ...] = Field(
        min_length=1, max_length=1_000, description="user:NAME, role:NAME, department:NAME, group:NAME, or *."
    )
    documents: tuple[int | Name, ...] = Field((), max_length=_MAX_DOCUMENTS, description="By id or by source.")
    source: Text | None = Field(
        None, max_length=10_000, description="Every document that came from there: a folder, a domain."
    )
    default: bool = Field(False, description="The collection's documents that have no permissions of their own.")
    only: bool = Field(False, description="With add: take away every other grant; denials stay.")

    def target(self, view: View) -> dict[str, Any]:
        """What is changed, as the library takes it.

        Raises:
            UsageError: That is not one of the three, or ``only`` goes with another change than ``add``.
            NotFoundError: There is no such document.
        """
        if sum((bool(self.documents), self.source is not None, self.default)) != 1:
            raise UsageError("Name documents, or a source, or default for the collection: one of them.")
        if self.only and self.change != "add":
            raise UsageError("only goes with the change add.")
        if self.documents:
            # By their ids: afterwards, somebody in particular may not be able to name them any more.
            return {"documents": view.documents.resolve(self.documents)}
        return {"default": True} if self.source is None else {"source": self.source}


class CollectionRights(_Permissions):
    """Who owns, reads and writes a collection. What is given replaces what was; the rest stays."""

    owner: tuple[Name, ...] | None = Field(
        None, max_length=1_000, description="Grants: they read everything in it, and write."
    )
    reader: tuple[Name, ...] | None = Field(
        None, max_length=1_000, description="Grants: for anybody else it does not exist."
    )
    writer: tuple[Name, ...] | None = Field(None, max_length=1_000, description="Grants: they put documents into it.")
