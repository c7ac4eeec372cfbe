"""Memory through the pipeline: what is remembered is recalled, in its session, for its user, as of its time."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from recollect import RAGPipeline
from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.model.memory import RecallOptions, Turn

CHAT = [
    Turn(role="Ada", content="I moved to Lisbon with my sister.", at=datetime(2023, 5, 8, tzinfo=UTC)),
    Turn(role="Ben", content="How lovely! Which neighbourhood?", at=datetime(2023, 5, 8, tzinfo=UTC)),
    Turn(role="Ada", content="Alfama, close to the castle.", at=datetime(2023, 5, 8, tzinfo=UTC)),
    Turn(role="Ben", content="My marathon is next week.", at=datetime(2023, 6, 1, tzinfo=UTC)),
    Turn(role="Ada", content="Good luck with the running!", at=datetime(2023, 6, 1, tzinfo=UTC)),
]


def contents(found) -> list[str]:
    return [recollection.episode.content for recollection in found]


@pytest.fixture
def chat(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.view(session="chat", user="ada").remember(CHAT)
    pipeline.view(session="other", user="cleo").remember("I moved to Oslo with my brother.", role="Cleo")
    return pipeline


def test_what_was_said_is_found(chat: RAGPipeline):
    for mode in ["hybrid", "dense", "lexical"]:
        found = chat.view(session="chat").recall("Who moved to Lisbon?", RecallOptions(mode=mode))
        assert found[0].episode.content == CHAT[0].content
        assert [recollection.rank for recollection in found] == list(range(1, len(found) + 1))
        assert (found[0].episode.role, found[0].user, found[0].episode.at) == ("Ada", "ada", CHAT[0].at)
        assert (found[0].similarity is None) == (mode == "lexical")
        assert (found[0].bm25 is None) == (mode == "dense")


def test_an_answer_is_found_by_the_words_of_the_turn_before_it(chat: RAGPipeline):
    found = chat.view(session="chat").recall("Which neighbourhood?", RecallOptions(mode="lexical"))
    assert contents(found)[:2] == [CHAT[1].content, CHAT[2].content]


def test_a_hit_comes_with_its_neighbours(chat: RAGPipeline):
    options = RecallOptions(top_k=1, before=2, after=1)
    hit = chat.view(session="chat").recall("Alfama castle", options)[0]
    assert hit.episode.content == CHAT[2].content
    assert [turn.content for turn in hit.before] == [CHAT[0].content, CHAT[1].content]
    assert [turn.content for turn in hit.after] == [CHAT[3].content]
    alone = chat.view(session="chat").recall("Alfama castle", RecallOptions(top_k=1, before=0, after=0))[0]
    assert alone.before == alone.after == ()


def test_the_day_is_part_of_what_is_searched(chat: RAGPipeline):
    found = chat.view(session="chat").recall("What was said in June 2023?", RecallOptions(mode="lexical", top_k=2))
    assert set(contents(found)) == {CHAT[3].content, CHAT[4].content}


def test_sessions_users_and_everybody(chat: RAGPipeline):
    question = "Who moved where?"
    assert CHAT[0].content not in contents(chat.view(session="other").recall(question))
    assert {found.user for found in chat.view(user="ada").recall(question)} == {"ada"}
    assert {found.user for found in chat.recall(question)} == {"ada", "cleo"}
    both = chat.view(session="other", user="ada").recall(question)
    assert {found.episode.session for found in both} == {"chat", "other"}
    assert chat.view(user="nobody").recall(question) == []
    with pytest.raises(NotFoundError, match="sessions list"):
        chat.view(session="missing").recall(question)


def test_another_tenants_memory_does_not_exist(chat: RAGPipeline):
    with chat.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'other')")
    chat.view(session="chat", tenant=2).remember("Lisbon is theirs.")
    assert contents(chat.view(tenant=2).recall("Lisbon")) == ["Lisbon is theirs."]
    assert "Lisbon is theirs." not in contents(chat.recall("Lisbon"))
    assert [session.turn_count for session in chat.view(tenant=2).memory.list()] == [1]


def test_turns_between_two_times(chat: RAGPipeline):
    june = datetime(2023, 6, 1, tzinfo=UTC)
    later = chat.recall("Lisbon marathon running", RecallOptions(since=june))
    assert set(contents(later)) == {CHAT[3].content, CHAT[4].content}
    earlier = chat.recall("Lisbon marathon running", RecallOptions(until=june))
    assert set(contents(earlier)) == {turn.content for turn in CHAT[:3]}


def test_what_was_not_known_yet_does_not_exist(chat: RAGPipeline):
    moment = chat.memory.turns("chat")[-1].known_from
    chat.view(session="chat").remember("The castle was closed for repairs.", role="Ada")
    now = chat.view(session="chat").recall("castle repairs")
    assert now[0].episode.content == "The castle was closed for repairs."
    then = chat.view(session="chat", as_of=moment).recall("castle repairs")
    assert "The castle was closed for repairs." not in contents(then)
    assert all(turn.known_from <= moment for hit in then for turn in (*hit.before, hit.episode, *hit.after))
    assert chat.view(session="chat", as_of=moment - timedelta(days=1)).recall("castle") == []
    assert len(chat.view(as_of=moment).memory.turns("chat")) == len(CHAT)


def test_a_turn_with_an_id_is_stored_once(pipeline: RAGPipeline):
    first = pipeline.view(session="s").remember([Turn(content="a", turn_id="1"), Turn(content="b", turn_id="2")])
    assert (first.positions, first.added) == ((1, 2), 2)
    again = pipeline.view(session="s").remember(
        [Turn(content="b", turn_id="2"), Turn(content="c", turn_id="3"), Turn(content="b")]
    )
    assert (again.positions, again.added) == ((2, 3, 4), 2)
    twice = pipeline.view(session="s").remember([Turn(content="d", turn_id="4"), Turn(content="d", turn_id="4")])
    assert (twice.positions, twice.added) == ((5, 5), 1)
    with pytest.raises(ConflictError, match="'2'"):
        pipeline.view(session="s").remember([Turn(content="not b", turn_id="2")])
    assert [turn.content for turn in pipeline.memory.turns("s")] == ["a", "b", "c", "b", "d"]


def test_appends_at_the_same_time_get_places_of_their_own(pipeline: RAGPipeline):
    pipeline.view(session="s").remember("begin")
    failures: list[BaseException] = []

    def append(worker: int) -> None:
        try:
            for number in range(5):
                pipeline.view(session="s").remember([f"{worker}-{number}-a", f"{worker}-{number}-b"])
        except BaseException as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    threads = [threading.Thread(target=append, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    turns = pipeline.memory.turns("s")
    assert [turn.position for turn in turns] == list(range(1, 62))
    said = [turn.content for turn in turns]
    for worker in range(6):
        own = [content for content in said if content.startswith(f"{worker}-")]
        assert own == [f"{worker}-{number}-{half}" for number in range(5) for half in "ab"]
    # What one call appends stays together.
    assert all(said[at + 1] == said[at][:-1] + "b" for at in range(1, 61, 2))
    known = [turn.known_from for turn in turns]
    assert known == sorted(known)
    assert pipeline.memory.get("s").turn_count == 61


def test_words_are_counted_by_what_was_said_in_the_end(pipeline: RAGPipeline):
    """However turns came, one by one or together, memory is the same."""
    pipeline.view(session="together").remember(CHAT)
    for turn in CHAT:
        pipeline.view(session="singly").remember([turn])
    together = pipeline.view(session="together").recall("Which neighbourhood of Lisbon?")
    singly = pipeline.view(session="singly").recall("Which neighbourhood of Lisbon?")
    assert contents(together) == contents(singly)
    assert [hit.bm25 for hit in together] == pytest.approx([hit.bm25 for hit in singly])
    assert [hit.similarity for hit in together] == pytest.approx([hit.similarity for hit in singly], abs=1e-3)


def test_what_cannot_be_remembered_is_refused_before_anything_is_stored(pipeline: RAGPipeline):
    for turn, message in [
        (Turn(content=" \n"), "Turn 2 says nothing"),
        (Turn(content="x" * 100_001), "document"),
        (Turn(content="x", role=" "), "role"),
        (Turn(content="x", turn_id="i" * 201), "at most 200"),
        (Turn(content="x", metadata={"a": float("nan")}), "metadata"),
        (Turn(content="x", metadata={"a": "\0"}), "metadata"),
        (Turn(content="x", at="yesterday"), "date and time"),
    ]:
        with pytest.raises(UsageError, match=message):
            pipeline.view(session="s").remember([Turn(content="fine"), turn])
        assert pipeline.memory.list() == []


def test_names_of_sessions_are_checked(pipeline: RAGPipeline):
    for session in ["", " ", "\0", "s" * 201]:
        with pytest.raises(UsageError, match="session"):
            pipeline.view(session=session).remember("hello")
        with pytest.raises(UsageError, match="user"):
            pipeline.view(session="s", user=session).remember("hello")


@pytest.mark.parametrize(
    "content", ["a\0b", "half \ud83d of a pair", "مرحبا، كيف حالك؟", "🙂", "的 是", "!!!", "x" * 5_000, "a\u202eb"]
)
def test_any_text_can_be_said_and_recalled(pipeline: RAGPipeline, content: str):
    pipeline.view(session="s").remember(content)
    kept = pipeline.memory.turns("s")[0].content
    assert kept == content.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")
    assert contents(pipeline.view(session="s").recall(content)) == [kept]


def test_options_that_make_no_sense_are_refused(pipeline: RAGPipeline):
    for options, message in [
        (RecallOptions(top_k=0), "top_k"),
        (RecallOptions(before=-1), "before"),
        (RecallOptions(mode="fuzzy"), "mode"),
        (RecallOptions(since=datetime(2024, 1, 1, tzinfo=UTC), until=datetime(2023, 1, 1, tzinfo=UTC)), "since"),
    ]:
        with pytest.raises(UsageError, match=message):
            pipeline.recall("anything", options)


def test_an_empty_question_is_refused_and_an_empty_memory_is_empty(pipeline: RAGPipeline):
    with pytest.raises(UsageError, match="empty"):
        pipeline.recall("  ")
    assert pipeline.recall("anything") == []
    assert pipeline.memory.list() == []


def test_a_deleted_session_is_gone(chat: RAGPipeline):
    assert chat.memory.delete("chat") == len(CHAT)
    assert contents(chat.recall("Lisbon")) == ["I moved to Oslo with my brother."]
    with pytest.raises(NotFoundError):
        chat.memory.get("chat")


def test_what_is_recalled_again_and_again_is_known_after_a_restart(chat: RAGPipeline):
    for _ in range(3):
        chat.view(session="chat").recall("Who moved to Lisbon?", RecallOptions(top_k=1))
    chat.view(session="chat").recall("marathon", RecallOptions(top_k=1))
    chat.close()  # the next call opens it again
    candidates = chat.memory.patterns.get_consolidation_candidates(3)
    assert [(one.episode.content, one.retrievals) for one in candidates] == [(CHAT[0].content, 3)]
    chat.view(session="chat").recall("Who moved to Lisbon?", RecallOptions(top_k=1))
    assert chat.memory.patterns.get_consolidation_candidates(4)[0].retrievals == 4
    with pytest.raises(UsageError):
        chat.memory.patterns.get_consolidation_candidates(0)
