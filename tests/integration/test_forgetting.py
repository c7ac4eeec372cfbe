"""A turn that is erased was never said."""

from __future__ import annotations

import hashlib
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect import RAGConfig, RAGPipeline, RecallOptions, Turn
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError
from recollect.llm.scripted import ScriptedChatModel
from recollect.model import Scope

TURNS = [
    Turn(role="Ada", content="Where shall we meet?", at=datetime(2023, 5, 8, tzinfo=UTC)),
    Turn(role="Ben", content="At the aquarium, by the sharks.", at=datetime(2023, 5, 8, tzinfo=UTC)),
    Turn(role="Ada", content="Lovely, at noon then.", at=datetime(2023, 5, 9, tzinfo=UTC)),
    Turn(role="Ben", content="I bring sandwiches."),
    Turn(role="Ada", content="My locker number is 17."),
]


def index_of(rag: RAGPipeline, name: str) -> list[tuple]:
    """Everything that searches of a session read, in words that do not depend on its numbers."""
    with rag.store.database.transaction(Scope()) as connection:
        turns = connection.execute(
            "SELECT e.content, v.embedding::text, l.length, l.lexemes, l.weights::text FROM sessions s "
            "JOIN episodes e USING (tenant_id, session_id) JOIN episode_vectors v USING (tenant_id, episode_id) "
            "JOIN episode_lexical l USING (tenant_id, episode_id) WHERE s.name = %s ORDER BY e.position",
            (name,),
        ).fetchall()
        terms = connection.execute(
            "SELECT t.lexeme, t.frequency FROM session_terms t JOIN sessions s USING (tenant_id, session_id) "
            "WHERE s.name = %s ORDER BY 1",
            (name,),
        ).fetchall()
        sizes = connection.execute(
            "SELECT turn_count, round(term_count::numeric, 3) FROM sessions WHERE name = %s", (name,)
        ).fetchall()
    return [*turns, *terms, *sizes]


@pytest.mark.parametrize("gone", [[1], [2], [3], [5], [1, 2], [2, 4], [1, 3, 5], [1, 2, 3, 4]])
def test_memory_is_as_though_it_had_never_been_said(pipeline: RAGPipeline, gone: list[int]):
    pipeline.view(session="all").remember(TURNS)
    assert pipeline.memory.forget("all", gone) == len(gone)
    pipeline.view(session="kept").remember([turn for number, turn in enumerate(TURNS, start=1) if number not in gone])
    assert index_of(pipeline, "all") == index_of(pipeline, "kept")
    assert [turn.position for turn in pipeline.memory.turns("all")] == [n for n in range(1, 6) if n not in gone]


def test_nothing_finds_it_any_more(pipeline: RAGPipeline):
    pipeline.view(session="chat").remember(TURNS)
    for mode in ("hybrid", "lexical", "dense"):
        assert "aquarium" in pipeline.recall("aquarium sharks", RecallOptions(top_k=1, mode=mode))[0].episode.content
    pipeline.facts.consolidate(min_retrievals=1)
    pipeline.memory.forget("chat", [2])
    assert pipeline.recall("aquarium sharks", RecallOptions(mode="lexical")) == []
    for hit in pipeline.recall("aquarium sharks"):
        assert all("aquarium" not in turn.content for turn in (*hit.before, hit.episode, *hit.after))
    assert not any("aquarium" in fact.statement for fact in pipeline.facts.list(superseded=True))
    # The conversation goes on behind its last turn.
    assert pipeline.view(session="chat").remember("See you!").positions == (6,)


def test_a_fact_of_several_turns_goes_with_any_of_them(dsn: str, tmp_path: Path):
    evidence = [{"turn": 1, "quote": "aquarium"}, {"turn": 2, "quote": "at noon"}]
    reply = json.dumps({"facts": [{"statement": "They meet at the aquarium at noon.", "evidence": evidence}]})
    config = RAGConfig.load(storage={"data_dir": tmp_path / "x", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=ScriptedChatModel(reply)) as rag:
        for session, forget in (("one", [1]), ("two", [2])):
            rag.view(session=session).remember(TURNS[1:3])
            rag.view(session=session).recall("aquarium")
            assert rag.facts.consolidate(min_retrievals=1).added == 1
            assert len(rag.facts.list()[0].evidence) == 2
            rag.memory.forget(session, forget)
            assert not rag.facts.list(superseded=True)
        # Across conversations of one user: whichever is deleted.
        for gone, kept in (("a", "b"), ("c", "d")):
            rag.view(session=gone, user=gone + kept).remember([TURNS[1]])
            rag.view(session=kept, user=gone + kept).remember([TURNS[2]])
            rag.view(user=gone + kept).recall("aquarium at noon")
            assert rag.view(user=gone + kept).facts.consolidate(min_retrievals=1).added == 1
            rag.memory.delete(gone)
            assert not rag.view(user=gone + kept).facts.list()


def test_what_is_not_there_is_not_forgotten(pipeline: RAGPipeline):
    pipeline.view(session="chat").remember(TURNS)
    for positions in ([6], [1, 99], [0]):
        with pytest.raises(NotFoundError, match="has no turn"):
            pipeline.memory.forget("chat", positions)
    assert pipeline.memory.get("chat").turn_count == 5
    with pytest.raises(NotFoundError):
        pipeline.memory.forget("missing", [1])


def test_forgetting_beside_appends_loses_nothing(pipeline: RAGPipeline):
    pipeline.view(session="chat").remember([f"turn {number} of many" for number in range(20)])
    failures: list[BaseException] = []

    def append() -> None:
        try:
            for number in range(10):
                pipeline.view(session="chat").remember(f"later turn {number}")
        except BaseException as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    def forget(positions: list[int]) -> None:
        try:
            for position in positions:
                pipeline.memory.forget("chat", [position])
        except BaseException as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    threads = [
        threading.Thread(target=append),
        threading.Thread(target=forget, args=([20, 18, 16, 14],)),
        threading.Thread(target=forget, args=([19, 17, 15, 13],)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    kept = pipeline.memory.turns("chat")
    assert len(kept) == 22 == pipeline.memory.get("chat").turn_count
    pipeline.view(session="again").remember([turn.content for turn in kept])
    assert index_of(pipeline, "chat") == index_of(pipeline, "again")


def test_a_receipt_stays_that_says_nothing_of_what_was_said(pipeline: RAGPipeline):
    pipeline.view(session="the secret chat").remember(TURNS)
    pipeline.recall("locker", RecallOptions(top_k=10))
    drawn = pipeline.facts.consolidate(min_retrievals=1).added
    pipeline.view(actor="ada").memory.forget("the secret chat", [5])
    pipeline.view(actor="eve").memory.delete("the secret chat")
    whole, turn = pipeline.audit.list(action="forget")
    assert (turn.actor, turn.details["turns"], turn.details["facts"]) == ("ada", 1, 1)
    assert (whole.actor, whole.details["turns"], whole.details["facts"]) == ("eve", 4, drawn - 1)
    told = hashlib.sha256(bytes.fromhex(whole.details["salt"]) + hashlib.sha256(b"the secret chat").digest())
    assert whole.details["session"] == told.hexdigest()
    assert not any(word in json.dumps([dict(one.details) for one in (whole, turn)]) for word in ("secret", "locker"))
    with pytest.raises(NotFoundError):
        pipeline.memory.delete("the secret chat")
    assert len(pipeline.audit.list(action="forget")) == 2
