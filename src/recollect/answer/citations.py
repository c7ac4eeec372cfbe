"""Makes and verifies citations: from markers in a model's answer to exact characters of a document. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer.statements import StatementStream
from recollect.answer.verification import Verifier
from recollect.answer.writing import WrittenAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recollect.model import Citation, RetrievedContext

_CITED = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class CitedText:
    """A text whose markers run from 1 in order of appearance, and the citations that they stand for."""

    text: str
    citations: tuple[Citation, ...]


def cite(
    text: str,
    passages: Sequence[RetrievedContext],
    *,
    terms: Callable[[str], Sequence[str]],
    language: str = "en",
) -> CitedText:
    """Turn the markers of a model's whole answer into citations of the passages that it was shown.

    Markers are renumbered by first use; one that names no passage is removed. A passage is quoted with the sentence,
    or the neighbouring sentences, that support the statements that cite it.

    Args:
        text: The model's answer, with markers such as ``[1]``, ``[1, 2]`` or ``[Source 1]``.
        passages: The context blocks; ``[n]`` means the n-th.
        terms: Splits a text into its terms; statements and sentences are compared by them.
        language: ISO 639-1 code, for sentence boundaries.
    """
    verifier = Verifier(passages, terms=terms, language=language)
    written = WrittenAnswer(verifier, passages, language)
    stream = StatementStream(language)
    for statement in [*stream.feed(text), *stream.flush()]:
        written.add(statement)
    written.finish()
    answer = written.answer("")
    return CitedText("" if answer.refused else answer.text, answer.citations)


def verify(answer_text: str, citations: Sequence[Citation], contents: Mapping[int, str]) -> tuple[str, ...]:
    """What is wrong with an answer's citations; nothing, if every one can be trusted.

    Args:
        answer_text: The answer, with its markers.
        citations: In order of their markers.
        contents: Document contents by ``document_id``, as stored.

    Returns:
        One sentence for each fault: a quote that differs from the document's characters, a marker without a citation
        or a citation without a marker, numbers that do not run from 1 in order of appearance.
    """
    faults = [fault for citation in citations if (fault := _fault(citation, contents))]
    markers = [citation.marker for citation in citations]
    if markers != list(range(1, len(markers) + 1)):
        faults.append(f"The markers of the citations are {markers}, not 1 to {len(markers)} in order.")
    used = [number for number in markers_in(answer_text) if number in markers]
    if used != sorted(used):
        faults.append(f"The markers appear in the text in the order {used}.")
    faults.extend(f"Citation {marker} has no marker in the text." for marker in markers if marker not in used)
    return tuple(faults)


def markers_in(text: str) -> list[int]:
    """The numbers of the markers ``[n]`` in a text, each once, in order of first appearance."""
    return list(dict.fromkeys(int(match.group(1)) for match in _CITED.finditer(text)))


def _fault(citation: Citation, contents: Mapping[int, str]) -> str | None:
    content = contents.get(citation.document_id)
    if content is None:
        return f"Citation {citation.marker} names document {citation.document_id}, which is not among the contents."
    if not 0 <= citation.start_offset < citation.end_offset <= len(content):
        return f"Citation {citation.marker} has offsets outside document {citation.document_id}."
    if content[citation.start_offset : citation.end_offset] != citation.quote:
        return f"The quote of citation {citation.marker} differs from document {citation.document_id}."
    return None
