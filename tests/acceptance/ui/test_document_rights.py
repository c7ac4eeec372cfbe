"""Who may read a document is changed on its page by whoever may, and by nobody else; how long it is found, likewise."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2
import pytest

from browser import picture, require_usable_by_all
from recollect import Document, Principal


@pytest.fixture
def board(served):
    """A document of the board."""
    document = Document(content="For the board.", source="board.txt", permissions=("role:board", "!user:eve"))
    return served.rag.ingest(document).document_id


def grants_of(served, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    (told,) = served.rag.view(collections="*").grants.of_documents(number)
    return told.permissions.grants, told.permissions.denials


def test_grants_are_changed_and_the_explainer_follows(served, ada, board):
    page = ada.open(f"/documents/{board}/access?user=kim")
    verdict = page.locator("[aria-labelledby=why-title] .note")
    assert verdict.inner_text().startswith("May not read it.")
    page.get_by_label("Whom").select_option("user")
    page.get_by_label("Name").fill("kim, bob")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    page.get_by_text("A grant includes them: user:kim").wait_for()
    # Whoever cannot see is told, and goes on from there.
    assert "It is changed" in page.evaluate("document.activeElement.textContent")
    require_usable_by_all(page)
    picture(page, "document-grants")
    page.get_by_role("button", name="Take the denial away: user:eve").click()
    page.locator(".grants .bad").wait_for(state="detached")
    assert grants_of(served, board) == (("role:board", "user:bob", "user:kim"), ())
    page.get_by_label("What", exact=True).select_option("deny")
    page.get_by_label("Whom").select_option("everybody")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("A denial beats every grant").wait_for()
    assert grants_of(served, board)[1] == ("*",)
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    picture(page, "document-grants-360", full=True)


def test_nobody_changes_grants_that_are_not_theirs(served, board):
    keys = served.rag.keys
    member, owner = Principal(user_id="kim", roles=("board",)), Principal(user_id="olga")
    served.rag.collections.ensure("club")
    club = served.rag.view(collections="club")
    club.grants.set_collection(owners=("user:olga",), readers=("*",))
    minutes = club.ingest(Document(content="Minutes.", source="minutes.txt", permissions=("user:kim",))).document_id
    change = {"change": "add", "kind": "user", "who": "kim"}
    refused = (
        (keys.create("a", scopes=("read", "write"), principal=Principal(user_id="eve")), board, 404),
        (keys.create("b", scopes=("read",), principal=member), board, 403),
        (keys.create("c", scopes=("read", "write"), principal=member), board, 403),
        (keys.create("d", scopes=("read", "write"), principal=member), minutes, 403),
    )
    for key, number, status in refused:
        with httpx2.Client(base_url=served.url, headers={"X-API-Key": key.secret}) as somebody:
            assert somebody.post(f"/documents/{number}/access", data=change).status_code == status
            assert somebody.post(f"/documents/{number}/lifetime", data={"lifetime": "1d"}).status_code == status
    theirs = keys.create("e", scopes=("read", "write"), principal=owner)
    with httpx2.Client(base_url=served.url, headers={"X-API-Key": theirs.secret}) as somebody:
        assert 'name="change"' in somebody.get(f"/documents/{minutes}/access").text
        assert 'name="change"' not in somebody.get(f"/documents/{board}/access").text
        changed = somebody.post(f"/documents/{minutes}/access", data={**change, "who": "<b>ann</b>"})
        assert changed.status_code == 200 and "user:&lt;b&gt;ann" in changed.text and "<b>ann" not in changed.text
        for wrong in ({**change, "who": " "}, {**change, "kind": "token", "who": "nobody"}, {**change, "kind": "x"}):
            assert somebody.post(f"/documents/{minutes}/access", data=wrong).status_code in {400, 422}
    assert grants_of(served, board) == (("role:board",), ("user:eve",))
    assert grants_of(served, minutes) == (("user:<b>ann</b>", "user:kim"), ())


def test_how_long_a_document_is_found_and_an_idle_collection_stays_is_changed_on_their_pages(served, ada, board):
    page = ada.open(f"/documents/{board}")
    page.get_by_text("Change when it expires").click()
    page.get_by_label("Found from now on for").fill("30d")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**#facts-title")
    (version,) = served.rag.documents.history(board).versions
    assert version.expires_at is not None and 29 < (version.expires_at - version.known_from).days <= 30
    page.get_by_text("Change when it expires").click()
    page.get_by_label("Found from now on for").fill("")
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    assert served.rag.documents.history(board).versions[0].expires_at is None
    page.goto(f"{served.url}/administration/policies")
    page.get_by_role("link", name="default", exact=True).click()
    page.get_by_label("Days without use").fill("90")
    with page.expect_navigation():
        page.get_by_role("button", name="Save", exact=True).last.click()
    assert page.get_by_label("Days without use").input_value() == "90"
    (noted,) = (one.idle_days for one in served.rag.collections.notes().values() if one.idle_days)
    assert noted == 90
    require_usable_by_all(page)
    page.goto(f"{served.url}/administration/policies")
    assert page.get_by_role("row", name="default").inner_text().split("\t")[-1].strip() == "90 days"
    picture(page, "policies", full=True)
    with httpx2.Client(base_url=served.url) as somebody:
        assert somebody.post(f"/documents/{board}/lifetime", data={"lifetime": "soon"}).status_code == 400
        assert somebody.post("/library/collection/keep?name=default", data={"idle_days": "-1"}).status_code in {
            400,
            422,
        }


def test_who_changes_grants_is_one_rule_for_pages_and_routes(served):
    """An administrator all of them, whoever writes their own, and a credential of nobody in particular none."""
    filled = served.rag

    def asking(name: str, scopes: Sequence[str], user: str | None) -> httpx2.Client:
        key = filled.keys.create(name, scopes=scopes, principal=None if user is None else Principal(user_id=user))
        return httpx2.Client(base_url=served.url, headers={"X-API-Key": key.secret}, timeout=60)

    filled.grants.set_collection(readers=["*"], writers=["user:wes"])
    filled.view(principal=Principal(user_id="wes")).ingest(Document(content="Wes wrote this.", source="wes.md"))
    club = filled.view(collections="club")
    club.ingest(Document(content="Minutes of the club.", source="minutes.md"))
    club.grants.set_collection(owners=["user:olga"], readers=["*"])
    listed = (*filled.documents.list(), *club.documents.list())
    numbers = {one.source: one.document_id for one in listed if one.source in {"wes.md", "minutes.md"}}
    people = {
        "admin": (["read", "admin"], None, {"wes.md", "minutes.md"}),
        "writing program": (["read", "write"], None, set()),
        "reading owner": (["read"], "olga", set()),
        "owner": (["read", "write"], "olga", {"minutes.md"}),
        "writer": (["read", "write"], "wes", {"wes.md"}),
        "member": (["read", "write"], "kim", set()),
    }
    for name, (scopes, user, theirs) in people.items():
        with asking(name, scopes, user) as somebody:
            for source, number in numbers.items():
                expected = source in theirs
                given = {"change": "add", "who": [f"user:{name.split()[0]}"], "documents": [number]}
                place = {"collection": "club"} if source == "minutes.md" else {}
                by_route = somebody.post("/v1/grants", json={**given, **place}).status_code
                shown = somebody.get("/v1/grants/documents", params={"document": [number], **place}).status_code
                form = {"change": "add", "kind": "user", "who": "page"}
                by_page = somebody.post(f"/documents/{number}/access", data=form).status_code
                told = 'name="change"' in somebody.get(f"/documents/{number}/access").text
                wanted = 200 if expected else 403
                assert (by_route, shown, by_page, told) == (wanted, wanted, wanted, expected), (name, source)
    changed = {"collection": "club", "writer": ["user:kim"]}
    with asking("o", ["write"], "olga") as owner:
        assert owner.patch("/v1/grants", json=changed).json()["writers"] == ["user:kim"]
        assert owner.get("/v1/grants", params={"collection": "club"}).status_code == 200
        assert owner.patch("/v1/grants", json={**changed, "collection": "default"}).status_code == 403
        told = owner.get("/v1/openapi.json").json()["paths"]["/v1/grants"]["post"]["security"]
        assert {"bearer": ["write"]} in told
