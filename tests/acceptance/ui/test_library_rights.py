"""Whom the library shows what: another tenant, another role, and whoever may only read."""

from __future__ import annotations

import httpx2
import pytest

from recollect import Document, Principal
from recollect.model.original import Original

CHANGES = (
    ("/library/documents/change", {"action": "delete", "document": "1"}),
    ("/library/documents/change", {"action": "tag", "document": "1", "tag": "mine"}),
    ("/library/documents/change", {"action": "retry", "document": "1", "job": "1"}),
    ("/library/urls", {"url": "https://example.com/", "collection": "default"}),
    ("/library/jobs/1/retry", {}),
    ("/library/jobs/1/cancel", {}),
    ("/library/preview", {"text": "some"}),
)
OWNERS = (
    ("/library/collections", {"name": "mine"}),
    ("/library/collection/describe?name=default", {"description": "mine"}),
    ("/library/collection/delete?name=default", {"confirmed": "default"}),
    ("/library/sources", {"location": "/", "collection": "default"}),
    ("/library/sources/refresh", {"collection": "default", "source": "upload"}),
    ("/library/sources/remove", {"collection": "default", "source": "upload"}),
)


def asking(served, *scopes: str, **made) -> httpx2.Client:
    """Somebody with a key."""
    key = served.rag.keys.create("test", scopes=scopes, **made).secret
    return httpx2.Client(base_url=served.url, headers={"X-API-Key": key}, timeout=60)


@pytest.fixture
def shared(served):
    """Beside what everybody reads, something of one role, and a file that waits."""
    served.rag.ingest(Document(content="Salaries.", source="secret/pay.md", title="Secret pay", tags=("salaries",),
                               department="chieftains", metadata={"payband": 9}, permissions=("role:hr",)))  # fmt: skip
    served.rag.jobs.upload(Original.of_bytes(b"# Waits", name="secret-upload.md", mime_type="text/markdown"))
    return served


def test_whoever_may_only_read_has_no_buttons_and_changes_nothing(shared):
    with asking(shared, "read") as reader:
        for path in ("/library", "/library/documents", "/library/collection?name=default"):
            page = reader.get(path)
            assert page.status_code == 200, path
            assert not {"/library/add", "/library/sources", "/library/new", "dropzone", 'type="checkbox"'} & {
                word for word in ("/library/add", "/library/sources", "/library/new", "dropzone", 'type="checkbox"')
                if word in page.text
            }, path  # fmt: skip
        for path in ("/library/add", "/library/preview", "/library/sources", "/library/new"):
            assert reader.get(path).status_code == 403, path
        for path, form in (*CHANGES, *OWNERS):
            assert reader.post(path, data=form).status_code == 403, path
    with asking(shared, "read", "write") as writer:
        for path, form in OWNERS:
            assert writer.post(path, data=form).status_code == 403, path
    assert len(shared.rag.documents.list()) == 4 and not any(
        one.tags == ("mine",) for one in shared.rag.documents.list()
    )


def test_another_role_sees_nothing_of_what_is_not_theirs(shared):
    (number,) = (one.document_id for one in shared.rag.documents.list() if one.title == "Secret pay")
    with asking(shared, "read", "write", principal=Principal(user_id="kim")) as kim:
        for path in ("/library", "/library/documents", "/library/documents?q=secret", "/library/documents?tag=salaries",
                     "/library/documents?department=chieftains", "/library/documents?key=payband&value=9",
                     "/library/documents?grant=role:hr", "/library/documents/choices",
                     "/library/documents?status=pending",
                     "/library/collection?name=default", "/library/collection/export?name=default",
                     "/library/progress?job=1"):  # fmt: skip
            page = kim.get(path)
            assert page.status_code == 200, path
            # What the address says itself stands in its own filters.
            hidden = {"Secret pay", "secret/pay.md", "secret-upload", "chieftains", "payband", "salaries"}
            assert not [word for word in hidden if word in page.text and f"={word}" not in path], path
        assert kim.get("/library/jobs/1").status_code == 404
        refused = kim.post("/library/documents/change", data={"action": "delete", "document": number})
        assert f"There is no document {number}" in refused.text


def test_another_tenant_sees_nothing(shared):
    shared.rag.tenants.create("other")
    theirs = shared.rag.view(tenant="other").keys.create("test", scopes=("read", "write", "admin")).secret
    with httpx2.Client(base_url=shared.url, headers={"X-API-Key": theirs}, timeout=60) as other:
        for path in ("/library", "/library/documents", "/library/documents/choices", "/library/sources"):
            page = other.get(path)
            assert (
                page.status_code == 200
                and "Leave" not in page.text
                and "hr" not in page.text.split("<main")[-1].split()
            ), path
        assert other.get("/library/collection?name=it").status_code == 404
        assert other.get("/library/documents?collection=it").status_code == 404
        assert other.get("/library/jobs/1").status_code == 404
        assert other.get("/library/progress?job=1").json() == {"jobs": []}
    assert len(shared.rag.documents.list()) == 4


NONE = ("cursor=x", "cursor=W10", "cursor=WyJhIiwxLGZhbHNlLG51bGxd", "sort=random", "status=odd", "filter=%7B",
        "filter=[]",
        "filter=%7B%22nothing%22:1%7D", "changed_from=soon", "changed_to=9999-12-31", "dated_to=9999-12-31",
        "grant=kim",
        "q=%00", "tag=" + "a" * 3_000, "collection=nowhere", "filter=" + "[" * 1_900)  # fmt: skip


def test_addresses_that_are_none_are_refused_in_words(served):
    with httpx2.Client(base_url=served.url, timeout=60) as somebody:
        for query in NONE:
            page = somebody.get(f"/library/documents?{query}")
            assert page.status_code in {400, 404, 422}, query
            assert 'role="alert"' in page.text, query
        for query in ("language=en", "language=de", "source_type=web&q=a+b+c+d+e+f+g+h+i+j+k+l", "key=year&value=2026",
                      "key=a.b.c&value=[1]", "dated_from=1000-01-01", "type=text/markdown&sort=title"):  # fmt: skip
            assert somebody.get(f"/library/documents?{query}").status_code == 200, query
