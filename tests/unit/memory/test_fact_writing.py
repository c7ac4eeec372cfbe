"""What a language model writes is held against the turns."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from recollect.errors import ProviderError
from recollect.llm.scripted import ScriptedChatModel
from recollect.memory.consolidation import FactWriter
from recollect.memory.statements import statements_of
from recollect.model.facts import Fact
from recollect.model.memory import Episode
from recollect.retrieval.indexing import TurnTerms

LEXICON = TurnTerms("en", salt=1)
NOW = datetime(2024, 1, 1, tzinfo=UTC)


def turn(content: str, *, number: int = 1, role: str = "Ada", at: datetime | None = None) -> Episode:
    return Episode(
        episode_id=number,
        session="s",
        position=number,
        role=role,
        content=content,
        at=at,
        turn_id=None,
        known_from=NOW,
    )


TURNS = [turn("I moved to  Porto with my cat.\nIt is sunny."), turn("My locker is 17.", number=2)]
KNOWN = Fact(
    fact_id=12,
    chain_id=12,
    statement="Ada lives in Lisbon.",
    subject="ada",
    attribute="residence",
    value="Lisbon",
    session="s",
    user=None,
    role="Ada",
    at=None,
    said_at=NOW,
    known_from=NOW,
    made_by="m",
)


def fact(**changed: object) -> dict[str, object]:
    return {
        "statement": "Ada moved to Porto.",
        "subject": "Ada",
        "attribute": "Residence",
        "value": "Porto",
        "evidence": [{"turn": 1, "quote": "I moved to Porto"}],
        "supersedes": [12, 99],
    } | changed


def written(reply: object):
    text = reply if isinstance(reply, str) else json.dumps(reply)
    model = ScriptedChatModel(text)
    writer = FactWriter(model, LEXICON, timeout_seconds=10)
    return writer.write(TURNS, {}, [KNOWN]), model


def test_a_fact_rests_on_exact_characters():
    drafts, model = written({"facts": [fact()]})
    (draft,) = drafts
    (quote,) = draft.quotes
    # The model's quote differs in its spacing; what is kept is the turn's own.
    assert TURNS[0].content[quote.start_offset : quote.end_offset] == "I moved to  Porto"
    assert (draft.statement, draft.made_by, draft.supersedes) == ("Ada moved to Porto.", "scripted", (12,))
    assert draft.parsed is not None
    assert (draft.parsed.subject, draft.parsed.attribute, draft.parsed.value) == ("ada", "residence", "Porto")
    asked = json.loads(model.calls[0][1].content)
    assert asked["known"] == [{"fact": 12, "statement": "Ada lives in Lisbon."}]
    assert [one["text"] for one in asked["turns"]] == [one.content for one in TURNS]


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot do that.",
        "[]",
        '{"facts": 5}',
        '{"facts": "none"}',
        {"facts": ["Ada lives in Porto."]},
        {"facts": [fact(evidence=[])]},
        {"facts": [fact(evidence=[{"turn": 9, "quote": "I moved"}])]},
        {"facts": [fact(evidence=[{"turn": 1, "quote": "I live in Porto"}])]},
        {"facts": [fact(evidence=[{"turn": 1, "quote": "  "}])]},
        {"facts": [fact(evidence=[{"turn": 1, "quote": "I moved to Porto"}, {"turn": 2, "quote": "not said"}])]},
        {"facts": [fact(statement=" ")]},
        {"facts": [fact(statement="The king of Spain owns forty submarines in Porto.")]},
        {"facts": [fact(statement="Ada moved to Porto in 1999.")]},
        {"facts": [fact(statement="x" * 501)]},
    ],
)
def test_a_reply_that_does_not_stand_is_refused(reply: object):
    with pytest.raises(ProviderError, match="drew no facts"):
        written(reply)


def test_what_stands_is_kept_beside_what_does_not():
    invented = fact(statement="Ada moved to Porto in 1999.")
    drafts, _ = written(
        {
            "facts": [
                invented,
                fact(),
                fact(
                    statement="Ada's locker is 17.",
                    evidence=[{"turn": 2, "quote": "My locker is 17."}],
                    supersedes=[],
                    subject=None,
                ),
            ]
        }
    )
    assert [draft.statement for draft in drafts] == ["Ada moved to Porto.", "Ada's locker is 17."]
    assert drafts[1].parsed is None


def test_no_facts_is_an_answer_and_fences_are_none():
    assert written({"facts": []})[0] == []
    assert len(written("```json\n" + json.dumps({"facts": [fact()]}) + "\n```")[0]) == 1


def test_sentences_that_state_something():
    content = "Hi! How are you? I live in Rome. I like big dogs. Yes. " + "I said so again and again. " * 3
    drafts = statements_of(turn(content), lexicon=LEXICON, language="en", made_by="extractive")
    assert [draft.statement for draft in drafts][:2] == ["I live in Rome.", "I like big dogs."]
    for draft in drafts:
        (quote,) = draft.quotes
        assert content[quote.start_offset : quote.end_offset] == draft.statement
    assert len({draft.statement for draft in drafts}) == len(drafts) <= 3


@pytest.mark.parametrize("content", ["?", "Really?", "ok", "😀😀😀", "word " * 200, "Wie geht es dir?"])
def test_what_states_nothing(content: str):
    assert statements_of(turn(content), lexicon=LEXICON, language="en", made_by="x") == []


def test_other_languages_and_scripts_are_quoted_and_contradict_nothing():
    for language, content in (
        ("de", "Ich wohne jetzt in Hamburg."),
        ("zh", "我住在北京的一个小公寓里。"),
        ("ar", "أنا أسكن في القاهرة الآن."),
    ):
        lexicon = TurnTerms(language, salt=1)
        drafts = statements_of(turn(content), lexicon=lexicon, language=language, made_by="x")
        assert [(draft.statement, draft.parsed) for draft in drafts] == [(content, None)]
