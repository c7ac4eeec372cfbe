"""Bodies of requests for what documents say."""

from __future__ import annotations

from pydantic import Field

from recollect.operations.values import Cursor, Limit, Name, Number
from recollect.pipeline.contents import MAX_MATCHES
from recollect.server.schemas.base import Viewpoint

_MOST = 2**31 - 1
_MOST_BYTES = 64 << 20


class EntriesBody(Viewpoint):
    """Which documents are listed."""

    name: Name | None = Field(None, description="Only those whose source or title holds this; left out: all.")
    department: Name | None = Field(None, description="Only of this one.")
    cursor: Cursor | None = Field(None, description="`next_cursor` of the page before; left out: the first page.")
    limit: Limit = Field(100, description="Documents at most.")


class GrepBody(Viewpoint):
    """What is looked for, exactly."""

    pattern: str = Field(max_length=10_000, description="Exact text; its white space stands for any white space.")
    regex: bool = Field(False, description="Whether it is a regular expression in RE2's syntax.")
    case_sensitive: bool = Field(False, description="Whether a is another letter than A.")
    whole_words: bool = Field(False, description="Only with no letter, digit or underscore on either side.")
    document_id: Number | None = Field(None, description="Only in this document.")
    department: Name | None = Field(None, description="Only in documents of this one.")
    limit: int = Field(50, ge=1, le=MAX_MATCHES, description="Matches at most.")
    limit_per_document: int = Field(10, ge=1, le=MAX_MATCHES, description="Matches of one document at most.")
    from_document: int = Field(0, ge=0, le=2**63 - 1, description="Where to go on: next_document of the reply before.")
    from_offset: int = Field(0, ge=0, le=_MOST, description="Where to go on: next_offset of the reply before.")
    seconds: float = Field(5.0, ge=0, le=30, description="How long to look.")
    max_bytes: int = Field(_MOST_BYTES, ge=1, le=_MOST_BYTES, description="Bytes of text to look at.")
