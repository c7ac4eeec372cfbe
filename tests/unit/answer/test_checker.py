"""What a language model writes in English, checked with the trained reader on the real model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from answer.samples import passage
from recollect.answer.statements import StatementStream
from recollect.answer.verification import Verifier

DATA = Path(__file__).parents[2] / "data"
RULES = (
    "The depot moves from Swindon to Reading. Ms Hartley proposed the new route, and Mr Adeyemi opposed it. "
    "The tank holds at least 40 litres. The offices are in Lyon (12 people) and Porto (7 people). Records may be "
    "shared with auditors if the officer approves. The lease begins on 1 July 2024 and ends on 30 June 2029. "
    "Managers get a company car, and their assistants a railcard."
)


def reasons(text, passages, reader):
    verifier, stream = Verifier(passages, reader=reader), StatementStream()
    return [verifier.check(statement).reason for statement in [*stream.feed(text), *stream.flush()]]


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("Ms Hartley suggested the new route", "Mr Adeyemi suggested the new route"),
        ("Managers are given a company car", "Managers get a yacht"),
        ("The lease ends on 30 June 2029", "The lease begins on 30 June 2029"),
        (
            "Auditors may see records if the officer agrees",
            "Records may be shared with auditors without the officer's approval",
        ),
    ],
)
def test_what_words_do_not_show(true, false, checker):
    assert reasons(f"{true} [1].", [passage(RULES)], checker) == [None]
    assert reasons(f"{false} [1].", [passage(RULES)], checker) != [None]


@pytest.mark.parametrize(
    ("name", "found", "flagged"), [("citation_cases", 0.86, 0.12), ("citation_cases_held", 0.7, 0.27)]
)
def test_alterations_are_found_and_true_sentences_are_left_alone(name, found, flagged, checker):
    data = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    bad, all_of = Counter[bool](), Counter[bool]()
    for case in data["cases"]:
        shown = [data["sources"][key] for key in case["sources"]]
        passages = [
            passage(one["text"], document_id=number, source=one["source"], section=one["section"])
            for number, one in enumerate(shown, start=1)
        ]
        all_of[case["supported"]] += 1
        bad[case["supported"]] += any(reasons(case["answer"], passages, checker))
    shares = bad[False] / all_of[False], bad[True] / all_of[True]
    assert shares[0] >= found and shares[1] <= flagged, shares


def test_a_sentence_of_the_source_is_supported_by_it(checker):
    for sentence in RULES.split(". "):
        assert reasons(f"{sentence.rstrip('.')} [1].", [passage(RULES)], checker) == [None]


def test_a_long_source_is_read_where_it_speaks_of_the_statement(checker):
    filler = "The garden has many trees and a small pond. " * 80
    long = f"{filler}\n\n{RULES}\n\n{filler}"
    assert reasons("The lease ends on 30 June 2029 [1].", [passage(long)], checker) == [None]
    assert reasons("The lease begins on 30 June 2029 [1].", [passage(long)], checker) != [None]


def test_what_two_sources_say_together_is_supported_by_both(checker):
    sources = [
        passage("Lunch costs EUR 6."),
        passage("The canteen opens at 11:30.", document_id=2, source="canteen.txt"),
    ]
    assert reasons("Lunch costs EUR 6, and the canteen opens at 11:30 [1][2].", sources, checker) == [None]
