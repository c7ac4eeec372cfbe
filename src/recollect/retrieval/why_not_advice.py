"""What to change so that a search finds a document; nothing is advised that was not tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from recollect.model import CompleteOptions, SearchReply
from recollect.model.bounds import MAX_CANDIDATES, most_passages
from recollect.retrieval.why_not_stages import Evidence, passages_of

if TYPE_CHECKING:
    from recollect.model.why_not import WhyNotStage

# What is tried beyond a rank in the widest search, by which narrower ones may differ from it.
_GROWTH = (1.0, 1.1, 1.3, 1.6, 2.0)

Run: TypeAlias = Callable[[CompleteOptions], SearchReply]


def advice(blamed: WhyNotStage, stages: Sequence[WhyNotStage], evidence: Evidence, run: Run) -> str:
    """What kept the document out, and what to change, in sentences.

    Args:
        blamed: The stage that kept it out.
        stages: All of the search's.
        evidence: What is known.
        run: Searches with other options; every change is tried before it is advised.
    """
    return f"{_cause(blamed, stages, evidence)}. {_remedy(blamed, evidence, run)}"


def _cause(blamed: WhyNotStage, stages: Sequence[WhyNotStage], evidence: Evidence) -> str:
    if blamed.stage == "top_k":
        pushed = [stage.detail for stage in stages if stage.stage == "rerank" and not stage.passed]
        return "; ".join([*pushed, blamed.detail])
    if blamed.stage != "candidates":
        return blamed.detail
    ranks = []
    if evidence.embedded is not None and evidence.trials.dense is not None:
        ranks.append(f"{evidence.embedded.rank:,} by meaning")
    if evidence.lexical is not None and evidence.lexical.rank is not None:
        ranks.append(f"{evidence.lexical.rank:,} by words")
    return blamed.detail + (f" (it ranks {' and '.join(ranks)})" if ranks else "")


def _remedy(blamed: WhyNotStage, evidence: Evidence, run: Run) -> str:
    options = evidence.options
    match blamed.stage:
        case "similarity_threshold" | "min_relevance" | "min_score":
            value = blamed.numbers.get("value")
            if not isinstance(value, float):
                return "It was not compared with the query at all."
            # Rounded down, so that the document's own value reaches it.
            limit = math.floor(value * 1000) / 1000
            lowered = {
                "similarity_threshold": replace(options, similarity_threshold=max(-1.0, limit)),
                "min_relevance": replace(options, min_relevance=limit),
                "min_score": replace(options, min_score=limit),
            }
            changed = lowered[blamed.stage]
            return _tried(f"lower {blamed.stage} to {limit:g}", changed, evidence, run)
        case "duplicates":
            changed = replace(options, collapse_duplicates=False)
            return _tried("switch collapse_duplicates off", changed, evidence, run)
        case "variety":
            return _tried("leave mmr_lambda out", replace(options, mmr_lambda=None), evidence, run)
        case "candidates":
            return _more_candidates(evidence, run)
        case _:
            return _more_results(evidence, run)


def _rank(reply: SearchReply, evidence: Evidence) -> int | None:
    own = passages_of(reply, evidence.standing.document_id)
    return own[0].rank if own else None


def _tried(change: str, changed: CompleteOptions, evidence: Evidence, run: Run) -> str:
    rank = _rank(run(changed), evidence)
    if rank is not None:
        return f"{change.capitalize()}, and it is result {rank:,}."
    ranked = evidence.places(evidence.trials.ranked)
    wanted, _ = _enough(changed, [place.rank for place in ranked[:1]], evidence, run)
    if wanted is None:
        return f"To {change} is not enough."
    return f"{change.capitalize()} and raise top_k to {wanted:,}."


def _more_candidates(evidence: Evidence, run: Run) -> str:
    ranks = [evidence.embedded.rank] if evidence.embedded and evidence.trials.dense else []
    if evidence.lexical and evidence.lexical.rank:
        ranks.append(evidence.lexical.rank)
    needed = min(ranks, default=MAX_CANDIDATES + 1)
    if needed <= MAX_CANDIDATES and _rank(run(replace(evidence.options, candidates=needed)), evidence):
        return f"Raise candidates to {needed:,}."
    return _more_results(evidence, run)


def _more_results(evidence: Evidence, run: Run) -> str:
    distinct = evidence.places(evidence.trials.distinct)
    wanted, wide = _enough(evidence.options, [place.rank for place in distinct[:1]], evidence, run)
    far = wanted is None or wanted > evidence.limit
    words = f", or ask in words that it uses{_missing(evidence)}" if far else ""
    if wanted is not None:
        return f"Raise top_k to {wanted:,}{words}."
    most = most_passages(evidence.options.neighbours)
    if wide is None:
        return f"Even among {most:,} results it is missing: ask in words that it uses{_missing(evidence)}."
    return f"Of {most:,} results (top_k) it is number {wide:,}."


def _enough(
    options: CompleteOptions, likely: Sequence[int], evidence: Evidence, run: Run
) -> tuple[int | None, int | None]:
    """A `top_k` that brings the document in, near the smallest, and its rank in the widest search.

    A wider search has more candidates, which shifts the ranks a little.
    """

    def first(numbers: Sequence[int]) -> int | None:
        further = (number for number in numbers if number > options.top_k)
        return next((number for number in further if _rank(run(replace(options, top_k=number)), evidence)), None)

    wanted = first(likely)
    if wanted is not None:
        return wanted, None
    most = most_passages(options.neighbours)
    wide = _rank(run(replace(options, top_k=most)), evidence)
    if wide is None:
        return None, None
    return first([min(most, math.ceil(wide * growth)) for growth in _GROWTH]), wide


def _missing(evidence: Evidence) -> str:
    words = evidence.lexical.words if evidence.lexical else ()
    lacking = dict.fromkeys(word.written for word in words if not word.present)
    return f"; it lacks {', '.join(lacking)}" if lacking else ""
