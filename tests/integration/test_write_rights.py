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

ANN = Principal(user_id="ann", department="hr")
EVE = Principal(user_id="eve", department="it")
CHAIR = Principal(user_id="chair", roles=("editor",))
SECRET = "The bonus of the chair is forty thousand."


@pytest.fixture
def rag(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    """Ann's secret in a collection that Ann and Eve write to, and that the editors own."""
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        opened.ensure_collection()
        opened.set_collection_access(writers=["user:ann", "user:eve"], owners=["role:editor"])
        opened.ingest(Document(content=SECRET, source="pay.md", permissions=("user:ann",)), principal=ANN)
        yield opened


def text_of(rag: RAGPipeline, source: str, principal: Principal | None) -> str | None:
    return rag.get_document(source, principal=principal).content


def refused(action: Callable[[], Any]) -> tuple[type, str]:
    with pytest.raises(RecollectError) as error:
        action()
    return error.type, str(error.value)


def test_nobody_writes_by_default(pipeline: RAGPipeline):
    pipeline.ensure_collection()
    assert pipeline.collection_access().writers == ()
    with pytest.raises(PermissionDeniedError, match="writer"):
        pipeline.ingest("Planted.", principal=EVE)
    with pytest.raises(PermissionDeniedError, match="name the user"):
        pipeline.set_collection_access(writers=["*"])
        pipeline.ingest("Planted.", principal=Principal(roles=("clerk",)))


@pytest.mark.parametrize("given", [None, ("user:eve",), ("*",)])
def test_a_stranger_stores_beside_what_he_cannot_read(rag: RAGPipeline, given: tuple[str, ...] | None):
    for guess in ("Something else.", SECRET):
        for source in ("pay.md", "never.md"):
            document = Document(content=guess, source=source, permissions=given)
            stored, again = (rag.ingest(document, principal=EVE) for _ in range(2))
            assert (stored.status, stored.version) == (("added", 1) if guess != SECRET else ("updated", 2))
            assert (again.status, again.version) == ("unchanged", stored.version)
    assert text_of(rag, "pay.md", EVE) == SECRET  # his own guess
    own = rag.get_document("pay.md", principal=EVE).document_id
    assert [one.version for one in rag.document_history(own, principal=EVE).versions] == [1, 2]
    # Hers is what it was: the text, the grants, the history; and nobody reads his text as hers.
    (hers,) = [one for one in rag.list_documents(principal=ANN) if one.source == "pay.md" and one.document_id != own]
    assert rag.get_document(hers.document_id, principal=ANN).content == SECRET
    assert hers.version == 1
    assert rag.permissions_of(hers.document_id)[0].permissions.grants == ("user:ann",)
    with pytest.raises(NotFoundError):
        rag.get_document(hers.document_id, principal=EVE)


def test_every_way_of_writing_to_another_document_is_refused_as_if_it_were_not_there(rag: RAGPipeline):
    hers = rag.get_document("pay.md", principal=ANN).document_id
    attempts: list[Callable[[int | str], Any]] = [
        lambda one: rag.delete_documents([one], principal=EVE),
        lambda one: rag.erase([one], principal=EVE),
        lambda one: rag.restore_document(one, 1, principal=EVE),
        lambda one: rag.set_document_ttl(one, "1s", principal=EVE),
        lambda one: rag.grant("user:eve", documents=one, principal=EVE),
        lambda one: rag.revoke("user:ann", documents=one, principal=EVE),
        lambda one: rag.deny("user:ann", documents=one, principal=EVE),
        lambda one: rag.permissions_of(one, principal=EVE),
    ]
    for attempt in attempts:
        for name, absent in (("pay.md", "no.md"), (str(hers), str(hers + 1))):
            there, not_there = refused(lambda: attempt(name)), refused(lambda: attempt(absent))  # noqa: B023
            assert there[0] is not_there[0] is NotFoundError
            assert there[1].replace(name, absent) == not_there[1]
    # What he may read and does not own is refused as what it is.
    rag.grant("*", documents=hers, only=True, principal=ANN)
    for attempt in attempts:
        assert refused(lambda: attempt("pay.md"))[0] is PermissionDeniedError  # noqa: B023
    for attempt in (
        lambda: rag.grant("user:eve", collection="default", principal=EVE),
        lambda: rag.set_collection_access(owners=["user:eve"], principal=EVE),
        lambda: rag.collection_access(principal=EVE),
    ):
        assert refused(attempt)[0] is PermissionDeniedError
    with pytest.raises(NotFoundError):
        rag.grant("user:eve", source="manual", collection="default", principal=EVE)
    assert text_of(rag, "pay.md", ANN) == SECRET


def test_the_database_itself_refuses_what_a_check_before_has_let_pass(rag: RAGPipeline):
    scope, hers = Scope(principal=EVE), rag.get_document("pay.md").document_id
    for attempt in (
        lambda: rag.store.writer.close(scope, [hers]),
        lambda: rag.store.erasure.erase(scope, [hers], actor="eve"),
        lambda: rag.store.history.restore(scope, hers, 1, actor="eve"),
        lambda: rag.store.expiry.set_lifetime(scope, hers, None),
    ):
        assert refused(attempt)[0] is NotFoundError
    place = rag.ensure_collection()
    rag.set_collection_access(writers=["user:ann"])
    with pytest.raises(PermissionDeniedError):
        rag.store.writer.write(
            scope, place, rag.store.documents.ensure_source(Scope(), place, "manual", "manual"), [_prepared(rag)]
        )


def _prepared(rag: RAGPipeline) -> Any:
    scope, place = Scope(), rag.ensure_collection()
    preparer = rag._parts.preparer(scope, place)
    cut = preparer.cut(Document(content="x y z", source="x.md"), "fingerprint")
    return preparer.finish([cut], preparer.embed([cut]), reference_length=1.0)[0]


def test_a_writer_looks_after_his_own(rag: RAGPipeline):
    rag.ingest(Document(content="Mine.", source="mine.md"), principal=EVE)
    changed = rag.ingest(Document(content="Mine, anew.", source="mine.md"), principal=EVE)
    assert (changed.status, changed.version) == ("updated", 2)
    assert rag.restore_document("mine.md", 1, principal=EVE).version == 3
    assert rag.grant("user:bob", documents="mine.md", only=True, principal=EVE) == 1
    with pytest.raises(NotFoundError):  # given away: he reads it no longer, and so cannot change it
        rag.delete_documents(["mine.md"], principal=EVE)
    # His next text of that name comes beside it, and is met from then on.
    beside = [rag.ingest(Document(content="Mine again.", source="mine.md"), principal=EVE) for _ in range(2)]
    assert [(one.status, one.version) for one in beside] == [("added", 1), ("unchanged", 1)]
    rag.set_document_ttl("mine.md", "1h", principal=EVE)
    receipt = rag.erase(["mine.md"], principal=EVE)
    assert receipt.counts == {"documents": 1} and receipt.copies == ()
    rag.ingest(Document(content="More.", source="more.md"), principal=EVE)
    rag.set_collection_access(writers=["user:ann"])
    for attempt in (
        lambda: rag.delete_documents(["more.md"], principal=EVE),
        lambda: rag.ingest(Document(content="Even more.", source="more.md"), principal=EVE),
    ):
        assert refused(attempt)[0] is PermissionDeniedError


def test_who_stores_a_document_may_read_it(rag: RAGPipeline):
    rag.grant("role:board", collection="default", only=True)
    for given in (None, ("role:board",)):
        rag.ingest(Document(content="For the board.", source="board.md", permissions=given), principal=EVE)
        assert rag.permissions_of("board.md")[0].permissions.grants == ("role:board", "user:eve")
        assert (
            rag.ingest(Document(content="For the board.", source="board.md", permissions=given), principal=EVE).status
            == "unchanged"
        )
    with pytest.raises(PermissionDeniedError, match="denial"):
        rag.ingest(Document(content="Blind.", source="blind.md", permissions=("*", "!user:eve")), principal=EVE)


def test_owners_of_the_collection_share_what_is_the_collections(rag: RAGPipeline):
    rag.ingest(Document(content="Rules.", source="rules.md"))
    second = Principal(user_id="second", roles=("editor",))
    changed = [rag.ingest(Document(content=f"Rules {who.user_id}.", source="rules.md"), principal=who).version
               for who in (CHAIR, second)]  # fmt: skip
    assert changed == [2, 3]
    assert rag.ingest(Document(content="Rules, last.", source="rules.md")).version == 4
    # What a writer has prepared under a name does not become theirs.
    rag.ingest(Document(content="A trap.", source="budget.md", permissions=("user:eve",)), principal=EVE)
    for who in (CHAIR, None):
        rag.ingest(Document(content="The budget is a million.", source="budget.md", permissions=("role:editor",)),
                   principal=who)  # fmt: skip
    assert text_of(rag, "budget.md", EVE) == "A trap."
    assert rag.retrieve("million budget", principal=EVE)[0].content == "A trap."
    assert rag.delete_documents([rag.get_document("pay.md").document_id], principal=CHAIR) == 1


def test_folders_of_others_are_not_met(rag: RAGPipeline, tmp_path: Path):
    folder = tmp_path / "docs" / "hr"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("Annual leave is 30 days.")
    (folder / "b.txt").write_text("Sick leave is paid.")
    rag.ingest_paths([tmp_path / "docs"], permissions=("user:ann",))
    before = {one.document_id: one.version for one in rag.list_documents()}
    for expected in ("added", "unchanged"):
        report = rag.ingest_paths([folder], sync=True, principal=EVE)
        assert (getattr(report, expected), report.removed, report.failed) == (2, 0, 0)
    # Named as if nobody had ever ingested what is around his folder.
    own = rag.list_documents(principal=EVE)
    assert sorted((one.source, one.department, one.origin) for one in own) == [
        ("a.txt", None, str(folder)),
        ("b.txt", None, str(folder)),
    ]
    (folder / "b.txt").unlink()
    assert rag.ingest_paths([folder], sync=True, principal=EVE).removed == 1
    assert rag.ingest_paths([tmp_path / "docs"], principal=EVE).added == 0  # it takes over what is his
    assert {one.document_id: one.version for one in rag.list_documents() if one.document_id in before} == before
    # And the other way round.
    assert rag.ingest_paths([tmp_path / "docs"], sync=True).removed == 1
    assert [one.source for one in rag.list_documents(principal=EVE)] == ["hr/a.txt"]


def test_imports_of_others_are_not_met(rag: RAGPipeline, tmp_path: Path):
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": "pay.md", "text": "Not hers."}\n{"id": "new.md", "text": "New."}\n')
    report = rag.import_file(file, principal=EVE)
    assert (report.added, report.updated, report.unchanged, report.failed) == (2, 0, 0, 0)
    # Whoever names a document by its source means the one that he would store: his own.
    assert [text_of(rag, "pay.md", who) for who in (ANN, EVE)] == [SECRET, "Not hers."]
    rag.set_collection_access(writers=[])
    with pytest.raises(PermissionDeniedError):
        rag.import_file(file, principal=EVE)


def test_an_erasure_tells_nothing_of_others(rag: RAGPipeline):
    rag.remember("hers", f"I heard: {SECRET}", principal=ANN)
    sessions = SessionRAG(rag, principal=ANN)
    sessions.create_session("upload")
    sessions.ingest_to_session("upload", Document(content=SECRET, source="copy.md"))
    receipts = []
    for guess in (SECRET, "The bonus of the chair is fifty thousand."):
        rag.ingest(Document(content=guess, source="guess.md"), principal=EVE)
        receipts.append(rag.erase(["guess.md"], principal=EVE))
    first, second = receipts
    assert (first.counts, first.copies, first.probe, first.complete) == (
        second.counts,
        second.copies,
        second.probe,
        second.complete,
    )
    assert rag.get_session("hers", principal=ANN).turn_count == 1
    assert len(sessions.session_documents("upload")) == 1


def test_a_quota_says_nothing_of_how_much_there_is(rag: RAGPipeline):
    rag.set_tenant_quota("default", TenantQuota(max_documents=1))
    with pytest.raises(PermissionDeniedError, match="no room") as told:
        rag.ingest(Document(content="One more.", source="more.md"), principal=EVE)
    assert "1" not in str(told.value) and "2" not in str(told.value)
    with pytest.raises(QuotaExceededError):
        rag.ingest(Document(content="One more.", source="more.md"))


def test_the_cache_of_embeddings_is_no_oracle(rag: RAGPipeline):
    place = rag.ensure_collection()
    assert rag._parts.preparer(Scope(principal=EVE), place)._embedder is rag.embedder
    with psycopg.connect(rag.store.database.dsn) as connection:
        before = connection.execute("SELECT count(*) FROM recollect.embedding_cache").fetchone()
        rag.ingest(Document(content="Never said before.", source="new.md"), principal=EVE)
        assert connection.execute("SELECT count(*) FROM recollect.embedding_cache").fetchone() == before


def test_a_right_withdrawn_while_somebody_writes(rag: RAGPipeline):
    """Whoever withdraws waits for a write under way; what is withdrawn is withdrawn for the next statement."""

    def write(number: int) -> str:
        try:
            document = Document(content=f"Version {number}.", source="race.md", permissions=("*",))
            return rag.ingest(document, principal=EVE).status
        except PermissionDeniedError:
            return "denied"

    rag.ingest(Document(content="First.", source="race.md"), principal=EVE)
    number = rag.get_document("race.md", principal=EVE).document_id
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write, one) for one in range(6)]
        rag.set_collection_access(writers=["user:ann"])
        versions = len(rag.document_history(number).versions)
        outcomes = [one.result() for one in writes]
    assert set(outcomes) <= {"updated", "denied"}
    assert versions == 1 + outcomes.count("updated")
