"""What a language model is shown: passages as numbered blocks within a budget. Pure: no I/O, no clock, no chance."""

from recollect.context.assembly import AssembledContext, assemble
from recollect.context.blocks import ContextBlock, context_block, defused
from recollect.context.budget import counter_of, estimate_tokens

__all__ = [
    "AssembledContext",
    "ContextBlock",
    "assemble",
    "context_block",
    "counter_of",
    "defused",
    "estimate_tokens",
]
