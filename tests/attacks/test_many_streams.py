"""One credential opens streams without end: the others are refused, and room is made by those that close."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

from recollect.server import limits
from served import serving


def follow(url: str, job_id: int) -> tuple[HTTPConnection, HTTPResponse]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("GET", f"/v1/jobs/{job_id}/events")
    return connection, connection.getresponse()


def test_a_credential_follows_so_many_jobs_at_once(dsn, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_FOLLOWED", 2)
    with serving(dsn, tmp_path, worker=False) as served:
        job = served.rag.jobs.ingest([tmp_path])[0].job_id
        followed = [follow(served.url, job) for _ in range(2)]
        assert [reply.readline() for _, reply in followed] == [b"event: job\n"] * 2
        followed.append(follow(served.url, job))
        assert followed[-1][1].status == 429 and followed[-1][1].getheader("Retry-After")
        for connection, reply in followed:
            reply.close()
            connection.close()
        while (again := follow(served.url, job))[1].status == 429:
            again[1].close()
            again[0].close()
        assert again[1].readline() == b"event: job\n"
        again[1].close()
        again[0].close()
