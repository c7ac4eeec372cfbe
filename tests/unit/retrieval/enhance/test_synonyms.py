from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import NotFoundError, UsageError
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.enhance.plan import Expansion, QueryPlan, enhance
from recollect.retrieval.enhance.synonyms import (
    MAX_EXPANSIONS,
    SynonymEnhancer,
    SynonymRule,
    SynonymRules,
    find_acronyms,
    load_synonyms,
    parse_synonyms,
)

ANALYZER = Analyzer("en")


def added(rules, query):
    return {(e.text, e.weight) for e in enhance(query, [SynonymEnhancer(parse_synonyms(rules), ANALYZER)]).expansions}


def test_one_way_rules_lead_one_way():
    rules = "incapacitated => dies, unable to act"
    assert added(rules, "What if the trustee becomes incapacitated?") == {("dies", 0.5), ("unable to act", 0.5)}
    assert added(rules, "What if the trustee dies?") == set()


def test_two_way_rules_lead_every_way_but_to_themselves():
    rules = "dies, deceased, passes away ^0.7"
    assert added(rules, "he dies") == {("deceased", 0.7), ("passes away", 0.7)}
    assert added(rules, "has he passed away") == {("dies", 0.7), ("deceased", 0.7)}


def test_phrases_are_met_in_their_order_and_by_their_stems():
    rules = "annual percentage rate => APR"
    assert added(rules, "Which Annual Percentage Rates apply?") == {("APR", 0.5)}
    assert added(rules, "Which rate is the annual percentage?") == set()
    assert added(rules, "percentage rate") == set()


def test_nested_phrases_are_all_met():
    rules = "leave => vacation\nparental leave => baby break"
    assert added(rules, "parental leave") == {("baby break", 0.5), ("vacation", 0.5)}


def test_comments_blank_lines_and_signs_inside_words():
    rules = "# heading, with => signs\n\nC# => csharp   # a language\n   # indented\n"
    (rule,) = parse_synonyms(rules).rules
    assert (rule.originals, rule.expansions, rule.where) == (("C#",), ("csharp",), "synonyms:3")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("lonely", "one phrase"),
        ("a => b => c", "one '=>'"),
        ("apple, , pear", "phrase is missing"),
        ("=> pear", "phrase is missing"),
        ("apple =>", "phrase is missing"),
        ("apple, pear ^2", "weight"),
        ("apple, pear ^nan", "weight"),
        ("apple, pear ^0", "weight"),
        ("apple, pear ^much", "weight"),
        ("apple, " + "x" * 201, "200"),
        ("apple, pe\x07ar", "printable"),
    ],
)
def test_a_line_that_is_no_rule_is_named(line, says):
    with pytest.raises(UsageError, match=says) as caught:
        parse_synonyms(f"good, fine\n{line}\n", name="words.txt")
    assert str(caught.value).startswith("words.txt:2: ")


def test_a_phrase_that_nothing_could_find_is_named_with_its_line():
    with pytest.raises(UsageError, match=r"synonyms:1: 'of the'"):
        SynonymEnhancer(parse_synonyms("of the, belonging"), ANALYZER)


def test_files(tmp_path):
    file = tmp_path / "words.txt"
    file.write_bytes("\ufeffUrlaub, Ferien\r\nمرض => علة\r\n".encode())
    assert [rule.originals for rule in load_synonyms(file).rules] == [("Urlaub", "Ferien"), ("مرض",)]
    file.write_bytes("ja, nein\nÄrger, Verdruss\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"words\.txt:2: not UTF-8"):
        load_synonyms(file)
    file.write_bytes(b"x" * 5_000_001)
    with pytest.raises(UsageError, match="5,000,000"):
        load_synonyms(file)
    with pytest.raises(UsageError, match="cannot be read"):
        load_synonyms(tmp_path)
    with pytest.raises(NotFoundError, match=r"none\.txt"):
        load_synonyms(tmp_path / "none.txt")


def test_an_empty_file_has_no_rules_and_adds_nothing():
    plan = enhance("leave", [SynonymEnhancer(parse_synonyms(""), ANALYZER)])
    assert plan.expansions == ()
    assert plan.notes[0].outcome == "nothing to add"


def test_a_query_takes_up_a_bounded_number_of_expansions():
    words = ", ".join(f"word{i}" for i in range(200))
    assert len(added(words, "word7")) == MAX_EXPANSIONS


def test_the_note_says_what_was_added():
    plan = enhance("dies", [SynonymEnhancer(parse_synonyms("dies => death ^0.25"), ANALYZER)])
    assert plan.notes[0].detail == "dies → death (×0.25)"


def test_the_fingerprint_follows_the_rules_and_not_the_file():
    rules = parse_synonyms("a1, b1 ^0.4", name="one")
    assert rules.fingerprint == parse_synonyms("\n# c\na1,  b1 ^0.40", name="two").fingerprint
    assert rules.fingerprint != parse_synonyms("a1, b1 ^0.5").fingerprint
    assert rules.fingerprint != parse_synonyms("a1 => b1 ^0.4").fingerprint


def test_what_is_there_already_is_not_added_twice():
    enhancer = SynonymEnhancer(parse_synonyms("dies => death"), ANALYZER)
    expansions = enhance("dies, he dies", [enhancer, enhancer]).expansions
    assert expansions == (Expansion("dies", "death", 0.5),)


@given(st.text(max_size=80), st.text(max_size=60))
def test_any_text_is_rules_or_a_clear_error_and_any_query_passes(text, query):
    try:
        enhancer = SynonymEnhancer(parse_synonyms(text), ANALYZER)
    except UsageError as exc:
        assert str(exc).startswith("synonyms:")
    else:
        assert enhancer.enhance(QueryPlan(query=query)).query == query


def test_acronyms_are_found_where_documents_explain_them():
    text = (
        "The Annual Percentage Rate (APR) is fixed. RSU (restricted stock unit) grants vest. The Internal Revenue "
        "Service (IRS) and Research & Development (R&D). Department of Motor Vehicles (DMV). Cost-of-living "
        "adjustments (COLAs). See Figure (ABC). It costs ten (EUR) and NATO (see below). "
        'Performance Share Units (“PSUs”) and the United States Code (the "USC").'
    )
    rules = find_acronyms([text])
    found = {rule.originals for rule in rules.rules}
    assert found == {
        ("APR", "annual percentage rate"),
        ("COLA", "cost-of-living adjustments"),
        ("DMV", "department of motor vehicles"),
        ("IRS", "internal revenue service"),
        ("PSU", "performance share units"),
        ("RSU", "restricted stock unit"),
        ("USC", "united states code"),
    }
    enhancer = SynonymEnhancer(rules, ANALYZER, name="acronyms")
    assert [e.text for e in enhance("what is the apr", [enhancer]).expansions] == ["annual percentage rate"]
    assert [e.text for e in enhance("annual percentage rates", [enhancer]).expansions] == ["APR"]


def test_of_two_meanings_the_more_frequent_one_counts():
    texts = ["Automatic Payment Rule (APR)", "Annual Percentage Rate (APR)", "Annual percentage rate (APR)"]
    assert find_acronyms(texts) == SynonymRules(
        (SynonymRule(("APR", "annual percentage rate"), ("APR", "annual percentage rate"), 0.8),)
    )


@given(st.text(alphabet="aAbB ()&-'\n", max_size=300))
def test_found_acronyms_are_the_initials_of_their_long_forms(text):
    for rule in find_acronyms([text]).rules:
        short, long = rule.originals
        initials = iter(part[0] for word in long.split() for part in word.replace("&", "-").split("-") if part)
        assert all(letter in initials for letter in short.lower() if letter.isalpha())


@pytest.mark.parametrize(
    "text", ["w" * 300_000, "word " * 60_000, "a (" * 100_000, "(" * 300_000, "A" * 50_000 + " (APR)"]
)
def test_long_texts_without_acronyms_take_no_time_to_speak_of(text):
    assert find_acronyms([text]).rules == ()


def test_a_long_form_longer_than_any_name_is_none():
    long = " ".join(["a" + "b" * 150, "p" + "c" * 150, "rate"])
    assert find_acronyms([f"The {long} (APR)."]).rules == ()
