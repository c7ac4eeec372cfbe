r"""The library's pages over a hundred thousand documents: filtered, sorted, paged, asked for over loopback.

    python benchmarks/library_pages.py fill --work ../library-bench       # once; versions and jobs, without chunks
    python benchmarks/library_pages.py measure --work ../library-bench    # each page, milliseconds

Every document has a finished job, as uploads leave it, and 300 jobs have failed. A third of the documents is confined
to a role, so that somebody in particular is confined by access lists.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx2
import uvicorn
from harness import machine, table

from recollect import Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.pipeline import View
from recollect.server.app import create_app
from recollect.ui import install

DOCUMENTS = 100_000
FAILED = 300

# The first and the deepest page, and each filter alone and with others: (name, query).
PAGES = (
    ("first page", ""),
    ("page behind document 50,000", "cursor=DEEP"),
    ("one collection", "collection=archive"),
    ("by title", "sort=title"),
    ("last changed first", "sort=changed"),
    ("longest first", "sort=longest"),
    ("one word, in 1 of 100", "q=report+17"),
    ("a word of nothing", "q=nowhere"),
    ("department", "department=sales"),
    ("tag, in 1 of 1,000", "tag=rare"),
    ("tag, in half", "tag=even"),
    ("metadata, in 1 of 50", "key=year&value=1990"),
    ("type of file, none", "type=image%2Fpng"),
    ("source", "source=folder-7"),
    ("came from the web", "source_type=web"),
    ("stored within a day", "changed_from=2026-03-01&changed_to=2026-03-01"),
    ("dated within a year, by title", "dated_from=2020-01-01&dated_to=2020-12-31&sort=title"),
    ("granted to a role", "grant=role%3Ahr"),
    ("failed", "status=error"),
    ("waiting", "status=pending"),
    ("a filter as JSON, by title", "filter=%7B%22metadata.pages%22%3A%7B%22gte%22%3A390%7D%7D&sort=title"),
)

FILL = """
INSERT INTO sources (tenant_id, collection_id, name, type)
SELECT 1, %(collection)s, 'folder-' || n, CASE n %% 4 WHEN 0 THEN 'web' WHEN 1 THEN 'upload' ELSE 'directory' END
FROM generate_series(0, 19) n;
INSERT INTO access_lists (tenant_id, collection_id, access_id, grants) VALUES (1, %(collection)s, 1000000, '{role:hr}');
INSERT INTO documents (tenant_id, collection_id, source_id, uri, access_id)
SELECT 1, %(collection)s, s.source_id, 'folder/' || (n %% 1000) || '/report-' || n || '.md',
       CASE n %% 3 WHEN 0 THEN 1000000 ELSE 0 END
FROM generate_series(1, %(count)s) n
JOIN sources s ON s.tenant_id = 1 AND s.collection_id = %(collection)s AND s.name = 'folder-' || (n %% 20);
INSERT INTO document_versions (tenant_id, document_id, collection_id, access_id, version, known_from, event_from, uri,
    title, department, mime_type, metadata, tags, chunk_count, content_hash, fingerprint)
SELECT 1, d.document_id, d.collection_id, d.access_id, 1,
       '2026-01-01'::timestamptz + d.document_id * interval '2 minutes',
       '2010-01-01'::timestamptz + (d.document_id %% 6000) * interval '1 day', d.uri,
       (ARRAY['Annual', 'Quarterly', 'Weekly', 'Draft', 'Signed'])[1 + d.document_id %% 5] || ' report '
           || (d.document_id %% 997) || ' of the department for ' || md5(d.document_id::text),
       (ARRAY['sales', 'hr', 'it', 'legal'])[1 + d.document_id %% 4],
       (ARRAY['text/markdown', 'application/pdf', 'text/html'])[1 + d.document_id %% 3],
       jsonb_build_object('year', 1980 + d.document_id %% 50, 'pages', d.document_id %% 400,
                          'author', 'a' || d.document_id %% 300),
       CASE WHEN d.document_id %% 1000 = 0 THEN '{rare,even}' WHEN d.document_id %% 2 = 0 THEN '{even,report}'
            ELSE '{odd}' END::text[],
       (d.document_id * 7919) %% 60, sha256(d.document_id::text::bytea), 'bench'
FROM documents d WHERE d.tenant_id = 1 AND d.collection_id = %(collection)s;
INSERT INTO jobs (tenant_id, kind, status, collection, source, document, document_id, max_attempts, attempts,
    finished_at)
SELECT 1, 'ingest_upload', 'succeeded', %(name)s, 'upload', d.uri, d.document_id, 3, 1, now()
FROM documents d WHERE d.tenant_id = 1 AND d.collection_id = %(collection)s;
INSERT INTO documents (tenant_id, collection_id, source_id, uri)
SELECT 1, %(collection)s, (SELECT min(source_id) FROM sources WHERE tenant_id = 1 AND collection_id = %(collection)s),
       'broken-' || n || '.bin'
FROM generate_series(1, %(failed)s) n;
INSERT INTO jobs (tenant_id, kind, status, collection, source, document, document_id, max_attempts, attempts,
    finished_at, error)
SELECT 1, 'ingest_upload', 'failed', %(name)s, 'upload', d.uri, d.document_id, 3, 3, now(),
       'It is of an unknown type.'
FROM documents d WHERE d.tenant_id = 1 AND d.collection_id = %(collection)s AND d.uri LIKE 'broken-%%';
UPDATE collection_state SET document_count = %(count)s, revision = revision + 1
WHERE tenant_id = 1 AND collection_id = %(collection)s;
"""


def opened(work: Path) -> RAGPipeline:
    """The store of the benchmark."""
    config = RAGConfig.load(storage={"data_dir": work / "data"}, embedding={"provider": "hashing"})
    return RAGPipeline(config, embedder=HashingEmbedder())


def fill(arguments: argparse.Namespace) -> None:
    """Two collections, nine tenths of the documents in one of them."""
    with opened(arguments.work) as rag:
        for name, count in (("default", DOCUMENTS * 9 // 10), ("archive", DOCUMENTS // 10)):
            place = rag.collections.ensure(name)
            params = {"collection": place.collection_id, "name": name, "count": count, "failed": FAILED // 2}
            with rag.store.database.transaction(rag.scope) as connection:
                for statement in FILL.split(";\n"):
                    if statement.strip():
                        connection.execute(statement.encode(), params)
        with rag.store.database.autocommit() as connection:
            connection.execute("ANALYZE")
    print(f"{DOCUMENTS:,} documents")


@contextmanager
def serving(rag: RAGPipeline) -> Iterator[str]:
    """The pages, at a port of their own."""
    app = create_app(rag)
    install(app)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def measure(arguments: argparse.Namespace) -> None:
    """Each page so often, one after the other."""
    rows = []
    with opened(arguments.work) as rag, serving(rag) as url, httpx2.Client(base_url=url, timeout=60) as client:
        deep = _deep(client)
        for name, query in PAGES:
            path = f"/library/documents?{query.replace('DEEP', deep)}"
            times, size = _timed(client, path, arguments.count)
            rows.append((name, f"{statistics.median(times):.0f}", f"{max(times):.0f}", f"{size / 1000:.0f}"))
        for name, path in (("collections", "/library"), ("what can be chosen", "/library/documents/choices")):
            times, size = _timed(client, path, arguments.count)
            rows.append((name, f"{statistics.median(times):.0f}", f"{max(times):.0f}", f"{size / 1000:.0f}"))
        somebody = rag.view(principal=Principal(user_id="kim"), collections="*")
        rows += _confined(somebody, arguments.count)
    print(f"{machine()}\n\n{table(['page', 'p50, ms', 'longest, ms', 'kB'], rows)}")


def _deep(client: httpx2.Client) -> str:
    from recollect.model.page import cursor_at

    assert client.get("/library/documents").status_code == 200
    return cursor_at([DOCUMENTS // 2, DOCUMENTS // 2, False, DOCUMENTS])


def _timed(client: httpx2.Client, path: str, count: int) -> tuple[list[float], int]:
    reply = client.get(path)
    assert reply.status_code == 200, reply.text
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        client.get(path)
        times.append((time.perf_counter() - begun) * 1000)
    return times, len(reply.content)


def _confined(view: View, count: int) -> list[tuple[str, str, str, str]]:
    """The same for somebody who may read two thirds, without HTTP."""
    from recollect.model.document_record import ListingQuery
    from recollect.pipeline.library import list_documents

    rows = []
    for name, query in (
        ("first page, confined by lists", ListingQuery()),
        ("by title, confined by lists", ListingQuery(sort="title")),
        ("one word, confined by lists", ListingQuery(words=("report", "17"))),
    ):
        times = []
        for _ in range(count):
            begun = time.perf_counter()
            list_documents(view.standpoint, query)
            times.append((time.perf_counter() - begun) * 1000)
        rows.append((name, f"{statistics.median(times):.0f}", f"{max(times):.0f}", ""))
    return rows


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fill", "measure"))
    parser.add_argument("--work", type=Path, required=True, help="Where the store is.")
    parser.add_argument("--count", type=int, default=7, help="How often each page is asked for.")
    arguments = parser.parse_args()
    {"fill": fill, "measure": measure}[arguments.what](arguments)


if __name__ == "__main__":
    main()
