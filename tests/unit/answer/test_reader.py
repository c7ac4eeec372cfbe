"""The trained reader on the real model: what it says must not change unnoticed."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from answer.samples import passage as found
from recollect.answer.extractive import ExtractionOptions, extract_answer, read
from recollect.answer.reader import CHECKER, MAX_WINDOWS, WEIGHTS, Reader
from recollect.answer.refusal import RefusalRule
from recollect.config import RAGConfig
from recollect.embedding.hashing import HashingEmbedder
from recollect.embedding.local import LocalEmbedder
from recollect.errors import UsageError
from recollect.pipeline.assembly import Assembly

GOLDEN = {WEIGHTS: "reader_golden.json", CHECKER: "checker_golden.json"}
PASSAGE = (
    "The office in Lyon opened in 1994. It is led by Marie Dupont, who joined two years later. "
    "Visitors may park behind the building; the gate closes at 19:30."
)


@pytest.fixture(scope="module")
def reader(model_cache) -> Reader:
    return Reader(model_cache)


def golden(weights):
    return json.loads((Path(__file__).parents[2] / "data" / GOLDEN[weights]).read_text(encoding="utf-8"))


@pytest.mark.parametrize("weights", [WEIGHTS, CHECKER], ids=lambda path: path.stem)
def test_readings_are_those_that_were_recorded(model_cache, weights):
    reader = Reader(model_cache, weights=weights, precision="fp32")
    for one in golden(weights):
        (reading,) = reader.read(one["question"], [one["passage"]], [one["heading"]])
        assert one["passage"][reading.start : reading.end] == one["span"]
        assert reading.probability == pytest.approx(one["probability"], abs=0.002)
        assert reading.begins_within(reading.start, reading.end) == pytest.approx(one["begins"], abs=0.05)


@pytest.mark.parametrize("weights", [WEIGHTS, CHECKER], ids=lambda path: path.stem)
def test_eight_bits_say_nearly_the_same(model_cache, weights):
    reader, recorded = Reader(model_cache, weights=weights), golden(weights)
    readings = [reader.read(one["question"], [one["passage"]], [one["heading"]])[0] for one in recorded]
    off = [abs(reading.probability - one["probability"]) for reading, one in zip(readings, recorded, strict=True)]
    assert sum(off) / len(off) < 0.1


def test_the_span_is_where_the_answer_stands(reader):
    (reading,) = reader.read("When does the gate close?", [PASSAGE])
    assert "19:30" in PASSAGE[reading.start : reading.end]
    (other,) = reader.read("When did Napoleon lose the battle?", [PASSAGE])
    assert other.probability < reading.probability


def test_readings_come_in_the_order_of_the_passages_whatever_their_length(reader):
    passages = ["Short.", PASSAGE, "", PASSAGE + " More follows here." * 40, "x"]
    together = reader.read("Who leads the office?", passages)
    assert together == [reader.read("Who leads the office?", [passage])[0] for passage in passages]


def test_an_answer_far_into_a_long_passage_is_found(reader):
    long = "The garden has many trees and a small pond. " * 120 + PASSAGE
    (reading,) = reader.read("When does the gate close?", [long])
    assert reading.start > 5000
    assert "19:30" in long[reading.start : reading.end]


def test_a_heading_is_read_and_never_quoted(reader):
    passage = "Lead: Marie Dupont"
    named, other = reader.read("Who is the lead of Storage?", [passage] * 2, ["Teams > Storage", "Teams > Network"])
    assert named.probability > other.probability
    assert 0 <= named.start < named.end <= len(passage)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "\ud800",
        "\0",
        "é\u0301 ﬁ Ⅷ",
        "🙂" * 900,
        "[SEP] [CLS] [MASK]",
        "数据库连接失败，请稍后再试。",
        "word " * 60_000,
    ],
    ids=["empty", "blank", "surrogate", "null", "composed", "pictures", "specials", "chinese", "long"],
)
def test_hostile_texts_have_spans_within_them(reader, text):
    for question, passage in ((text, PASSAGE), (PASSAGE, text), (text, text)):
        (reading,) = reader.read(question, [passage], [text])
        assert 0 <= reading.start <= reading.end <= len(passage)
        assert 0 <= reading.probability <= 1


def test_only_so_many_windows_of_a_passage_are_read(reader):
    far = "word " * 320 * (MAX_WINDOWS + 1) + PASSAGE
    (reading,) = reader.read("When does the gate close?", [far])
    assert reading.end < len(far) - len(PASSAGE)


def test_the_first_window_of_each_passage_is_read_before_the_second_ones(reader):
    far = "word " * 320 * 3 + PASSAGE
    many = [far] * MAX_WINDOWS + [PASSAGE]
    readings = reader.read("When does the gate close?", many)
    assert all(reading.begins_within(len(far) - len(PASSAGE), len(far)) == -math.inf for reading in readings[:-1])
    assert "19:30" in PASSAGE[readings[-1].start : readings[-1].end]
    (alone,) = reader.read("When does the gate close?", [far])
    assert alone.begins_within(len(far) - len(PASSAGE), len(far)) > -math.inf


def test_what_was_read_counts_in_english_only(reader, model_cache):
    embedder = LocalEmbedder(cache=model_cache)
    asked = partial(read, "When does the gate close?", [found(PASSAGE)], embedder=embedder)
    for language, counts in (("en", True), ("fr", False)):
        alone = asked(language=language, options=ExtractionOptions())
        together = asked(language=language, options=ExtractionOptions(reader=reader))
        assert (alone.support != together.support) is counts


def test_passages_are_shown_where_the_reader_alone_finds_something_in_them(reader, model_cache):
    embedder, never = LocalEmbedder(cache=model_cache), RefusalRule(threshold=1)

    def outcome(question, asked):
        options = ExtractionOptions(reader=asked, rule=never)
        return extract_answer(question, [found(PASSAGE, relevance=0.05)], embedder=embedder, options=options).outcome

    assert outcome("When does the gate close?", reader) == "passages"
    assert outcome("When does the gate close?", None) == "none"
    assert outcome("What do giraffes eat in winter?", reader) == "none"


def test_two_sentences_of_a_passage_are_told_apart(reader, model_cache):
    ask = partial(extract_answer, embedder=LocalEmbedder(cache=model_cache), options=ExtractionOptions(reader=reader))
    assert "19:30" in ask("When does the gate close?", [found(PASSAGE)]).text
    assert "1994" in ask("When did the office in Lyon open?", [found(PASSAGE)]).text
    assert "Marie Dupont" in ask("Who leads the office in Lyon?", [found(PASSAGE)]).text


def test_it_is_asked_where_the_default_model_embeds(model_cache):
    assembly = Assembly(RAGConfig.load(embedding={"model_dir": str(model_cache.directory)}))
    assert assembly.reader_for(LocalEmbedder(cache=model_cache)) is not None
    assert assembly.reader_for(HashingEmbedder()) is None


def test_threads_share_a_reader(model_cache):
    reader = Reader(model_cache)
    questions = ["Who leads the office?", "When does the gate close?", "Where may visitors park?"] * 4
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda question: reader.read(question, [PASSAGE, "", PASSAGE]), questions))
    assert found == [reader.read(question, [PASSAGE, "", PASSAGE]) for question in questions]


def test_no_passages_have_no_readings(reader):
    assert reader.read("Why?", []) == []


def test_calls_that_cannot_be_meant_are_refused(reader, model_cache):
    with pytest.raises(UsageError, match="sequence of passages"):
        reader.read("Why?", PASSAGE)
    with pytest.raises(UsageError, match="as many headings"):
        reader.read("Why?", [PASSAGE, PASSAGE], ["One"])
    with pytest.raises(UsageError, match="precision"):
        Reader(model_cache, precision="int4")
