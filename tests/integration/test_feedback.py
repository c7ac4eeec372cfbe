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
        rag.remember("chat", "My locker number is 17.", role="Ada", user="ada")
        rag.remember("other", "Lockers are grey.", role="Ben", user="ben")
        yield rag


def used(rag: RAGPipeline, session: str | None = None, **options: object) -> float:
    return rag.context_assembler(**options).assemble("locker", "hybrid", 500, session).found.weights.memory


def test_feedback_moves_a_sessions_weights_and_is_explained(adaptive: RAGPipeline):
    assembler = adaptive.context_assembler()
    context = assembler.assemble("locker", "hybrid", 500, "chat")
    assert context.found.weights.memory == pytest.approx(0.6)
    memory = [one for one in context.passages if one.kind == "memory"]
    told = adaptive.feedback(memory, helpful=True, session="chat")
    assert told.session.memory_helpful == len(memory) > 0
    after = assembler.assemble("locker", "hybrid", 500, "chat").found
    assert after.weights == told.weights
    assert after.weights.memory > 0.6
    assert after.adaptation is not None
    assert "in this session: documents 0 helpful, 0 not, memory" in after.adaptation.explanation
    # Of another session, of one that has not begun, and of none, nothing was said.
    for session in ("other", "not begun", None):
        assert used(adaptive, session) == pytest.approx(0.6)


def test_feedback_in_general_moves_every_session(adaptive: RAGPipeline):
    adaptive.feedback(["lockers.md", "lockers.md"], helpful=True)
    for session in ("chat", "other", "not begun", None):
        assert used(adaptive, session) < 0.6
    adaptive.feedback("fact:7", helpful=True, session="chat")
    assert used(adaptive, "other") < used(adaptive, "chat") < 0.6
    assert adaptive.reset_feedback() == 2
    assert used(adaptive, "other") == pytest.approx(0.6)
    assert adaptive.reset_feedback(session="chat") == 1
    assert adaptive.reset_feedback(session="chat") == 0
    assert used(adaptive, "chat") == pytest.approx(0.6)


def test_it_is_off_by_default_and_counts_all_the_same(adaptive: RAGPipeline, dsn: str, tmp_path: Path):
    with opened(dsn, tmp_path) as rag:
        assert rag.feedback("memory:chat", helpful=False).weights.memory < 0.6
        context = rag.context_assembler().assemble("locker", "hybrid", 500, "chat").found
        assert (context.weights.memory, context.adaptation) == (0.6, None)
    assert used(adaptive, "chat") < 0.6


def test_all_feedback_at_the_same_time_is_counted(adaptive: RAGPipeline):
    failures: list[BaseException] = []

    def say() -> None:
        try:
            for _ in range(20):
                adaptive.feedback("memory:chat", helpful=True, session="chat")
                adaptive.feedback("lockers.md", helpful=False)
        except BaseException as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    threads = [threading.Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    told = adaptive.adapted_weights(session="chat")
    assert (told.session.memory_helpful, told.tenant.documents_not) == (80, 80)
    assert told.weights.memory == pytest.approx(0.8)


def test_it_goes_with_its_session(adaptive: RAGPipeline):
    adaptive.feedback("memory:chat", helpful=True, session="chat")
    adaptive.delete_session("chat")
    adaptive.remember("chat", "Hello again, lockers.", user="ada")
    assert used(adaptive, "chat") == pytest.approx(0.6)


def test_nobody_moves_anothers_weights(adaptive: RAGPipeline):
    ada, eve = Principal(user_id="ada"), Principal(user_id="eve")
    assert adaptive.feedback("memory:chat", helpful=True, session="chat", principal=ada).session.memory_helpful == 1
    with pytest.raises(NotFoundError):
        adaptive.feedback("memory:chat", helpful=True, session="chat", principal=eve)
    for ask in (
        lambda: adaptive.feedback("lockers.md", helpful=True, principal=eve),
        lambda: adaptive.reset_feedback(principal=eve),
    ):
        with pytest.raises(PermissionDeniedError):
            ask()
    assert adaptive.adapted_weights(session="chat", principal=eve).session.total == 0


@pytest.mark.parametrize("passages", [[], "", ["lockers.md", " "]])
def test_feedback_names_passages(adaptive: RAGPipeline, passages: list[str] | str):
    with pytest.raises(UsageError, match="sources"):
        adaptive.feedback(passages, helpful=True)
    with pytest.raises(NotFoundError):
        adaptive.feedback("lockers.md", helpful=True, session="missing")
