"""What answers cite, for programs (annotations) and for people (footnotes in the text)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from recollect.server.openai.file_ids import file_id

if TYPE_CHECKING:
    from starlette.requests import Request

    from recollect.model import Answer, Citation
    from recollect.server.openai.file_ids import Made

_HEADING = "Sources:"
_FOOTNOTES = re.compile(rf"\n\n{_HEADING}\n\n(?:- \[\d+\] [^\n]*(?:\n|\Z))+\Z")
_MARKER = re.compile(r"\[(\d+)\]")
_QUOTED_CHARACTERS = 200


class UrlCitationJson(TypedDict):
    """A citation, as OpenAI's chat completions tell what was found in the web."""

    start_index: int
    end_index: int
    title: str
    url: str


class ChatAnnotationJson(TypedDict):
    """A marker in the text, and what it stands for."""

    type: str
    url_citation: UrlCitationJson


class FileCitationJson(TypedDict):
    """A citation, as OpenAI's responses tell what was found in files."""

    type: str
    index: int
    file_id: str
    filename: str


def markers(answer: Answer) -> Iterator[tuple[int, int, Citation]]:
    """Where each marker stands in the text, and what it cites."""
    cited = {citation.marker: citation for citation in answer.citations}
    for found in _MARKER.finditer(answer.text):
        citation = cited.get(int(found[1]))
        if citation is not None:
            yield found.start(), found.end(), citation


def chat_annotations(answer: Answer, request: Request) -> list[ChatAnnotationJson]:
    """The markers of an answer, for chat completions; a document that is no web page is linked to here."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": start,
                "end_index": end,
                "title": citation.source,
                "url": _address(citation, request),
            },
        }
        for start, end, citation in markers(answer)
        if citation.server is None or _is_address(citation.source)
    ]


def file_annotations(answer: Answer, made: Made) -> list[FileCitationJson]:
    """The markers of an answer, for responses.

    Args:
        answer: Whose markers.
        made: The files that the documents it cites were made from.
    """
    return [
        {
            "type": "file_citation",
            "index": start,
            "file_id": file_id(citation.document_id, made),
            "filename": citation.source,
        }
        for start, _, citation in markers(answer)
        if citation.server is None  # what another server has is no file here
    ]


def footnotes(answer: Answer) -> str:
    """What stands behind an answer's text for those who see nothing else of it; empty where nothing is cited."""
    lines = [f"- [{one.marker}] {_place(one, answer)}" for one in answer.citations]
    return f"\n\n{_HEADING}\n\n" + "\n".join(lines) if lines else ""


def without_footnotes(text: str) -> str:
    """An earlier answer that a client gives back, as it was written."""
    return _FOOTNOTES.sub("", text)


def _address(citation: Citation, request: Request) -> str:
    if _is_address(citation.source):
        return citation.source
    return str(request.base_url.replace(path=f"/v1/documents/{citation.document_id}"))


def _is_address(source: str) -> bool:
    return source.startswith(("https://", "http://"))


def _place(citation: Citation, answer: Answer) -> str:
    where = [citation.source if citation.server is None else f"{citation.source} ({citation.server})"]
    if citation.section:
        where.append(citation.section)
    if citation.page:
        last = citation.last_page
        where.append(f"p. {citation.page}" if last in {None, citation.page} else f"pp. {citation.page}-{last}")
    shown = ", ".join(_plain(part) for part in where)
    quote = _plain(citation.quote)
    if quote in _plain(answer.text):
        return shown
    return f"{shown}: “{quote[:_QUOTED_CHARACTERS]}{'…' if len(quote) > _QUOTED_CHARACTERS else ''}”"


def _plain(text: str) -> str:
    """One line without links and images: what a document says is not fetched by whoever shows it."""
    line = " ".join(text.split())
    return line.replace("](", "] (").replace("][", "] [").replace("<", "‹").replace("`", "'")
