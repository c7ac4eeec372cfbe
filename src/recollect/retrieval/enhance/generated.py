"""Enhancements that a language model writes: other wordings of a query, and a hypothetical answer to it.

Both cost a call to the model before the search can begin, so both are off unless they are asked for. If the model
fails or is too slow, the query runs without them, and the plan's note says so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files

from recollect.errors import UsageError
from recollect.llm.base import ChatMessage, ChatModel, Completion, completion
from recollect.model import TokenUsage
from recollect.retrieval.enhance.plan import EnhancementNote, QueryPlan

TIMEOUT_SECONDS = 10.0
MAX_ALTERNATIVES = 8
MAX_ALTERNATIVE_CHARACTERS = 500
MAX_ANSWER_CHARACTERS = 2_000

logger = logging.getLogger(__name__)

_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


class MultiQueryEnhancer:
    """Searches other wordings of the query too. Safe to share between threads.

    Args:
        model: Writes them.
        count: How many at most, 1 to ``MAX_ALTERNATIVES``.
        timeout_seconds: For the whole call.

    Raises:
        UsageError: A number is out of range.
    """

    name = "multi-query"

    def __init__(self, model: ChatModel, *, count: int = 3, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        if not 1 <= count <= MAX_ALTERNATIVES:
            raise UsageError(f"multi-query count must lie between 1 and {MAX_ALTERNATIVES}, not {count!r}")
        self._count = count
        self._model = model
        self._timeout_seconds = _timeout(timeout_seconds)

    def enhance(self, plan: QueryPlan) -> QueryPlan:
        """See `recollect.retrieval.enhance.plan.QueryEnhancer`."""
        return _written(plan, self.name, self._ask, self._add)

    def _ask(self, query: str) -> Completion:
        messages = _messages(_template("multi_query").replace("{count}", str(self._count)), query)
        return completion(
            self._model,
            messages,
            timeout_seconds=self._timeout_seconds,
            max_characters=self._count * (MAX_ALTERNATIVE_CHARACTERS + 20),
        )

    def _add(self, plan: QueryPlan, text: str) -> tuple[QueryPlan, str]:
        lines = [_LIST_MARK.sub("", line).strip().strip("\"'“”") for line in text.splitlines()]
        known = {_normal(plan.query), *map(_normal, plan.alternatives)}
        fresh: dict[str, str] = {}
        for line in lines:
            usable = 0 < len(line) <= MAX_ALTERNATIVE_CHARACTERS and any(map(str.isalnum, line))
            if usable and _normal(line) not in known:
                fresh.setdefault(_normal(line), line.replace("\0", ""))
        added = tuple(fresh.values())[: self._count]
        return replace(plan, alternatives=plan.alternatives + added), "; ".join(added)


class HydeEnhancer:
    """Searches with the embedding of a hypothetical answer too (HyDE). Safe to share between threads.

    Gao, Ma, Lin and Callan, "Precise Zero-Shot Dense Retrieval without Relevance Labels" (2023).

    Args:
        model: Writes the answer.
        timeout_seconds: For the whole call.

    Raises:
        UsageError: ``timeout_seconds`` is not more than 0.
    """

    name = "hyde"

    def __init__(self, model: ChatModel, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._model = model
        self._timeout_seconds = _timeout(timeout_seconds)

    def enhance(self, plan: QueryPlan) -> QueryPlan:
        """See `recollect.retrieval.enhance.plan.QueryEnhancer`."""
        return _written(plan, self.name, self._ask, self._add)

    def _ask(self, query: str) -> Completion:
        messages = _messages(_template("hyde"), query)
        return completion(
            self._model, messages, timeout_seconds=self._timeout_seconds, max_characters=MAX_ANSWER_CHARACTERS
        )

    def _add(self, plan: QueryPlan, text: str) -> tuple[QueryPlan, str]:
        answer = " ".join(text.replace("\0", "").split())
        added = (answer,) if answer else ()
        return replace(plan, hypothetical_answers=plan.hypothetical_answers + added), answer


def _written(
    plan: QueryPlan,
    name: str,
    ask: Callable[[str], Completion],
    add: Callable[[QueryPlan, str], tuple[QueryPlan, str]],
) -> QueryPlan:
    try:
        written = ask(plan.query)
    except Exception as exc:  # noqa: BLE001  # whatever a provider raises, the plain query can still run
        logger.warning("The enhancement %s failed, the query runs without it: %s", name, exc)
        note = EnhancementNote(name=name, outcome="failed", detail=str(exc) or type(exc).__name__)
        return replace(plan, notes=(*plan.notes, note))
    enhanced, detail = add(plan, written.text)
    if detail:
        note = EnhancementNote(name=name, outcome="applied", detail=detail)
    else:
        note = EnhancementNote(name=name, outcome="nothing to add", detail="the model wrote nothing usable")
    return replace(enhanced, notes=(*plan.notes, note), usage=TokenUsage.total((plan.usage, written.usage)))


def _messages(rules: str, query: str) -> tuple[ChatMessage, ...]:
    # The query cannot end its own frame.
    framed = re.sub(r"</?\s*query\s*>", " ", query, flags=re.IGNORECASE)
    return ChatMessage("system", rules), ChatMessage("user", f"<query>\n{framed}\n</query>")


@cache
def _template(name: str) -> str:
    return files("recollect.retrieval.enhance").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def _timeout(seconds: float) -> float:
    if not seconds > 0:
        raise UsageError(f"timeout_seconds must be more than 0, not {seconds!r}")
    return seconds


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())
