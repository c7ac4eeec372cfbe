"""In how many chunks words stand, as it was read: questions share words, and each look at them is a statement."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection

# Words of all collections together, some hundred bytes each.
_MOST = 100_000

_Key: TypeAlias = tuple[int, int]
# Every change that searches could see gives a collection a later revision, and a count of its words other numbers,
# where there was something to count.
_Count: TypeAlias = tuple[int, int, int, int]

_NOTHING: Mapping[int, int] = MappingProxyType({})


class KnownFrequencies:
    """Keeps document frequencies by lexeme, those of the last count of each collection. Safe to share between threads.

    Args:
        most: Lexemes of all collections together; of more, those of the collections that were kept first go.
    """

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, tuple[_Count, dict[int, int]]] = OrderedDict()
        self._lexemes = 0
        self._lock = Lock()

    def of(self, scope: Scope, collection: Collection) -> Mapping[int, int]:
        """What is known of a collection as it is; 0: of a lexeme that stands nowhere in it."""
        count, known = self._kept.get(_key(scope, collection), (None, _NOTHING))
        return known if count == _count(collection) else _NOTHING

    def keep(self, scope: Scope, collection: Collection, found: Mapping[int, int]) -> None:
        """Add to what is known of a collection. Of a session nothing is kept, here either."""
        if collection.hidden or len(found) > self._most:
            return
        key, count = _key(scope, collection), _count(collection)
        with self._lock:
            of, known = self._kept.get(key, (None, {}))
            if of != count:
                self._drop(key)
                known = {}
                self._kept[key] = count, known
            self._lexemes += len(found.keys() - known.keys())
            known.update(found)
            while self._lexemes > self._most:
                self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._lexemes = 0

    def _drop(self, key: _Key) -> None:
        if key in self._kept:
            self._lexemes -= len(self._kept.pop(key)[1])


def _key(scope: Scope, collection: Collection) -> _Key:
    return scope.tenant_id, collection.collection_id


def _count(collection: Collection) -> _Count:
    return collection.revision, collection.stats_chunks, collection.stats_terms, collection.stats_pending
