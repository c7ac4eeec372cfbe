"""The administration: keys, people, logins, grants and why, policies, the audit, models and tenants."""

from __future__ import annotations

import threading

import httpx2
import pytest

from browser import picture, visitor
from recollect import Principal
from recollect.embedding.hashing import HashingEmbedder
from recollect.llm.scripted import ScriptedChatModel
from recollect.pipeline.working import worker_of
from served import fill, serving

KIM = Principal(user_id="kim", roles=("clerk",), department="hr")


@pytest.fixture
def administrator(browser, served):
    """Somebody with a login of their own, who administers the tenant and looks after all of them."""
    key = served.rag.keys.create("desk", scopes=("read", "write", "admin", "operator"))
    with visitor(browser, served.url) as one:
        page = one.open("/login?return_to=/administration")
        page.get_by_label("API key").fill(key.secret)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{served.url}/administration")
        one.actor = f"key:{key.key.key_id}"
        one.page = page
        page.on("dialog", lambda dialog: dialog.accept())
        yield one


def pages(served) -> list[str]:
    """Every page of the area."""
    made = served.rag.keys.create("pipeline", principal=KIM, expires="90d")
    job = served.rag.jobs.reembed("hashing-32", provider="hashing", dimensions=32, samples=5)
    root = "/administration"
    return [
        *(root, f"{root}/keys", f"{root}/keys/new", f"{root}/keys/{made.key.key_id}", f"{root}/people"),
        *(f"{root}/logins", f"{root}/grants", f"{root}/grants/documents/1"),
        f"{root}/grants/explain?user=kim&document=hr/leave.md",
        *(f"{root}/policies", f"{root}/audit", f"{root}/audit/accesses", f"{root}/audit/check"),
        *(f"{root}/models", f"{root}/models/contexts?collection=default", f"{root}/models/jobs/{job.job_id}"),
        *(f"{root}/tenants", f"{root}/tenants/1"),
    ]


def test_a_key_is_made_shown_once_and_revoked(administrator, served):
    page = administrator.page
    page.get_by_role("link", name="Keys", exact=True).first.click()
    page.get_by_role("link", name="New key", exact=True).click()
    page.get_by_label("What it is for").fill("Kim's laptop")
    page.get_by_label("Ends after").fill("soon")
    page.get_by_label("As somebody in particular").check()
    page.get_by_label("User").fill("kim")
    page.get_by_label("Department").fill("hr")
    administrator.expected.add(400)
    page.get_by_role("button", name="Make the key").click()
    page.locator("#messages .bad").wait_for()  # what was typed stays
    page.get_by_label("Ends after").fill("90d")
    page.get_by_role("button", name="Make the key").click()
    shown = page.get_by_label("The key", exact=True)
    secret = shown.input_value()
    assert shown.evaluate("field => field === document.activeElement")
    me = httpx2.get(f"{served.url}/v1/me", headers={"X-API-Key": secret}).json()
    assert (me["principal"]["user_id"], me["principal"]["department"], me["scopes"]) == ("kim", "hr", ["read"])
    picture(page, "administration-key-made")
    page.reload()
    assert secret not in page.content()
    page.goto(f"{served.url}/administration/keys")
    with page.expect_navigation():
        page.get_by_role("link", name="Kim's laptop").click()
    assert secret not in page.content() and secret[-20:] not in page.content()
    page.get_by_role("button", name="Give it another secret").click()
    second = page.get_by_label("The key", exact=True).input_value()
    assert second != secret
    page.get_by_role("link", name="To the key").click()
    page.get_by_role("button", name="Revoke the key").click()
    page.get_by_text("The key is revoked.").wait_for()
    for one in (secret, second):
        assert httpx2.get(f"{served.url}/v1/me", headers={"X-API-Key": one}).status_code == 401
    told = [(entry.action, entry.actor) for entry in served.rag.audit.list() if entry.action.endswith("_key")][:3]
    assert told == [(action, administrator.actor) for action in ("revoke_key", "rotate_key", "create_key")]


def test_somebody_may_read_because_of_a_rule_that_can_be_seen_and_changed(administrator, served):
    served.rag.keys.create("laptop", principal=KIM)
    page = administrator.page
    page.goto(f"{served.url}/administration/people")
    page.get_by_role("row", name="kim").get_by_role("link", name="What may they read?").click()
    page.get_by_label("Document", exact=True).fill("hr/pay.txt")
    with page.expect_navigation():
        page.get_by_role("button", name="Explain").click()
    verdict = page.locator("#explained")
    assert "may read it" in verdict.inner_text() and "everybody (*)" in verdict.inner_text()
    picture(page, "administration-explained")
    page.get_by_role("link", name="Change who may read it").click()
    page.get_by_label("Change", exact=True).select_option("deny")
    page.get_by_label("Whom").fill("department:hr")
    page.get_by_role("button", name="Change who may read").click()
    page.get_by_text("It is changed.").wait_for()
    page.get_by_role("link", name="Why can somebody read this?").click()
    page.get_by_label("Who", exact=True).fill("kim")
    with page.expect_navigation():
        page.get_by_role("button", name="Explain").click()
    assert "may not read it" in verdict.inner_text() and "A denial beats every grant" in verdict.inner_text()
    assert [one.source for one in served.rag.view(principal=KIM).documents.list()] == ["hr/leave.md"]
    # The change names who made it.
    page.goto(f"{served.url}/administration/audit/accesses")
    assert administrator.actor in page.get_by_role("row", name="POST /administration/grants").first.inner_text()
    page.goto(f"{served.url}/administration/grants")
    page.get_by_label("Readers").fill("role:board")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("It is changed.").wait_for()
    assert served.rag.grants.of_collection().readers == ("role:board",)


def test_browsers_are_logged_out_and_the_audit_tells_it_and_is_whole(administrator, browser, served):
    key = served.rag.keys.create("kim", principal=KIM)
    page = administrator.page
    with httpx2.Client(base_url=served.url, headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}) as other:
        other.post("/login", data={"key": key.secret})
        assert other.get("/v1/me").status_code == 200
        page.goto(f"{served.url}/administration/logins?user=kim")
        page.get_by_role("button", name="Log out", exact=False).first.click()
        page.get_by_text("The browser is logged out.").wait_for()
        assert other.get("/v1/me").status_code == 401
    page.goto(f"{served.url}/administration/audit")
    page.get_by_label("What", exact=True).select_option("end_login")
    with page.expect_navigation():
        page.get_by_role("button", name="Filter").click()
    (row,) = page.locator("main tbody tr").all()
    assert administrator.actor in row.inner_text()
    page.get_by_role("link", name="Check the chain").click()
    page.get_by_text("each of which follows from the one before it").wait_for()
    page.goto(f"{served.url}/administration/audit")
    with page.expect_download() as got:
        page.get_by_role("link", name="Export").click()
    lines = got.value.path().read_text().splitlines()
    assert len(lines) == len(served.rag.audit.list()) and '"previous_hash"' in lines[0]


def test_another_model_is_compared_and_changed_to_while_the_page_tells_how_far_it_is(administrator, served):
    page = administrator.page
    page.goto(f"{served.url}/administration/models")
    page.get_by_label("Provider").select_option("hashing")
    page.get_by_label("Model", exact=True).fill("hashing-32")
    page.get_by_label("Dimensions", exact=True).fill("32")
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("waiting").wait_for()

    def work() -> None:
        # In a thread: the browser's driver has an event loop in this one.
        worker = threading.Thread(target=worker_of(served.rag.standpoint.assembly, concurrency=1, ends="empty").run)
        worker.start()
        worker.join()

    work()
    page.get_by_text("The collection uses the new model.").wait_for()
    assert page.get_by_role("row", name="found@10").is_visible()
    picture(page, "administration-model-changed", full=True)
    page.goto(f"{served.url}/administration/models")
    assert "No language model is configured for it." in page.locator("main").inner_text()
    page.get_by_role("button", name="Change back").click()
    page.get_by_text("waiting").wait_for()
    work()
    page.get_by_text("changed", exact=True).wait_for()
    assert served.rag.spaces.status().used.model == HashingEmbedder().model_name
    told = [(entry.action, entry.actor) for entry in served.rag.audit.list() if "reembed" in entry.action]
    assert told == [("reembed_rollback", administrator.actor), ("reembed", administrator.actor)]


def test_chunks_are_situated_by_a_job_that_is_estimated_and_followed(dsn, tmp_path):
    """Without a browser: what the forms of the pages send, and who may send it."""
    model = ScriptedChatModel("It says where it stands.")
    settings = {"ingest": {"contextualise": "openai/writer"}}
    with serving(dsn, tmp_path, worker=False, pages=True, chat_model=model, **settings) as served:
        fill(served.rag)
        keys, root = served.rag.keys, f"{served.url}/administration/models"
        admin, other = (keys.create(one, scopes=("read", one)).secret for one in ("admin", "write"))
        by_admin = {"X-API-Key": admin, "Accept": "text/html"}
        with httpx2.Client(headers=by_admin, timeout=60, follow_redirects=True) as asked:
            offered = asked.get(root).text
            assert "openai/writer" in offered and 'name="provider"' not in offered
            told = asked.get(f"{root}/contexts", params={"collection": "default"}).text
            assert "Tokens that it reads" in told and "at prices that are not configured" in told
            assert model.calls == []
            begun = asked.post(f"{root}/contexts", data={"collection": "default"})
            (job,) = served.rag.jobs.list(kind="contextualise")
            assert begun.url.path.endswith(f"/jobs/{job.job_id}") and "waiting" in begun.text
            served.rag.jobs.wait(job.job_id)
            assert "are situated in their documents." in asked.get(str(begun.url)).text
            assert (
                "Every chunk is situated already."
                in asked.get(f"{root}/contexts", params={"collection": "default"}).text
            )
            german = asked.get(str(begun.url), headers={"Accept-Language": "de"}).text
            assert "sind in ihre Dokumente eingeordnet." in german
            assert asked.get(f"{root}/contexts", params={"collection": "none"}).status_code == 404
            # Which model the server loads is for whoever runs it to say, as over /v1.
            reembedding = {"collection": "default", "model": "hashing-32", "provider": "hashing", "dimensions": "32"}
            assert asked.post(root, data=reembedding).status_code == 403
            assert not served.rag.jobs.list(kind="reembed")
        with httpx2.Client(headers={"X-API-Key": other, "Accept": "text/html"}, timeout=60) as asked:
            assert asked.get(f"{root}/contexts", params={"collection": "default"}).status_code == 403
            assert asked.post(f"{root}/contexts", data={"collection": "default"}).status_code == 403


def test_tenants_are_made_limited_suspended_and_erased_by_the_operator(administrator, served):
    page = administrator.page
    page.goto(f"{served.url}/administration/tenants")
    page.get_by_label("New tenant").fill("acme")
    page.get_by_role("button", name="Make it").click()
    page.get_by_text("It is made.").wait_for()
    page.get_by_label("Personal data").select_option("redact")
    page.get_by_label("Documents at most").fill("5")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("It is changed.").wait_for()
    acme = served.rag.tenants.get("acme")
    assert (acme.pii, acme.quota.max_documents, acme.quota.max_bytes) == ("redact", 5, None)
    page.get_by_role("button", name="Suspend it").click()
    page.get_by_role("button", name="Resume it").click()
    page.get_by_role("button", name="Suspend it").wait_for()
    administrator.expected.add(400)
    page.get_by_label("Type its name").fill("default")
    page.get_by_role("button", name="Erase the tenant").click()
    page.locator("#messages .bad").wait_for()
    page.get_by_label("Type its name").fill("acme")
    page.get_by_role("button", name="Erase the tenant").click()
    page.get_by_role("heading", name="The tenant is erased.").wait_for()
    assert administrator.actor in page.locator("main").inner_text()
    assert [one.name for one in served.rag.tenants.list()] == ["default"]


def test_nobody_else_sees_the_administration(served):
    """Neither its pages nor its links, whoever somebody is beside that; and no administrator sees the tenants."""
    keys = served.rag.keys
    reader = keys.create("reader", scopes=("read", "write")).secret
    admin = keys.create("admin", scopes=("read", "admin"), principal=Principal(user_id="lea")).secret
    changes = [
        *("keys", "keys/x/revoke", "keys/x/rotate", "logins/end", "logins/x/end", "grants/collection"),
        *("grants/default", "grants/documents/1", "policies/expired", "models", "models/drop", "models/rollback"),
    ]
    with httpx2.Client(base_url=served.url, headers={"X-API-Key": reader, "Accept": "text/html"}) as asked:
        assert "/administration" not in asked.get("/chat").text
        for path in pages(served):
            assert asked.get(path).status_code == 403, path
        for path in changes:
            assert asked.post(f"/administration/{path}", data={"collection": "default"}).status_code == 403, path
    with httpx2.Client(base_url=served.url, headers={"X-API-Key": admin, "Accept": "text/html"}) as asked:
        overview = asked.get("/administration").text
        assert "/administration/keys" in overview and "/administration/tenants" not in overview
        for path in ("tenants", "tenants/1"):
            assert asked.get(f"/administration/{path}").status_code == 403, path
            assert asked.post(f"/administration/{path}", data={"name": "x"}).status_code == 403, path
        # No key goes beyond its maker.
        beyond = {"name": "more", "scopes": "operator"}
        assert asked.post("/administration/keys", data=beyond).status_code == 403
        somebody = {"name": "x", "scopes": "read", "whose": "person", "user": "max"}
        assert asked.post("/administration/keys", data=somebody).status_code == 403
        made = asked.post("/administration/keys", data={"name": "own", "scopes": "read"})
        assert made.status_code == 200 and made.headers["cache-control"] == "no-store"
        (own,) = [key for key in keys.list() if key.name == "own"]
        assert own.principal == Principal(user_id="lea")


def test_another_tenants_keys_logins_and_jobs_are_not_there(served):
    other = served.rag.tenants.create("other").tenant_id
    foreign = served.rag.view(tenant=other).keys.create("theirs", principal=Principal(user_id="mallory"))
    root = f"{served.url}/administration"
    for path in ("keys", "people", "logins", "audit"):
        assert foreign.key.key_id not in httpx2.get(f"{root}/{path}").text
        assert "mallory" not in httpx2.get(f"{root}/{path}").text
    assert httpx2.get(f"{root}/keys/{foreign.key.key_id}").status_code == 404
    assert httpx2.post(f"{root}/keys/{foreign.key.key_id}/revoke").status_code == 404
    for wrong in ("keys?cursor=WzFd", "audit?cursor=%00", "audit?since=yesterday-ish", "grants?collection=none"):
        assert httpx2.get(f"{root}/{wrong}").status_code in {400, 404, 422}, wrong
    for wrong in ("grants/documents/99", "models/jobs/99", "tenants/99", "grants/documents/99999999999999999999"):
        assert httpx2.get(f"{root}/{wrong}").status_code in {400, 404, 422}, wrong
