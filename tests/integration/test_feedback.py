"""Feedback on contexts: counted by session and in general, used where that is on, forgotten with the session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError


def opened(dsn: str, folder: Path, **memory: object) -> RAGPipeline:
    config = RAGConfig.load(
        storage={"data_dir": folder / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        access={"mode": "enforce"},
        memory=memory,
    )
    return RAGPipeline(config, embedder=HashingEmbedder())


@pytest.fixture
def adaptive(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    with opened(dsn, tmp_path, adaptive_weights=True) as rag:
        rag.ingest(Document(content="The locker hall opens at six.", source="lockers.md"))
        rag.view(session="chat", user="ada").remember("My locker number is 17.", role="Ada")
        rag.view(session="other", user="ben").remember("Lockers are grey.", role="Ben")
        yield rag


def used(rag: RAGPipeline, session: str | None = None, **options: object) -> float:
    return rag.memory.assembler(**options).assemble("locker", "hybrid", 500, session).weights.memory


def test_feedback_moves_a_sessions_weights_and_is_explained(adaptive: RAGPipeline):
    assembler = adaptive.memory.assembler()
    context = assembler.assemble("locker", "hybrid", 500, "chat")
    assert context.weights.memory == pytest.approx(0.6)
    memory = [one for one in context.passages if one.kind == "memory"]
    told = adaptive.view(session="chat").feedback.give(memory, helpful=True)
    assert told.session.memory_helpful == len(memory) > 0
    after = assembler.assemble("locker", "hybrid", 500, "chat")
    assert after.weights == told.weights
    assert after.weights.memory > 0.6
    assert after.adaptation is not None
    assert "in this session: documents 0 helpful, 0 not, memory" in after.adaptation.explanation
    # Of another session, of one that has not begun, and of none, nothing was said.
    for session in ("other", "not begun", None):
        assert used(adaptive, session) == pytest.approx(0.6)


def test_feedback_in_general_moves_every_session(adaptive: RAGPipeline):
    adaptive.feedback.give(["lockers.md", "lockers.md"], helpful=True)
    for session in ("chat", "other", "not begun", None):
        assert used(adaptive, session) < 0.6
    adaptive.view(session="chat").feedback.give("fact:7", helpful=True)
    assert used(adaptive, "other") < used(adaptive, "chat") < 0.6
    assert adaptive.feedback.reset() == 2
    assert used(adaptive, "other") == pytest.approx(0.6)
    assert adaptive.view(session="chat").feedback.reset() == 1
    assert adaptive.view(session="chat").feedback.reset() == 0
    assert used(adaptive, "chat") == pytest.approx(0.6)


def test_it_is_off_by_default_and_counts_all_the_same(adaptive: RAGPipeline, dsn: str, tmp_path: Path):
    with opened(dsn, tmp_path) as rag:
        assert rag.feedback.give("memory:chat", helpful=False).weights.memory < 0.6
        context = rag.memory.assembler().assemble("locker", "hybrid", 500, "chat")
        assert (context.weights.memory, context.adaptation) == (0.6, None)
    assert used(adaptive, "chat") < 0.6


def test_all_feedback_at_the_same_time_is_counted(adaptive: RAGPipeline):
    failures: list[BaseException] = []

    def say() -> None:
        try:
            for _ in range(20):
                adaptive.view(session="chat").feedback.give("memory:chat", helpful=True)
                adaptive.feedback.give("lockers.md", helpful=False)
        except BaseException as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    threads = [threading.Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    told = adaptive.view(session="chat").feedback.weights()
    assert (told.session.memory_helpful, told.tenant.documents_not) == (80, 80)
    assert told.weights.memory == pytest.approx(0.8)


def test_it_goes_with_its_session(adaptive: RAGPipeline):
    adaptive.view(session="chat").feedback.give("memory:chat", helpful=True)
    adaptive.memory.delete("chat")
    adaptive.view(session="chat", user="ada").remember("Hello again, lockers.")
    assert used(adaptive, "chat") == pytest.approx(0.6)


def test_nobody_moves_anothers_weights(adaptive: RAGPipeline):
    ada, eve = Principal(user_id="ada"), Principal(user_id="eve")
    assert (
        adaptive.view(session="chat", principal=ada).feedback.give("memory:chat", helpful=True).session.memory_helpful
        == 1
    )
    with pytest.raises(NotFoundError):
        adaptive.view(session="chat", principal=eve).feedback.give("memory:chat", helpful=True)
    for ask in (
        lambda: adaptive.view(principal=eve).feedback.give("lockers.md", helpful=True),
        lambda: adaptive.view(principal=eve).feedback.reset(),
    ):
        with pytest.raises(PermissionDeniedError):
            ask()
    assert adaptive.view(session="chat", principal=eve).feedback.weights().session.total == 0


def test_feedback_names_passages(adaptive: RAGPipeline):
    for passages in [[], "", ["lockers.md", " "], {"lockers.md"}, [None]]:
        with pytest.raises(UsageError, match=r"sources|must be a passage"):
            adaptive.feedback.give(passages, helpful=True)
        with pytest.raises(NotFoundError):
            adaptive.view(session="missing").feedback.give("lockers.md", helpful=True)


REFERENCES = {"source", "document_id", "version", "start_offset", "end_offset", "marker", "highlights", "section"}


def test_passages_that_an_answer_showed_are_kept_by_reference_and_judged_once(adaptive: RAGPipeline):
    talk = adaptive.view(session="help", user="ada")
    for question in (
        "When does the locker hall open by rule RQ-404?",
        "The locker hall opens at what time?",
        "Xqzv blorp?",
    ):
        adaptive.view(user="ada").chat(question, session="help")
    turns = [one for one in adaptive.memory.turns("help") if one.role == "assistant"]
    kept = [one.metadata["rag_answer"] for one in turns]
    assert [one["outcome"] for one in kept] == ["passages", "answer", "none"]
    (shown,) = kept[0]["passages"]
    assert shown.keys() <= REFERENCES and (shown["source"], shown["marker"], shown["version"]) == ("lockers.md", 1, 1)
    assert shown["highlights"] == [[shown["start_offset"], shown["end_offset"]]]
    assert "locker hall" not in str([one.metadata for one in turns]) and "locker hall" not in turns[0].content
    assert "passages" not in kept[1] and "passages" not in kept[2]
    first, answered, nothing = (one.position for one in turns)
    assert talk.feedback.judge(first, helpful=True)
    assert not talk.feedback.judge(first, helpful=False)
    assert talk.feedback.weights().session.documents_helpful == 1
    # An answer is judged, and remembered, by what it cites, and not by what is shown beside it.
    assert talk.feedback.judge(answered, helpful=False)
    assert talk.feedback.weights().session.documents_not == 1
    with pytest.raises(NotFoundError, match="cites or shows"):
        talk.feedback.judge(nothing, helpful=True)
