"""The values that travel between the parts: frozen, typed, without behaviour that needs I/O."""

from recollect.model.answer import Answer, Citation, Decided, Highlight, Outcome, ShownPassage, UnsupportedSentence
from recollect.model.document import Chunk, Document, IngestResult
from recollect.model.outline import Heading, LineBox, Outline, PageBox, PageSpan, PassagePart
from recollect.model.passage import (
    PassageNote,
    ReplyExplain,
    RetrievedContext,
    RetrieverScore,
    SearchExplain,
    SearchReply,
    TokenUsage,
)
from recollect.model.principal import Principal
from recollect.model.scope import DEFAULT_TENANT_ID, Scope, asked_for
from recollect.model.search_options import CompleteOptions, RetrievalOptions, SearchMode

__all__ = [
    "DEFAULT_TENANT_ID",
    "Answer",
    "Chunk",
    "Citation",
    "CompleteOptions",
    "Decided",
    "Document",
    "Heading",
    "Highlight",
    "IngestResult",
    "LineBox",
    "Outcome",
    "Outline",
    "PageBox",
    "PageSpan",
    "PassageNote",
    "PassagePart",
    "Principal",
    "ReplyExplain",
    "RetrievalOptions",
    "RetrievedContext",
    "RetrieverScore",
    "Scope",
    "SearchExplain",
    "SearchMode",
    "SearchReply",
    "ShownPassage",
    "TokenUsage",
    "UnsupportedSentence",
    "asked_for",
]
