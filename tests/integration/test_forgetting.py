"""A turn that is erased was never said."""

from __future__ import annotations

import hashlib
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect import RAGConfig, RAGPipeline, RecallOptions, Scope, Turn
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError
from recollect.llm.scripted import ScriptedChatModel

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
    pipeline.remember("all", TURNS)
    assert pipeline.forget_turns("all", gone) == len(gone)
    pipeline.remember("kept", [turn for number, turn in enumerate(TURNS, start=1) if number not in gone])
    assert index_of(pipeline, "all") == index_of(pipeline, "kept")
    assert [turn.position for turn in pipeline.session_turns("all")] == [n for n in range(1, 6) if n not in gone]


def test_nothing_finds_it_any_more(pipeline: RAGPipeline):
    pipeline.remember("chat", TURNS)
    for mode in ("hybrid", "lexical", "dense"):
        assert "aquarium" in pipeline.recall("aquarium sharks", RecallOptions(top_k=1, mode=mode))[0].episode.content
    pipeline.consolidate(min_retrievals=1)
    pipeline.forget_turns("chat", [2])
    assert pipeline.recall("aquarium sharks", RecallOptions(mode="lexical")) == []
    for hit in pipeline.recall("aquarium sharks"):
        assert all("aquarium" not in turn.content for turn in (*hit.before, hit.episode, *hit.after))
    assert not any("aquarium" in fact.statement for fact in pipeline.list_facts(superseded=True))
    # The conversation goes on behind its last turn.
    assert pipeline.remember("chat", "See you!").positions == (6,)


def test_a_fact_of_several_turns_goes_with_any_of_them(dsn: str, tmp_path: Path):
    evidence = [{"turn": 1, "quote": "aquarium"}, {"turn": 2, "quote": "at noon"}]
    reply = json.dumps({"facts": [{"statement": "They meet at the aquarium at noon.", "evidence": evidence}]})
    config = RAGConfig.load(storage={"data_dir": tmp_path / "x", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=ScriptedChatModel(reply)) as rag:
        for session, forget in (("one", [1]), ("two", [2])):
            rag.remember(session, TURNS[1:3])
            rag.recall("aquarium", session=session)
            assert rag.consolidate(min_retrievals=1).added == 1
            assert len(rag.list_facts()[0].evidence) == 2
            rag.forget_turns(session, forget)
            assert rag.list_facts(superseded=True) == []
        # Across conversations of one user: whichever is deleted.
        for gone, kept in (("a", "b"), ("c", "d")):
            rag.remember(gone, [TURNS[1]], user=gone + kept)
            rag.remember(kept, [TURNS[2]], user=gone + kept)
            rag.recall("aquarium at noon", user=gone + kept)
            assert rag.consolidate(min_retrievals=1, user=gone + kept).added == 1
            rag.delete_session(gone)
            assert rag.list_facts(user=gone + kept) == []


def test_what_is_not_there_is_not_forgotten(pipeline: RAGPipeline):
    pipeline.remember("chat", TURNS)
    for positions in ([6], [1, 99], [0]):
        with pytest.raises(NotFoundError, match="has no turn"):
            pipeline.forget_turns("chat", positions)
    assert pipeline.get_session("chat").turn_count == 5
    with pytest.raises(NotFoundError):
        pipeline.forget_turns("missing", [1])


def test_forgetting_beside_appends_loses_nothing(pipeline: RAGPipeline):
    pipeline.remember("chat", [f"turn {number} of many" for number in range(20)])
    failures: list[BaseException] = []

    def append() -> None:
        try:
            for number in range(10):
                pipeline.remember("chat", f"later turn {number}")
        except BaseException as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    def forget(positions: list[int]) -> None:
        try:
            for position in positions:
                pipeline.forget_turns("chat", [position])
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
    kept = pipeline.session_turns("chat")
    assert len(kept) == 22 == pipeline.get_session("chat").turn_count
    pipeline.remember("again", [turn.content for turn in kept])
    assert index_of(pipeline, "chat") == index_of(pipeline, "again")


def test_a_receipt_stays_that_says_nothing_of_what_was_said(pipeline: RAGPipeline):
    pipeline.remember("the secret chat", TURNS)
    pipeline.recall("locker", RecallOptions(top_k=10))
    drawn = pipeline.consolidate(min_retrievals=1).added
    pipeline.forget_turns("the secret chat", [5], actor="ada")
    pipeline.delete_session("the secret chat", actor="eve")
    whole, turn = pipeline.list_audit(action="forget")
    assert (turn.actor, turn.details["turns"], turn.details["facts"]) == ("ada", 1, 1)
    assert (whole.actor, whole.details["turns"], whole.details["facts"]) == ("eve", 4, drawn - 1)
    told = hashlib.sha256(bytes.fromhex(whole.details["salt"]) + hashlib.sha256(b"the secret chat").digest())
    assert whole.details["session"] == told.hexdigest()
    assert not any(word in json.dumps([dict(one.details) for one in (whole, turn)]) for word in ("secret", "locker"))
    with pytest.raises(NotFoundError):
        pipeline.delete_session("the secret chat")
    assert len(pipeline.list_audit(action="forget")) == 2
