"""The dashboard as somebody uses it who runs the store."""

from __future__ import annotations

import csv
import io
import time
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from playwright.sync_api import expect

from browser import picture, require_usable_by_all, visitor
from recollect import Document, Principal
from recollect.model import Scope
from recollect.model.requests import LoggedRequest
from served import fill, serving


def _request(kind: str, milliseconds: float, *, error: str | None = None, cost: float = 0.5) -> LoggedRequest:
    return LoggedRequest(
        at=datetime.now(UTC) - timedelta(minutes=3),
        kind=kind,
        provider="openai",
        model="m",
        inputs=1,
        input_tokens=100,
        output_tokens=7,
        tokens_estimated=False,
        attempts=1,
        milliseconds=milliseconds,
        success=error is None,
        error=error,
        status=None,
        cost=cost,
    )


@pytest.fixture
def busy(dsn, tmp_path):
    """A server with a worker and pages, on which something has happened, in two tenants."""
    with serving(dsn, tmp_path, worker=True, pages=True) as one:
        rag = one.rag
        fill(rag)
        rag.ingest(Document(content="The canteen is closed today.", source="canteen.txt", ttl="5d"))
        for query in ("annual leave", "annual leave", "salaries"):
            assert httpx2.post(f"{one.url}/v1/search", json={"query": query}).status_code == 200
        asked = {"query": "annual leave", "department": ["nowhere"]}
        assert httpx2.post(f"{one.url}/v1/search", json=asked).json()["results"] == []
        rag.store.requests.append(
            Scope(), [_request("embed", 10), _request("embed", 30), _request("rerank", 5, error="timeout")]
        )
        rag.feedback.give("hr/leave.md", helpful=True)
        rag.tenants.create("acme")
        acme = rag.view(tenant="acme")
        acme.ingest("Acme makes anvils.")
        acme.search("the anvils of acme")
        rag.store.requests.append(Scope(tenant_id=acme.scope.tenant_id), [_request("answer", 777, cost=999)])
        yield one


def _table(page, key: str) -> list[list[float]]:
    """The numbers of a chart's table, row by row."""
    script = "row => [...row.querySelectorAll('td')].map(cell => cell.dataset.value ?? null)"
    rows = page.locator(f"#chart-{key} tbody").evaluate(f"body => [...body.rows].map({script})")
    return [[float(value) if value is not None else None for value in row] for row in rows]


def _csv(served, key: str, **options) -> list[list[str]]:
    return list(csv.reader(io.StringIO(httpx2.get(f"{served.url}/dashboard/{key}.csv", **options).text)))


def test_what_happens_is_drawn_told_in_tables_and_downloaded(browser, busy):
    with visitor(browser, busy.url) as ada:
        page = ada.open("/dashboard?range=1h")
        expect(page.locator("figure[data-drawn]").nth(11)).to_be_attached()
        requests = page.locator("#chart-requests")
        assert requests.locator(".u-axis").count() == 2 and requests.locator("canvas").count() == 1
        assert requests.locator(".legend").inner_text().split("\n") == ["succeeded", "failed"]
        told = _table(page, "requests")
        assert [sum(column) for column in zip(*told, strict=True)] == [2, 1]
        header, *rows = _csv(busy, "requests", params={"range": "1h"})
        assert header == ["time", "succeeded (requests)", "failed (requests)"]
        # A minute may have passed between the two: what happened is what both must tell.
        assert [given for row in rows if any(given := [float(value) for value in row[1:]])] == [
            row for row in told if any(row)
        ]
        assert [sum(column) for column in zip(*_table(page, "searches"), strict=True)] == [3, 1]
        assert {row[0] for row in _table(page, "request-time")} == {None, 20.0}
        assert [sum(column) for column in zip(*_table(page, "feedback"), strict=True)] == [1, 0]
        assert [row[0] for row in _table(page, "unanswered") if any(row)] == [1]
        assert "annual leave" in page.get_by_role("region", name="What people ask that nothing answers").inner_text()
        assert "canteen" in page.get_by_role("region", name="Documents that expire").first.inner_text()
        # Nothing of the other tenant, neither here nor in what is downloaded.
        assert "anvil" not in page.content() and "777" not in str(_table(page, "request-time"))
        assert "999" not in str(_csv(busy, "cost"))
        require_usable_by_all(page)
        picture(page, "dashboard-light", full=True)
        # What happens meanwhile comes by itself, and what was open stays so.
        requests.locator("summary").click()
        httpx2.post(f"{busy.url}/v1/search", json={"query": "another"})
        # One refresh at a time: the page's own may be under way, and began before that search.
        figure = page.locator(".tiles .figure").first
        deadline = time.monotonic() + 30
        while figure.inner_text() != "5" and time.monotonic() < deadline:
            page.evaluate("htmx.trigger('#figures', 'refresh')")
            page.wait_for_timeout(500)
        expect(figure).to_have_text("5")
        expect(page.locator("figure[data-drawn]").nth(11)).to_be_attached()
        assert [sum(column) for column in zip(*_table(page, "searches"), strict=True)] == [4, 1]
        expect(page.locator("#chart-requests details[open]")).to_be_visible()
        page.get_by_label("Time", exact=True).select_option("7d")
        page.wait_for_url("**/dashboard?range=7d*")
        assert [sum(column) for column in zip(*_table(page, "requests"), strict=True)] == [2, 1]


def test_a_job_that_failed_says_why_and_is_tried_again(browser, busy, tmp_path):
    late = tmp_path / "late.txt"
    (job,) = busy.rag.jobs.ingest(late)
    busy.rag.jobs.wait(job.job_id, timeout_seconds=30)
    with visitor(browser, busy.url, color_scheme="dark") as ada:
        page = ada.open("/dashboard")
        row = page.locator("#jobs tbody tr", has_text=f"{job.job_id} ingest")
        assert "late.txt" in row.inner_text() and row.locator(".note.bad").inner_text()
        require_usable_by_all(page)
        picture(page, "dashboard-dark", full=True)
        late.write_text("Here it is at last.")
        row.get_by_role("button", name=f"Retry {job.job_id}").click()
        page.wait_for_url("**/dashboard*#jobs")
        assert busy.rag.jobs.wait(job.job_id, timeout_seconds=30).status == "succeeded"
        page.reload()
        assert page.locator("#jobs tbody tr", has_text=f"{job.job_id} ingest").count() == 0
        assert sum(row[0] for row in _table(page, "jobs")) >= 1


def test_who_does_not_administer_sees_figures_and_no_questions(busy):
    kim = busy.rag.keys.create("kim", scopes=("read",), principal=Principal(user_id="kim")).secret
    headers = {"Authorization": f"Bearer {kim}", "Accept": "text/html"}
    page = httpx2.get(f"{busy.url}/dashboard?range=1h", headers=headers)
    assert page.status_code == 200 and "chart-requests" in page.text and "annual leave" not in page.text
    refused = httpx2.post(f"{busy.url}/dashboard/jobs/1/retry", headers=headers)
    assert refused.status_code == 403
    for path, status in (("/nowhere.csv", 404), ("?range=99y", 422), ("/requests.csv?kind=x", 422)):
        assert httpx2.get(f"{busy.url}/dashboard{path}", headers=headers).status_code == status, path


def test_refusals_are_counted_and_their_questions_are_told_to_who_administers(dsn, tmp_path):
    limited = {"limits": {"search": 1}}
    with serving(dsn, tmp_path, worker=False, pages=True, server=limited) as one:
        fill(one.rag)
        headers = {"Authorization": f"Bearer {one.rag.keys.create('reader', scopes=('read',)).secret}"}
        asked = {"url": f"{one.url}/v1/search", "json": {"query": "leave"}, "headers": headers}
        assert [httpx2.post(**asked).status_code for _ in range(3)] == [200, 429, 429]
        told = {"question": "Who won the cup in 1950?", "department": ["nowhere"]}
        assert httpx2.post(f"{one.url}/v1/ask", json=told).json()["outcome"] == "none"
        told = {"question": "Who signs the certificate?"}
        assert httpx2.post(f"{one.url}/v1/ask", json=told).json()["outcome"] == "passages"
        sums = [
            sum(float(row[1]) for row in _csv(one, "limits")[1:]),
            *(sum(float(row[column]) for row in _csv(one, "answers")[1:]) for column in (1, 2, 3)),
        ]
        assert sums == [2, 0, 1, 1]
        page = httpx2.get(f"{one.url}/dashboard").text
        assert "Who won the cup in 1950?" in page and "1 with passages only, 1 without answer" in page
