from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.answer.absence import OFFERS
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ProviderError
from recollect.evaluation.case_files import Case, Suite
from recollect.evaluation.html_report import render_quality
from recollect.evaluation.quality import METRICS, ModelJudge, metrics_of, run_quality
from recollect.llm.scripted import ScriptedChatModel
from recollect.model import Answer, Citation, Highlight, Outcome, ShownPassage
from recollect.model.answer import REFUSAL, UnsupportedSentence
from recollect.model.passage import TokenUsage

LEAVE = {"question": "How much leave?", "expected_facts": ["30 days", ["1 April", "April 1"]]}
PETS = {"question": "May I bring a cat?", "expected_refusal": True}


def citation(marker):
    return Citation(
        marker=marker,
        document_id=1,
        source="leave.md",
        section=None,
        page=None,
        start_offset=0,
        end_offset=5,
        quote="quote",
    )


def answer(text, *, wrong=(), invented=0, cited=(1,), outcome="answer", usage=None):
    unsupported = [
        UnsupportedSentence(
            text=one,
            start_offset=text.index(one),
            end_offset=text.index(one) + len(one),
            reason="number",
            detail="100 is not in the source",
        )
        for one in wrong
    ]
    unsupported += [
        UnsupportedSentence(text="x", start_offset=None, end_offset=None, reason="no_source", detail="[9] names none")
        for _ in range(invented)
    ]
    return Answer(
        question="How much leave?",
        text=text,
        outcome=outcome,
        citations=tuple(map(citation, cited)),
        unsupported=tuple(unsupported),
        usage=usage,
    )


def refusal(outcome="none"):
    return answer(REFUSAL if outcome == "none" else OFFERS["en"], cited=(), outcome=outcome)


PASSAGE = ShownPassage(
    marker=1,
    document_id=1,
    source="leave.md",
    section="Leave > Days",
    page=3,
    start_offset=10,
    end_offset=50,
    text="Of leave: <b>30\n days</b> for everybody.",
    highlights=(Highlight(start_offset=20, end_offset=35),),
)


def case(**fields):
    return Case.model_validate(LEAVE | fields)


def suite(*cases, **thresholds):
    return Suite.model_validate({"cases": list(cases), "thresholds": thresholds})


class TestMetrics:
    def test_a_good_answer(self):
        found = metrics_of(case(), answer("Employees get 30 days [1]. It starts on April 1 [1]."))
        assert found == {
            "refusal_accuracy": 1,
            "fact_recall": 1,
            "passage_recall": None,
            "faithfulness": 1,
            "citation_precision": 1,
            "citation_recall": 1,
            "answer_relevancy": None,
        }

    def test_shares(self):
        text = "Employees get **30 days** [1]. Managers get 100 days [2]. Everybody likes it."
        wrong = answer(text, wrong=["Managers get 100 days [2]."], cited=(1, 2), invented=1)
        found = metrics_of(case(), replace(wrong, model="m"))
        assert found["fact_recall"] == 0.5
        assert found["faithfulness"] == pytest.approx(2 / 3)
        assert found["citation_precision"] == pytest.approx(1 / 3), "one of [1], [2] and the invented one is right"
        assert found["citation_recall"] == pytest.approx(1 / 3)

    def test_a_quote_of_several_sentences_has_one_marker(self):
        quoted = answer("Leave is 30 days. It starts on April 1. [1] Ask Ann. [2]", cited=(1, 2))
        assert metrics_of(case(), quoted)["citation_recall"] == 1
        assert metrics_of(case(), replace(quoted, model="m"))["citation_recall"] < 1

    def test_markers_and_markup_hide_no_fact(self):
        assert metrics_of(case(), answer("**30**  days[1] from *1 April* [1]."))["fact_recall"] == 1

    @pytest.mark.parametrize("outcome", ["none", "passages"])
    def test_a_refusal_is_right_or_wrong_and_no_more(self, outcome):
        right = metrics_of(Case.model_validate(PETS | {"name": "pets"}), refusal(outcome))
        assert {name for name, value in right.items() if value is not None} == {"refusal_accuracy"}
        assert right["refusal_accuracy"] == 1
        wrong = metrics_of(case(), refusal(outcome))
        assert (wrong["refusal_accuracy"], wrong["fact_recall"], wrong["faithfulness"]) == (0, 0, None)

    def test_the_facts_of_passages_are_counted_apart(self):
        told = metrics_of(case(), replace(refusal("passages"), passages=(PASSAGE,)))
        assert (told["refusal_accuracy"], told["fact_recall"], told["passage_recall"]) == (0, 0, 0.5)
        assert metrics_of(case(), refusal())["passage_recall"] is None

    @given(st.text(max_size=80), st.lists(st.integers(1, 9), max_size=3), st.sampled_from(get_args(Outcome)))
    def test_whatever_an_answer_is_no_figure_is_nan_or_out_of_range(self, text, cited, outcome):
        found = metrics_of(case(), answer(text, cited=tuple(cited), outcome=outcome))
        assert list(found) == list(METRICS)
        for value in found.values():
            assert value is None or (math.isfinite(value) and 0 <= value <= 1)


class TestRun:
    def ask(self, question):
        if "cat" in question.query:
            return answer("Cats are welcome [1].")
        return answer("It is 30 days from April 1 [1].", usage=TokenUsage(input_tokens=1000, output_tokens=500))

    def test_cases_pass_and_fail(self):
        told = []
        done = run_quality(suite(LEAVE, PETS), model="m", ask=self.ask, progress=lambda *step: told.append(step))
        assert [result.passed for result in done.results] == [True, False]
        assert done.results[1].failures == ("answered, though it has no answer",)
        assert [one["outcome"] for one in done.as_json()["cases"]] == ["answer", "answer"]
        assert (done.passed, done.mean("refusal_accuracy"), done.tokens()) == (
            False,
            0.5,
            {"input": 1000, "output": 500},
        )
        assert told == [(1, 2), (2, 2)]

    def test_passages_are_told_apart_from_answers_and_refusals(self):
        ends = {"How much leave?": replace(refusal("passages"), passages=(PASSAGE,)), "May I bring a cat?": refusal()}
        done = run_quality(suite(LEAVE, PETS), model="m", ask=lambda question: ends[question.query])
        assert [result.failures for result in done.results] == [("showed passages, though it has an answer",), ()]
        summary = done.as_json()["summary"]
        assert summary["outcomes"] == {"answer": 0, "passages": 1, "none": 0}
        assert (summary["metrics"]["passage_recall"], summary["metrics"]["refusal_accuracy"]) == (0.5, 0.5)

    def test_missing_facts_are_named(self):
        (result,) = run_quality(suite(LEAVE), model="m", ask=lambda question: answer("It is 30 days [1].")).results
        assert result.failures == ("fact_recall 0.50 is below 1 (missing: 1 April)",)

    def test_thresholds_of_the_file_and_of_a_case(self):
        text = "It is 30 days from April 1 [1]. Managers get 100 [1]."

        def ask(question):
            return answer(text, wrong=["Managers get 100 [1]."])

        strict = run_quality(suite(LEAVE, faithfulness=0.9), model="m", ask=ask)
        assert strict.results[0].failures == ("faithfulness 0.50 is below 0.9",)
        own = LEAVE | {"thresholds": {"faithfulness": 0.5}}
        assert run_quality(suite(own, faithfulness=0.9), model="m", ask=ask).passed

    def test_a_model_that_fails_fails_its_case_and_the_others_go_on(self):
        def ask(question):
            if "cat" in question.query:
                return refusal()
            raise ProviderError("the server failed", provider="x")

        done = run_quality(suite(LEAVE, PETS), model="m", ask=ask)
        assert [result.passed for result in done.results] == [False, True]
        assert "the server failed" in done.results[0].failures[0]
        assert done.mean("faithfulness") is None
        assert "NaN" not in json.dumps(done.as_json(), allow_nan=False)

    def test_cost(self):
        assert run_quality(suite(LEAVE), model="m", ask=self.ask).cost() is None, "no price is known"
        done = run_quality(suite(LEAVE), model="m", ask=self.ask, input_price=2.0, output_price=10.0)
        assert done.cost() == pytest.approx(0.007)
        assert run_quality(suite(PETS), model="extractive", ask=lambda question: refusal()).cost() == 0

    def test_the_page_shows_all_and_runs_nothing(self):
        def ask(question):
            return answer("<script>alert(1)</script> 30 days [1].", wrong=["30 days [1]."])

        page = render_quality([run_quality(suite(LEAVE, PETS), model="<m>", ask=ask)], title="T & T")
        assert "<script" not in page
        assert "&lt;script&gt;alert(1)" in page
        assert "&lt;m&gt;" in page
        assert "T &amp; T" in page
        assert "missing: 1 April" in page
        assert "nan" not in page.lower().replace("finance", "")

    def test_the_page_shows_passages_with_what_is_closest_marked(self):
        shown = replace(refusal("passages"), passages=(PASSAGE,))
        page = render_quality([run_quality(suite(LEAVE), model="m", ask=lambda question: shown)], title="T")
        assert "leave.md › Leave › Days, p. 3" in page
        assert "Of leave: <mark>&lt;b&gt;30\n days&lt;/b&gt;</mark> for everybody." in page
        assert "showed passages, though it has an answer" in page and OFFERS["en"] in page


class TestJudge:
    def judge(self, reply):
        return ModelJudge(ScriptedChatModel(reply), sources=lambda given: ["30 days."], embedder=HashingEmbedder())

    def test_verdicts_and_questions(self):
        def reply(messages):
            if "STATEMENTS" in messages[1].content:
                assert "30 days." in messages[1].content
                assert "1. It is 30 days." in messages[1].content
                return "```json\n[1, 0]\n```"
            return '{"questions": ["How much leave?", "How much leave?"], "noncommittal": false}'

        found = metrics_of(case(), answer("It is 30 days [1]. Managers get more [1]."), self.judge(reply))
        assert found["faithfulness"] == 0.5
        assert found["answer_relevancy"] == pytest.approx(1, abs=1e-6)

    def test_an_evasive_answer_is_not_relevant(self):
        evasive = '{"questions": ["How much leave?"], "noncommittal": true}'
        assert self.judge(evasive).answer_relevancy(answer("It depends.")) == 0

    @pytest.mark.parametrize(
        "reply",
        ["yes", "[1, 2]", "[1]", "[NaN, 1]", "[true, []]", '{"questions": [3]}', '{"questions": "x"}', "[[[[", "{"],
    )
    def test_what_cannot_be_read_is_no_verdict(self, reply):
        judge = self.judge(reply)
        assert judge.faithfulness(answer("a b"), ["a", "b"]) is None
        assert judge.answer_relevancy(answer("a b")) is None

    def test_a_judge_that_fails_gives_none(self):
        model = ScriptedChatModel("[1]", error=ProviderError("down", provider="x"))
        judge = ModelJudge(model, sources=lambda given: [], embedder=HashingEmbedder())
        assert judge.faithfulness(answer("a"), ["a"]) is None
