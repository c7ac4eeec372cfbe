"""``/v1/vector_stores`` and ``/v1/files``: collections and documents, as the ``openai`` package asks for them."""

from __future__ import annotations

import openai
import pytest

from recollect import Document, Principal


def test_collections_are_vector_stores(shelf, client):
    made = client.vector_stores.create(name="handbook", description="For everybody.")
    assert [one.name for one in client.vector_stores.list()] == ["handbook", "default"]
    assert [one.name for one in client.vector_stores.list(order="asc", limit=1)] == ["default", "handbook"]
    assert client.vector_stores.retrieve(made.id).name == client.vector_stores.retrieve("handbook").name == "handbook"
    assert client.vector_stores.retrieve("default").file_counts.completed == 2
    with pytest.raises(openai.ConflictError):
        client.vector_stores.create(name="handbook")
    with pytest.raises(openai.BadRequestError) as told:
        client.vector_stores.create(name="x", expires_after={"anchor": "last_active_at", "days": 0})
    assert told.value.param == "expires_after.days"
    key = shelf.rag.keys.create("writer", scopes=["read", "write"]).secret
    with shelf.client(key) as writer, pytest.raises(openai.PermissionDeniedError):
        writer.vector_stores.delete(made.id)
    assert client.vector_stores.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.retrieve(made.id)


def test_documents_are_files(shelf, client):
    view = shelf.rag.view(collections="papers")
    view.ingest([Document(content=f"Paper {n} is about leave.", source=f"{n}.md", metadata={"n": n}) for n in range(5)])
    store = client.vector_stores.retrieve("papers")
    oldest = list(client.vector_stores.files.list(store.id, limit=2, order="asc"))
    assert [one.filename for one in oldest] == ["0.md", "1.md", "2.md", "3.md", "4.md"]
    newest = client.vector_stores.files.list(store.id, limit=2)
    assert [one.filename for one in newest] == ["4.md", "3.md", "2.md", "1.md", "0.md"]
    assert {one.status for one in oldest} == {"completed"}
    assert list(client.vector_stores.files.list(store.id, filter="failed")) == []
    assert [one.filename for one in client.files.list(limit=3)][:5] == [one.filename for one in newest]
    first = oldest[0]
    assert client.files.retrieve(first.id).filename == "0.md"
    assert client.files.content(first.id).text == "Paper 0 is about leave."
    one = client.vector_stores.files.retrieve(first.id, vector_store_id=store.id)
    assert one.attributes == {"n": 0}
    (part,) = client.vector_stores.files.content(first.id, vector_store_id=store.id)
    assert part.text == "Paper 0 is about leave."
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.files.retrieve(first.id, vector_store_id="default")
    assert client.vector_stores.files.delete(first.id, vector_store_id=store.id).deleted
    assert client.files.delete(oldest[1].id).deleted
    assert [one.filename for one in client.vector_stores.files.list(store.id)] == ["4.md", "3.md", "2.md"]
    shelf.rag.collections.delete("papers")


def test_a_vector_store_is_searched(client):
    found = client.vector_stores.search("default", query="annual leave", max_num_results=1)
    (best,) = found
    assert (best.filename, best.attributes) == ("leave.md", {"topic": "leave"})
    assert "thirty days" in best.content[0].text
    several = client.vector_stores.search("default", query=["annual leave", "salaries"])
    assert {one.filename for one in several} == {"leave.md", "https://intra.example/pay"}
    kept = client.vector_stores.search(
        "default", query="leave", filters={"type": "ne", "key": "source", "value": "leave.md"}
    )
    assert "leave.md" not in {one.filename for one in kept}
    with pytest.raises(openai.BadRequestError):
        client.vector_stores.search("default", query="leave", filters={"type": "and", "filters": []})


def test_what_a_key_may_not_read_does_not_exist_for_it(shelf, client):
    pay = next(one for one in client.files.list() if one.filename.endswith("/pay"))
    ada = shelf.rag.keys.create("ada2", scopes=["read"], principal=Principal(user_id="ada", roles=("staff",))).secret
    with shelf.client(ada) as theirs:
        assert [one.filename for one in theirs.files.list()] == ["leave.md"]
        for refused in (theirs.files.retrieve, theirs.files.content):
            with pytest.raises(openai.NotFoundError):
                refused(pay.id)
        with pytest.raises(openai.PermissionDeniedError):
            theirs.files.delete(pay.id)


def test_files_that_there_are_not(client):
    for name in ["file-0", "file-x", "file-99999999999999999999", "../x", "file-٣"]:
        with pytest.raises(openai.NotFoundError):
            client.files.retrieve(name)
