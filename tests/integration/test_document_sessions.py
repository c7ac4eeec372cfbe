"""Documents of sessions: seen in their session alone, gone with it, and never more than there is room for."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions, SessionRAG
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import (
    ConflictError,
    NotFoundError,
    RecollectError,
    SessionExpiredError,
    SessionFullError,
    UsageError,
)
from recollect.model import Scope
from recollect.model.document_session import SessionConfig

NUMBERS = itertools.count(1)
EVERYTHING = RetrievalOptions(top_k=200, collapse_duplicates=False)


@pytest.fixture
def sessions(pipeline: RAGPipeline) -> SessionRAG:
    return SessionRAG(pipeline)


def document(text: str, source: str | None = None) -> Document:
    return Document(content=text, source=source or f"{text}.txt")


def contents(reply) -> set[str]:
    return {one.content for one in reply.results}


def run_out(pipeline: RAGPipeline, *session_ids: str) -> None:
    """Let the time of sessions be over."""
    with pipeline.store.database.transaction(Scope()) as connection:
        connection.execute(
            "UPDATE document_sessions SET expires_at = clock_timestamp() - interval '1 s' WHERE name = ANY (%s)",
            [list(session_ids)],
        )


def rows_of_everything(pipeline: RAGPipeline) -> dict[str, int]:
    """How many rows each table holds of what belongs to a collection."""
    tables = (
        *("collections", "collection_state", "document_sessions", "sources", "documents", "document_versions"),
        *("document_contents", "texts", "chunks", "chunk_vectors", "chunk_lexical", "term_stats", "access_lists"),
        *("version_acronyms", "chunk_token_vectors", "embedding_cache", "search_health"),
    )
    with pipeline.store.database.transaction(Scope()) as connection:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


def test_a_sessions_documents_are_found_in_it_alone_and_are_gone_with_it(pipeline: RAGPipeline, sessions: SessionRAG):
    pipeline.ingest(document("The canteen opens at noon."))
    before = rows_of_everything(pipeline)
    sessions.create_session("one")
    sessions.create_session("two")
    stored = sessions.ingest_to_session("one", document("The offer (OF) ends on Friday. OF is the offer (OF)."))
    assert stored.status == "added"
    sessions.ingest_to_session("two", "The offer ends on Monday.")

    assert len(contents(sessions.search_session("one", "offer ends", EVERYTHING))) == 1
    assert "Friday" in sessions.search_session("one", "offer ends", EVERYTHING).results[0].content
    assert "Monday" in sessions.session("two").retrieve("offer ends", EVERYTHING)[0].content
    assert sessions.search_session("one", "offer").collection == "session:one"
    assert contents(pipeline.search("offer ends on Friday", EVERYTHING)) == {"The canteen opens at noon."}
    assert contents(pipeline.view(collections="*").search("offer", options=EVERYTHING)) == {
        "The canteen opens at noon."
    }

    assert sessions.end_session("one") == 1
    with pytest.raises(NotFoundError, match="no session 'one'"):
        sessions.search_session("one", "offer")
    assert "Monday" in sessions.search_session("two", "offer").results[0].content
    assert sessions.end_session("two") == 1
    assert rows_of_everything(pipeline) == before
    assert pipeline.maintenance.check() == []


def test_what_a_session_holds_exists_nowhere_else(pipeline: RAGPipeline, sessions: SessionRAG):
    pipeline.ingest(document("Public knowledge.", "public.txt"))
    sessions.create_session("mine")
    hidden = sessions.ingest_to_session("mine", document("Private knowledge.", "private.txt")).document_id
    (place,) = [one for one in pipeline.store.collections.list_all(Scope(), hidden=True) if one.hidden]

    status = pipeline.maintenance.status()
    assert (status.total_documents, status.total_chunks, sum(status.departments.values())) == (1, 1, 1)
    assert [one.name for one in status.collections] == [one.name for one in pipeline.collections.list()] == ["default"]
    assert [one.source for one in pipeline.documents.list()] == ["public.txt"]
    for name in (hidden, "private.txt"):
        for refused in (
            pipeline.documents.get,
            pipeline.documents.history,
            pipeline.grants.of_documents,
            lambda one: pipeline.documents.delete([one]),
            lambda one: pipeline.documents.erase([one]),
            lambda one: pipeline.documents.restore(one, 1),
            lambda one: pipeline.documents.set_ttl(one, "1d"),
            lambda one: pipeline.grants.add("user:eve", documents=one),
            lambda one: pipeline.why_not("private", one),
        ):
            with pytest.raises(NotFoundError):
                refused(name)
    for refused in (
        lambda: pipeline.view(collections=place.name).search("private"),
        lambda: list(pipeline.view(collections=place.name).collections.export_lines()),
        lambda: pipeline.collections.delete(place.name),
        lambda: pipeline.view(collections=place.name).grants.set_collection(readers=["*"]),
        lambda: pipeline.view(collections=place.name).documents.list(),
    ):
        with pytest.raises(NotFoundError):
            refused()
    with pytest.raises(UsageError, match="printable"):
        pipeline.collections.create(place.name)
    with pytest.raises(RecollectError):
        pipeline.view(collections=place.name).ingest(document("Planted."))
    assert [(one.source, one.collection) for one in sessions.session_documents("mine")] == [
        ("private.txt", "session:mine")
    ]


def test_erasing_a_document_erases_its_copies_in_sessions(pipeline: RAGPipeline, sessions: SessionRAG):
    kept = pipeline.ingest(document("Nobody asked about these words.")).document_id
    first = pipeline.ingest(document("The person's address is Kiln Lane 9.", "person")).document_id
    pipeline.ingest(document("The person moved away.", "person"))
    sessions.create_session("mine", SessionConfig(max_documents=2))
    copy = sessions.ingest_to_session("mine", document("The person's address is Kiln Lane 9.", "upload")).document_id
    other = sessions.ingest_to_session("mine", document("Nobody asked about these words.", "other")).document_id
    receipt = pipeline.documents.erase(["person"])
    assert {one.document_id for one in receipt.documents} == {first, copy}
    assert receipt.probe.found == {}
    assert contents(sessions.search_session("mine", "Kiln Lane address", EVERYTHING)) == {
        "Nobody asked about these words."
    }
    assert sessions.get_session("mine").document_count == 1
    assert [one.document_id for one in sessions.session_documents("mine")] == [other]
    assert pipeline.documents.get(kept).document_id == kept
    sessions.ingest_to_session("mine", document("There is room again."))
    assert pipeline.maintenance.check() == []


def test_verification_looks_into_sessions_too(pipeline: RAGPipeline, sessions: SessionRAG):
    sessions.create_session("mine")
    sessions.ingest_to_session("mine", document("Two words. " * 30))
    with pipeline.store.database.transaction(Scope()) as connection:
        connection.execute("DELETE FROM chunk_lexical")
    assert pipeline.maintenance.check() != []
    assert not pipeline.maintenance.verify().clean
    assert pipeline.maintenance.verify(repair=True).clean
    assert sessions.search_session("mine", "words", RetrievalOptions(mode="lexical")).results
    run_out(pipeline, "mine")
    assert pipeline.maintenance.verify().clean


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_every_arm_and_the_past(pipeline: RAGPipeline, sessions: SessionRAG, mode: str):
    sessions.create_session("mine")
    options = RetrievalOptions(mode=mode, top_k=5)
    sessions.ingest_to_session("mine", document("The offer ends on Friday.", "offer.txt"))
    with pipeline.store.database.transaction(Scope()) as connection:
        (between,) = connection.execute("SELECT clock_timestamp()").fetchone()
    assert sessions.ingest_to_session("mine", document("The offer ends on Monday.", "offer.txt")).version == 2
    assert contents(sessions.search_session("mine", "offer", options)) == {"The offer ends on Monday."}
    assert contents(sessions.search_session("mine", "offer", options, as_of=between)) == {"The offer ends on Friday."}


def test_answers_and_contexts_come_from_the_session(pipeline: RAGPipeline, sessions: SessionRAG):
    pipeline.ingest("The office in Leeds closes at 6 pm.")
    sessions.create_session("mine")
    sessions.ingest_to_session("mine", document("The office in York closes at 9 pm.", "york.txt"))
    assert "York closes at 9 pm" in sessions.session("mine").context("When does the office close?").text
    assert "Leeds" not in sessions.session("mine").context("When does the office in Leeds close?").text
    answer = sessions.ask_session("mine", "When does the office in York close?")
    assert {citation.source for citation in answer.citations} <= {"york.txt"}


def test_files_go_into_a_session_as_far_as_there_is_room(pipeline: RAGPipeline, sessions: SessionRAG, tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(f"File number {number}.", encoding="utf-8")
    sessions.create_session("mine", SessionConfig(max_documents=3))
    report = sessions.ingest_paths_to_session("mine", [tmp_path])
    assert (report.added, report.failed) == (3, 1)
    assert "no room for 1 more" in report.errors[0].error
    again = sessions.ingest_paths_to_session("mine", [tmp_path])
    assert (again.added, again.unchanged, again.failed) == (0, 3, 1)
    with pytest.raises(NotFoundError, match="no such file or folder"):
        sessions.ingest_paths_to_session("mine", [tmp_path / "missing"])


def test_a_full_session_refuses_and_keeps_what_it_has(sessions: SessionRAG):
    sessions.create_session("mine", SessionConfig(max_documents=2))
    sessions.ingest_many_to_session("mine", [document("one", "1"), document("two", "2")])
    with pytest.raises(SessionFullError, match="holds 2 of at most 2"):
        sessions.ingest_to_session("mine", document("three", "3"))
    with pytest.raises(SessionFullError):
        sessions.ingest_many_to_session("mine", [document("four", "2"), document("three", "3")])
    assert contents(sessions.search_session("mine", "one two three", EVERYTHING)) == {"one", "two"}
    # A new version needs no room, and neither does what is there already.
    assert sessions.ingest_to_session("mine", document("zwei", "2")).status == "updated"
    assert sessions.ingest_to_session("mine", document("one", "1")).status == "unchanged"


def test_in_a_full_session_the_oldest_text_goes(pipeline: RAGPipeline, sessions: SessionRAG):
    sessions.create_session("mine", SessionConfig(max_documents=2, when_full="oldest"))
    sessions.ingest_many_to_session("mine", [document("one", "1"), document("two", "2")])
    sessions.ingest_to_session("mine", document("eins", "1"))  # is younger than "two" now
    sessions.ingest_to_session("mine", document("three", "3"))
    assert contents(sessions.search_session("mine", "words", EVERYTHING)) == {"eins", "three"}
    # More at once than there is room for: the last ones stay.
    sessions.ingest_many_to_session("mine", [document(f"text {number}", f"n{number}") for number in range(70)])
    assert contents(sessions.search_session("mine", "text", EVERYTHING)) == {"text 68", "text 69"}
    assert sessions.get_session("mine").document_count == 2
    assert rows_of_everything(pipeline)["documents"] == 2
    assert pipeline.maintenance.check() == []


def test_a_document_that_has_expired_leaves_room(sessions: SessionRAG):
    sessions.create_session("mine", SessionConfig(max_documents=1))
    sessions.ingest_to_session("mine", Document(content="short-lived", source="1", ttl=0.001))
    sessions.ingest_to_session("mine", document("two", "2"))
    assert contents(sessions.search_session("mine", "two", EVERYTHING)) == {"two"}


@pytest.mark.parametrize("when_full", ["error", "oldest"])
def test_many_writers_never_put_more_into_a_session_than_it_may_hold(
    pipeline: RAGPipeline, sessions: SessionRAG, when_full
):
    sessions.create_session("mine", SessionConfig(max_documents=5, when_full=when_full))
    outcomes: list[str] = []

    def write(writer: int) -> None:
        for number in range(6):
            try:
                outcomes.append(sessions.ingest_to_session("mine", f"writer {writer} text {number}").status)
            except SessionFullError:
                outcomes.append("full")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 24
    assert outcomes.count("added") == (5 if when_full == "error" else 24)
    assert sessions.get_session("mine").document_count == 5
    assert len(sessions.session_documents("mine")) == 5
    assert len(contents(sessions.search_session("mine", "text", EVERYTHING))) == 5
    assert pipeline.maintenance.check() == []


@pytest.mark.parametrize("ended", [True, False])
def test_a_large_session_takes_its_indexes_along(dsn: str, tmp_path, ended: bool):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 5}, embedding={"provider": "hashing"}
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        sessions = SessionRAG(rag)
        sessions.create_session("mine")
        for edition in range(4):
            sessions.ingest_many_to_session("mine", [document(f"text {n} of {edition}", f"{n}") for n in range(8)])
        before = indexes(rag)
        assert any("hnsw" in name for name in before) and any("past" in name for name in before)
        assert len(contents(sessions.search_session("mine", "text", RetrievalOptions(top_k=20)))) == 8
        if ended:
            sessions.end_session("mine")
        else:
            run_out(rag, "mine")
            assert sessions.cleanup_expired() == 1
        assert indexes(rag) == []


def indexes(pipeline: RAGPipeline) -> list[str]:
    """The indexes that belong to one collection each."""
    with pipeline.store.database.transaction(Scope()) as connection:
        found = connection.execute(r"SELECT relname FROM pg_class WHERE relkind = 'i' AND relname ~ '_[0-9]+$'")
        return [row[0] for row in found.fetchall()]


def test_a_session_that_is_ended_while_it_is_written_leaves_nothing(pipeline: RAGPipeline, sessions: SessionRAG):
    pipeline.collections.ensure()
    before = rows_of_everything(pipeline)
    sessions.create_session("mine")
    started = threading.Event()
    failures: list[Exception] = []

    def write() -> None:
        try:
            for number in range(1_000):
                sessions.ingest_to_session("mine", f"text {number}")
                started.set()
        except NotFoundError as exc:
            failures.append(exc)

    writer = threading.Thread(target=write)
    writer.start()
    assert started.wait(60)
    sessions.end_session("mine")
    writer.join()
    assert "no session 'mine'" in str(failures[0])
    assert rows_of_everything(pipeline) == before


def test_of_those_who_begin_one_session_at_once_one_does(sessions: SessionRAG):
    outcomes: list[str] = []

    def begin() -> None:
        try:
            sessions.create_session("mine")
            outcomes.append("begun")
        except ConflictError:
            outcomes.append("there already")

    threads = [threading.Thread(target=begin) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["begun", *["there already"] * 4]


def test_an_expired_session_is_neither_searched_nor_written_and_goes(pipeline: RAGPipeline, sessions: SessionRAG):
    pipeline.collections.ensure()
    before = rows_of_everything(pipeline)
    for name, auto_cleanup in (("automatic", True), ("by hand", False)):
        sessions.create_session(name, SessionConfig(auto_cleanup=auto_cleanup))
        sessions.ingest_to_session(name, "An offer.")
    run_out(pipeline, "automatic", "by hand")
    for _ in range(2):
        for attempt in (
            lambda: sessions.search_session("by hand", "offer"),
            lambda: sessions.ask_session("by hand", "offer"),
            lambda: sessions.ingest_to_session("by hand", "More."),
            lambda: sessions.session_documents("by hand"),
            lambda: sessions.renew_session("by hand"),
        ):
            with pytest.raises(SessionExpiredError, match="'by hand' has expired"):
                attempt()
    with pytest.raises(SessionExpiredError):
        sessions.search_session("automatic", "offer")
    with pytest.raises(NotFoundError, match="no session 'automatic'"):
        sessions.get_session("automatic")
    assert [(one.session_id, one.expired) for one in sessions.list_sessions()] == [("by hand", True)]
    with pytest.raises(ConflictError, match="already"):
        sessions.create_session("by hand")
    assert sessions.cleanup_expired() == 1
    assert sessions.cleanup_expired() == 0
    assert rows_of_everything(pipeline) == before


def test_the_database_itself_hides_what_has_expired(pipeline: RAGPipeline, sessions: SessionRAG):
    sessions.create_session("mine")
    place = pipeline.store.document_sessions.get(Scope(), "mine")
    kept = place.scope(Scope())
    assert pipeline.store.collections.find(kept, place.collection) is not None
    assert pipeline.store.collections.find(Scope(), place.collection) is None
    assert pipeline.store.collections.find(Scope(session=place.collection_id + 1), place.collection) is None
    run_out(pipeline, "mine")
    assert pipeline.store.collections.find(kept, place.collection) is None


def test_expired_sessions_are_removed_in_passing_and_by_the_clean_up(pipeline: RAGPipeline, sessions: SessionRAG):
    for name in ("a", "b", "c"):
        sessions.create_session(name)
    run_out(pipeline, "a", "b")
    sessions.create_session("a")  # the expired one makes way
    assert [one.session_id for one in sessions.list_sessions()] == ["c", "a"]
    run_out(pipeline, "c")
    assert pipeline.maintenance.cleanup().sessions_ended == 1
    assert [one.session_id for one in sessions.list_sessions()] == ["a"]


def test_the_time_of_a_session_is_over_in_the_middle_of_an_ingest(pipeline: RAGPipeline, sessions: SessionRAG):
    sessions.create_session("mine", SessionConfig(auto_cleanup=False))

    def documents():
        for number in range(200):
            if number == 150:
                run_out(pipeline, "mine")
            yield document(f"text {number}")

    with pytest.raises(SessionExpiredError):
        sessions.ingest_many_to_session("mine", documents())


def test_renewing_begins_the_time_anew(pipeline: RAGPipeline, sessions: SessionRAG):
    first = sessions.create_session("mine", SessionConfig(ttl="1h"))
    assert (first.expires_at - first.created_at).total_seconds() == 3600
    renewed = sessions.renew_session("mine")
    assert renewed.expires_at > first.expires_at
    assert renewed.created_at == first.created_at
    for_ever = sessions.create_session("for ever", SessionConfig(ttl=None))
    assert (for_ever.expires_at, for_ever.ttl, for_ever.expired) == (None, None, False)
    assert sessions.renew_session("for ever").expires_at is None


def test_any_string_names_a_session(sessions: SessionRAG):
    sessions.create_session("mine")
    for session_id in (
        *("a b", "default", "'; DROP TABLE documents; --", "%s %(name)s {0}", "../../etc/passwd", "session\x1fmine"),
        *("\u202eright to left \u05d0", "line\nbreak\x1f\x07", "😀" * 200),
    ):
        assert sessions.create_session(session_id).session_id == session_id
        sessions.ingest_to_session(session_id, "An offer.")
        assert contents(sessions.search_session(session_id, "offer")) == {"An offer."}
        assert contents(sessions.search_session("mine", "offer")) == set()
        assert {one.session_id for one in sessions.list_sessions()} == {"mine", session_id}
        assert sessions.end_session(session_id) == 1


def test_what_cannot_name_a_session_is_refused(sessions: SessionRAG):
    for session_id in ("", "  \n", "nul \0", "half \ud800", "x" * 201, 7, None):
        with pytest.raises(UsageError, match=r"session[ _]id"):
            sessions.create_session(session_id)


def test_sessions_of_tenants_are_apart(pipeline: RAGPipeline, sessions: SessionRAG):
    with pipeline.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'other')")
    other = SessionRAG(pipeline, tenant_id=2)
    sessions.create_session("mine")
    sessions.ingest_to_session("mine", "An offer.")
    with pytest.raises(NotFoundError):
        other.search_session("mine", "offer")
    other.create_session("mine")
    other.ingest_to_session("mine", "Another one.")
    assert contents(sessions.search_session("mine", "offer")) == {"An offer."}
    assert other.end_session("mine") == 1
    assert len(sessions.list_sessions()) == 1
    with pytest.raises(NotFoundError, match="no tenant 3"):
        SessionRAG(pipeline, tenant_id=3).create_session("mine")


def test_the_session_of_a_person_exists_for_that_person_alone(dsn: str, tmp_path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        access={"mode": "enforce"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        ann = SessionRAG(rag, principal=Principal(user_id="ann", roles=("hr",)))
        bob = SessionRAG(rag, principal=Principal(user_id="bob", roles=("hr",)))
        nobody = SessionRAG(rag, principal=Principal(roles=("hr",)))
        owner = SessionRAG(rag)
        assert ann.create_session("mine").owner == "ann"
        ann.ingest_to_session("mine", Document(content="An offer.", source="offer", permissions=("user:bob",)))
        assert contents(ann.search_session("mine", "offer")) == {"An offer."}
        for attempt in (
            lambda: bob.search_session("mine", "offer"),
            lambda: bob.ingest_to_session("mine", "Planted."),
            lambda: bob.session_documents("mine"),
            lambda: bob.renew_session("mine"),
            lambda: bob.end_session("mine"),
            lambda: bob.get_session("mine"),
        ):
            with pytest.raises(NotFoundError, match="no session 'mine'"):
                attempt()
        bob.create_session("mine")  # as if nobody had one of that id
        bob.ingest_to_session("mine", "A bid.")
        assert contents(bob.search_session("mine", "offer bid")) == {"A bid."}
        assert contents(ann.search_session("mine", "offer bid")) == {"An offer."}
        with pytest.raises(ConflictError):
            bob.create_session("mine")
        with pytest.raises(UsageError, match="Several users"):
            owner.get_session("mine")
        assert bob.end_session("mine") == 1
        with pytest.raises(UsageError, match="user_id"):
            nobody.create_session("another")
        owner.create_session("common")
        bob.ingest_to_session("common", "For all.")
        assert contents(ann.search_session("common", "all")) == {"For all."}
        assert [[one.session_id for one in who.list_sessions()] for who in (ann, bob, owner)] == [
            ["mine"],
            [],
            ["mine", "common"],
        ]
        assert contents(owner.search_session("mine", "offer")) == {"An offer."}
        assert ann.end_session("mine") == 1


def test_configured_defaults(dsn: str, tmp_path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        session={"ttl": "2d", "max_documents": 7, "auto_cleanup": False, "when_full": "oldest"},
    )
    with SessionRAG(config) as rag:
        made = rag.create_session("mine")
        assert (made.ttl.days, made.max_documents, made.auto_cleanup, made.when_full) == (2, 7, False, "oldest")
        rag.ingest_to_session("mine", "An offer.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttl": 0},
        {"ttl": "soon"},
        {"max_documents": 0},
        {"max_documents": 1.5},
        {"max_documents": True},
        {"when_full": "x"},
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError):
        SessionConfig(**wrong)


# A random history against a model

IDS = ("a", "b", "‮c\x07")
SOURCES = ("1", "2", "3")


@dataclass
class Held:
    """A session as it should be: texts by source, the oldest first."""

    config: SessionConfig
    texts: dict[str, str] = field(default_factory=dict)
    expired: bool = False

    def takes(self, source: str, text: str) -> bool:
        if source not in self.texts and len(self.texts) >= self.config.max_documents:
            if self.config.when_full == "error":
                return False
            del self.texts[next(iter(self.texts))]
        self.texts.pop(source, None)
        self.texts[source] = text
        return True


class Model:
    """What should be true after every step."""

    def __init__(self, pipeline: RAGPipeline) -> None:
        self.pipeline = pipeline
        self.rag = SessionRAG(pipeline)
        self.rag.cleanup_expired()
        for one in self.rag.list_sessions():
            self.rag.end_session(one.session_id)
        pipeline.collections.ensure()
        for place in pipeline.collections.list():
            pipeline.collections.delete(place.name)
        self.common: set[str] = set()
        self.held: dict[str, Held] = {}
        pipeline.collections.ensure()

    def _pass(self) -> None:
        for name in [name for name, held in self.held.items() if held.expired and held.config.auto_cleanup]:
            del self.held[name]

    def create(self, name: str, most: int, when_full, auto_cleanup: bool) -> None:
        config = SessionConfig(max_documents=most, when_full=when_full, auto_cleanup=auto_cleanup)
        self._pass()
        if name in self.held:
            with pytest.raises(ConflictError):
                self.rag.create_session(name, config)
        else:
            self.rag.create_session(name, config)
            self.held[name] = Held(config)

    def ingest(self, name: str, source: str) -> None:
        text = f"text {next(NUMBERS)} of {source}"
        self._try(name, lambda: self.rag.ingest_to_session(name, document(text, source)), source, text)

    def _try(self, name: str, attempt, source: str, text: str) -> None:
        held = self.held.get(name)
        if held is None or held.expired:
            with pytest.raises(SessionExpiredError if held else NotFoundError):
                attempt()
            if held and held.config.auto_cleanup:
                del self.held[name]
        elif held.takes(source, text):
            attempt()
        else:
            with pytest.raises(SessionFullError):
                attempt()

    def common_ingest(self, source: str) -> None:
        text = f"common {next(NUMBERS)} of {source}"
        self.pipeline.ingest(document(text))
        self.common.add(text)

    def expire(self, name: str) -> None:
        if name in self.held:
            run_out(self.pipeline, name)
            self.held[name].expired = True

    def end(self, name: str) -> None:
        held = self.held.pop(name, None)
        if held is None:
            with pytest.raises(NotFoundError):
                self.rag.end_session(name)
        else:
            assert self.rag.end_session(name) == len(held.texts)

    def clean(self) -> None:
        over = [name for name, held in self.held.items() if held.expired]
        assert self.rag.cleanup_expired() == len(over)
        for name in over:
            del self.held[name]

    def search(self, name: str, mode) -> None:
        options = RetrievalOptions(mode=mode, top_k=50, collapse_duplicates=False)
        held = self.held.get(name)
        if held is None or held.expired:
            with pytest.raises(SessionExpiredError if held else NotFoundError):
                self.rag.search_session(name, "text of", options)
            if held and held.config.auto_cleanup:
                del self.held[name]
        else:
            assert contents(self.rag.search_session(name, "text", options)) == set(held.texts.values())

    def holds(self) -> None:
        assert contents(self.pipeline.search("common text", EVERYTHING)) == self.common
        assert self.pipeline.maintenance.status().total_documents == len(self.common)
        stored = rows_of_everything(self.pipeline)
        assert stored["document_sessions"] == len(self.held)
        assert stored["collections"] == 1 + len(self.held)
        assert stored["documents"] == len(self.common) + sum(len(held.texts) for held in self.held.values())


def often(*names: str):
    """One of the sessions, most often the first: what it takes several steps to come to must happen too."""
    return st.sampled_from([names[0]] * 3 + [*names])


INGEST = st.tuples(st.just("ingest"), often(*IDS), st.sampled_from(SOURCES))
STEPS = st.one_of(
    *[INGEST] * 3,
    st.tuples(st.just("search"), often(*IDS), st.sampled_from(["hybrid", "dense", "lexical"])),
    st.tuples(st.just("common_ingest"), st.sampled_from(SOURCES)),
    st.tuples(st.sampled_from(["expire", "end"]), st.sampled_from(IDS)),
    st.tuples(
        st.just("create"),
        often(*IDS),
        st.integers(1, 3),
        st.sampled_from(["error", "oldest"]),
        st.booleans(),
    ),
    st.tuples(st.just("clean")),
)
BEGUN = [("create", "a", 2, "oldest", False), ("create", "b", 1, "error", True)]


@settings(max_examples=4 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=8, max_size=25))
def test_a_random_history_is_what_a_model_says(pipeline: RAGPipeline, steps):
    model = Model(pipeline)
    for name, *arguments in [*BEGUN, *steps]:
        getattr(model, name)(*arguments)
        model.holds()
        if name == "ingest":
            model.search(arguments[0], "lexical")
    for name in IDS:
        model.search(name, "hybrid")
    assert pipeline.maintenance.check() == []
