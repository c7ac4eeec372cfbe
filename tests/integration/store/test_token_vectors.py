"""Packed token vectors in the database."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import NotFoundError
from recollect.model import Scope
from recollect.retrieval.rerank.packing import pack
from recollect.store.token_vectors import TokenVectorRepository, copy_token_vectors

MINE, OTHER = Scope(tenant_id=1), Scope(tenant_id=2)


@pytest.fixture
def chunk_ids(pipeline):
    pipeline.ingest("Leave is thirty days a year. " * 60)
    with pipeline.store.database.transaction(MINE) as connection:
        return [row[0] for row in connection.execute("SELECT chunk_id FROM chunks ORDER BY chunk_id").fetchall()]


def store_all(pipeline, chunk_ids):
    random = np.random.default_rng(1)
    packed = [pack(random.normal(size=(100, 384))) for _ in chunk_ids]
    with pipeline.store.database.transaction(MINE) as connection:
        copy_token_vectors(connection, MINE, chunk_ids, packed, space_id=1)
    return packed


def test_what_is_stored_comes_back_for_its_tenant_alone(pipeline, chunk_ids):
    packed = store_all(pipeline, chunk_ids)
    repository = TokenVectorRepository(pipeline.store.database)
    found = repository.get_many(MINE, [*chunk_ids, 10**9], model="hashing:64")
    assert found == dict(zip(chunk_ids, packed, strict=True))
    assert repository.get_many(MINE, [], model="hashing:64") == {}
    assert repository.get_many(OTHER, chunk_ids, model="hashing:64") == {}
    assert repository.get_many(MINE, chunk_ids, model="hashing:96") == {}, "another model's say nothing of these"


def test_erasing_a_document_erases_them(pipeline, chunk_ids):
    store_all(pipeline, chunk_ids)
    pipeline.documents.erase([record.document_id for record in pipeline.documents.list()]).counts["documents"]
    assert TokenVectorRepository(pipeline.store.database).get_many(MINE, chunk_ids, model="hashing:64") == {}


def test_a_collection_asks_for_them_or_not(pipeline):
    place = pipeline.collections.create("asks")
    repository = TokenVectorRepository(pipeline.store.database)
    assert not repository.wanted(MINE, place)
    repository.set_wanted(MINE, place, wanted=True)
    assert repository.wanted(MINE, place)
    assert not repository.wanted(OTHER, place)
    pipeline.collections.delete("asks")
    with pytest.raises(NotFoundError):
        repository.set_wanted(MINE, place, wanted=True)
