"""The pages of one document, as people use them: its text with its chunks, its original, versions, access, its end."""

from __future__ import annotations

import json

import httpx2
import pytest

from browser import picture, require_usable_by_all
from recollect import Document, Principal
from recollect.documents.reader import read_bytes
from unit.documents.made_files import pdf

HANDBOOK = "# Handbook\n\n" + "".join(
    f"## Section {number}\n\n" + f"Rule {number} says what holds for number {number}. " * 40 + "\n\n"
    for number in range(60)
)


@pytest.fixture
def served(served_for_all):
    return served_for_all


def test_a_text_is_read_with_its_chunks_drawn_part_by_part(served, ada):
    number = served.rag.ingest(
        Document(content=HANDBOOK, source="handbook.md", tags=("official",), metadata={"year": 2026})
    ).document_id
    page = ada.open(f"/documents/{number}")
    assert page.get_by_role("heading", name="Handbook", level=1).is_visible()
    chunks = served.rag.contents.chunks(number, limit=1_000)
    first = page.get_by_role("button", name="Chunk 1:")
    assert first.get_attribute("aria-label").startswith(f"Chunk 1: characters 0 to {chunks[0].end_offset}")
    page.get_by_role("button", name="Chunk 2:").focus()
    assert page.locator("[data-chunk-facts]").inner_text().startswith("Chunk 2:")
    assert page.locator(".piece.is-shown").count() >= 1
    require_usable_by_all(page)
    picture(page, "document")
    # What follows is loaded as it is come to, until all of the text stands there, as it is.
    assert page.locator(".part").count() == 1
    while page.get_by_role("button", name="Show what follows").count():
        parts = page.locator(".part").count()
        page.get_by_role("button", name="Show what follows").click()
        page.locator(".part").nth(parts).wait_for(state="attached")
    text = page.evaluate("[...document.querySelectorAll('.part .piece')].map(one => one.textContent).join('')")
    assert text == HANDBOOK
    assert page.locator("button.chunk").count() == len(chunks)
    # A heading leads into the middle, from where what stands before is loaded.
    page.get_by_role("navigation", name="Outline").get_by_role("link", name="Section 40").click()
    page.wait_for_url("**start=*")
    assert page.locator(".part").first.inner_text().lstrip("0123456789\n ").startswith("## Section 40")
    page.get_by_role("button", name="Show what stands before").click()
    page.locator(".part").nth(1).wait_for(state="attached")
    facts = page.get_by_role("region", name="Facts").inner_text()
    assert "official" in facts and "text/plain" in facts


def test_the_pages_of_an_original_are_browsed(served, ada):
    number = served.rag.ingest(read_bytes(pdf([["First page"], ["Second page"]]), name="two.pdf")).document_id
    page = ada.open(f"/documents/{number}")
    page.get_by_role("link", name="Original", exact=True).click()
    second = page.locator(".pdf-page[data-page='2']")
    second.scroll_into_view_if_needed()
    second.locator(".pdf-text span", has_text="Second page").wait_for()
    # As wide as there is room for, up to what can be read well.
    assert second.bounding_box()["width"] > 600
    require_usable_by_all(page)
    picture(page, "document-pages")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "two.pdf"


def test_versions_are_compared_and_an_old_one_comes_back(served, ada):
    number = served.rag.ingest(Document(content="Leave\n\nThirty days.", source="leave.txt", title="Leave")).document_id
    served.rag.ingest(Document(content="Leave\n\n31 days.\n<b>New</b>", source="leave.txt", title="Leave"))
    page = ada.open(f"/documents/{number}")
    page.get_by_role("link", name="Versions").click()
    page.locator(".difference del").first.wait_for()
    assert page.locator(".difference del").all_inner_texts() == ["Removed:\nThirty days."]
    assert page.locator(".difference ins").all_inner_texts() == ["Added:\n31 days.", "Added:\n<b>New</b>"]
    require_usable_by_all(page)
    picture(page, "document-versions")
    page.get_by_label("Compare from version 2").check()
    page.get_by_label("Compare to version 1").check()
    with page.expect_navigation():
        page.get_by_role("button", name="Compare").click()
    assert page.locator(".difference ins").all_inner_texts() == ["Added:\nThirty days."]
    page.get_by_role("link", name="Version 1", exact=True).click()
    page.get_by_text("This is an older version.").wait_for()
    page.go_back()
    page.get_by_role("button", name="Restore Version 1").click()
    page.wait_for_url(f"**/documents/{number}")
    assert page.locator(".part").inner_text().endswith("Thirty days.")
    assert served.rag.documents.get(number).version == 3


def test_a_document_is_deleted_restored_and_erased_with_its_receipt(served, ada):
    secret = "The locker of the blue fox is number eleven in the cellar."
    number = served.rag.ingest(Document(content=secret, source="fox.txt", title="Fox")).document_id
    page = ada.open(f"/documents/{number}")
    page.get_by_role("button", name="Delete …").click()
    require_usable_by_all(page)
    page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    page.get_by_role("dialog").wait_for(state="hidden")
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("This document was deleted").wait_for()
    assert number not in {one.document_id for one in served.rag.search("locker of the blue fox").results}
    assert secret in page.locator(".part").inner_text()
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("button", name="Delete …").wait_for()
    assert served.rag.documents.get(number).content == secret
    page.get_by_role("link", name="Erase …").click()
    ada.expected.add(422)
    page.get_by_role("button", name="Erase for good").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Reason, for the receipt").fill("Asked for by the fox")
    page.get_by_label(f"Type {number} to confirm").fill(str(number))
    require_usable_by_all(page)
    page.get_by_role("button", name="Erase for good").click()
    page.get_by_role("heading", name="The document is erased").wait_for()
    require_usable_by_all(page)
    picture(page, "document-erased")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the receipt").click()
    receipt = json.loads(download.value.path().read_text("utf-8"))
    assert receipt["complete"] and receipt["reason"] == "Asked for by the fox"
    assert [one["document_id"] for one in receipt["documents"]] == [number]
    assert "fox.txt" not in json.dumps(receipt) and "locker" not in json.dumps(receipt)
    ada.expected.add(404)
    page.goto(f"{served.url}/documents/{number}")
    assert page.get_by_role("alert").is_visible()


PATHS = (
    "",
    "/source?start=0&end=3",
    "/text?start=0",
    "/outline?after=0",
    "/pages",
    "/original",
    "/versions",
    "/access",
    "/erase",
)


def test_what_somebody_may_not_read_is_nowhere_and_what_they_may_not_change_stays(served):
    rag = served.rag
    document = Document(content="Only for the board.", source="board.txt", permissions=("user:ada",))
    number = rag.ingest(document).document_id
    rag.tenants.create("other")
    scopes = ("read", "write", "admin")
    keys = {
        "of another role": rag.keys.create("b", scopes=("read", "write"), principal=Principal(user_id="bob")),
        "of another tenant": rag.view(tenant="other").keys.create("c", scopes=scopes),
    }
    for who, key in keys.items():
        with httpx2.Client(base_url=served.url, headers={"Authorization": f"Bearer {key.secret}"}) as client:
            for path in PATHS:
                for part in ({}, {"HX-Request": "true"}):
                    found = client.get(f"/documents/{number}{path}", headers=part)
                    assert found.status_code == 404, (who, path)
                    assert "board" not in found.text.lower(), (who, path)
            for path, fields in (
                ("delete", {"version": 1}),
                ("restore", {"version": 1}),
                ("erase", {"confirm": number}),
            ):
                assert client.post(f"/documents/{number}/{path}", data=fields).status_code == 404, (who, path)
    reader = rag.keys.create("d", scopes=("read",), principal=Principal(user_id="ada"))
    with httpx2.Client(base_url=served.url, headers={"Authorization": f"Bearer {reader.secret}"}) as client:
        shown = client.get(f"/documents/{number}").text
        assert "Only for the board." in shown and "Erase" not in shown and "Delete" not in shown
        told = client.get(f"/documents/{number}/access").text
        assert "user:ada" not in told and "Only those who may change the document" in told
        for path, fields in (("delete", {"version": 1}), ("restore", {"version": 1}), ("erase", {"confirm": number})):
            assert client.post(f"/documents/{number}/{path}", data=fields).status_code == 403, path
    assert rag.documents.get(number).version == 1


def test_names_and_metadata_are_text_and_links_lead_to_the_web_alone(served):
    hostile = "\"><script>alert(1)</script><a href='javascript:alert(2)'>"
    rag = served.rag
    metadata = {hostile: hostile, "deep": {"list": [hostile]}}
    number = rag.ingest(
        Document(
            content=f"# {hostile}\n\n{hostile}",
            source="javascript:alert(3)",
            title=hostile,
            tags=(hostile,),
            metadata=metadata,
        )
    ).document_id
    web = rag.ingest(Document(content="A page.", source='https://example.com/?a=1&b="x')).document_id
    for path in ("", "/source?start=0&end=9", "/text?start=0", "/pages", "/versions", "/access", "/erase"):
        shown = httpx2.get(f"{served.url}/documents/{number}{path}").text
        assert "<script>alert" not in shown and 'href="javascript:' not in shown and "href='javascript:" not in shown, (
            path
        )
    link = httpx2.get(f"{served.url}/documents/{web}").text
    assert 'href="https://example.com/?a=1&amp;b=&#34;x" rel="noopener noreferrer"' in link


def test_a_document_that_is_not_stored_yet_says_so(served):
    httpx2.post(f"{served.url}/v1/collections/default/files", files=[("file", ("later.txt", b"Later."))])
    (waiting,) = served.rag.documents.list(status="pending")
    number = waiting.document_id
    assert "It waits to be stored" in httpx2.get(f"{served.url}/documents/{number}").text


def test_a_delete_that_was_decided_on_another_version_deletes_nothing(served):
    number = served.rag.ingest(Document(content="One.", source="one.txt")).document_id
    served.rag.ingest(Document(content="Two.", source="one.txt"))
    assert httpx2.post(f"{served.url}/documents/{number}/delete", data={"version": 1}).status_code == 412
    assert served.rag.documents.get(number).version == 2


def test_it_is_told_who_may_read_a_document_why_and_who_read_it(served, ada):
    rag = served.rag
    document = Document(content="For the board.", source="minutes.txt", permissions=("role:board", "!user:eve"))
    number = rag.ingest(document).document_id
    key = rag.keys.create("k", scopes=("read",), principal=Principal(user_id="kim", roles=("board",)))
    httpx2.get(f"{served.url}/documents/{number}", headers={"Authorization": f"Bearer {key.secret}"}).raise_for_status()
    page = ada.open(f"/documents/{number}")
    page.get_by_role("link", name="Who may read it").click()
    granted = page.get_by_role("region", name="Who may read it").inner_text()
    assert "role:board" in granted and "user:eve" in granted
    assert "user:kim" in page.get_by_role("region", name="Who read it").inner_text()
    for user, roles, verdict in (
        ("kim", "board, staff", "May read it. A grant includes them: role:board"),
        ("eve", "board", "May not read it. A denial beats every grant: user:eve"),
        ("bob", "", "May not read it. No grant of the document includes them."),
    ):
        page.get_by_label("User").fill(user)
        page.get_by_label("Roles").fill(roles)
        page.get_by_role("button", name="Explain").click()
        page.wait_for_url(f"**user={user}&**")
        assert page.locator(".note[role=status]").inner_text() == verdict
    require_usable_by_all(page)
    picture(page, "document-access")
