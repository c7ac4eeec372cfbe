"""What is shown where no exact answer was found."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE, WordEmbedder, passage
from recollect.answer import (
    AnswerOptions,
    ExtractionOptions,
    RefusalRule,
    answer,
    extract_answer,
    stream_answer_sync,
    verify,
)
from recollect.answer.absence import OFFERS, REFUSALS, is_refusal
from recollect.answer.writing import Decided
from recollect.llm import ScriptedChatModel
from recollect.model import Answer, PassageNote

EMBEDDER = WordEmbedder()
NEVER = ExtractionOptions(rule=RefusalRule(threshold=1))
QUESTION = "How many days of leave for a funeral in Lapland?"


def shown(question, passages, options=NEVER, **more):
    return extract_answer(question, passages, embedder=EMBEDDER, options=options, **more)


def test_the_best_sentence_is_marked_and_stands_among_its_neighbours():
    reply = shown("death of a parent", [passage(LEAVE, section="Leave policy", page=3, department="HR", id="L-1")])
    (one,) = reply.passages
    (part,) = one.highlights
    assert (reply.outcome, reply.text, reply.citations) == ("passages", OFFERS["en"], ())
    assert LEAVE[part.start_offset : part.end_offset] == "Death of a parent | 4"
    assert one.text == LEAVE[one.start_offset : one.end_offset] and "Birth of a child | 3" in one.text
    assert (one.marker, one.document_id, one.source, one.section, one.page, one.department, one.id) == (
        *(1, 1, "hr/leave_policy.pdf"),
        *("Leave policy", 3, "HR", "L-1"),
    )


def test_what_follows_a_label_is_shown_with_it():
    steps = "## Restart the server\n\nTo restart the server, run:\n\n```\nserverctl restart --all\n```\n\nThen wait."
    (one,) = shown("How is the server restarted?", [passage(steps)]).passages
    assert "serverctl restart --all" in one.text


def test_no_passage_ends_with_a_label_that_says_what_is_not_shown():
    told = "The night shift is asked before a restart.\n\nThe restart goes like this:"
    (one,) = shown("Who is asked before a restart of the server?", [passage(told)]).passages
    assert one.text == "The night shift is asked before a restart."


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_code_is_shown_with_its_fences_and_items_with_their_marks(fence):
    told = f"{fence}sh\nserverctl restart --all\n{fence}\n\n- Restart the server at night.\n- Tell people."
    (one,) = shown("How is the server restarted?", [passage(told)]).passages
    assert one.text == told


def test_what_stands_around_each_quote_comes_first():
    signs, deposit = "The manager signs the lease of a flat.", "The deposit must be paid by 3 May."
    texts = [f"Flats have a balcony. {deposit}", "The lease of a flat is long.", f"{signs} He is in on Mondays."]
    found = [passage(text, document_id=rank, rank=rank) for rank, text in enumerate(texts, start=1)]
    always = ExtractionOptions(rule=RefusalRule(threshold=0.0))
    reply = shown("Who signs the lease of a flat, and by when must the deposit be paid?", found, always)
    assert [one.quote for one in reply.citations] == [signs, deposit]
    assert [one.text for one in reply.passages[:2]] == [texts[2], texts[0]]


def test_a_quote_that_says_no_more_than_both_questions_has_nothing_around_it():
    always = ExtractionOptions(rule=RefusalRule(threshold=0.0))
    found = [passage("The deposit is paid by the manager."), passage("Flats have a balcony in May.", document_id=2)]
    reply = shown("Who is the manager, and is the deposit paid by the manager?", found, always)
    assert reply.outcome == "answer" and reply.citations


def test_a_passage_that_is_the_quote_is_not_shown_beside_it():
    always = ExtractionOptions(rule=RefusalRule(threshold=0.0))
    reply = shown("How long is leave?", [passage("Leave is thirty days.")], always)
    assert [one.quote for one in reply.citations] == ["Leave is thirty days."] and reply.passages == ()


def test_no_sentence_is_cut_and_what_does_not_fit_leaves_its_room_to_others():
    long = "Leave" + " for those who travel to a funeral in Lapland" * 11 + "."
    found = [passage(f"{long} ", document_id=rank, rank=rank) for rank in (1, 2, 3)]
    found.append(passage("Leave for a funeral is paid.", document_id=4, rank=4))
    reply = shown(QUESTION, found)
    assert [(one.document_id, one.text) for one in reply.passages] == [
        *((rank, long) for rank in (1, 2)),
        (4, "Leave for a funeral is paid."),
    ]


def test_the_first_passage_of_the_search_is_shown_and_then_those_with_the_best_sentences():
    texts = [
        "Leave is granted.",
        "Days of leave are counted.",
        "Leave is requested online.",
        "Staff may travel. A funeral in Lapland gives two days of leave. Tell your manager.",
        "Leave ends.",
    ]
    found = [passage(text, document_id=rank, rank=rank, source=f"{rank}.md") for rank, text in enumerate(texts, 1)]
    reply = shown(QUESTION, found)
    assert [(one.marker, one.source) for one in reply.passages] == [(1, "1.md"), (2, "4.md"), (3, "2.md")]
    assert reply.passages[1].text == texts[3]


def test_a_passage_of_an_older_edition_is_not_shown_first():
    note = PassageNote(kind="newer_document", text="a newer document covers this", document_id=2, source="new.md")
    old = passage("A funeral in Lapland gave one day of leave.", source="old.md", notes=(note,))
    new = passage("A funeral in Lapland gives two days of leave.", document_id=2, rank=2, score=0.5, source="new.md")
    assert [one.source for one in shown(QUESTION, [old, new]).passages] == ["new.md", "old.md"]


def test_of_a_long_passage_that_the_search_put_last_what_stands_around_its_best_sentence_is_shown():
    filler = "The canteen serves soup on some of the days that employees work in the office. " * 30
    text = f"{filler}A funeral in Lapland gives two days of leave. {filler}"
    others = [passage(f"Leave is {word}.", document_id=rank, rank=rank) for rank, word in ((1, "granted"), (2, "paid"))]
    found = shown(QUESTION, [*others, passage(text, document_id=3, rank=3)]).passages
    last = next(one for one in found if one.document_id == 3)
    (part,) = last.highlights
    assert text[part.start_offset : part.end_offset] == "A funeral in Lapland gives two days of leave."
    assert last.start_offset < part.start_offset - 100 and part.end_offset + 100 < last.end_offset


def test_passages_that_a_paragraphs_end_divides_are_of_one_place():
    text = "Leave is granted.\n\nDays of leave are counted.\n\nLeave is requested."
    cuts = [(0, 17), (19, 45), (47, 66)]
    found = [passage(text, start=start, end=end, rank=rank) for rank, (start, end) in enumerate(cuts, 1)]
    found += [passage(f"Leave is {rank}.", document_id=rank, rank=rank) for rank in (4, 5, 6)]
    assert [one.document_id for one in shown(QUESTION, found).passages] == [1, 1, 1, 4, 5]


def test_a_passage_tells_which_collection_and_server_it_is_of_and_why_it_is_not_the_last_word():
    found = replace(passage(LEAVE), collection="hr", server="north", document_id=-1)
    (one,) = shown("death of a parent", [found]).passages
    assert (one.collection, one.server, one.document_id, one.notes) == ("hr", "north", -1, found.notes)


@pytest.mark.parametrize("passages", [[], [passage("  \n ")], [passage("## Annual leave\n\n---\n")]])
def test_nothing_to_show_is_no_offer(passages):
    reply = shown(QUESTION, passages)
    assert (reply.outcome, reply.text, reply.passages) == ("none", REFUSALS["en"], ())


@pytest.mark.parametrize(("relevance", "outcome"), [(0.119, "none"), (0.12, "passages"), (None, "passages")])
def test_passages_that_are_not_relevant_are_not_offered(relevance, outcome):
    reply = shown(QUESTION, [replace(passage(LEAVE), relevance=relevance)])
    assert (reply.outcome, bool(reply.passages)) == (outcome, outcome == "passages")
    assert reply.refused and reply.nearest is not None


def test_with_an_answer_come_the_passages_that_would_take_its_place_numbered_on():
    question, found = "How many days of annual leave do employees receive?", [passage(LEAVE)]
    always, never = (ExtractionOptions(rule=RefusalRule(threshold=threshold)) for threshold in (0.0, 1.0))
    reply, instead = shown(question, found, always), shown(question, found, never)
    assert reply.outcome == "answer" and reply.shown_instead == ()
    assert instead.outcome == "passages" and instead.shown_instead == instead.passages != ()
    last = len(reply.citations)
    assert reply.passages == tuple(replace(one, marker=one.marker + last) for one in instead.passages)
    (quoted, *_) = reply.citations
    around, *_ = reply.passages
    assert around.start_offset <= quoted.start_offset and quoted.end_offset <= around.end_offset


@pytest.mark.parametrize(
    ("language", "question", "before", "marked"),
    [
        (
            "de",
            "Wie lange dauert die Elternzeit auf dem Mond?",
            "Das Handbuch gilt. ",
            "Die Elternzeit dauert drei Jahre.",
        ),
        (
            "fr",
            "Combien de jours de congé sur la Lune ?",
            "Bienvenue. ",
            "Les jours de congé sont au nombre de 25.",
        ),
        ("ja", "月での休暇は何日ですか。", "会社の案内です。", "休暇は年に二十日です。"),
        ("zh", "月球上的年假有多少天？", "这是手册。", "年假为二十天。"),
        (
            "ar",
            "كم عدد أيام الإجازة على القمر؟",
            "هذا دليل. ",
            "أيام الإجازة خمسة وعشرون يوما.",
        ),
    ],
)
def test_the_offer_is_in_the_questions_language_and_the_texts_sentences_are_found(language, question, before, marked):
    text = before + marked
    reply = shown(question, [passage(text)], language=language)
    (one,) = reply.passages
    assert reply.text == OFFERS[language]
    assert [text[part.start_offset : part.end_offset] for part in one.highlights] == [marked]


@pytest.mark.parametrize("language", OFFERS)
def test_a_model_that_repeats_the_offer_answers_nothing(language):
    assert is_refusal(OFFERS[language]) and is_refusal(f"**{OFFERS[language]}**")
    assert set(OFFERS) == set(REFUSALS)


UNSUPPORTED = "Managers receive 77 yachts [1]."


def written(text, treatment="mark"):
    stream = stream_answer_sync(
        QUESTION,
        [passage(LEAVE)],
        embedder=EMBEDDER,
        chat_model=text if isinstance(text, ScriptedChatModel) else ScriptedChatModel(text),
        options=AnswerOptions(unsupported=treatment),
    )
    return list(stream)


@pytest.mark.parametrize(
    ("text", "treatment"),
    [
        *((REFUSALS["en"], treatment) for treatment in ("mark", "remove", "retry", "refuse")),
        (UNSUPPORTED, "remove"),
        (UNSUPPORTED, "refuse"),
        ("The context does not mention Lapland.", "mark"),
        ("", "retry"),
    ],
)
def test_where_a_model_has_no_answer_the_stream_says_so_first_and_shows_passages(text, treatment):
    first, offer, *_, reply = written(text, treatment)
    assert (first, offer, reply.text) == (Decided("passages"), OFFERS["en"], OFFERS["en"])
    assert isinstance(reply, Answer) and reply.passages == shown(QUESTION, [passage(LEAVE)]).passages
    assert (reply.citations, reply.model) == ((), "scripted")
    assert [one.start_offset for one in reply.unsupported] == [None] * (text == UNSUPPORTED)


def test_a_second_answer_that_is_none_shows_passages_too():
    model = ScriptedChatModel(lambda messages: UNSUPPORTED if len(messages) == 2 else REFUSALS["en"])
    first, *_, reply = written(model, "retry")
    assert len(model.calls) == 2
    assert (first, reply.outcome, bool(reply.passages)) == (Decided("passages"), "passages", True)


def test_a_models_refusal_shows_nothing_where_nothing_is_relevant():
    reply = answer(
        QUESTION,
        [replace(passage(LEAVE), relevance=0.05)],
        embedder=EMBEDDER,
        chat_model=ScriptedChatModel(REFUSALS["en"]),
    )
    assert (reply.outcome, reply.text, reply.passages) == ("none", REFUSALS["en"], ())


texts = st.one_of(
    st.text(
        alphabet=st.one_of(st.sampled_from("ab cd. ! \n\n|-*#[1]:?٠שלוםit This "), st.characters(codec="utf-8")),
        min_size=1,
        max_size=300,
    ),
    st.lists(
        st.sampled_from(
            ["Leave is 28 days. ", "- item\n", "| a | b |\n", "|---|---|\n", "\n\n", "# Head\n", "x" * 700]
        ),
        min_size=1,
        max_size=60,
    ).map("".join),
)


def _characters(shown):
    return [place for place, letter in enumerate(shown.text, shown.start_offset) if letter.strip()]


@settings(max_examples=150, deadline=None)
@given(contents=st.lists(texts, min_size=1, max_size=4), question=texts.filter(str.strip), data=st.data())
def test_whatever_is_shown_is_the_documents_own_and_short(contents, question, data):
    documents = dict(enumerate(contents, start=1))
    found = []
    for rank in range(1, data.draw(st.integers(1, 6)) + 1):
        document_id = data.draw(st.sampled_from(sorted(documents)))
        content = documents[document_id]
        start = data.draw(st.integers(0, len(content) - 1))
        end = data.draw(st.integers(start + 1, len(content)))
        found.append(passage(content, start=start, end=end, rank=rank, document_id=document_id, score=1 / rank))
    reply = shown(question, found)
    assert (reply.outcome == "passages") == bool(reply.passages) and reply.outcome != "answer"
    assert [one.marker for one in reply.passages] == list(range(1, len(reply.passages) + 1))
    assert sum(len(one.text) for one in reply.passages) <= 1_200
    starts = [(one.document_id, one.start_offset) for one in reply.passages]
    ends = {(one.document_id, one.end_offset + gap) for one in reply.passages for gap in (1, 2)}
    assert sum(start not in ends for start in starts) <= 3
    for one in reply.passages:
        assert one.text.strip() and documents[one.document_id][one.start_offset : one.end_offset] == one.text
        assert all(one.start_offset <= part.start_offset < part.end_offset <= one.end_offset for part in one.highlights)
        own = [hit for hit in found if hit.document_id == one.document_id]
        assert all(any(hit.start_offset <= at < hit.end_offset for hit in own) for at in _characters(one))
    spans = sorted((one.document_id, one.start_offset, one.end_offset) for one in reply.passages)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in itertools.pairwise(spans))
    assert verify(reply.text, reply.citations, documents) == ()
    assert shown(question, found) == reply
