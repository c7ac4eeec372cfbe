"""The source of a quote beside an answer: its text, marked, or the page of the PDF that it stands on."""

from __future__ import annotations

import httpx2
import pytest

from browser import picture, require_usable_by_all
from recollect import Document
from recollect.documents.reader import read_bytes
from unit.documents.made_files import pdf
from unit.documents.test_pdf_layout import made
from unit.documents.test_pdf_layout import page as table

LINES = [
    (20, "Travel rules"),
    "Whoever travels by train books the second class, and may reserve a seat.",
    "Whoever flies longer than eight hours may book the business class, if the head of de-",
    "partment agrees beforehand. Taxis are paid where no bus is running.",
]
QUOTE_BEGINS, QUOTE_ENDS = "Whoever flies longer", "agrees beforehand."


@pytest.fixture
def served(served_for_all):
    return served_for_all


def stored(rag, data: bytes, name: str) -> int:
    return rag.ingest(read_bytes(data, name=name)).document_id


def address(rag, number: int, begins: str, ends: str) -> str:
    content = rag.documents.get(number).content
    start = content.index(begins)
    return f"/documents/{number}/source?start={start}&end={content.index(ends, start) + len(ends)}"


def letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def test_the_page_of_a_pdf_is_shown_with_the_quote_marked_in_its_text(served, ada):
    number = stored(served.rag, pdf([["Preface"], LINES, ["Annex"]]), "travel.pdf")
    page = ada.open(address(served.rag, number, QUOTE_BEGINS, QUOTE_ENDS))
    marks = page.locator(".pdf-page[data-page='2'] .pdf-text mark")
    marks.first.wait_for()
    assert letters("".join(marks.all_inner_texts())) == letters(
        "Whoever flies longer than eight hours may book the business class, if the head of department agrees "
        "beforehand."
    )
    assert page.locator("[data-pdf]").get_attribute("data-outcome") == "whole"
    picture(page, "source")
    require_usable_by_all(page, in_both_themes=True)
    page.get_by_role("button", name="Text").click()
    assert page.locator(".source-body mark:visible").inner_text().startswith(QUOTE_BEGINS)


def test_a_quote_that_is_repeated_is_marked_where_it_stands_and_what_is_missing_is_said(served, ada):
    lines = [line for number in range(3) for line in (f"Section {number} begins here.", "The fee is ten euros.")]
    number = stored(served.rag, pdf([lines]), "fees.pdf")
    content = served.rag.documents.get(number).content
    start = content.rindex("The fee is ten")
    page = ada.open(f"/documents/{number}/source?start={start}&end={start + 21}")
    mark = page.locator(".pdf-text mark")
    mark.wait_for()
    assert mark.count() == 1
    # Both at once: the panel still scrolls to the mark.
    lower = "(mark, above) => mark.getBoundingClientRect().y - above.getBoundingClientRect().y"
    assert mark.evaluate(lower, page.locator(".pdf-text span", has_text="Section 2").element_handle()) > 0
    # What the reader saw is not what is drawn: another file under the same document. Where its line stood is marked.
    place = mark.bounding_box()
    _draw_again(page, "page => { page.dataset.quote = 'Nothing like it here' }")
    line = page.locator(".pdf-page .pdf-line")
    assert page.locator(".pdf-text mark").count() == 0
    assert line.count() == 1
    assert line.bounding_box()["y"] == pytest.approx(place["y"], abs=4)
    assert line.bounding_box()["x"] == pytest.approx(place["x"], abs=4)
    assert page.get_by_text("could not be found on the page").is_hidden()
    _draw_again(page, "page => { delete page.dataset.boxes }")
    assert line.count() == 0
    assert page.get_by_text("could not be found on the page").is_visible()


def _draw_again(page, change: str) -> None:
    page.locator(".pdf-page").evaluate(change)
    page.evaluate(
        """async () => {
            const pdf = document.querySelector('[data-pdf]');
            delete pdf.dataset.drawn;
            const main = document.querySelector('script[type=module]').src;
            const { showPages } = await import(main.replace('main.js', 'pdf.js'));
            await showPages(pdf);
        }"""
    )


def test_a_row_of_a_table_is_marked_on_its_page(served, ada):
    lines = [(60, 700, "(in millions)"), (362, 700, "2024"), (466, 700, "2023"), (60, 686, "Assets:")]
    for place, name in enumerate(("Cash", "Inventories", "Goodwill")):
        y = 672 - 14 * place
        lines += [(70, y, name), (350, y, f"{place + 1},100"), (450, y, f"({place + 1},200)")]
    number = stored(served.rag, made(table(*lines)), "balance.pdf")
    page = ada.open(address(served.rag, number, "| Assets › Inventories", "(2,200) |"))
    row = page.locator(".pdf-page .pdf-line")
    row.first.wait_for()
    assert row.count() == 1
    told, whole = row.bounding_box(), page.locator(".pdf-page").bounding_box()
    # Its baseline is at 658 of 842 points.
    middle = (told["y"] + told["height"] / 2 - whole["y"]) / whole["height"]
    assert middle == pytest.approx(1 - 661 / 842, abs=0.01)
    assert page.locator("[data-pdf]").get_attribute("data-outcome") == "whole"
    picture(page, "source-table")
    require_usable_by_all(page)


def test_text_is_scrolled_to_the_mark_and_shown_as_text_whatever_it_says(served, ada):
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    heading = "{{ 7 * 7 }} & 'quoted'"
    content = (
        "# Rules\n\n" + "A line of many.\n" * 400 + f"## {heading}\n\nQuoted {hostile} here.\n\n" + "More.\n" * 400
    )
    number = served.rag.ingest(Document(content=content, source="rules.md", title=hostile)).document_id
    start = content.index("Quoted")
    page = ada.open(f"/documents/{number}/source?start={start}&end={content.index('here.') + 5}")
    mark = page.locator(".source-body mark")
    assert mark.inner_text() == f"Quoted {hostile} here."
    page.evaluate(
        """() => new Promise((done) => {
            const look = () =>
                document.querySelector(".source-body").scrollTop > 500 ? done() : requestAnimationFrame(look);
            look();
        })"""
    )
    body, marked = page.locator(".source-body").bounding_box(), mark.bounding_box()
    assert body["y"] <= marked["y"] <= body["y"] + body["height"]
    assert page.get_by_role("heading", name=hostile).count() == 1
    assert page.locator(".crumbs").inner_text().endswith(f"Rules › {heading}")


def test_an_older_version_is_quoted_as_it_was_and_says_that_there_is_a_newer_one(served):
    source = f"{served.url}/documents"
    number = served.rag.ingest(Document(content="Thirty days of leave.", source="leave.txt")).document_id
    served.rag.ingest(Document(content="Now it is 31 days.", source="leave.txt"))
    part = {"HX-Request": "true"}
    old = httpx2.get(f"{source}/{number}/source?start=0&end=11&version=1", headers=part).text
    assert "<mark>Thirty days</mark>" in old and "There is a newer version" in old and "<html" not in old
    new = httpx2.get(f"{source}/{number}/source?start=0&end=3", headers=part).text
    assert "<mark>Now</mark>" in new and "newer" not in new
    served.rag.documents.delete([number])
    gone = httpx2.get(f"{source}/{number}/source?start=0&end=3", headers=part)
    assert gone.status_code == 200 and "Deleted since" in gone.text
    for wrong, status in (
        ("start=5&end=5", 400),
        ("start=90&end=99", 400),
        ("start=-1&end=3", 422),
        ("start=0&end=3&version=9", 404),
    ):
        assert httpx2.get(f"{source}/{number}/source?{wrong}", headers=part).status_code == status, wrong


def test_an_original_is_only_saved_whatever_it_is(served):
    page = b"<!doctype html><script>alert(1)</script><p>Hello</p>"
    number = stored(served.rag, page, "page.html")
    found = httpx2.get(f"{served.url}/documents/{number}/original", headers={"Range": "bytes=0-8"})
    assert (found.status_code, found.content) == (206, page[:9])
    assert found.headers["content-disposition"].startswith("attachment")
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["content-security-policy"] == "sandbox; default-src 'none'"


def test_a_document_of_a_conversation_is_quoted_to_whoever_names_the_conversation(served):
    rag = served.rag
    number = rag.view(session="desk").ingest(Document(content="Of this desk alone.", source="desk.md")).document_id
    address = f"{served.url}/documents/{number}/source?start=0&end=7"
    assert httpx2.get(address).status_code == 404
    assert "<mark>Of this</mark>" in httpx2.get(f"{address}&session=desk").text
    assert httpx2.get(f"{address}&session=another").status_code == 404
    for page in ("", "/pages"):
        shown = httpx2.get(f"{served.url}/documents/{number}{page}", params={"session": "desk"})
        assert shown.status_code == 200
        assert "desk" in shown.text
