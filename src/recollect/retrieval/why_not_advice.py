"""What to change so that a search finds a document; nothing is advised that was not tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.model.bounds import MAX_CANDIDATES, most_passages

if TYPE_CHECKING:
    from recollect.model import CompleteOptions
    from recollect.model.why_not import WhyNotStage
    from recollect.retrieval.why_not_stages import Evidence

# What is tried beyond a rank in the widest search, by which narrower ones may differ from it.
_GROWTH = (1.0, 1.1, 1.3, 1.6, 2.0)


def advice(blamed: WhyNotStage, stages: Sequence[WhyNotStage], evidence: Evidence) -> str:
    """What kept the document out, and what to change, in sentences.

    Args:
        blamed: The stage that kept it out.
        stages: All of the search's.
        evidence: What is known; every change is tried before it is advised.
    """
    cause = blamed.detail
    if blamed.stage == "top_k":
        cause = "; ".join([*(one.detail for one in stages if one.stage == "rerank" and not one.passed), cause])
    elif blamed.stage == "candidates" and evidence.ranks():
        cause += f" (it ranks {' and '.join(f'{rank:,} {how}' for how, rank in evidence.ranks().items())})"
    return f"{cause}. {_remedy(blamed, evidence)}"


def _remedy(blamed: WhyNotStage, evidence: Evidence) -> str:
    options = evidence.options
    match blamed.stage:
        case "similarity_threshold" | "min_relevance" | "min_score":
            value = blamed.numbers.get("value")
            if not isinstance(value, float):
                return "It was not compared with the query at all."
            # Rounded down, so that the document's own value reaches it.
            limit = math.floor(value * 1000) / 1000
            lowered: dict[str, Any] = {blamed.stage: max(-1.0, limit) if "similarity" in blamed.stage else limit}
            return _tried(f"lower {blamed.stage} to {limit:g}", replace(options, **lowered), evidence)
        case "duplicates":
            return _tried("switch collapse_duplicates off", replace(options, collapse_duplicates=False), evidence)
        case "variety":
            return _tried("leave mmr_lambda out", replace(options, mmr_lambda=None), evidence)
        case "candidates":
            needed = min(evidence.ranks().values(), default=MAX_CANDIDATES + 1)
            if needed <= MAX_CANDIDATES and evidence.rank(evidence.run(replace(options, candidates=needed))):
                return f"Raise candidates to {needed:,}."
    return _more_results(evidence)


def _tried(change: str, changed: CompleteOptions, evidence: Evidence) -> str:
    rank = evidence.rank(evidence.run(changed))
    if rank is not None:
        return f"{change.capitalize()}, and it is result {rank:,}."
    wanted, _ = _enough(changed, evidence.rank(evidence.ranked), evidence)
    if wanted is None:
        return f"To {change} is not enough."
    return f"{change.capitalize()} and raise top_k to {wanted:,}."


def _more_results(evidence: Evidence) -> str:
    wanted, wide = _enough(evidence.options, evidence.rank(evidence.distinct), evidence)
    words = evidence.lexical.words if evidence.lexical else ()
    lacking = ", ".join(dict.fromkeys(word.written for word in words if not word.present))
    ask = f"ask in words that it uses{f'; it lacks {lacking}' if lacking else ''}"
    most = most_passages(evidence.options.neighbours)
    if wanted is not None:
        return f"Raise top_k to {wanted:,}{f', or {ask}' if wanted > evidence.limit else ''}."
    if wide is None:
        return f"Even among {most:,} results it is missing: {ask}."
    return f"Of {most:,} results (top_k) it is number {wide:,}."


def _enough(options: CompleteOptions, likely: int | None, evidence: Evidence) -> tuple[int | None, int | None]:
    """A `top_k` that brings the document in, near the smallest, and its rank in the widest search.

    A wider search has more candidates, which shifts the ranks a little.
    """

    def rank(top_k: int) -> int | None:
        return evidence.rank(evidence.run(replace(options, top_k=top_k)))

    if likely is not None and likely > options.top_k and rank(likely):
        return likely, None
    most = most_passages(options.neighbours)
    wide = rank(most)
    if wide is None:
        return None, None
    tried = (min(most, math.ceil(wide * growth)) for growth in _GROWTH)
    return next((number for number in tried if number > options.top_k and rank(number)), None), wide
