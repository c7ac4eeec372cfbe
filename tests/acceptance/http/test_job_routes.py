"""``/v1/jobs``: work in the background, looked at, followed, stopped and tried again over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable

import pytest

from recollect import Principal
from recollect.jobs.tasks import Task, register


@pytest.fixture
def asked(rag):
    """A job of the store's owner that waits."""
    return rag.ingest_url("https://example.com/a", wait=False)


async def read(app, path: str, on_piece: Callable[[str], object]) -> str:
    """What a path responds with; each piece is told when it comes, which a `TestClient` does not."""
    pieces: list[str] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8321")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8321),
    }
    begun = False

    async def receive() -> dict:
        nonlocal begun
        if not begun:
            begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict) -> None:
        if message["type"] == "http.response.body":
            pieces.append(message.get("body", b"").decode())
            on_piece(pieces[-1])

    await app(scope, receive, send)
    return "".join(pieces)


def events(text: str) -> list[tuple[str, str, dict]]:
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if lines:
            found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


def test_jobs_are_listed_page_by_page_and_filtered(rag, client):
    urls = [f"https://example.com/{n}" for n in range(5)]
    for url in urls:
        rag.ingest_url(url, wait=False)
    found, cursor = [], None
    while True:
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/jobs", params=query).json()
        found += [job["document"] for job in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == urls[::-1]
    assert client.get("/v1/jobs", params={"status": "failed"}).json()["items"] == []
    assert len(client.get("/v1/jobs", params={"kind": "ingest_url", "status": "pending"}).json()["items"]) == 5
    assert client.get("/v1/jobs", params={"source": "elsewhere.com"}).json()["items"] == []
    assert len(client.get("/v1/jobs", params={"collection": "default"}).json()["items"]) == 5
    assert client.get("/v1/jobs", params={"collection": "hr"}).json()["items"] == []
    assert client.get("/v1/jobs", params={"status": "lost"}).status_code == 422


def test_a_job_is_cancelled_and_tried_again(client, asked):
    path = f"/v1/jobs/{asked.job_id}"
    assert client.get(path).json()["status"] == "pending"
    assert client.post(f"{path}/retry").status_code == 409
    stopped = client.post(f"{path}/cancel").json()
    assert stopped["status"] == "cancelled"
    assert client.post(f"{path}/cancel").json() == stopped
    assert client.post(f"{path}/retry").json()["status"] == "pending"


def test_a_job_is_followed_to_its_end_and_from_where_a_client_was(rag, client):
    goes_on = threading.Event()

    def counted(view, arguments, progress) -> dict:
        progress("counting", 1, 2)
        assert goes_on.wait(30)
        progress("counting", 2, 2)
        return {"counted": 2}

    register(Task(kind="counted", function=counted, stages=("counting",)))
    from recollect.model.job import NewJob
    from recollect.pipeline.jobs import enqueue

    job = enqueue(rag.standpoint, NewJob(kind="counted"))
    worker = threading.Thread(target=rag.jobs.wait, args=(job.job_id,))
    worker.start()
    try:
        text = asyncio.run(
            read(client.app, f"/v1/jobs/{job.job_id}/events", lambda piece: '"running"' in piece and goes_on.set())
        )
    finally:
        goes_on.set()
        worker.join()
    found = events(text)
    assert [name for _, name, _ in found] == ["job"] * (len(found) - 1) + ["done"]
    assert found[0][2]["status"] in {"pending", "running"}
    assert (found[-1][2]["status"], found[-1][2]["result"]) == ("succeeded", {"counted": 2})
    assert len({number for number, _, _ in found}) == len(found)
    path = f"/v1/jobs/{job.job_id}/events"
    assert client.get(path, headers={"Last-Event-ID": found[-1][0]}).text == ""
    assert events(client.get(path, headers={"Last-Event-ID": found[0][0]}).text) == found[-1:]
    assert events(client.get(path, headers={"Last-Event-ID": "of something else"}).text) == found[-1:]


def test_jobs_are_of_whoever_asked_for_them(rag, client, connect, asked):
    rag.tenants.create("other")
    other = connect(rag.view(tenant="other").keys.create("other", scopes=["read", "write", "admin"]).secret)
    ada = connect(rag.keys.create("a", scopes=["read", "write"], principal=Principal(user_id="ada")).secret)
    for stranger in (other, ada):
        assert stranger.get("/v1/jobs").json()["items"] == []
        for method, path in [("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/retry")]:
            reply = stranger.request(method, f"/v1/jobs/{asked.job_id}{path}")
            assert reply.status_code == 404, (method, path)
            assert "example.com" not in reply.text
    reader = connect(rag.keys.create("reader", scopes=["read"]).secret)
    assert reader.get(f"/v1/jobs/{asked.job_id}").status_code == 200
    assert reader.post(f"/v1/jobs/{asked.job_id}/cancel").status_code == 403
    assert client.get(f"/v1/jobs/{asked.job_id}").json()["status"] == "pending"
    for bad in ("0", "-1", "x", str(2**63)):
        assert client.get(f"/v1/jobs/{bad}").status_code == 422
