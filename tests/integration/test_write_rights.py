"""Who may write what: nobody takes over what is another's, and what a writer is told does not tell of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline, SessionRAG
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, QuotaExceededError, RecollectError
from recollect.model import Scope
from recollect.model.tenant import TenantQuota
from recollect.pipeline.preparing import make_preparer

ANN = Principal(user_id="ann", department="hr")
EVE = Principal(user_id="eve", department="it")
CHAIR = Principal(user_id="chair", roles=("editor",))
SECRET = "The bonus of the chair is forty thousand."


@pytest.fixture
def rag(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    """Ann's secret in a collection that Ann and Eve write to, and that the editors own."""
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        opened.collections.ensure()
        opened.grants.set_collection(writers=["user:ann", "user:eve"], owners=["role:editor"])
        opened.view(principal=ANN).ingest(Document(content=SECRET, source="pay.md", permissions=("user:ann",)))
        yield opened


def text_of(rag: RAGPipeline, source: str, principal: Principal | None) -> str | None:
    return rag.view(principal=principal).documents.get(source).content


def refused(action: Callable[[], Any]) -> tuple[type, str]:
    with pytest.raises(RecollectError) as error:
        action()
    return error.type, str(error.value)


def test_nobody_writes_by_default(pipeline: RAGPipeline):
    pipeline.collections.ensure()
    assert pipeline.grants.of_collection().writers == ()
    with pytest.raises(PermissionDeniedError, match="writer"):
        pipeline.view(principal=EVE).ingest("Planted.")
    with pytest.raises(PermissionDeniedError, match="name the user"):
        pipeline.grants.set_collection(writers=["*"])
        pipeline.view(principal=Principal(roles=("clerk",))).ingest("Planted.")


@pytest.mark.parametrize("given", [None, ("user:eve",), ("*",)])
def test_a_stranger_stores_beside_what_he_cannot_read(rag: RAGPipeline, given: tuple[str, ...] | None):
    for guess in ("Something else.", SECRET):
        for source in ("pay.md", "never.md"):
            document = Document(content=guess, source=source, permissions=given)
            stored, again = (rag.view(principal=EVE).ingest(document) for _ in range(2))
            assert (stored.status, stored.version) == (("added", 1) if guess != SECRET else ("updated", 2))
            assert (again.status, again.version) == ("unchanged", stored.version)
    assert text_of(rag, "pay.md", EVE) == SECRET  # his own guess
    own = rag.view(principal=EVE).documents.get("pay.md").document_id
    assert [one.version for one in rag.view(principal=EVE).documents.history(own).versions] == [1, 2]
    # Hers is what it was: the text, the grants, the history; and nobody reads his text as hers.
    (hers,) = [
        one for one in rag.view(principal=ANN).documents.list() if one.source == "pay.md" and one.document_id != own
    ]
    assert rag.view(principal=ANN).documents.get(hers.document_id).content == SECRET
    assert hers.version == 1
    assert rag.grants.of_documents(hers.document_id)[0].permissions.grants == ("user:ann",)
    with pytest.raises(NotFoundError):
        rag.view(principal=EVE).documents.get(hers.document_id)


def test_every_way_of_writing_to_another_document_is_refused_as_if_it_were_not_there(rag: RAGPipeline):
    hers = rag.view(principal=ANN).documents.get("pay.md").document_id
    attempts: list[Callable[[int | str], Any]] = [
        lambda one: rag.view(principal=EVE).documents.delete([one]),
        lambda one: rag.view(principal=EVE).documents.erase([one]),
        lambda one: rag.view(principal=EVE).documents.restore(one, 1),
        lambda one: rag.view(principal=EVE).documents.set_ttl(one, "1s"),
        lambda one: rag.view(principal=EVE).grants.add("user:eve", documents=one),
        lambda one: rag.view(principal=EVE).grants.remove("user:ann", documents=one),
        lambda one: rag.view(principal=EVE).grants.deny("user:ann", documents=one),
        lambda one: rag.view(principal=EVE).grants.of_documents(one),
    ]
    for attempt in attempts:
        for name, absent in (("pay.md", "no.md"), (str(hers), str(hers + 1))):
            there, not_there = refused(lambda: attempt(name)), refused(lambda: attempt(absent))  # noqa: B023
            assert there[0] is not_there[0] is NotFoundError
            assert there[1].replace(name, absent) == not_there[1]
    # What he may read and does not own is refused as what it is.
    rag.view(principal=ANN).grants.add("*", documents=hers, only=True)
    for attempt in attempts:
        assert refused(lambda: attempt("pay.md"))[0] is PermissionDeniedError  # noqa: B023
    for attempt in (
        lambda: rag.view(collections="default", principal=EVE).grants.add("user:eve", default=True),
        lambda: rag.view(principal=EVE).grants.set_collection(owners=["user:eve"]),
        lambda: rag.view(principal=EVE).grants.of_collection(),
    ):
        assert refused(attempt)[0] is PermissionDeniedError
    with pytest.raises(NotFoundError):
        rag.view(collections="default", principal=EVE).grants.add("user:eve", source="manual")
    assert text_of(rag, "pay.md", ANN) == SECRET


def test_the_database_itself_refuses_what_a_check_before_has_let_pass(rag: RAGPipeline):
    scope, hers = Scope(principal=EVE), rag.documents.get("pay.md").document_id
    for attempt in (
        lambda: rag.store.writer.close(scope, [hers]),
        lambda: rag.store.erasure.erase(scope, [hers], actor="eve"),
        lambda: rag.store.history.restore(scope, hers, 1, actor="eve"),
        lambda: rag.store.expiry.set_lifetime(scope, hers, None),
    ):
        assert refused(attempt)[0] is NotFoundError
    place = rag.collections.ensure()
    rag.grants.set_collection(writers=["user:ann"])
    with pytest.raises(PermissionDeniedError):
        rag.store.writer.write(
            scope, place, rag.store.documents.ensure_source(Scope(), place, "manual", "manual"), [_prepared(rag)]
        )


def _prepared(rag: RAGPipeline) -> Any:
    scope, place = Scope(), rag.collections.ensure()
    preparer = make_preparer(rag.standpoint.assembly, scope, place)
    cut = preparer.cut(Document(content="x y z", source="x.md"), "fingerprint")
    return preparer.finish([cut], preparer.embed([cut]), reference_length=1.0)[0]


def test_a_writer_looks_after_his_own(rag: RAGPipeline):
    rag.view(principal=EVE).ingest(Document(content="Mine.", source="mine.md"))
    changed = rag.view(principal=EVE).ingest(Document(content="Mine, anew.", source="mine.md"))
    assert (changed.status, changed.version) == ("updated", 2)
    assert rag.view(principal=EVE).documents.restore("mine.md", 1).version == 3
    assert rag.view(principal=EVE).grants.add("user:bob", documents="mine.md", only=True) == 1
    with pytest.raises(NotFoundError):  # given away: he reads it no longer, and so cannot change it
        rag.view(principal=EVE).documents.delete(["mine.md"])
    # His next text of that name comes beside it, and is met from then on.
    beside = [rag.view(principal=EVE).ingest(Document(content="Mine again.", source="mine.md")) for _ in range(2)]
    assert [(one.status, one.version) for one in beside] == [("added", 1), ("unchanged", 1)]
    rag.view(principal=EVE).documents.set_ttl("mine.md", "1h")
    receipt = rag.view(principal=EVE).documents.erase(["mine.md"])
    assert receipt.counts == {"documents": 1} and receipt.copies == ()
    rag.view(principal=EVE).ingest(Document(content="More.", source="more.md"))
    rag.grants.set_collection(writers=["user:ann"])
    for attempt in (
        lambda: rag.view(principal=EVE).documents.delete(["more.md"]),
        lambda: rag.view(principal=EVE).ingest(Document(content="Even more.", source="more.md")),
    ):
        assert refused(attempt)[0] is PermissionDeniedError


def test_who_stores_a_document_may_read_it(rag: RAGPipeline):
    rag.view(collections="default").grants.add("role:board", only=True, default=True)
    for given in (None, ("role:board",)):
        rag.view(principal=EVE).ingest(Document(content="For the board.", source="board.md", permissions=given))
        assert rag.grants.of_documents("board.md")[0].permissions.grants == ("role:board", "user:eve")
        assert (
            rag.view(principal=EVE)
            .ingest(Document(content="For the board.", source="board.md", permissions=given))
            .status
            == "unchanged"
        )
    with pytest.raises(PermissionDeniedError, match="denial"):
        rag.view(principal=EVE).ingest(Document(content="Blind.", source="blind.md", permissions=("*", "!user:eve")))


def test_owners_of_the_collection_share_what_is_the_collections(rag: RAGPipeline):
    rag.ingest(Document(content="Rules.", source="rules.md"))
    second = Principal(user_id="second", roles=("editor",))
    changed = [rag.view(principal=who).ingest(Document(content=f"Rules {who.user_id}.", source="rules.md")).version
               for who in (CHAIR, second)]  # fmt: skip
    assert changed == [2, 3]
    assert rag.ingest(Document(content="Rules, last.", source="rules.md")).version == 4
    # What a writer has prepared under a name does not become theirs.
    rag.view(principal=EVE).ingest(Document(content="A trap.", source="budget.md", permissions=("user:eve",)))
    for who in (CHAIR, None):
        rag.view(principal=who).ingest(
            Document(content="The budget is a million.", source="budget.md", permissions=("role:editor",))
        )
    assert text_of(rag, "budget.md", EVE) == "A trap."
    assert rag.view(principal=EVE).retrieve("million budget")[0].content == "A trap."
    assert rag.view(principal=CHAIR).documents.delete([rag.documents.get("pay.md").document_id]) == 1


def test_folders_of_others_are_not_met(rag: RAGPipeline, tmp_path: Path):
    folder = tmp_path / "docs" / "hr"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("Annual leave is 30 days.")
    (folder / "b.txt").write_text("Sick leave is paid.")
    rag.ingest(tmp_path / "docs", permissions=("user:ann",))
    before = {one.document_id: one.version for one in rag.documents.list()}
    for expected in ("added", "unchanged"):
        report = rag.view(principal=EVE).ingest(folder, sync=True)
        assert (getattr(report, expected), report.removed, report.failed) == (2, 0, 0)
    # Named as if nobody had ever ingested what is around his folder.
    own = rag.view(principal=EVE).documents.list()
    assert sorted((one.source, one.department, one.origin) for one in own) == [
        ("a.txt", None, str(folder)),
        ("b.txt", None, str(folder)),
    ]
    (folder / "b.txt").unlink()
    assert rag.view(principal=EVE).ingest(folder, sync=True).removed == 1
    assert rag.view(principal=EVE).ingest(tmp_path / "docs").added == 0  # it takes over what is his
    assert {one.document_id: one.version for one in rag.documents.list() if one.document_id in before} == before
    # And the other way round.
    assert rag.ingest(tmp_path / "docs", sync=True).removed == 1
    assert [one.source for one in rag.view(principal=EVE).documents.list()] == ["hr/a.txt"]


def test_imports_of_others_are_not_met(rag: RAGPipeline, tmp_path: Path):
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": "pay.md", "text": "Not hers."}\n{"id": "new.md", "text": "New."}\n')
    report = rag.view(principal=EVE).collections.import_file(file)
    assert (report.added, report.updated, report.unchanged, report.failed) == (2, 0, 0, 0)
    # Whoever names a document by its source means the one that he would store: his own.
    assert [text_of(rag, "pay.md", who) for who in (ANN, EVE)] == [SECRET, "Not hers."]
    rag.grants.set_collection(writers=[])
    with pytest.raises(PermissionDeniedError):
        rag.view(principal=EVE).collections.import_file(file)


def test_an_erasure_tells_nothing_of_others(rag: RAGPipeline):
    rag.view(session="hers", principal=ANN).remember(f"I heard: {SECRET}")
    sessions = SessionRAG(rag, principal=ANN)
    sessions.create_session("upload")
    sessions.ingest_to_session("upload", Document(content=SECRET, source="copy.md"))
    receipts = []
    for guess in (SECRET, "The bonus of the chair is fifty thousand."):
        rag.view(principal=EVE).ingest(Document(content=guess, source="guess.md"))
        receipts.append(rag.view(principal=EVE).documents.erase(["guess.md"]))
    first, second = receipts
    assert (first.counts, first.copies, first.probe, first.complete) == (
        second.counts,
        second.copies,
        second.probe,
        second.complete,
    )
    assert rag.view(principal=ANN).memory.get("hers").turn_count == 1
    assert len(sessions.session_documents("upload")) == 1


def test_a_quota_says_nothing_of_how_much_there_is(rag: RAGPipeline):
    rag.tenants.set_quota("default", TenantQuota(max_documents=1))
    with pytest.raises(PermissionDeniedError, match="no room") as told:
        rag.view(principal=EVE).ingest(Document(content="One more.", source="more.md"))
    assert "1" not in str(told.value) and "2" not in str(told.value)
    with pytest.raises(QuotaExceededError):
        rag.ingest(Document(content="One more.", source="more.md"))


def test_the_cache_of_embeddings_is_no_oracle(rag: RAGPipeline):
    place = rag.collections.ensure()
    assert make_preparer(rag.standpoint.assembly, Scope(principal=EVE), place)._embedder is rag.embedder
    with psycopg.connect(rag.store.database.dsn) as connection:
        before = connection.execute("SELECT count(*) FROM recollect.embedding_cache").fetchone()
        rag.view(principal=EVE).ingest(Document(content="Never said before.", source="new.md"))
        assert connection.execute("SELECT count(*) FROM recollect.embedding_cache").fetchone() == before


def test_a_right_withdrawn_while_somebody_writes(rag: RAGPipeline):
    """Whoever withdraws waits for a write under way; what is withdrawn is withdrawn for the next statement."""

    def write(number: int) -> str:
        try:
            document = Document(content=f"Version {number}.", source="race.md", permissions=("*",))
            return rag.view(principal=EVE).ingest(document).status
        except PermissionDeniedError:
            return "denied"

    rag.view(principal=EVE).ingest(Document(content="First.", source="race.md"))
    number = rag.view(principal=EVE).documents.get("race.md").document_id
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write, one) for one in range(6)]
        rag.grants.set_collection(writers=["user:ann"])
        versions = len(rag.documents.history(number).versions)
        outcomes = [one.result() for one in writes]
    assert set(outcomes) <= {"updated", "denied"}
    assert versions == 1 + outcomes.count("updated")
