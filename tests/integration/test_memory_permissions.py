"""Where permissions are enforced, a user has his own conversations and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import Principal, RAGConfig, RAGPipeline, RecallOptions, Scope
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError

ADA, EVE = Principal(user_id="ada"), Principal(user_id="eve", roles=("Admin",))
NOBODY = Principal(roles=("Admin",))


@pytest.fixture
def enforced(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        access={"mode": "enforce"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        rag.remember("hers", "My locker number is 17.", role="Ada", principal=ADA)
        rag.remember("nobodys", "The locker hall opens at six.", role="Ben")
        rag.recall("locker", RecallOptions(top_k=10))
        rag.consolidate(min_retrievals=1)
        yield rag


def test_his_own_conversations_and_facts_are_found(enforced: RAGPipeline):
    assert [one.episode.session for one in enforced.recall("locker", principal=ADA)] == ["hers"]
    assert [one.name for one in enforced.list_sessions(principal=ADA)] == ["hers"]
    assert enforced.get_session("hers", principal=ADA).user == "ada"
    assert [fact.session for fact in enforced.list_facts(principal=ADA)] == ["hers"]
    assert [one.fact.session for one in enforced.recall_facts("locker", principal=ADA)] == ["hers"]
    found = enforced.context_assembler(principal=ADA).assemble("locker number", "hybrid")
    assert "17" in found.text and "six" not in found.text


@pytest.mark.parametrize("somebody", [EVE, NOBODY], ids=["another", "nobody"])
def test_others_conversations_do_not_exist(enforced: RAGPipeline, somebody: Principal):
    (fact,) = enforced.list_facts(user="ada")
    assert enforced.recall("locker", principal=somebody) == []
    assert enforced.recall("locker", user="ada", principal=somebody) == []
    assert enforced.recall_facts("locker", user="ada", principal=somebody) == []
    assert enforced.list_sessions(principal=somebody) == []
    assert enforced.list_sessions(user="ada", principal=somebody) == []
    assert enforced.list_facts(user="ada", superseded=True, principal=somebody) == []
    assert enforced.context_assembler(principal=somebody).assemble("locker", "hybrid", session_id="hers").text == ""
    for ask in (
        lambda: enforced.recall("locker", session="hers", principal=somebody),
        lambda: enforced.recall_facts("locker", session="hers", principal=somebody),
        lambda: enforced.get_session("hers", principal=somebody),
        lambda: enforced.session_turns("hers", principal=somebody),
        lambda: enforced.delete_session("hers", principal=somebody),
        lambda: enforced.get_fact(fact.fact_id, principal=somebody),
        lambda: enforced.fact_history(fact.fact_id, principal=somebody),
        lambda: enforced.delete_fact(fact.fact_id, principal=somebody),
    ):
        with pytest.raises(NotFoundError):
            ask()
    assert enforced.get_session("hers").turn_count == 1
    assert enforced.query_patterns.get_consolidation_candidates(1, scope=Scope(principal=somebody)) == []


def test_nobody_writes_in_anothers_name(enforced: RAGPipeline):
    with pytest.raises(PermissionDeniedError, match="'ada'"):
        enforced.remember("new", "x", user="ada", principal=EVE)
    with pytest.raises(PermissionDeniedError, match="user"):
        enforced.remember("new", "x", principal=NOBODY)
    assert enforced.get_session("hers").turn_count == 1
    assert enforced.remember("eves", "Mine.", principal=EVE).added == 1
    assert enforced.get_session("eves").user == "eve"


@pytest.mark.parametrize("taken", ["hers", "nobodys", "never"])
def test_an_id_that_another_has_is_like_one_that_nobody_has(enforced: RAGPipeline, taken: str):
    told = enforced.remember(taken, "Mine.", principal=EVE)
    assert (told.added, told.positions) == (1, (1,))
    assert enforced.remember(taken, ["Mine too."], principal=EVE).positions == (2,)
    own = enforced.get_session(taken, principal=EVE)
    assert (own.user, own.turn_count) == ("eve", 2)
    assert [one.content for one in enforced.session_turns(taken, principal=EVE)] == ["Mine.", "Mine too."]
    assert {one.episode.content for one in enforced.recall("locker", session=taken, principal=EVE)} <= {
        "Mine.",
        "Mine too.",
    }
    assert enforced.forget_turns(taken, [1], principal=EVE) == 1
    assert enforced.delete_session(taken, principal=EVE) == 1
    with pytest.raises(NotFoundError):
        enforced.get_session(taken, principal=EVE)
    assert enforced.get_session("hers", principal=ADA).turn_count == 1
    assert enforced.get_session("nobodys").turn_count == 1


def test_a_server_that_names_users_keeps_their_ids_apart(enforced: RAGPipeline):
    enforced.remember("chat", "Ada's parrot is grey.", user="ada")
    enforced.remember("chat", "Ben's parrot is green.", user="ben")
    for user, colour in (("ada", "grey"), ("ben", "green")):
        found = enforced.recall("parrot", session="chat", user=user)
        assert next(one.episode.content for one in found if "parrot" in one.episode.content).endswith(f"{colour}.")
        assert all(one.user == user for one in found)
        assert next(one.content for one in enforced.session_turns("chat", user=user)).endswith(f"{colour}.")
    for ask in (
        lambda: enforced.recall("parrot", session="chat", user="eve"),
        lambda: enforced.get_session("chat"),
        lambda: enforced.remember("chat", "Whose?"),
        lambda: enforced.delete_session("chat"),
    ):
        with pytest.raises(UsageError, match="user"):
            ask()
    assert enforced.delete_session("chat", user="ada") == 1
    assert enforced.get_session("chat").user == "ben"


def test_he_may_consolidate_and_delete_what_is_his(enforced: RAGPipeline):
    enforced.remember("eves", "My locker number is 18.", role="Eve", principal=EVE)
    enforced.remember("hers", "My shelf number is 19.", role="Ada", principal=ADA)
    enforced.recall("number", RecallOptions(top_k=10))
    report = enforced.consolidate(min_retrievals=1, principal=EVE)
    assert (report.examined, report.added) == (1, 1)
    (fact,) = enforced.list_facts(principal=EVE)
    enforced.delete_fact(fact.fact_id, principal=EVE)
    assert enforced.delete_session("eves", principal=EVE) == 1
