"""How good answers are: measured by rule, and by a language model as a judge where one is given. Never NaN.

Names are those of RAGAS where they mean the same: ``faithfulness`` and ``answer_relevancy``. What cannot be measured of
an answer is None, and is left out of averages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Protocol

from recollect.answer.citations import markers_in
from recollect.answer.statements import MARKER, bare, statement_spans
from recollect.errors import ProviderError, UsageError
from recollect.evaluation.cases import Case, CaseSearch, Suite, Thresholds
from recollect.evaluation.rag_test import Progress, plain
from recollect.model import Answer

#: Each 0 to 1, in the order in which they are shown.
METRICS = (
    "refusal_accuracy",
    "fact_recall",
    "faithfulness",
    "citation_precision",
    "citation_recall",
    "answer_relevancy",
)

#: Answers what a case asks.
Ask = Callable[[CaseSearch], Answer]


class Judge(Protocol):
    """A second opinion on an answer."""

    def faithfulness(self, answer: Answer, statements: Sequence[str]) -> float | None:
        """The share of statements that the answer's sources support; None: the judge gave no usable verdict."""
        ...

    def answer_relevancy(self, answer: Answer) -> float | None:
        """How near the questions that the answer answers are to the one asked; None as above."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityResult:
    """What became of a case with one model.

    Attributes:
        case: The case.
        answer: None where the model failed.
        metrics: By name; None where one cannot be measured.
        missing: Expected facts that the answer does not hold, in their first form.
        milliseconds: Of the answer.
        failures: Why it fails, in words; empty for a case that passes.
    """

    case: Case
    answer: Answer | None
    metrics: Mapping[str, float | None]
    missing: tuple[str, ...]
    milliseconds: float
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether it meets all that is expected."""
        return not self.failures

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        usage = None if self.answer is None else self.answer.usage
        return {
            "name": self.case.name,
            "question": self.case.query,
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": None if self.answer is None else self.answer.text,
            "refused": None if self.answer is None else self.answer.refused,
            "missing": list(self.missing),
            "unsupported": [] if self.answer is None else [one.text for one in self.answer.unsupported],
            "metrics": dict(self.metrics),
            "latency_ms": round(self.milliseconds, 3),
            "tokens": None if usage is None else {"input": usage.input_tokens, "output": usage.output_tokens},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuality:
    """What became of all cases with one model.

    Attributes:
        model: As it was asked for; ``extractive`` without one.
        results: In the cases' order.
        input_price: Of a million tokens; None: unknown.
        output_price: The same of what is written.
    """

    model: str
    results: tuple[QualityResult, ...]
    input_price: float | None = None
    output_price: float | None = None

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return all(result.passed for result in self.results)

    def mean(self, metric: str) -> float | None:
        """A metric's average over the cases that it could be measured of; None where it could of none."""
        values = [value for result in self.results if (value := result.metrics[metric]) is not None]
        return fmean(values) if values else None

    def latency_ms(self, share: float) -> float:
        """The time that this share of all answers, 0 to 1, stays below."""
        ordered = sorted(result.milliseconds for result in self.results)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def tokens(self) -> tuple[int, int]:
        """What was sent and written in all."""
        usages = [result.answer.usage for result in self.results if result.answer and result.answer.usage]
        return sum(one.input_tokens for one in usages), sum(one.output_tokens for one in usages)

    def cost(self) -> float | None:
        """In the prices' currency; nothing without a language model, None where no price is known."""
        sent, written = self.tokens()
        if sent + written == 0:
            return 0.0
        if self.input_price is None and self.output_price is None:
            return None
        return (sent * (self.input_price or 0.0) + written * (self.output_price or 0.0)) / 1_000_000

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        sent, written = self.tokens()
        passed = sum(result.passed for result in self.results)
        return {
            "model": self.model,
            "passed": self.passed,
            "summary": {
                "cases": len(self.results),
                "passed": passed,
                "failed": len(self.results) - passed,
                "metrics": {name: self.mean(name) for name in METRICS},
                "latency_ms": {"p50": round(self.latency_ms(0.5), 3), "p95": round(self.latency_ms(0.95), 3)},
                "tokens": {"input": sent, "output": written},
                "cost": self.cost(),
            },
            "cases": [result.as_json() for result in self.results],
        }


def run_quality(
    suite: Suite, *, model: str, ask: Ask, judge: Judge | None = None, progress: Progress | None = None
) -> ModelQuality:
    """Ask a model every question, one after the other; one that fails fails its case, and the others go on.

    Args:
        suite: The cases; those that only say what a search must not find are left out.
        model: Its name.
        ask: Answers a question.
        judge: Measures faithfulness in place of the rules, and relevancy.
        progress: Told about each finished case.

    Raises:
        UsageError: No case says what is expected of an answer.
    """
    results = []
    cases = [case for case in suite.cases if case.of_answer]
    if not cases:
        raise UsageError("No case says what is expected of an answer: give expected_facts, answerable or must_have.")
    for done, case in enumerate(cases, start=1):
        results.append(_run_case(suite, case, ask, judge))
        if progress is not None:
            progress(done, len(cases))
    return ModelQuality(model=model, results=tuple(results))


def priced(quality: ModelQuality, *, input_price: float | None, output_price: float | None) -> ModelQuality:
    """The same with the prices of its model."""
    return replace(quality, input_price=input_price, output_price=output_price)


def metrics_of(case: Case, answer: Answer, judge: Judge | None = None) -> dict[str, float | None]:
    """All metrics of an answer; of a refusal, and of a case that wants one, only whether that was right."""
    found: dict[str, float | None] = dict.fromkeys(METRICS)
    found["refusal_accuracy"] = float(answer.refused == (case.answerable is False))
    if case.answerable is False:
        return found
    if case.expected_facts:
        found["fact_recall"] = 1 - len(missing_facts(case, answer)) / len(case.expected_facts)
    if answer.refused:
        return found
    sentences = _sentences(answer)
    found |= _by_rule(answer, sentences)
    if judge is not None and sentences:
        found["faithfulness"] = judge.faithfulness(answer, [_words(text) for text, _ in sentences])
        found["answer_relevancy"] = judge.answer_relevancy(answer)
    return found


def missing_facts(case: Case, answer: Answer) -> tuple[str, ...]:
    """The expected facts that an answer holds in none of their forms; a refusal holds none."""
    text = "" if answer.refused else plain(_words(answer.text))
    return tuple(forms[0] for forms in case.expected_facts if not any(plain(form) in text for form in forms))


def _sentences(answer: Answer) -> list[tuple[str, bool]]:
    """The answer's sentences that claim something, and whether the sources support them."""
    flagged = [
        (one.start_offset, one.end_offset)
        for one in answer.unsupported
        if one.start_offset is not None and one.end_offset is not None
    ]
    found = []
    for start, end, kind in statement_spans(answer.text):
        if kind in {"heading", "rule"} or not _words(answer.text[start:end]):
            continue
        supported = not any(first < end and start < last for first, last in flagged)
        found.append((answer.text[start:end], supported))
    return found


def _words(text: str) -> str:
    """What a text says, without markers and markup."""
    return "\n".join(bare(line) for line in MARKER.sub("", text).splitlines()).strip()


def _by_rule(answer: Answer, sentences: Sequence[tuple[str, bool]]) -> dict[str, float | None]:
    if not sentences:
        return {}
    cited = _cited(answer, sentences)
    given = {marker for markers, _ in cited for marker in markers}
    right = {marker for markers, supported in cited if supported for marker in markers}
    # A marker that named no source was taken out of the text, and was wrong all the same.
    invented = sum(one.reason == "no_source" for one in answer.unsupported)
    return {
        "faithfulness": fmean(supported for _, supported in sentences),
        "citation_precision": len(right) / (len(given) + invented) if given or invented else None,
        "citation_recall": fmean(bool(markers) and supported for markers, supported in cited),
    }


def _cited(answer: Answer, sentences: Sequence[tuple[str, bool]]) -> list[tuple[set[int], bool]]:
    """The markers of each sentence that name a citation, and whether it is supported."""
    known = {citation.marker for citation in answer.citations}
    found: list[tuple[set[int], bool]] = []
    behind: set[int] = set()
    for text, supported in reversed(sentences):
        markers = set(markers_in(text)) & known
        if answer.model is None and not markers:
            # A quote of several sentences has its marker behind the last.
            markers = behind
        behind = markers
        found.append((markers, supported))
    return found[::-1]


def _run_case(suite: Suite, case: Case, ask: Ask, judge: Judge | None) -> QualityResult:
    started = time.perf_counter()
    try:
        answer = ask(suite.search(case))
    except ProviderError as exc:
        milliseconds = (time.perf_counter() - started) * 1000
        return QualityResult(
            case=case,
            answer=None,
            metrics={**dict.fromkeys(METRICS), "refusal_accuracy": 0.0},
            missing=tuple(forms[0] for forms in case.expected_facts),
            milliseconds=milliseconds,
            failures=(f"the model failed: {exc}",),
        )
    milliseconds = (time.perf_counter() - started) * 1000
    metrics = metrics_of(case, answer, judge)
    missing = () if case.answerable is False else missing_facts(case, answer)
    return QualityResult(
        case=case,
        answer=answer,
        metrics=metrics,
        missing=missing,
        milliseconds=milliseconds,
        failures=tuple(_failures(case, answer, suite.thresholds(case), metrics, missing)),
    )


def _failures(
    case: Case,
    answer: Answer,
    thresholds: Thresholds,
    metrics: Mapping[str, float | None],
    missing: Sequence[str],
) -> list[str]:
    if answer.refused != (case.answerable is False):
        return ["answered, though it has no answer" if case.answerable is False else "refused, though it has an answer"]
    failures = []
    for name, value in metrics.items():
        least = getattr(thresholds, name, None)
        # What is 2/3 to a person is no failure at 0.667.
        if least is not None and value is not None and value < least - 1e-3:
            detail = f" (missing: {'; '.join(missing)})" if name == "fact_recall" else ""
            failures.append(f"{name} {value:.2f} is below {least:g}{detail}")
    return failures
