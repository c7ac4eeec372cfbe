"""Who may read what of a view's documents and collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, UsageError
from recollect.model.access import CollectionAccess, DocumentPermissions, ReadingExplained, explain_reading
from recollect.model.arguments import checked
from recollect.model.principal import Permissions, read_permissions, read_token
from recollect.pipeline.standpoint import Group
from recollect.store.access import PermissionChange

if TYPE_CHECKING:
    from recollect.model import Principal, Scope


@checked
class Grants(Group):
    """Who may read what; see `recollect.View`. A change counts from the next search on, cached replies included.

    What is changed must be the principal's to change: a document of its own, or of a collection that it owns.
    """

    def add(
        self,
        grants: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        default: bool = False,
        only: bool = False,
    ) -> int:
        """Let somebody read documents; past versions keep whom they were granted to.

        Args:
            grants: ``user:NAME``, ``role:NAME``, ``department:NAME``, ``group:NAME`` or ``*``; several as a sequence or
                with commas between. One that begins with ``!`` is a denial.
            documents: By id or by source; or one.
            source: Every document of the view's collection that came from there: a folder's path, a domain.
            default: The documents of the view's collection that have no permissions of their own.
            only: Take away every other grant; denials stay.

        Returns:
            How many documents have other permissions now; a collection's default counts as one.

        Raises:
            UsageError: A grant is none, or it is not said what for.
            PermissionDeniedError: It is not the principal's to say; then nothing is changed.
            NotFoundError: A document, a source or the collection does not exist; then nothing is changed.
        """
        change = PermissionChange(add=read_permissions(grants, name="grants"), only=only)
        return self._change(change, documents, source, default=default)

    def deny(
        self,
        denials: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        default: bool = False,
    ) -> int:
        """Keep somebody from documents, whatever grants include them; only the collection's owners still read them.

        The arguments are those of `add`; to take a denial back, `remove` it with a ``!`` before it.
        """
        texts = denials.split(",") if isinstance(denials, str) else denials
        tokens = tuple(sorted({read_token(text, name="denials") for text in texts}))
        change = PermissionChange(add=Permissions(grants=(), denials=tokens))
        return self._change(change, documents, source, default=default)

    def remove(
        self,
        grants: Sequence[str] | str,
        *,
        documents: Sequence[int | str] | int | str = (),
        source: str | None = None,
        default: bool = False,
    ) -> int:
        """Take grants away, and denials where they have a ``!`` before them; the arguments are those of `add`."""
        change = PermissionChange(remove=read_permissions(grants, name="grants"))
        return self._change(change, documents, source, default=default)

    def of_documents(self, documents: Sequence[int | str] | int | str) -> list[DocumentPermissions]:
        """Who may read documents, by their id.

        Raises:
            NotFoundError: One of them does not exist.
            PermissionDeniedError: One of them is not the principal's to change.
        """
        scope = self._at.present()
        return self._at.store.access.of_documents(scope, self._resolved(scope, documents))

    def explain(self, document: int | str, principal: Principal) -> ReadingExplained:
        """Whether somebody may read a document as it is now, and why.

        Args:
            document: By id or by source.
            principal: Somebody.

        Raises:
            NotFoundError: It does not exist.
            PermissionDeniedError: The view's principal does not own its collection.
        """
        scope, store = self._at.present(), self._at.store
        known = store.access.of_documents(scope, self._resolved(scope, document))
        if not known:
            raise NotFoundError(f"There is no document {document!r}. `recollect documents list` shows what there is.")
        told = known[0]
        access = replace(self._at, collections=(told.collection,))
        place = access.place(scope)
        theirs = replace(access, principal=principal).present()
        try:
            store.documents.get(theirs, told.document_id)
            allowed = True
        except NotFoundError:
            allowed = False
        settings = self._at.config.access
        return explain_reading(
            principal,
            told,
            store.access.of_collection(scope, place),
            allowed=allowed,
            asked=settings.mode == "enforce",
            role_departments=settings.role_departments,
        )

    def of_collection(self) -> CollectionAccess:
        """Who owns, reads and writes the view's collection, and the default of its documents.

        Raises:
            NotFoundError: There is no such collection.
            PermissionDeniedError: The principal does not own it.
        """
        scope = self._at.present()
        return self._at.store.access.of_collection(scope, self._at.place(scope))

    def set_collection(
        self,
        *,
        owners: Sequence[str] | None = None,
        readers: Sequence[str] | None = None,
        writers: Sequence[str] | None = None,
        check: Callable[[CollectionAccess], object] | None = None,
    ) -> CollectionAccess:
        """Say who owns, reads and writes the view's collection; for whoever neither owns nor reads it, it is not there.

        Args:
            owners: Grants, such as ``("user:ann",)``; they read everything in it, and write. None: as they are.
            readers: Likewise; ``("*",)`` at first.
            writers: Likewise; nobody at first. They store documents, and change those that they have stored.
            check: Told what was said before, which nobody changes until this has; what it raises changes nothing.

        Raises:
            NotFoundError: There is no such collection.
            UsageError: A grant is none.
            PermissionDeniedError: The principal does not own it.
        """
        scope, access = self._at.present(), self._at.store.access
        place = self._at.place(scope)
        access.set_collection(
            scope,
            place,
            owners=_tokens("owners", owners),
            readers=_tokens("readers", readers),
            writers=_tokens("writers", writers),
            check=check,
        )
        # Whoever gives the collection away is told what became of it all the same.
        return access.of_collection(replace(scope, principal=None), place)

    def _change(
        self,
        change: PermissionChange,
        documents: Sequence[int | str] | int | str,
        source: str | None,
        *,
        default: bool,
    ) -> int:
        scope, access = self._at.present(), self._at.store.access
        ids = self._resolved(scope, documents)
        if sum((bool(ids), source is not None, default)) > 1:
            raise UsageError("Documents, or a source, or a collection: say for one of them who may read.")
        if ids:
            return access.change(scope, ids, change)
        if source is None and not default:
            raise UsageError("Say who may read what: documents, a source or a collection.")
        place = self._at.place(scope)
        if source is None:
            before = access.of_collection(scope, place).default
            return int(access.change_default(scope, place, change) != before)
        ids = access.documents_of_source(scope, place, source)
        if not ids:
            raise NotFoundError(
                f"No document of the collection {place.name!r} came from {source!r}. `recollect documents show ID` "
                "names a document's origin."
            )
        return access.change(scope, ids, change)

    def _resolved(self, scope: Scope, documents: Sequence[int | str] | int | str) -> list[int]:
        several = [documents] if isinstance(documents, int | str) else documents
        return self._at.resolve_all(scope, several)


def _tokens(name: str, given: Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise UsageError(f'{name} must be a sequence of grants, for instance {name}=("user:ann",), not {given!r}.')
    return [read_token(one, name=name) for one in given]
