"""Conversations in the store: places of turns, what is stored twice, what goes with a session."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from recollect.errors import NotFoundError, UsageError
from recollect.model import Scope
from recollect.model.memory import Turn
from recollect.store.memory import PreparedTurn
from recollect.store.recall import Window
from recollect.store.sql import queries
from recollect.store.store import Store

SCOPE = Scope()
MODEL = "model"


def prepared(content: str, *lexemes: int, axis: int = 0, turn_id: str | None = None) -> PreparedTurn:
    vector = np.zeros(8, np.float32)
    vector[axis] = 1.0
    own = np.array(sorted(lexemes) or [1], np.int32)
    return PreparedTurn(
        turn=Turn(content=content, turn_id=turn_id),
        embedding=vector,
        length=float(len(own)),
        lexemes=own,
        weights=np.ones(len(own), np.float32),
        own_lexemes=own,
    )


def counted(dsn_store: Store, table: str) -> int:
    with dsn_store.database.transaction(SCOPE) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_what_was_prepared_for_another_end_is_not_stored(store: Store):
    session = store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL)
    assert store.memory.append(SCOPE, session, [prepared("a")], after=0) == [1]
    assert store.memory.append(SCOPE, session, [prepared("late")], after=0) is None
    assert [episode.content for episode in store.memory.turns(SCOPE, session)] == ["a"]
    assert store.recalls.document_frequencies(SCOPE, [1], session_ids=None) == {1: 1}


def test_a_session_keeps_its_user(store: Store):
    store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL, user="ada")
    assert store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL).user == "ada"
    bobs = store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL, user="bob")
    assert bobs.user == "bob"
    with pytest.raises(UsageError, match="user"):
        store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL)
    free = store.memory.ensure_session(SCOPE, "free", embedding_model=MODEL)
    assert free.user is None
    assert store.memory.ensure_session(SCOPE, "free", embedding_model=MODEL, user="bob").session_id != free.session_id


def test_sessions_are_made_once_whoever_makes_them_at_the_same_time(store: Store):
    made: list[int] = []
    barrier = threading.Barrier(6)

    def make() -> None:
        barrier.wait()
        made.append(store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL).session_id)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    assert len(set(made)) == 1


def test_deleting_a_session_leaves_nothing_of_it(store: Store):
    session = store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL)
    other = store.memory.ensure_session(SCOPE, "other", embedding_model=MODEL)
    store.memory.append(SCOPE, session, [prepared("a", 1, 2), prepared("b", 2)], after=0)
    store.memory.append(SCOPE, other, [prepared("c", 2)], after=0)
    ids = [episode.episode_id for episode in store.memory.turns(SCOPE, session)]
    store.memory.note_retrievals(SCOPE, dict.fromkeys(ids, 3), at=session.created_at)
    assert store.memory.delete_session(SCOPE, session, actor="somebody") == 2
    tables = ("sessions", "episodes", "episode_vectors", "episode_lexical", "session_terms", "episode_retrievals")
    assert [counted(store, table) for table in tables] == [1, 1, 1, 1, 1, 0]
    with pytest.raises(NotFoundError):
        store.memory.delete_session(SCOPE, session, actor="somebody")
    with pytest.raises(NotFoundError, match="deleted"):
        store.memory.append(SCOPE, session, [prepared("d")], after=2)
    # A session of the same name is another one: what was prepared for the old one is not put into it.
    store.memory.ensure_session(SCOPE, "s", embedding_model=MODEL)
    with pytest.raises(NotFoundError, match="deleted"):
        store.memory.append(SCOPE, session, [prepared("d")], after=0)


def test_frequencies_are_of_the_searched_sessions_alone(store: Store):
    for name, user, words in (("a", "ada", (1, 2)), ("b", "ada", (2, 3)), ("c", "bob", (2,))):
        session = store.memory.ensure_session(SCOPE, name, embedding_model=MODEL, user=user)
        store.memory.append(SCOPE, session, [prepared(name, *words)], after=0)
    adas = store.recalls.searched(SCOPE, user="ada")
    assert adas.turns == 2
    assert adas.average_length == 2.0
    assert store.recalls.document_frequencies(SCOPE, [1, 2, 3, 4], session_ids=adas.session_ids) == {1: 1, 2: 2, 3: 1}
    assert store.recalls.document_frequencies(SCOPE, [2], session_ids=None) == {2: 3}
    both = store.recalls.searched(SCOPE, named=[session.session_id], user="ada")
    assert both.turns == 3
    assert store.recalls.searched(SCOPE, user="nobody").session_ids == ()
    assert store.recalls.searched(SCOPE).session_ids is None


def test_both_arms_keep_to_the_searched_sessions_and_to_the_tenant(store: Store):
    with store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'other')")
    made = []
    for scope, name in ((SCOPE, "mine"), (SCOPE, "second"), (Scope(tenant_id=2), "mine")):
        session = store.memory.ensure_session(scope, name, embedding_model=MODEL)
        made.append(session)
        store.memory.append(scope, session, [prepared(f"{name} of {scope.tenant_id}", 7)], after=0)
    vector = np.eye(8, dtype=np.float32)[0]
    for scope, named, expected in (
        (SCOPE, [made[0].session_id], 1),
        (SCOPE, [], 2),
        (Scope(tenant_id=2), [], 1),
        (Scope(tenant_id=3), [], 0),
    ):
        window = Window(session_ids=store.recalls.searched(scope, named=named).session_ids)
        dense, places = store.recalls.dense(scope, "turns", window, vector, words=True)
        words, same = store.recalls.lexical(scope, "turns", window, {7: 1.0}, candidates=[7], embedding=vector)
        assert len(dense.chunk_ids) == len(words.chunk_ids) == len(places) == expected
        # Each way gives the other way's scores of what it finds.
        assert places == same and dense.similarities == words.similarities
        assert sorted(dense.lexical.chunk_ids) == sorted(words.lexical.chunk_ids) == sorted(dense.chunk_ids)
        assert store.recalls.dense(scope, "turns", window, vector, words=False)[0].lexical.chunk_ids == []
        without, _ = store.recalls.lexical(scope, "turns", window, {7: 1.0}, candidates=[7], embedding=None)
        assert (without.chunk_ids, without.similarities) == (words.chunk_ids, {})
        assert len(store.memory.list_sessions(scope)) == (expected if not named else 2)
    foreign = [episode.episode_id for episode in store.memory.turns(Scope(tenant_id=2), made[2])]
    assert store.recalls.surroundings(SCOPE, foreign, before=1, after=1) == {}


def test_neighbours_of_turns_are_looked_up_before_anything_was_analysed(store: Store):
    sessions, turns = 20, 20
    for number in range(sessions):
        session = store.memory.ensure_session(SCOPE, f"s{number}", embedding_model=MODEL)
        store.memory.append(SCOPE, session, [prepared(f"turn {n}") for n in range(turns)], after=0)
    with store.database.transaction(SCOPE) as connection:
        numbers = [number for (number,) in connection.execute("SELECT episode_id FROM episodes").fetchall()]
        params = {"tenant_id": 1, "episode_ids": numbers, "before": 1, "after": 1, "as_of": None}
        plan = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {queries('memory')['surroundings']}", params)
        ((found,),) = plan.fetchone()
    assert found["Plan"]["Actual Rows"] == sessions * (3 * turns - 2)
    # Joined with one another, the turns would be compared a hundred thousand times.
    assert _compared_in_vain(found["Plan"]) < len(numbers) * (sessions + turns)


def _compared_in_vain(node: dict[str, Any]) -> float:
    own = sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Join Filter", "Index Recheck"))
    return own * node["Actual Loops"] + sum(map(_compared_in_vain, node.get("Plans", [])))
