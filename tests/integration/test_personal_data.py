"""A tenant's policy for personal data: nothing that is taken out is anywhere afterwards, by whatever way it came."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from recollect import Document, RAGConfig, RAGPipeline
from recollect.documents.reader import read_bytes
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import PersonalDataError, UsageError
from recollect.fetching.crawl import CrawlPlan
from recollect.llm.scripted import ScriptedChatModel
from recollect.model.memory import Turn
from recollect.pipeline.chat import Conversation
from recollect.pipeline.web import refresh
from web_site import Page, web_site

EMAIL, CARD, PHONE, SSN, IBAN = (
    "zoe.planted@example.com",
    "4111 1111 1111 1111",
    "+49 171 1234567",
    "536904399",
    "DE89 3704 0044 0532 0130 00",
)
VALUES = (EMAIL, CARD, PHONE, SSN, IBAN, "zoe.planted", "1711234567", "37040044")
TEXT = (
    f"# Contact {EMAIL}\n\nZoe's Planted Company (ZPC) pays by {CARD} or {IBAN}.\n\n"
    f"## Call {PHONE}\n\nHer ssn is {SSN}." + " Thirty days of leave a year." * 30 + f" As said: {SSN}.\n"
)


class RecordingEmbedder(HashingEmbedder):
    """Notes what it is asked to embed, as a provider would."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed_documents(self, texts):
        self.asked += texts
        return super().embed_documents(texts)


@pytest.fixture
def embedder() -> RecordingEmbedder:
    return RecordingEmbedder()


@pytest.fixture
def guarded(dsn: str, tmp_path: Path, embedder: RecordingEmbedder) -> Iterator[Callable[[str], RAGPipeline]]:
    opened: list[RAGPipeline] = []

    def make(policy: str) -> RAGPipeline:
        config = RAGConfig.load(
            storage={"data_dir": tmp_path / "unused", "dsn": dsn},
            embedding={"provider": "hashing"},
            privacy={"pii": policy},
            ingest={"keep_originals": "always"},
        )
        opened.append(RAGPipeline(config, embedder=embedder))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def places_of(dsn: str, *values: str) -> list[str]:
    """The columns of the store, the planner's statistics included, that hold one of some values in whatever form."""
    found = []
    with psycopg.connect(dsn) as connection:
        columns = connection.execute(
            "SELECT c.relname, a.attname, t.typname = 'bytea' FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid "
            "WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 "
            "AND NOT a.attisdropped"
        ).fetchall()
        for table, column, is_bytes in columns:
            kind = "encode({}, 'escape')" if is_bytes else "{}::text"
            told = sql.SQL(kind).format(sql.Identifier(column))
            statement = sql.SQL("SELECT count(*) FROM recollect.{} WHERE {} ILIKE ANY (%s)")
            patterns = [f"%{value}%" for value in values]
            (count,) = connection.execute(statement.format(sql.Identifier(table), told), (patterns,)).fetchone() or (0,)
            found += [f"{table}.{column}"] if count else []
    return found


def test_what_is_redacted_is_nowhere(guarded, dsn: str, tmp_path: Path, embedder: RecordingEmbedder):
    rag = guarded("redact")
    folder = tmp_path / f"of {EMAIL}"
    (folder / EMAIL).mkdir(parents=True)
    (folder / EMAIL / f"{PHONE}.md").write_text(TEXT)
    (folder / "table.csv").write_text(f"name,mail\nZoe,{EMAIL}\n")
    lines = tmp_path / "lines.jsonl"
    vector = [1.0] + [0.0] * (embedder.dimension - 1)
    whole = {
        "source": f"x/{EMAIL}", "content": TEXT, "tags": [EMAIL], "metadata": {"card": CARD},
        "chunks": [{"start_offset": 0, "end_offset": 40, "embedding": vector, "section": [EMAIL]}],
    }  # fmt: skip
    clean = {
        "source": "clean", "content": "Nothing here at all.",
        "chunks": [{"start_offset": 0, "end_offset": 20, "embedding": vector, "metadata": {"by": EMAIL}}],
    }  # fmt: skip
    lines.write_text("\n".join(map(json.dumps, (whole, clean))))

    report = rag.ingest(folder, tags=["hr"])
    assert (report.added, report.errors) == (2, ())
    assert rag.collections.import_file(lines).added == 2
    metadata = {"permissions": ["user:ann"], EMAIL: [4111111111111111]}
    rag.ingest(Document(content=TEXT, title=f"Of {EMAIL}", metadata=metadata))
    rag.ingest(read_bytes(f"<h1>{CARD}</h1><p>{EMAIL}</p>".encode(), name=f"{EMAIL}.html"))
    rag.sessions.create("s")
    rag.view(session="s").ingest(TEXT)
    rag.view(session="talk").remember([Turn(content=f"I am {EMAIL}", metadata={"tel": PHONE}), f"Pay {CARD}"])

    assert places_of(dsn, *VALUES) == []
    assert [value for value in VALUES for text in embedder.asked if value in text] == []
    for entry in rag.contents.list(limit=100):
        record = rag.documents.get(entry.document_id)
        if entry.source != "clean":
            assert "[redacted" in (record.content or "")
            assert record.metadata["pii"]
    for check in rag.maintenance.verify(deep=True).checks:
        assert check.found == 0, check
    with psycopg.connect(dsn) as connection:
        wrong = connection.execute(
            "SELECT count(*) FROM recollect.chunks c JOIN recollect.document_contents USING (tenant_id, version_id) "
            "JOIN recollect.texts d USING (tenant_id, text_hash) "
            "WHERE substr(d.content, c.start_offset + 1, c.end_offset - c.start_offset) <> c.text"
        ).fetchone()
        assert wrong == (0,)
        of_originals = connection.execute("SELECT count(*) FROM recollect.originals").fetchone()
        assert of_originals == (0,)
    # The same files are known again, and one that is gone is closed.
    assert rag.ingest(folder, tags=["hr"]).unchanged == 2
    (folder / EMAIL / f"{PHONE}.md").unlink()
    assert rag.ingest(folder, tags=["hr"], sync=True).removed == 1
    found = rag.search(f"What is {EMAIL}?")
    assert [value for value in VALUES for one in found.results if value in repr(one)] == []


def test_what_is_tagged_is_counted_and_stays(guarded, dsn: str):
    rag = guarded("tag")
    written = rag.ingest(Document(content=TEXT, source="a.md", tags=("hr",)))
    record = rag.documents.get(written.document_id)
    assert record.content == TEXT
    # So what looks for values finds them where they are.
    assert {"texts.content", "chunks.text"} <= set(places_of(dsn, *VALUES))
    assert record.metadata["pii"] == {"email": 1, "iban": 1, "payment_card": 1, "national_id": 2, "phone": 1}
    assert record.tags == ("hr", "pii:email", "pii:iban", "pii:payment_card", "pii:national_id", "pii:phone")
    assert rag.ingest(Document(content="None.", source="b")).document_id
    assert rag.documents.get("b").tags == ()
    assert rag.ingest(Document(content=TEXT, source="a.md", tags=("hr",))).status == "unchanged"


def test_what_is_refused_is_named_by_kind_and_place_alone(guarded, dsn: str, tmp_path: Path):
    rag = guarded("refuse")
    with pytest.raises(PersonalDataError) as refused:
        rag.ingest(Document(content=f"Mail {EMAIL}.", source=f"{EMAIL}.txt", title=CARD))
    told = str(refused.value)
    assert "email at 5-28" in told
    assert "payment_card in its title" in told
    assert [value for value in VALUES if value in told] == []
    assert refused.value.kinds == ("email", "payment_card")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / f"{EMAIL}.md").write_text(TEXT)
    (folder / "clean.md").write_text("# Clean\n\nNothing here.\n")
    report = rag.ingest(folder)
    assert report.added == 1
    assert [value for value in VALUES if value in repr(report)] == []
    with pytest.raises(PersonalDataError, match="What was said holds personal data"):
        rag.view(session="talk").remember(f"I am {EMAIL}")
    with pytest.raises(PersonalDataError):
        next(Conversation(rag, session="talk").ask(f"Who is {EMAIL}?"), None)
    assert places_of(dsn, *VALUES) == []


def test_a_tenants_policy_goes_before_the_configured_one(guarded, dsn: str):
    rag = guarded("off")
    rag.ingest(Document(content=TEXT, source="a.md"))
    rag.tenants.create("acme")
    assert rag.tenants.get("acme").pii is None
    assert rag.tenants.set_pii("acme", "redact").pii == "redact"
    acme = rag.view(tenant="acme")
    acme.ingest(Document(content=TEXT, source="a.md"))
    assert "[redacted email]" in (acme.documents.get("a.md").content or "")
    assert EMAIL in (rag.documents.get("a.md").content or "")
    # A change of the policy is met by the next ingest of the same text.
    assert rag.tenants.set_pii("default", "redact").pii == "redact"
    assert rag.ingest(Document(content=TEXT, source="a.md")).status == "updated"
    assert rag.tenants.set_pii("acme", None).pii is None


def test_what_was_kept_before_is_read_anew_without_it(guarded, dsn: str):
    rag = guarded("off")
    written = rag.ingest(read_bytes(TEXT.encode(), name="a.md"))
    rag.tenants.set_pii("default", "redact")
    anew = rag.documents.reread(written.document_id)
    assert anew.version == 2
    assert EMAIL not in (rag.documents.get(written.document_id).content or "")
    with pytest.raises(Exception, match="was not kept"):
        rag.contents.original(written.document_id)


def test_without_the_extra_it_is_said_what_to_install(guarded, monkeypatch: pytest.MonkeyPatch):
    from recollect.pipeline import preparing
    from recollect.privacy import detector

    preparing._detector.cache_clear()
    detector._made.cache_clear()
    monkeypatch.setattr(detector, "_PACKAGE", "no_such_package_at_all")
    with pytest.raises(UsageError, match=r"\.\[pii\]"):
        guarded("redact").ingest("A text.")


def page(title: str, *links: str) -> Page:
    led = "".join(f'<a href="{link}">on</a>' for link in links)
    return Page(f"<title>{title}</title><main><p>Thirty days of leave a year, says {title}.</p></main>{led}")


def allowing(rag: RAGPipeline) -> RAGPipeline:
    sources = rag.config.sources.model_copy(update={"allow_private_addresses": True})
    return RAGPipeline(rag.config.model_copy(update={"sources": sources}), embedder=HashingEmbedder())


def test_jobs_for_pages_leave_nothing_of_what_is_redacted(guarded, dsn: str):
    rag = guarded("redact")
    routes = {"/a": page(f"About {EMAIL}"), "/": page("Home", f"/a?to={EMAIL}", f"/gone?to={EMAIL}")}
    with web_site(routes) as site, allowing(rag) as rag:
        waiting = rag.ingest_url(site.url(f"/a?to={EMAIL}"), wait=False, headers={"X-Who": EMAIL})
        assert EMAIL not in repr(waiting) + repr(rag.documents.list()), "it is shown to nobody while it waits"
        done = rag.jobs.wait(waiting.job_id)
        assert (done.status, rag.documents.list()[0].status) == ("succeeded", "embedded")
        assert site.visits[-1].path == f"/a?to={EMAIL}", "what is fetched is what was asked for"
        assert done.result is not None and done.result["title"] == "About [redacted email]"
        plan = CrawlPlan(depth=1, delay_seconds=0, obey_robots=False)
        for one in (rag.ingest_url(site.url(f"/b/{EMAIL}")), rag.ingest_url(site.url("/"), crawl=plan)):
            assert EMAIL not in repr(one)
        asked = len(site.visits)
        report = refresh(rag.standpoint, "127.0.0.1")
        assert report.removed == 0, "what cannot be asked for again is not gone"
        assert EMAIL not in repr(report)
        assert len(site.visits) > asked
        with rag.store.database.autocommit() as connection:
            # What a job that failed may need for another attempt goes with it.
            connection.execute("DELETE FROM recollect.jobs WHERE status <> 'succeeded'")
    assert places_of(dsn, EMAIL, "zoe.planted") == []


def test_a_job_whose_address_is_refused_is_not_asked_for(guarded, dsn: str):
    rag = guarded("refuse")
    with pytest.raises(PersonalDataError, match="url"):
        rag.ingest_url(f"https://docs.example/?to={EMAIL}", wait=False)
    assert not rag.jobs.list()
    assert not rag.documents.list()
    assert places_of(dsn, EMAIL) == []


@pytest.mark.parametrize(("policy", "stored"), [("redact", "[redacted email]"), ("refuse", ""), ("tag", EMAIL)])
def test_what_a_model_writes_of_a_document_passes_the_door(guarded, dsn: str, policy: str, stored: str):
    rag = guarded(policy)
    config = rag.config.model_copy(
        update={"ingest": rag.config.ingest.model_copy(update={"contextualise": "openai/m"})}
    )
    model = ScriptedChatModel(f"Leave of the company, asked of {EMAIL} every year.")
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as situating:
        situating.ingest(Document(content="Leave of the company, asked of every year, is thirty days.", source="leave"))
        situating.maintenance.write_contexts()
    with psycopg.connect(dsn) as connection:
        (context,) = connection.execute("SELECT context FROM recollect.chunks").fetchone() or ("",)
    assert stored in context and bool(context) == bool(stored)
    assert bool(places_of(dsn, EMAIL)) == (policy == "tag")


def test_a_source_keeps_the_name_that_its_owner_gave_it(guarded, tmp_path: Path):
    from recollect.pipeline.working import refresh_sources

    rag, folder = guarded("redact"), tmp_path / EMAIL
    folder.mkdir()
    name = rag.sources.add(str(folder), every="1h", settings={"watch": True}).name
    assembly, scope = rag.standpoint.assembly, rag.standpoint.scope
    assert refresh_sources(assembly, scope) == 1
    assert refresh_sources(assembly, scope) == 0, "what was asked for is known by its source"
    assert {one.source for one in rag.jobs.list()} == {name}
