"""Answers as the events that every door of this server streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from recollect.model import Answer, Citation, SearchReply, UnsupportedSentence
from recollect.replies.answers import answer_json, citation_json
from recollect.replies.search import search_reply_json

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent

#: The events of an answer, and what ends it otherwise.
ANSWER_EVENTS = ("sources", "token", "citation", "unsupported", "done", "error")


async def answer_events(
    stream: AsyncGenerator[AskEvent], *, explain: bool = False
) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """``sources``, ``token`` for each sentence with its ``citation`` and ``unsupported``, and ``done``.

    Args:
        stream: What `View.ask_events` gives; closed at the end.
        explain: Whether the whole answer says what came nearest to it.
    """
    cited: set[int] = set()
    async with aclosing(stream):
        async for piece in stream:
            match piece:
                case SearchReply():
                    yield "sources", search_reply_json(piece)
                case str():
                    yield "token", {"text": piece}
                case Citation():
                    cited.add(piece.marker)
                    yield "citation", citation_json(piece)
                case UnsupportedSentence():
                    yield "unsupported", asdict(piece)
                case Answer():
                    # Quotes come with their answer, not one by one.
                    for citation in piece.citations:
                        if citation.marker not in cited:
                            yield "citation", citation_json(citation)
                    yield "done", answer_json(piece, explain=explain)
