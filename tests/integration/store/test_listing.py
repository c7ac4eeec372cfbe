"""Lists of documents: every page of every order holds what the list is made of, once, and nobody sees another's."""

from __future__ import annotations

import pytest

from recollect import Document, Principal
from recollect.model.document_record import LISTING_SORTS, ListingPlace, ListingQuery
from recollect.model.filter import parse_filter
from recollect.model.original import Original
from recollect.pipeline.library import filter_choices, list_documents, stored_size

TITLES = ["b", "B", "a", "ä", "", "LONGx", "LONGy", "same", "same", "z", "ﬁ", "😀"]
LONG = "A title that is as long as nobody would write it " * 10


@pytest.fixture
def listed(pipeline):
    rag = pipeline
    rag.ingest(
        [
            Document(content=f"Text {number}. " * (1 + number % 4), source=f"folder/{number:02}.md",
                     title=title.replace("LONG", LONG),
                     tags=("even",) if number % 2 == 0 else ("odd",), department="hr" if number % 3 == 0 else None,
                     metadata={"year": 2000 + number}, permissions=("role:hr",) if number % 3 == 0 else None)
            for number, title in enumerate(TITLES)
        ]
    )  # fmt: skip
    rag.view(collections="it").ingest(Document(content="Elsewhere.", source="other.md", title="c"))
    rag.jobs.upload([Original.of_bytes(b"# Waits", name=f"{name}.md", mime_type="text/markdown") for name in "qr"])
    return rag.view(collections="*")


def walked(view, **wanted) -> list[int]:
    """The ids of a list, page by page to its end, and the same from its end back to its beginning."""
    found, pages, place = [], [], None
    while True:
        page = list_documents(view.standpoint, ListingQuery(limit=3, place=place, **wanted))
        pages.append([one.record.document_id for one in page.documents])
        found += pages[-1]
        if page.following is None:
            break
        place = page.following
    back = [pages[-1]]
    while page.previous is not None:
        page = list_documents(view.standpoint, ListingQuery(limit=3, place=page.previous, **wanted))
        back.insert(0, [one.record.document_id for one in page.documents])
    assert back == pages, "the way back is another"
    return found


def test_pages_hold_every_document_once_in_their_order(listed):
    for sort in LISTING_SORTS:
        found = walked(listed, sort=sort)
        assert len(found) == len(set(found)) == 15
        whole = list_documents(listed.standpoint, ListingQuery(sort=sort, limit=100)).documents
        keys = [(one.key, one.record.document_id) for one in whole]
        assert [number for _, number in keys] == found
        assert keys == sorted(keys, reverse=sort in {"newest", "changed", "longest"})


def test_an_address_holds_the_beginning_of_a_title_and_goes_on_behind_all_of_it(listed):
    first = list_documents(listed.standpoint, ListingQuery(sort="title", limit=100)).documents
    (at,) = (number for number, one in enumerate(first) if one.record.title.endswith("x"))
    place = ListingPlace(key=LONG[:100], document_id=first[at].record.document_id)
    behind = list_documents(listed.standpoint, ListingQuery(sort="title", limit=100, place=place)).documents
    assert [one.record.document_id for one in behind] == [one.record.document_id for one in first[at + 1 :]]


FILTERS = [
    ({"words": ("SAME",)}, 2),
    ({"words": ("folder", "0", "md")}, 11),
    ({"status": "pending"}, 2),
    ({"status": "error"}, 0),
    ({"status": "embedded"}, 13),
    ({"origin": "upload"}, 2),
    ({"grant": "role:hr"}, 4),
    ({"where": parse_filter({"tags": {"contains": "even"}})}, 6),
    ({"where": parse_filter({"metadata.year": {"gte": 2010}})}, 2),
    ({"mime_types": ("image/png",)}, 0),
    ({"where": parse_filter({"language": "en"})}, 13),
    ({"where": parse_filter({"source_type": "web"})}, 0),
]


def test_filters_hold_and_are_counted(listed):
    for wanted, count in FILTERS:
        assert len(walked(listed, **wanted)) == count, wanted
        page = list_documents(listed.standpoint, ListingQuery(limit=1, **wanted))
        assert page.count == count
        if page.following is not None:
            following = list_documents(listed.standpoint, ListingQuery(limit=1, place=page.following, **wanted))
            assert following.count == count


def test_nobody_sees_or_counts_what_they_may_not_read(listed):
    kim = listed.view(principal=Principal(user_id="kim"))
    page = list_documents(kim.standpoint, ListingQuery(limit=100))
    assert len(page.documents) == page.count == 9
    assert all(one.permissions is None and one.record.status == "embedded" for one in page.documents)
    assert list_documents(kim.standpoint, ListingQuery(grant="role:hr")).documents == ()
    assert filter_choices(kim.standpoint)["department"] == []
    assert stored_size(kim.standpoint).text_bytes < stored_size(listed.standpoint).text_bytes
    hr = listed.view(principal=Principal(user_id="ann", roles=("hr",)))
    assert len(walked(hr)) == 13
