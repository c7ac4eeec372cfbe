"""Test cases of answers, as people write them in YAML: a question, and facts that its answer holds or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from recollect.errors import UsageError
from recollect.evaluation.case_files import line_of, read_text, read_yaml
from recollect.evaluation.cases import Line, Share


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QualityThresholds(_Strict):
    """What an answer must reach, each 0 to 1; None: not looked at.

    Attributes:
        fact_recall: Share of the expected facts that it holds.
        faithfulness: Share of its sentences that its sources support.
        citation_precision: Share of its citations that support what cites them.
        citation_recall: Share of its sentences that cite what supports them.
        answer_relevancy: How near its own questions are to the one asked; measured with a judge alone.
    """

    fact_recall: Share | None = 1.0
    faithfulness: Share | None = None
    citation_precision: Share | None = None
    citation_recall: Share | None = None
    answer_relevancy: Share | None = None


class QualityCase(_Strict):
    """One question and what a good answer is.

    Attributes:
        name: Unique within the file; unless it is given, the question.
        question: In plain words.
        expected_facts: Each must stand in the answer, in one of its forms; in a file a form, or a list of them.
        expected_refusal: Whether the documents hold no answer, so that a refusal is right and all else is wrong.
        thresholds: Those given win over the file's.
    """

    name: Line
    question: Line
    expected_facts: tuple[Annotated[tuple[Line, ...], Field(min_length=1)], ...] = ()
    expected_refusal: bool = False
    thresholds: QualityThresholds = QualityThresholds()

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(value, Mapping):
            return value
        facts = value.get("expected_facts", ())
        facts = facts if isinstance(facts, list | tuple) else [facts]
        forms = tuple(fact if isinstance(fact, list | tuple) else (fact,) for fact in facts)
        return {"name": value.get("question"), **value, "expected_facts": forms}

    @model_validator(mode="after")
    def _is_consistent(self) -> QualityCase:
        if not self.question.strip():
            raise ValueError("the question is blank")
        if self.expected_refusal and self.expected_facts:
            raise ValueError("a refusal holds no facts: give expected_facts or expected_refusal")
        return self


class QualitySuite(_Strict):
    """A file of such cases.

    Attributes:
        thresholds: Of all cases. Where none are given, all expected facts must be there.
        cases: In the file's order.
    """

    thresholds: QualityThresholds = QualityThresholds()
    cases: Annotated[tuple[QualityCase, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_names_once(self) -> QualitySuite:
        names = [case.name for case in self.cases]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise ValueError(f"there are two cases named {twice!r}")
        return self

    def of(self, case: QualityCase) -> QualityThresholds:
        """A case's own thresholds over the file's."""
        return self.thresholds.model_copy(update=case.thresholds.model_dump(exclude_unset=True))


def load_quality_suite(path: Path | str) -> QualitySuite:
    """Read a file of test cases.

    Args:
        path: YAML in UTF-8, with ``cases:``.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: It is not such a file; the message names the line.
    """
    content, node = read_yaml(read_text(path, of="test cases"), name=str(path), wanted="cases")
    try:
        return QualitySuite.model_validate(content)
    except ValidationError as exc:
        problems = []
        for error in exc.errors(include_url=False, include_input=False):
            place = ".".join(str(part) for part in error["loc"])
            message = str(error["msg"]).removeprefix("Value error, ")
            problems.append(f"{path}:{line_of(node, error['loc'])}: {place + ': ' if place else ''}{message}")
        raise UsageError("\n".join(problems)) from exc
