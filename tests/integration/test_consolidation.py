"""What is asked for again and again becomes facts, which rest on exact words and follow one another in time."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect import RAGConfig, RAGPipeline, RecallOptions, Turn
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, ProviderError, UsageError
from recollect.llm.base import ChatMessage
from recollect.llm.scripted import ScriptedChatModel
from recollect.model import Scope

MAY, JUNE, JULY = (datetime(2023, month, 8, tzinfo=UTC) for month in (5, 6, 7))


def say(rag: RAGPipeline, session: str, text: str, *, at: datetime | None = None, **given: str) -> None:
    rag.view(session=session, **given).remember([Turn(role="Ada", content=text, at=at)])


def ask_for_everything(rag: RAGPipeline, **whose: str) -> None:
    rag.view(**whose).recall("anything at all", RecallOptions(top_k=100))


def consolidated(rag: RAGPipeline, **whose: str):
    ask_for_everything(rag)
    return rag.view(**whose).facts.consolidate(min_retrievals=1)


def current(rag: RAGPipeline, *, superseded: bool = False, **whose: object) -> list[str]:
    return [fact.statement for fact in rag.view(**whose).facts.list(superseded=superseded)]


def with_model(dsn: str, folder: Path, model: ScriptedChatModel) -> RAGPipeline:
    config = RAGConfig.load(storage={"data_dir": folder / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    return RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model)


def rows(rag: RAGPipeline, table: str) -> int:
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_only_what_is_asked_for_often_enough_becomes_a_fact(pipeline: RAGPipeline):
    say(pipeline, "chat", "My locker number is 17.")
    say(pipeline, "chat", "Bicycles have two wheels each.")
    for _ in range(3):
        pipeline.recall("locker number", RecallOptions(top_k=1))
    report = pipeline.facts.consolidate()
    assert (report.examined, report.added, report.made_by) == (1, 1, {"extractive": 1})
    (fact,) = pipeline.facts.list()
    assert (fact.statement, fact.role, fact.session, fact.user) == ("My locker number is 17.", "Ada", "chat", None)
    (evidence,) = fact.evidence
    turn = pipeline.memory.turns("chat")[evidence.position - 1]
    assert turn.content[evidence.start_offset : evidence.end_offset] == evidence.quote == fact.statement
    # Each turn is looked at once.
    for _ in range(3):
        pipeline.recall("locker number", RecallOptions(top_k=1))
    assert pipeline.facts.consolidate().examined == 0


def test_a_contradiction_supersedes_and_the_history_stays(pipeline: RAGPipeline):
    say(pipeline, "one", "I live in Lisbon.", at=MAY, user="ada")
    consolidated(pipeline)
    before = pipeline.facts.list()[0]
    say(pipeline, "two", "I just moved to Porto.", at=JULY, user="ada")
    report = consolidated(pipeline)
    assert (report.added, report.superseded) == (1, 1)
    assert current(pipeline) == ["I just moved to Porto."]
    old, new = pipeline.facts.history(before.fact_id)
    assert (old.statement, old.superseded_by, old.superseded_at) == ("I live in Lisbon.", new.fact_id, JULY)
    assert new.superseded_by is None
    assert pipeline.facts.history(new.fact_id) == [old, new]
    assert current(pipeline, superseded=True) == [new.statement, old.statement]
    # Then, Lisbon was what was known.
    assert current(pipeline, as_of=before.known_from) == ["I live in Lisbon."]
    then = pipeline.view(user="ada", as_of=before.known_from).facts.search("Where does Ada live?")
    assert [one.fact.statement for one in then] == ["I live in Lisbon."]
    assert then[0].fact.superseded_by is None
    now = pipeline.view(user="ada").facts.search("Where does Ada live?")
    assert [one.fact.statement for one in now] == ["I just moved to Porto."]
    # What was said in between, and is drawn last, is superseded from the beginning.
    say(pipeline, "three", "I moved to Oslo.", at=JUNE, user="ada")
    consolidated(pipeline)
    assert current(pipeline) == ["I just moved to Porto."]
    assert [fact.value for fact in pipeline.facts.history(old.fact_id)] == ["Lisbon", "Oslo", "Porto"]


def test_one_persons_facts_say_nothing_of_anothers(pipeline: RAGPipeline):
    say(pipeline, "one", "I live in Lisbon.", at=MAY, user="ada")
    say(pipeline, "two", "I live in Porto.", at=JULY, user="eve")
    say(pipeline, "three", "I live in Oslo.", at=JULY)
    say(pipeline, "four", "I live in Rome.", at=JULY)
    assert consolidated(pipeline).superseded == 0
    assert len(current(pipeline)) == 4
    assert [one.fact.user for one in pipeline.view(user="eve").facts.search("Where?")] == ["eve"]
    assert current(pipeline, user="ada") == ["I live in Lisbon."]
    assert current(pipeline, session="four") == ["I live in Rome."]


def test_another_tenants_facts_do_not_exist(pipeline: RAGPipeline):
    with pipeline.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'other')")
    say(pipeline, "chat", "I live in Lisbon.", user="ada")
    pipeline.view(session="chat", user="ada", tenant=2).remember([Turn(role="Ada", content="I live in Porto.")])
    pipeline.view(tenant=2).recall("anything")
    assert pipeline.view(tenant=2).facts.consolidate(min_retrievals=1).added == 1
    assert pipeline.facts.consolidate(min_retrievals=1).examined == 0
    assert consolidated(pipeline).superseded == 0
    (theirs,) = pipeline.view(tenant=2).facts.list()
    assert current(pipeline) == ["I live in Lisbon."]
    with pytest.raises(NotFoundError):
        pipeline.facts.get(theirs.fact_id)
    with pytest.raises(NotFoundError):
        pipeline.facts.history(theirs.fact_id)
    with pytest.raises(NotFoundError):
        pipeline.facts.delete(theirs.fact_id)
    assert [one.fact.statement for one in pipeline.view(tenant=2).facts.search("Where?")] == ["I live in Porto."]


def test_what_is_said_again_is_evidence(pipeline: RAGPipeline):
    say(pipeline, "one", "I live in Lisbon.", user="ada")
    say(pipeline, "two", "Hello there. I live in Lisbon!", user="ada")
    report = consolidated(pipeline)
    assert (report.added, report.repeated) == (1, 1)
    (fact,) = pipeline.facts.list()
    assert [(one.kind, one.session, one.quote) for one in fact.evidence] == [
        ("source", "one", "I live in Lisbon."),
        ("repeat", "two", "I live in Lisbon!"),
    ]
    # The repetition is forgotten, the fact stays with its own words; these forgotten, it goes.
    pipeline.memory.delete("two")
    assert [one.session for one in pipeline.facts.get(fact.fact_id).evidence] == ["one"]
    pipeline.memory.delete("one")
    assert not pipeline.facts.list(superseded=True)


def test_erasing_a_conversation_leaves_nothing_and_brings_back_what_it_contradicted(pipeline: RAGPipeline):
    say(pipeline, "one", "I live in Lisbon.", at=MAY, user="ada")
    say(pipeline, "two", "I just moved to Porto.", at=JULY, user="ada")
    consolidated(pipeline)
    pipeline.memory.delete("two")
    assert current(pipeline, superseded=True) == ["I live in Lisbon."]
    pipeline.memory.delete("one")
    for table in ("facts", "fact_evidence", "fact_index", "consolidated_episodes", "episode_retrievals"):
        assert rows(pipeline, table) == 0, table


def test_a_deleted_fact_brings_back_the_one_before_it(pipeline: RAGPipeline):
    say(pipeline, "one", "I live in Lisbon.", at=MAY)
    say(pipeline, "one", "I just moved to Porto.", at=JULY)
    consolidated(pipeline)
    (fact,) = pipeline.facts.list()
    pipeline.facts.delete(fact.fact_id)
    assert current(pipeline) == ["I live in Lisbon."]
    with pytest.raises(NotFoundError, match="facts list"):
        pipeline.facts.delete(fact.fact_id)
    assert len(pipeline.memory.turns("one")) == 2


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_facts_are_found_by_words_and_meaning(pipeline: RAGPipeline, mode: str):
    for number, text in enumerate(["My locker number is 17.", "I like green tea.", "My dentist is Dr Wu."]):
        say(pipeline, f"s{number}", text, at=MAY)
    consolidated(pipeline)
    found = pipeline.facts.search("locker number", RecallOptions(mode=mode))
    assert found[0].fact.statement == "My locker number is 17."
    assert [one.rank for one in found] == list(range(1, len(found) + 1))
    assert (found[0].similarity is None) == (mode == "lexical")
    assert (found[0].bm25 is None) == (mode == "dense")
    assert len(pipeline.facts.search("locker number", RecallOptions(mode=mode, top_k=1))) == 1
    assert pipeline.facts.search("locker number", RecallOptions(mode=mode, until=MAY)) == []


def test_two_at_the_same_time_draw_every_fact_once(pipeline: RAGPipeline):
    for number in range(30):
        say(pipeline, f"s{number % 3}", f"My locker number is {number}.", user="ada")
    ask_for_everything(pipeline)
    pipeline.memory.patterns.flush()
    reports, failures = [], []

    def run() -> None:
        try:
            reports.append(pipeline.facts.consolidate(min_retrievals=1))
        except BaseException as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(report.added for report in reports) == sum(report.examined for report in reports) == 30
    assert len(pipeline.facts.list(superseded=True)) == 30
    assert current(pipeline) == ["My locker number is 29."]


def test_a_conversation_that_is_deleted_meanwhile_gives_nothing(dsn: str, tmp_path: Path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as other:

        def reply(messages: Sequence[ChatMessage]) -> str:
            other.memory.delete("gone")
            return json.dumps({"facts": []})

        with with_model(dsn, tmp_path, ScriptedChatModel(reply)) as rag:
            say(rag, "gone", "I live in Lisbon.")
            assert consolidated(rag).examined == 0
            assert rows(rag, "consolidated_episodes") == 0


@pytest.fixture
def asked() -> list[dict]:
    return []


@pytest.fixture
def written(dsn: str, tmp_path: Path, asked: list[dict]) -> Iterator[RAGPipeline]:
    """A pipeline whose language model finds where people live, and what that contradicts."""

    def reply(messages: Sequence[ChatMessage]) -> str:
        question = json.loads(messages[1].content)
        asked.append(question)
        facts = [
            {
                "statement": f"Ada lives in {turn['text'].split()[-1].rstrip('.')}.",
                "subject": "Ada",
                "attribute": "home",
                "value": turn["text"].split()[-1].rstrip("."),
                "evidence": [{"turn": turn["turn"], "quote": turn["text"]}],
                "supersedes": [one["fact"] for one in question["known"]],
            }
            for turn in question["turns"]
        ]
        return json.dumps({"facts": facts})

    with with_model(dsn, tmp_path, ScriptedChatModel(reply)) as opened:
        yield opened


def test_a_language_model_writes_facts_that_cite_their_turns(written: RAGPipeline, asked: list[dict]):
    say(written, "one", "Off we went to Lisbon.", at=MAY, user="ada")
    report = consolidated(written)
    assert (report.made_by, report.failures) == ({"scripted": 1}, ())
    say(written, "two", "And now it is Porto.", at=JULY, user="ada")
    assert consolidated(written).superseded == 1
    old, new = written.facts.history(written.facts.list()[0].fact_id)
    assert (old.statement, new.statement) == ("Ada lives in Lisbon.", "Ada lives in Porto.")
    assert (new.subject, new.attribute, new.value, new.made_by) == ("ada", "home", "Porto", "scripted")
    assert [one.quote for one in new.evidence] == ["And now it is Porto."]
    assert asked[-1]["known"] == [{"fact": old.fact_id, "statement": old.statement}]
    assert asked[-1]["turns"][0]["said"] == "2023-07-08T00:00+00:00"


@pytest.mark.parametrize(
    "model",
    [
        ScriptedChatModel("I would rather not."),
        ScriptedChatModel("", error=ProviderError("it is down", provider="chat")),
        ScriptedChatModel(lambda messages: 1 / 0),  # type: ignore[arg-type,return-value]
    ],
    ids=["prose", "down", "broken"],
)
def test_where_the_language_model_fails_sentences_are_taken(dsn: str, tmp_path: Path, model: ScriptedChatModel):
    with with_model(dsn, tmp_path, model) as rag:
        say(rag, "one", "I live in Lisbon.")
        report = consolidated(rag)
        assert (report.added, report.made_by) == (1, {"extractive": 1})
        assert len(report.failures) == 1
        assert current(rag) == ["I live in Lisbon."]


def test_wrong_options_are_refused(pipeline: RAGPipeline):
    for options in [{"min_retrievals": 0}, {"limit": 0}, {"user": " "}]:
        with pytest.raises(UsageError):
            pipeline.view(user=options.pop("user", None)).facts.consolidate(**options)
