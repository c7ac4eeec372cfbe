"""Makes and verifies citations: from markers in a model's answer to exact characters of a document. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.answer._units import quotable_units
from recollect.model import Citation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from recollect.model import RetrievedContext

MAX_QUOTE_CHARS = 600

# Models write [1], [1, 2], [Source 1], [Sources 1 and 2], or repeat a block's whole header. Longer numbers are years.
_NUMBER = r"(?:sources?\s*)?#?\d{1,3}"
_MARKER = re.compile(
    rf"[ \t]*\[\s*(?P<numbers>{_NUMBER}(?:\s*(?:,|;|&|and)\s*{_NUMBER})*)\s*(?:[:|][^\[\]\n]*)?\]", re.IGNORECASE
)
_CITED = re.compile(r"\[(\d+)\]")
_DIGITS = re.compile(r"\d+")


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
    """Turn the markers of a model's answer into citations of the passages that it was shown.

    Markers are renumbered by first use; one that names no passage is removed. A passage is quoted with the sentence,
    or the neighbouring sentences, that share most with the statements that cite it.

    Args:
        text: The model's answer, with markers such as ``[1]``, ``[1, 2]`` or ``[Source 1]``.
        passages: The context blocks; ``[n]`` means the n-th.
        terms: Splits a text into its terms; statements and sentences are compared by them.
        language: ISO 639-1 code, for sentence boundaries.
    """
    order: dict[int, int] = {}
    statements: dict[int, list[str]] = {}

    def renumber(match: re.Match[str]) -> str:
        known = [n for n in _numbers(match) if 1 <= n <= len(passages) and passages[n - 1].content.strip()]
        for number in known:
            order.setdefault(number, len(order) + 1)
            statements.setdefault(number, []).append(_statement(text, match.start()))
        gap = match.group()[: match.group().index("[")]
        return gap + "".join(f"[{order[number]}]" for number in dict.fromkeys(known)) if known else ""

    renumbered = _MARKER.sub(renumber, text).strip()
    return CitedText(
        renumbered,
        tuple(
            _citation(marker, passages[number - 1], statements[number], terms=terms, language=language)
            for number, marker in order.items()
        ),
    )


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


def _numbers(match: re.Match[str]) -> Iterator[int]:
    return (int(digits) for digits in _DIGITS.findall(match.group("numbers")))


def _statement(text: str, end: int) -> str:
    """What a marker stands behind: the text since the last sentence's end, other markers left out."""
    before = _MARKER.sub("", text[:end]).rstrip()
    body = before.rstrip(".!?。！？؟ ")
    cut = max((body.rfind(sign) for sign in (". ", "! ", "? ", "\n", "。", "！", "？", "؟ ")), default=-1)
    return before[cut + 1 :].strip()


def _citation(
    marker: int,
    passage: RetrievedContext,
    statements: Sequence[str],
    *,
    terms: Callable[[str], Sequence[str]],
    language: str,
) -> Citation:
    start, end = _supporting_span(passage, [frozenset(terms(s)) for s in statements], terms=terms, language=language)
    begin, stop = passage.start_offset + start, passage.start_offset + end
    part = passage.part_at(begin)
    return Citation(
        marker=marker,
        document_id=passage.document_id,
        source=passage.source,
        section=part.section,
        page=part.page,
        last_page=passage.part_at(stop - 1).page,
        start_offset=begin,
        end_offset=stop,
        quote=passage.content[start:end],
        department=passage.department,
        notes=passage.notes,
    )


def _supporting_span(
    passage: RetrievedContext,
    statements: Sequence[frozenset[str]],
    *,
    terms: Callable[[str], Sequence[str]],
    language: str,
) -> tuple[int, int]:
    """The span of the sentences that support the statements best, or of the best alone.

    The best alone, where they stand far apart or in different sections: a citation names one.
    """
    content = passage.content
    units = quotable_units(content, language=language, headings=_titles(passage))
    if not units:
        start = len(content) - len(content.lstrip())
        return start, len(content.rstrip())
    unit_terms = [frozenset(terms(content[unit.start : unit.end])) for unit in units]
    overlaps = [[_overlap(statement, held) for held in unit_terms] for statement in statements]
    best = [max(range(len(units)), key=scores.__getitem__) for scores in overlaps if max(scores) > 0]
    if not best:
        return units[0].start, units[0].end
    start, end = units[min(best)].start, units[max(best)].end
    sections = {passage.part_at(passage.start_offset + at).section for at in (start, end - 1)}
    if end - start > MAX_QUOTE_CHARS or len(sections) > 1:
        total = [sum(scores) for scores in zip(*overlaps, strict=True)]
        only = units[max(best, key=total.__getitem__)]
        start, end = only.start, only.end
    return start, end


def _titles(passage: RetrievedContext) -> set[str]:
    return {title for part in passage.parts for title in (part.section or "").split(" > ")}


def _overlap(statement: frozenset[str], held: frozenset[str]) -> float:
    """Shared terms against the geometric mean of both sizes (cosine of term sets)."""
    if not statement or not held:
        return 0.0
    return len(statement & held) / float((len(statement) * len(held)) ** 0.5)
