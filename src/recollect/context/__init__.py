"""What a language model is shown: passages as numbered blocks within a budget.

Pure, no I/O, no clock, no chance, but for `hybrid` and `assembler`, which search through what they are handed.
"""

from recollect.context.assembler import ContextAssembler, ContextAssembly
from recollect.context.assembly import AssembledContext, assemble
from recollect.context.blocks import ContextBlock, context_block, defused
from recollect.context.budget import counter_of, estimate_tokens
from recollect.context.hybrid import HybridContext, HybridRetriever
from recollect.context.merging import HybridPassage
from recollect.context.weights import RetrievalWeights, WeightAdaptation

__all__ = [
    "AssembledContext",
    "ContextAssembler",
    "ContextAssembly",
    "ContextBlock",
    "HybridContext",
    "HybridPassage",
    "HybridRetriever",
    "RetrievalWeights",
    "WeightAdaptation",
    "assemble",
    "context_block",
    "counter_of",
    "defused",
    "estimate_tokens",
]
