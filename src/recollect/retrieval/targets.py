"""From the target of a search to the collections that it looks into, as they are and as whoever searches sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.errors import TenantSuspendedError, UsageError
from recollect.store.revision import CollectionRevision

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.model.scope import Guest, Target
    from recollect.store.store import Store

#: What the reply of a search of every collection names as its collection.
EVERYWHERE = "*"


@dataclass(frozen=True, slots=True)
class Searched:
    """One collection of a search.

    Attributes:
        scope: As whom it is read.
        collection: As it is.
        label: What replies call it.
        hides_expired: Whether something in it has expired that could not be closed, so that the search leaves it out.
    """

    scope: Scope
    collection: Collection
    label: str
    hides_expired: bool = False

    @property
    def revision(self) -> CollectionRevision:
        """What a replica must have to be searched in its place."""
        return CollectionRevision(self.scope.tenant_id, self.collection.collection_id, self.collection.revision)

    @property
    def kept(self) -> bool:
        """Whether a reply may be kept: no revision tells when the next document expires, or when a session ends."""
        return not self.hides_expired and not self.collection.hidden


def heading(target: Target, searched: Sequence[Searched]) -> str:
    """What a reply names as its collection."""
    if target.collections is None and target.session is None:
        return EVERYWHERE
    if target.shared and target.collections:
        return target.collections[0]
    return ", ".join([one.label for one in searched] or (target.collections or ()))


def tells_origins(target: Target, searched: Sequence[Searched]) -> bool:
    """Whether each passage of a reply names its collection: more than one was looked for."""
    return len(searched) > 1 or bool(target.shared) or (target.collections is None and target.session is None)


class TargetResolver:
    """Finds the collections of targets. Safe to share between threads.

    Args:
        store: Where they are.
        auto_expire: Whether what has expired is closed, or left out, before a search of the present.
        seen: What is searched in place of a collection; None: itself.
    """

    def __init__(
        self, store: Store, *, auto_expire: bool, seen: Callable[[Collection], Collection] | None = None
    ) -> None:
        self._store = store
        self._seen = seen
        self._auto_expire = auto_expire

    def resolve(self, scope: Scope, target: Target) -> list[Searched]:
        """The collections of a target: the session's, the scope's own, and what others share.

        Raises:
            UsageError: It names none.
            NotFoundError: One that it names, and that is not optional, does not exist for the scope.
        """
        if target.collections == () and target.session is None:
            raise UsageError("Name at least one collection to search.")
        found = [*self._session(target.session), *self._own(scope, target), *self._shared(target.shared)]
        unexpired = [self._unexpired(one) for one in found]
        if self._seen is None:
            return unexpired
        return [replace(one, collection=self._seen(one.collection)) for one in unexpired]

    def changed_rights(self, searched: Sequence[Searched]) -> list[Searched] | None:
        """The same collections as they are to be searched again, because what may be read of one of them changed.

        Returns:
            None: whatever the search could find may be read.

        Raises:
            NotFoundError: One of them does not exist any more for whom it was searched.
        """
        changed = [
            None if one.scope.principal is None else self._store.collections.changed_rights(one.scope, one.collection)
            for one in searched
        ]
        if not any(changed):
            return None
        return [replace(one, collection=now) if now else one for one, now in zip(searched, changed, strict=True)]

    def _session(self, session: Guest | None) -> Iterator[Searched]:
        if session is not None:
            collection = self._store.collections.get(session.scope, session.collection)
            yield Searched(session.scope, collection, session.label)

    def _own(self, scope: Scope, target: Target) -> Iterator[Searched]:
        if target.collections is None:
            for collection in self._store.collections.searchable(scope):
                yield Searched(scope, collection, collection.name)
            return
        for name in dict.fromkeys(target.collections):
            find = self._store.collections.find if name in target.optional else self._store.collections.get
            if (named := find(scope, name)) is not None:
                yield Searched(scope, named, name)

    def _shared(self, guests: Sequence[Guest]) -> Iterator[Searched]:
        for guest in guests:
            try:
                collection = self._store.collections.find(guest.scope, guest.collection)
            except TenantSuspendedError:  # since it was listed
                continue
            if collection is not None:
                yield Searched(guest.scope, collection, guest.label)

    def _unexpired(self, one: Searched) -> Searched:
        """The collection after what has expired in it is closed.

        The past needs none of this: what was known then has its end among its times.
        """
        if not self._hides_expired(one) or not self._store.expiry.close_due(one.scope, one.collection.collection_id):
            return replace(one, hides_expired=self._hides_expired(one))
        now = replace(one, collection=self._store.collections.get(one.scope, one.collection.name))
        return replace(now, hides_expired=self._hides_expired(now))

    def _hides_expired(self, one: Searched) -> bool:
        return one.collection.expiry_due and one.scope.as_of is None and self._auto_expire
