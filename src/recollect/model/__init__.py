"""The values that travel between the parts: frozen, typed, without behaviour that needs I/O."""

from recollect.model._line_boxes import LineBox
from recollect.model.answer import Answer, Citation, UnsupportedSentence
from recollect.model.asking import asked_for
from recollect.model.chunk import Chunk
from recollect.model.document import Document, IngestResult
from recollect.model.outline import Heading, Outline, PageBox, PageSpan, PassagePart
from recollect.model.passage import (
    PassageNote,
    ReplyExplain,
    RetrievedContext,
    RetrieverScore,
    SearchExplain,
    SearchReply,
)
from recollect.model.principal import Principal
from recollect.model.scope import DEFAULT_TENANT_ID, Scope
from recollect.model.search_options import CompleteOptions, RetrievalOptions, SearchMode
from recollect.model.usage import TokenUsage

__all__ = [
    "DEFAULT_TENANT_ID",
    "Answer",
    "Chunk",
    "Citation",
    "CompleteOptions",
    "Document",
    "Heading",
    "IngestResult",
    "LineBox",
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
    "TokenUsage",
    "UnsupportedSentence",
    "asked_for",
]
