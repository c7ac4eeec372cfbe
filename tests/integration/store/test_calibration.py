from __future__ import annotations

import pytest

from recollect.errors import NotFoundError
from recollect.model import Scope

SCOPE = Scope()


def test_a_rule_is_kept_with_its_collection_and_taken_back(store):
    for name in ("one", "two"):
        store.collections.create(SCOPE, name, embedding_model="m", embedding_dimension=2)
    assert store.collections.get(SCOPE, "one").refusal is None
    store.collections.set_refusal(SCOPE, "one", {"threshold": 0.75, "cases": {"answerable": 12}})
    assert store.collections.get(SCOPE, "one").refusal == {"threshold": 0.75, "cases": {"answerable": 12}}
    assert [place.refusal for place in store.collections.list_all(SCOPE)][1] is None
    store.collections.set_refusal(SCOPE, "one", None)
    assert store.collections.get(SCOPE, "one").refusal is None


def test_another_tenants_collection_is_out_of_reach(store):
    store.collections.create(SCOPE, "mine", embedding_model="m", embedding_dimension=2)
    with pytest.raises(NotFoundError):
        store.collections.set_refusal(Scope(tenant_id=2), "mine", {"threshold": 1.0})
    assert store.collections.get(SCOPE, "mine").refusal is None
