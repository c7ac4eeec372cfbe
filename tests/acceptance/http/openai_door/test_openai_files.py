"""``/v1/files`` and what vector stores make of them, as the ``openai`` package sends, attaches and takes them out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import openai
import psycopg
import pytest

from recollect import Principal
from recollect.pipeline.upkeep import clean_up

TEXT = b"# Parking\n\nBicycles are parked in the yard behind the kitchen."
POLL = {"poll_interval_ms": 5}


@contextmanager
def working(shelf) -> Iterator[None]:
    """A worker beside the server, which takes what is asked for."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            for job in shelf.rag.view(collections=None).jobs.list(status="pending"):
                shelf.rag.jobs.wait(job.job_id)
            stop.wait(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def store(client) -> Iterator[str]:
    made = client.vector_stores.create()
    yield made.id
    for one in client.files.list():
        if one.purpose == "assistants":
            client.files.delete(one.id)
    client.vector_stores.delete(made.id)


def found(client, store: str, query: str = "Where are bicycles parked?") -> list[str]:
    return [one.file_id for one in client.vector_stores.search(store, query=query)]


def test_a_file_is_found_once_it_is_attached_and_no_longer_when_it_is_deleted(shelf, client, store):
    file = client.files.create(file=("parking.md", TEXT), purpose="assistants")
    assert (file.bytes, file.filename, file.purpose, file.status) == (
        len(TEXT),
        "parking.md",
        "assistants",
        "processed",
    )
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).content == TEXT
    assert not any("parking" in one.filename for one in client.vector_stores.search("default", query="bicycles parked"))
    attached = client.vector_stores.files.create(store, file_id=file.id, attributes={"floor": 1, "department": "hr"})
    assert (attached.id, attached.status, attached.vector_store_id) == (file.id, "in_progress", store)
    assert client.vector_stores.retrieve(store).file_counts.in_progress == 1
    assert client.vector_stores.retrieve(store).status == "in_progress"
    assert found(client, store) == []
    with working(shelf):
        done = client.vector_stores.files.poll(file.id, vector_store_id=store, **POLL)
    assert (done.status, done.last_error, done.filename) == ("completed", None, "parking.md")
    assert done.attributes.items() >= {"floor": 1, "department": "hr"}.items()
    assert found(client, store) == [file.id]
    (part,) = client.vector_stores.files.content(file.id, vector_store_id=store)
    assert "Bicycles are parked" in part.text
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.files.retrieve(file.id, vector_store_id="default")
    answer = client.responses.create(
        model="default",
        input="Where are bicycles parked?",
        tools=[{"type": "file_search", "vector_store_ids": [store]}],
        include=["file_search_call.results"],
    )
    assert [one.file_id for one in answer.output[0].results] == [file.id]
    assert client.files.delete(file.id).deleted
    assert found(client, store) == []
    assert list(client.vector_stores.files.list(store)) == []
    for gone in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            gone(file.id)
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.files.create(store, file_id=file.id)


def test_a_file_that_is_taken_out_stays_and_can_be_in_several_stores(shelf, client, store):
    other = client.vector_stores.create(name="other").id
    with working(shelf):
        first = client.vector_stores.files.upload_and_poll(vector_store_id=store, file=("a.md", TEXT), **POLL)
        second = client.vector_stores.files.create_and_poll(file_id=first.id, vector_store_id=other, **POLL)
        assert first.status == second.status == "completed"
        assert found(client, store) == found(client, other) == [first.id]
        assert client.vector_stores.files.delete(first.id, vector_store_id=store).deleted
        assert (found(client, store), found(client, other)) == ([], [first.id])
        assert client.files.content(first.id).content == TEXT
        again = client.vector_stores.files.create_and_poll(file_id=first.id, vector_store_id=store, **POLL)
        assert (again.status, found(client, store)) == ("completed", [first.id])
    client.files.delete(first.id)
    assert found(client, store) == found(client, other) == []
    client.vector_stores.delete(other)


def test_attributes_are_metadata_and_are_changed_and_filtered_by(shelf, client, store):
    with working(shelf):
        files = [
            client.vector_stores.files.upload_and_poll(vector_store_id=store, file=(name, TEXT), **POLL)
            for name in ("a.md", "b.md")
        ]
    for file, year in zip(files, (2024, 2026), strict=True):
        told = client.vector_stores.files.update(file.id, vector_store_id=store, attributes={"year": year})
        assert (told.id, told.attributes) == (file.id, {"year": year})
    newer = client.vector_stores.search(store, query="bicycles", filters={"type": "gt", "key": "year", "value": 2025})
    assert [one.file_id for one in newer] == [files[1].id]
    with pytest.raises(openai.BadRequestError):
        client.vector_stores.files.update(files[0].id, vector_store_id=store, attributes={"x" * 65: 1})


def test_files_of_equal_names_are_documents_of_their_own_and_are_listed_in_both_orders(shelf, client, store):
    sent = [
        client.files.create(file=("same.md", TEXT + bytes(str(n), "ascii")), purpose="assistants") for n in range(3)
    ]
    with working(shelf):
        batch = client.vector_stores.file_batches.create_and_poll(store, file_ids=[one.id for one in sent], **POLL)
    assert (batch.status, batch.file_counts.completed, batch.file_counts.total) == ("completed", 3, 3)
    ids = [one.id for one in sent]
    assert [one.id for one in client.vector_stores.files.list(store, order="asc", limit=2)] == ids
    assert [one.id for one in client.vector_stores.files.list(store, order="desc", limit=2)] == ids[::-1]
    assert [one.id for one in client.files.list(order="desc", limit=2)][:3] == ids[::-1]
    assert [one.id for one in client.files.list(order="asc", limit=2)][-3:] == ids
    # OpenAI's default: the newest first.
    assert [one.id for one in client.files.list(purpose="assistants")] == ids[::-1]
    in_batch = client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store, limit=1)
    assert [one.id for one in in_batch] == ids[::-1]
    assert set(found(client, store)) <= set(ids)


def test_a_batch_is_cancelled_and_its_files_are_told(shelf, client, store):
    sent = [client.files.create(file=(f"{n}.md", TEXT), purpose="assistants") for n in range(2)]
    batch = client.vector_stores.file_batches.create(
        store, files=[{"file_id": one.id, "attributes": {"n": n}} for n, one in enumerate(sent)]
    )
    assert (batch.status, batch.file_counts.in_progress) == ("in_progress", 2)
    cancelled = client.vector_stores.file_batches.cancel(batch.id, vector_store_id=store)
    assert (cancelled.status, cancelled.file_counts.cancelled) == ("cancelled", 2)
    assert {one.status for one in client.vector_stores.files.list(store)} == {"failed"}
    client.vector_stores.files.delete(sent[0].id, vector_store_id=store)
    assert [one.id for one in client.vector_stores.files.list(store)] == [sent[1].id]
    for other in ("vsfb_x", batch.id):
        with pytest.raises(openai.NotFoundError):
            client.vector_stores.file_batches.retrieve(other, vector_store_id="default" if other == batch.id else store)
    with pytest.raises(openai.BadRequestError):
        client.vector_stores.file_batches.create(store, file_ids=[sent[0].id, sent[0].id])
    with pytest.raises(openai.BadRequestError):
        client.vector_stores.file_batches.create(store)


def test_what_cannot_be_read_fails_and_says_why(shelf, client, store):
    with working(shelf):
        file = client.vector_stores.files.upload_and_poll(
            vector_store_id=store, file=("broken.pdf", b"%PDF-1.7 nothing"), **POLL
        )
    assert (file.status, file.last_error.code) == ("failed", "server_error")
    assert "broken.pdf" in file.last_error.message
    counts = client.vector_stores.retrieve(store).file_counts
    assert (counts.failed, counts.completed) == (1, 0)
    assert [one.id for one in client.vector_stores.files.list(store, filter="failed")] == [file.id]


def test_sizes_of_chunks_are_honoured_in_tokens(shelf, client, store):
    words = " ".join(f"word{n}" for n in range(400)).encode()
    static = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 20}}
    file = client.files.create(file=("long.txt", words), purpose="assistants")
    asked = client.vector_stores.files.create(file_id=file.id, vector_store_id=store, chunking_strategy=static)
    assert (asked.status, asked.chunking_strategy.to_dict()) == ("in_progress", static)
    with working(shelf):
        done = client.vector_stores.files.poll(file.id, vector_store_id=store, **POLL)
        uncut = {"type": "static", "static": {"max_chunk_size_tokens": 4096, "chunk_overlap_tokens": 0}}
        other = client.files.create(file=("other.txt", words), purpose="assistants")
        whole = client.vector_stores.files.create_and_poll(
            file_id=other.id, vector_store_id=store, chunking_strategy=uncut, attributes={"year": 2026}, **POLL
        )
        plain = client.vector_stores.files.upload_and_poll(
            vector_store_id=store, file=("plain.txt", b"Annual leave is 30 days."), **POLL
        )
    assert (done.status, done.chunking_strategy.to_dict(), "chunking" in done.attributes) == (
        "completed",
        static,
        False,
    )
    assert (whole.chunking_strategy.to_dict(), whole.attributes["year"]) == (uncut, 2026)
    assert plain.chunking_strategy.to_dict() == {"type": "other"}
    said = client.vector_stores.files.update(whole.id, vector_store_id=store, attributes={"year": 2027})
    assert (said.chunking_strategy.to_dict(), said.attributes) == (uncut, {"year": 2027})
    name = client.vector_stores.retrieve(store).name
    number = shelf.rag.view(collections=name).files.documents(int(file.id[5:]))[name]
    chunks = shelf.rag.view(collections=name).contents.chunks(number)
    assert max(len(one.text.split()) for one in chunks) <= 100 < 400 / len(chunks) * 2
    for wrong in (
        {"max_chunk_size_tokens": 99, "chunk_overlap_tokens": 0},
        {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 51},
    ):
        with pytest.raises(openai.BadRequestError):
            client.vector_stores.files.create(
                store, file_id=file.id, chunking_strategy={"type": "static", "static": wrong}
            )


def test_a_store_is_made_with_files_metadata_and_an_expiry_and_is_changed(shelf, client):
    file = client.files.create(file=("parking.md", TEXT), purpose="assistants")
    with working(shelf):
        made = client.vector_stores.create(
            name="noted",
            file_ids=[file.id],
            metadata={"team": "hr"},
            expires_after={"anchor": "last_active_at", "days": 7},
        )
        client.vector_stores.files.poll(file.id, vector_store_id=made.id, **POLL)
    assert (made.metadata, made.expires_after.days) == ({"team": "hr"}, 7)
    assert made.expires_at == pytest.approx(made.last_active_at + 7 * 86_400, abs=1)
    changed = client.vector_stores.update(made.id, metadata={"team": "it"}, name="noted")
    assert (changed.metadata, changed.expires_after.days) == ({"team": "it"}, 7)
    assert client.vector_stores.update(made.id, expires_after=None).expires_at is None
    with pytest.raises(openai.BadRequestError):
        client.vector_stores.update(made.id, name="another")
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.create(name="never", file_ids=["file-1234567"])
    assert "never" not in {one.name for one in client.vector_stores.list()}
    client.vector_stores.delete(made.id)
    client.files.delete(file.id)


def test_a_store_that_nobody_uses_expires_and_one_that_is_searched_does_not(shelf, client, store):
    with working(shelf):
        file = client.vector_stores.files.upload_and_poll(vector_store_id=store, file=("a.md", TEXT), **POLL)
    client.vector_stores.update(store, expires_after={"anchor": "last_active_at", "days": 7})
    number = int(store[3:])

    def age(**columns: object) -> None:
        with psycopg.connect(shelf.rag.standpoint.store.dsn) as connection:
            long_ago = datetime.now(UTC) - timedelta(days=30)
            connection.execute(
                "UPDATE recollect.collection_notes SET last_active_at = %s WHERE collection_id = %s", (long_ago, number)
            )
            connection.execute(
                "UPDATE recollect.document_versions SET known_from = %s WHERE collection_id = %s", (long_ago, number)
            )

    rag = shelf.rag
    clean = (rag.standpoint.store, rag.config.temporal, rag.standpoint.everything)
    age()
    with psycopg.connect(rag.standpoint.store.dsn) as connection:
        connection.execute(
            "INSERT INTO recollect.search_health (tenant_id, collection_id, day) VALUES (%s, %s, current_date) "
            "ON CONFLICT DO NOTHING",
            (rag.standpoint.everything.tenant_id, number),
        )
    clean_up(*clean)
    assert client.vector_stores.retrieve(store).status == "completed"
    with psycopg.connect(rag.standpoint.store.dsn) as connection:
        connection.execute("DELETE FROM recollect.search_health WHERE collection_id = %s", (number,))
    age()
    clean_up(*clean)
    told = client.vector_stores.retrieve(store)
    assert (told.status, told.file_counts.completed) == ("expired", 0)
    assert found(client, store) == []
    with working(shelf):
        client.vector_stores.files.create_and_poll(file_id=file.id, vector_store_id=store, **POLL)
    assert client.vector_stores.retrieve(store).status == "completed"
    assert found(client, store) == [file.id]


def test_a_file_goes_when_its_time_is_over_with_what_was_made_of_it(shelf, client, store):
    given = {"anchor": "created_at", "seconds": 3_600}
    file = client.files.create(file=("brief.md", TEXT), purpose="assistants", expires_after=given)
    assert file.expires_at == pytest.approx(file.created_at + 3_600, abs=1)
    with working(shelf):
        client.vector_stores.files.create_and_poll(file_id=file.id, vector_store_id=store, **POLL)
    rag = shelf.rag
    with psycopg.connect(rag.standpoint.store.dsn) as connection:
        connection.execute("UPDATE recollect.uploaded_files SET expires_at = now() WHERE file_id = %s", (file.id[5:],))
        expires = connection.execute(
            "SELECT v.expires_at - v.known_from FROM recollect.document_versions v JOIN recollect.documents d "
            "USING (tenant_id, document_id) WHERE v.collection_id = %s",
            (store[3:],),
        ).fetchone()[0]
    assert timedelta(minutes=55) < expires <= timedelta(hours=1)
    assert all(one.id != file.id for one in client.files.list())
    clean_up(rag.standpoint.store, rag.config.temporal, rag.standpoint.everything)
    with psycopg.connect(rag.standpoint.store.dsn) as connection:
        assert connection.execute("SELECT count(*) FROM recollect.uploaded_files").fetchone() == (0,)
    for seconds in (3_599, 2_592_001):
        with pytest.raises(openai.BadRequestError):
            client.files.create(
                file=("brief.md", TEXT),
                purpose="assistants",
                expires_after={"anchor": "created_at", "seconds": seconds},
            )


def test_the_asynchronous_client_does_the_same(shelf, client, store):
    async def main() -> None:
        async with shelf.asynchronous() as theirs:
            file = await theirs.vector_stores.files.upload_and_poll(vector_store_id=store, file=("a.md", TEXT), **POLL)
            assert file.status == "completed"
            batch = await theirs.vector_stores.file_batches.upload_and_poll(
                store, files=[("b.md", TEXT), ("c.md", TEXT)], **POLL
            )
            assert (batch.status, batch.file_counts.completed) == ("completed", 2)
            assert len([one async for one in theirs.vector_stores.files.list(store)]) == 3
            assert [one.file_id async for one in theirs.vector_stores.search(store, query="bicycles")]
            assert (await theirs.files.delete(file.id)).deleted

    with working(shelf):
        asyncio.run(main())


def test_what_is_refused(client):
    for call, param in [
        (lambda client: client.files.create(file=("a.md", TEXT), purpose="batch"), "purpose"),
        (lambda client: client.files.create(file=("a.md", TEXT), purpose="assistants", extra_body={"x": "1"}), "x"),
        (lambda client: client.files.create(file=("", TEXT), purpose="assistants"), None),
        (lambda client: client.files.create(file=("empty.md", b""), purpose="assistants"), None),
        (lambda client: client.files.list(after="x"), "after"),
    ]:
        before = [one.id for one in client.files.list()]
        with pytest.raises(openai.BadRequestError) as told:
            call(client)
        assert told.value.param == param or param is None
        assert [one.id for one in client.files.list()] == before


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\u202egpj.md", "agpj.md"),
        ("ü ö.md", "ü ö.md"),
        ("x" * 300 + ".md", "x" * 252 + ".md"),
        ("file-1", "file-1"),
    ],
)
def test_names_are_kept_without_folders_and_what_is_not_seen(client, name, kept):
    file = client.files.create(file=(name, TEXT), purpose="assistants")
    assert file.filename == kept
    assert client.files.content(file.id).content == TEXT
    client.files.delete(file.id)


def test_nobody_meets_the_files_of_others(shelf, client, store):
    rag = shelf.rag
    rag.view(collections=client.vector_stores.retrieve(store).name).grants.set_collection(writers=["role:staff"])
    keys = {
        name: rag.keys.create(name, scopes=scopes, principal=Principal(user_id=name, roles=("staff",))).secret
        for name, scopes in {"ada": ["read", "write"], "bob": ["read", "write"], "eve": ["read"]}.items()
    }
    rag.tenants.create("elsewhere")
    foreign = rag.view(tenant="elsewhere")
    keys["zoe"] = foreign.keys.create("zoe", scopes=["read", "write", "admin"]).secret
    with shelf.client(keys["ada"]) as ada:
        file = ada.files.create(file=("ada.md", TEXT), purpose="assistants")
        assert [one.id for one in ada.files.list(purpose="assistants")] == [file.id]
    assert client.files.retrieve(file.id).id == file.id, "the store's owner sees all of them"
    for name in ("bob", "eve", "zoe"):
        with shelf.client(keys[name]) as theirs:
            assert file.id not in {one.id for one in theirs.files.list()}
            for refused in (theirs.files.retrieve, theirs.files.content):
                with pytest.raises(openai.NotFoundError):
                    refused(file.id)
            refusal = openai.PermissionDeniedError if name == "eve" else openai.NotFoundError
            with pytest.raises(refusal):
                theirs.files.delete(file.id)
            with pytest.raises(refusal):
                theirs.vector_stores.files.create(store, file_id=file.id)
            with pytest.raises(refusal):
                theirs.vector_stores.file_batches.create(store, file_ids=[file.id])
    with shelf.client(keys["eve"]) as eve, pytest.raises(openai.PermissionDeniedError):
        eve.files.create(file=("eve.md", TEXT), purpose="assistants")
    with shelf.client(keys["ada"]) as ada:
        with pytest.raises(openai.PermissionDeniedError):
            ada.vector_stores.files.create("default", file_id=file.id)
        with working(shelf):
            ada.vector_stores.files.create_and_poll(file_id=file.id, vector_store_id=store, **POLL)
    with shelf.client(keys["bob"]) as bob:
        # What was made of it may be read by whoever may read the collection, under the same id.
        assert found(bob, store) == [file.id]
        assert bob.files.content(file.id).content == TEXT
        assert bob.vector_stores.files.retrieve(file.id, vector_store_id=store).status == "completed"
        for refused in (
            lambda: bob.files.delete(file.id),
            lambda: bob.vector_stores.files.delete(file.id, vector_store_id=store),
        ):
            with pytest.raises(openai.PermissionDeniedError):
                refused()
    with shelf.client(keys["ada"]) as ada:
        assert ada.files.delete(file.id).deleted
    assert found(client, store) == []
    rag.tenants.erase("elsewhere")
