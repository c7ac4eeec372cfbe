"""Has a language model write an answer: checked as it comes, asked again where that is wanted, counted, and cited."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from recollect.answer import absence
from recollect.answer._regions import join_passages
from recollect.answer.absence import without_answer
from recollect.answer.evidence import Piece
from recollect.answer.statements import MARKER, Statement, marker_numbers
from recollect.answer.verification import Verdict, Verifier
from recollect.model import Answer, Citation, Decided, UnsupportedSentence
from recollect.model.answer import ShownPassage

#: What is done with sentences that the sources do not support.
Treatment = Literal["mark", "remove", "retry", "refuse"]

MAX_QUOTE_CHARS = 600

# Characters that show nothing and move what is shown: control codes, direction marks, zero width, tags.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_LOOKS_LIKE_MARKER = re.compile(r"\[\s*(\d{1,3})\s*\]")
_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(\s*<?([^()\s<>]*(?:\([^()]*\)[^()\s<>]*)*)>?(?:\s+[^()]*)?\)")
_REFERENCE = re.compile(r"^[ \t]*\[[^\]\n]+\]:\s*\S+.*$", re.MULTILINE)
_HTML = re.compile(r"</?[a-zA-Z][^<>\n]*>")
# Stand for a marker while the text around it is looked through for what would pass for one.
_OPEN, _CLOSE = "\ue000", "\ue001"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a language model has written beyond its checked sentences: each replaces the one before.

    Attributes:
        text: As the model wrote it, its markers left out: their numbers are not yet the answer's.
    """

    text: str


#: What a stream yields: what becomes of the question; checked text, then what it cites and what is wrong with it; at
#: the end the whole answer.
AnswerEvent: TypeAlias = "Decided | str | Citation | UnsupportedSentence | Draft | Answer"


@dataclass(eq=False)
class WrittenAnswer:
    """Statements in, an answer out: numbers markers by first use, and keeps what was cited and what is unsupported.

    Attributes:
        verifier: Checks statements against the sources that the model was shown.
        removes: Whether unsupported statements are left out.
        helpful: The passages that may help where it is no answer.
        heard: All that the model wrote.
        refused: Whether it is no answer.
    """

    verifier: Verifier
    removes: bool = False
    helpful: Callable[[], Sequence[ShownPassage]] = tuple
    heard: str = ""
    refused: bool = False
    _text: str = ""
    _numbers: dict[int, int] = field(default_factory=dict)
    _supports: dict[int, list[tuple[Piece, float]]] = field(default_factory=dict)
    _claims: list[UnsupportedSentence] = field(default_factory=list)
    _held: list[tuple[Statement, Verdict]] = field(default_factory=list)

    @property
    def held(self) -> str:
        """The checked text that is not shown yet, because it may still be a refusal."""
        return "".join(statement.raw for statement, _ in self._held)

    def add(self, statement: Statement) -> list[AnswerEvent]:
        """Check a statement; what can be shown now: nothing where it is not known yet whether this is an answer."""
        if self.refused or (not self._text and not self._held and absence.is_refusal(statement.text)):
            self.refused = True
            return []
        self._held.append((statement, self.verifier.check(statement)))
        # Until the first claim it may still be a refusal; before the first citation nothing is sure to be kept.
        begun = any(one.claims and (one.cited or not self.removes) for _, one in self._held)
        return self._released() if self._text or begun else []

    def finish(self) -> list[AnswerEvent]:
        """What is left to show when the model has ended; nothing of a refusal."""
        claims = bool(self._text) or any(verdict.claims for _, verdict in self._held)
        self.refused = self.refused or not claims
        return [] if self.refused else self._released()

    def answer(self, question: str) -> Answer:
        """The whole answer, once it is finished."""
        self.refused = self.refused or (self.removes and not self._numbers)
        text = self._text.strip()
        unsupported = tuple(one for one in self._claims if one.reason != "uncited" or not self._numbers)
        if self.refused or not text:
            return without_answer(question, self.helpful(), language=self.verifier.language, unsupported=unsupported)
        citations = tuple(map(self._citation, self._numbers))
        return Answer(question=question, text=text, outcome="answer", citations=citations, unsupported=unsupported)

    def _released(self) -> list[AnswerEvent]:
        shown = [event for statement, verdict in self._held for event in self._shown(statement, verdict)]
        self._held.clear()
        return shown

    def _shown(self, statement: Statement, verdict: Verdict) -> list[AnswerEvent]:
        claim = UnsupportedSentence(
            text=statement.raw.strip(),
            start_offset=None,
            end_offset=None,
            reason=verdict.reason or "uncited",
            detail=verdict.detail or "the answer cites no source",
        )
        if verdict.reason and self.removes:
            self._claims.append(claim)
            return []
        text = self._rendered(statement.raw, verdict.cited).rstrip()
        text = text if self._text else text.lstrip()
        end = len(self._text) + len(text)
        start = end - len(text.lstrip())
        self._text += text
        for piece in verdict.pieces:
            if piece.source in verdict.cited:
                self._supports.setdefault(piece.source, []).append((piece, verdict.score))
        shown: list[AnswerEvent] = [text, *map(self._citation, verdict.cited)]
        if verdict.claims:
            self._claims.append(replace(claim, text=text.strip(), start_offset=start, end_offset=end))
        return [*shown, self._claims[-1]] if verdict.reason else shown

    def _rendered(self, text: str, cited: Sequence[int]) -> str:
        """A statement's text: known markers numbered by first use, others and active markup left out."""

        def numbered(match: re.Match[str]) -> str:
            known = dict.fromkeys(number for number in marker_numbers(match) if number in cited)
            markers = [self._numbers.setdefault(number, len(self._numbers) + 1) for number in known]
            gap = match.group()[: len(match.group()) - len(match.group().lstrip())]
            return gap + "".join(f"{_OPEN}{marker}{_CLOSE}" for marker in markers) if markers else ""

        text = _INVISIBLE.sub("", text).replace(_OPEN, "").replace(_CLOSE, "")
        text = self._without_active_markup(MARKER.sub(numbered, text))
        return _LOOKS_LIKE_MARKER.sub(r"(\1)", text).replace(_OPEN, "[").replace(_CLOSE, "]")

    def _without_active_markup(self, text: str) -> str:
        """Images, HTML and links to where no source points would be fetched or followed by what shows the answer."""

        def link(match: re.Match[str]) -> str:
            known = not match.group(1) and any(match.group(3) in one.content for one in self.verifier.passages)
            return match.group() if known and match.group(3) else match.group(2)

        return _HTML.sub("", _REFERENCE.sub("", _LINK.sub(link, text)))

    def _citation(self, number: int) -> Citation:
        """The citation of a source: all that supports statements, or the first piece alone where that is far apart."""
        passage = self.verifier.passages[number - 1]
        supports = self._supports.get(number) or [(self.verifier.pieces_in([number])[0], 0.0)]
        first = supports[0][0]
        start, end = min(piece.start for piece, _ in supports), max(piece.end for piece, _ in supports)
        sections = {passage.part_at(passage.start_offset + at).section for at in (start, end - 1)}
        if end - start > MAX_QUOTE_CHARS or len(sections) > 1:
            start, end = first.start, first.end
        support = round(min(score for _, score in supports), 3)
        (region,) = join_passages([passage])
        return replace(region.citation(self._numbers[number], start, end), support=support)


_CITED = re.compile(r"\[(\d+)\]")


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
