"""Where permissions are enforced, a user has his own conversations and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import Principal, RAGConfig, RAGPipeline, RecallOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model import Scope

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
        rag.view(session="hers", principal=ADA).remember("My locker number is 17.", role="Ada")
        rag.view(session="nobodys").remember("The locker hall opens at six.", role="Ben")
        rag.recall("locker", RecallOptions(top_k=10))
        rag.facts.consolidate(min_retrievals=1)
        yield rag


def test_his_own_conversations_and_facts_are_found(enforced: RAGPipeline):
    assert [one.episode.session for one in enforced.view(principal=ADA).recall("locker")] == ["hers"]
    assert [one.name for one in enforced.view(principal=ADA).memory.list()] == ["hers"]
    assert enforced.view(principal=ADA).memory.get("hers").user == "ada"
    assert [fact.session for fact in enforced.view(principal=ADA).facts.list()] == ["hers"]
    assert [one.fact.session for one in enforced.view(principal=ADA).facts.search("locker")] == ["hers"]
    found = enforced.view(principal=ADA).memory.assembler().assemble("locker number", "hybrid")
    assert "17" in found.text and "six" not in found.text


@pytest.mark.parametrize("somebody", [EVE, NOBODY], ids=["another", "nobody"])
def test_others_conversations_do_not_exist(enforced: RAGPipeline, somebody: Principal):
    (fact,) = enforced.view(user="ada").facts.list()
    assert enforced.view(principal=somebody).recall("locker") == []
    assert enforced.view(user="ada", principal=somebody).recall("locker") == []
    assert enforced.view(user="ada", principal=somebody).facts.search("locker") == []
    assert enforced.view(principal=somebody).memory.list() == []
    assert enforced.view(user="ada", principal=somebody).memory.list() == []
    assert not enforced.view(user="ada", principal=somebody).facts.list(superseded=True)
    assert (
        enforced.view(principal=somebody).memory.assembler().assemble("locker", "hybrid", session_id="hers").text == ""
    )
    for ask in (
        lambda: enforced.view(session="hers", principal=somebody).recall("locker"),
        lambda: enforced.view(session="hers", principal=somebody).facts.search("locker"),
        lambda: enforced.view(principal=somebody).memory.get("hers"),
        lambda: enforced.view(principal=somebody).memory.turns("hers"),
        lambda: enforced.view(principal=somebody).memory.delete("hers"),
        lambda: enforced.view(principal=somebody).facts.get(fact.fact_id),
        lambda: enforced.view(principal=somebody).facts.history(fact.fact_id),
        lambda: enforced.view(principal=somebody).facts.delete(fact.fact_id),
    ):
        with pytest.raises(NotFoundError):
            ask()
    assert enforced.memory.get("hers").turn_count == 1
    assert enforced.memory.patterns.get_consolidation_candidates(1, scope=Scope(principal=somebody)) == []


def test_nobody_writes_in_anothers_name(enforced: RAGPipeline):
    with pytest.raises(PermissionDeniedError, match="'ada'"):
        enforced.view(session="new", user="ada", principal=EVE).remember("x")
    with pytest.raises(PermissionDeniedError, match="user"):
        enforced.view(session="new", principal=NOBODY).remember("x")
    assert enforced.memory.get("hers").turn_count == 1
    assert enforced.view(session="eves", principal=EVE).remember("Mine.").added == 1
    assert enforced.memory.get("eves").user == "eve"


@pytest.mark.parametrize("taken", ["hers", "nobodys", "never"])
def test_an_id_that_another_has_is_like_one_that_nobody_has(enforced: RAGPipeline, taken: str):
    told = enforced.view(session=taken, principal=EVE).remember("Mine.")
    assert (told.added, told.positions) == (1, (1,))
    assert enforced.view(session=taken, principal=EVE).remember(["Mine too."]).positions == (2,)
    own = enforced.view(principal=EVE).memory.get(taken)
    assert (own.user, own.turn_count) == ("eve", 2)
    assert [one.content for one in enforced.view(principal=EVE).memory.turns(taken)] == ["Mine.", "Mine too."]
    assert {one.episode.content for one in enforced.view(session=taken, principal=EVE).recall("locker")} <= {
        "Mine.",
        "Mine too.",
    }
    assert enforced.view(principal=EVE).memory.forget(taken, [1]) == 1
    assert enforced.view(principal=EVE).memory.delete(taken) == 1
    with pytest.raises(NotFoundError):
        enforced.view(principal=EVE).memory.get(taken)
    assert enforced.view(principal=ADA).memory.get("hers").turn_count == 1
    assert enforced.memory.get("nobodys").turn_count == 1


def test_a_server_that_names_users_keeps_their_ids_apart(enforced: RAGPipeline):
    enforced.view(session="chat", user="ada").remember("Ada's parrot is grey.")
    enforced.view(session="chat", user="ben").remember("Ben's parrot is green.")
    for user, colour in (("ada", "grey"), ("ben", "green")):
        found = enforced.view(session="chat", user=user).recall("parrot")
        assert next(one.episode.content for one in found if "parrot" in one.episode.content).endswith(f"{colour}.")
        assert all(one.user == user for one in found)
        assert next(one.content for one in enforced.view(user=user).memory.turns("chat")).endswith(f"{colour}.")
    for ask in (
        lambda: enforced.view(session="chat", user="eve").recall("parrot"),
        lambda: enforced.memory.get("chat"),
        lambda: enforced.view(session="chat").remember("Whose?"),
        lambda: enforced.memory.delete("chat"),
    ):
        with pytest.raises(UsageError, match="user"):
            ask()
    assert enforced.view(user="ada").memory.delete("chat") == 1
    assert enforced.memory.get("chat").user == "ben"


def test_he_may_consolidate_and_delete_what_is_his(enforced: RAGPipeline):
    enforced.view(session="eves", principal=EVE).remember("My locker number is 18.", role="Eve")
    enforced.view(session="hers", principal=ADA).remember("My shelf number is 19.", role="Ada")
    enforced.recall("number", RecallOptions(top_k=10))
    report = enforced.view(principal=EVE).facts.consolidate(min_retrievals=1)
    assert (report.examined, report.added) == (1, 1)
    (fact,) = enforced.view(principal=EVE).facts.list()
    enforced.view(principal=EVE).facts.delete(fact.fact_id)
    assert enforced.view(principal=EVE).memory.delete("eves") == 1
