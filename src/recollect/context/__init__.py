"""What a language model is shown: passages as numbered blocks within a budget.

Pure: what was found comes in, and no I/O, no clock and no chance are behind it.
"""

from recollect.context.assembly import AssembledContext, ContextBlock, assemble, context_block, counter_of, defused
from recollect.context.hybrid import HybridContext, HybridPassage, RetrievalWeights, WeightAdaptation, hybrid_context
from recollect.llm.base import estimate_tokens

__all__ = [
    "AssembledContext",
    "ContextBlock",
    "HybridContext",
    "HybridPassage",
    "RetrievalWeights",
    "WeightAdaptation",
    "assemble",
    "context_block",
    "counter_of",
    "defused",
    "estimate_tokens",
    "hybrid_context",
]
