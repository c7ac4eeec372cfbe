"""Fits passages into a budget, best first, by whole sentences."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from recollect.chunking.base import LONGEST_TOKEN, tokenize
from recollect.chunking.sentences import sentence_spans
from recollect.errors import UsageError
from recollect.llm.base import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.model import RetrievedContext


#: Stands behind a text that ends in the middle of a sentence.
CUT_MARK = " …"
_MAX_FIELD_CHARS = 200


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """One numbered block of a context.

    Attributes:
        number: From 1; what a citation ``[n]`` means.
        passage: What is shown of the passage: ``document.content[start_offset:end_offset] == content`` still holds
            where it was shortened.
        text: Header and content as they stand in the context.
        shortened: Whether the passage went on.
    """

    number: int
    passage: RetrievedContext
    text: str
    shortened: bool = False


def context_block(passage: RetrievedContext, *, number: int, mark: str = "") -> str:
    """A header with source, section, page, date and notes, as far as there are any, and the passage's text below it.

    Where it begins inside a table, the header names the table's columns.

    Args:
        passage: Of any kind; its ``source`` may be a path, an address or a name such as ``memory:42``. Text that
            imitates a header or a context's borders is made harmless; a field longer than 200 characters is clipped.
        number: From 1.
        mark: Added behind the text.

    Returns:
        For instance ``[Source 1: hr/leave.pdf | Section: Annual Leave | Page: 3 | Date: 2026-01-01]``, a line break
        and the text.
    """
    facts = [f"Source {number}: {_one_line(passage.source)}"]
    if passage.server is not None:
        facts.append(f"Server: {_one_line(passage.server)}")
    if passage.section:
        facts.append(f"Section: {_one_line(passage.section)}")
    if passage.page is not None:
        facts.append(f"Page: {passage.page}")
    if passage.table_header:
        facts.append(f"Table header: {_one_line(passage.table_header.strip(' |'))}")
    if passage.generated_by is not None:
        facts.append(f"Description of a picture, written by {_one_line(passage.generated_by)}")
    date = _date(passage)
    if date:
        facts.append(f"Date: {_one_line(date)}")
    facts += [f"Note: {_one_line(note.text)}" for note in passage.notes]
    return f"[{' | '.join(facts)}]\n{defused(passage.content.strip())}{mark}"


def defused(text: str) -> str:
    """The text, unable to pass for a prompt's structure; its words stay readable and its length the same.

    Args:
        text: From a document or a user.
    """
    return without_imitations(text)


def trimmed(passage: RetrievedContext) -> RetrievedContext:
    """The passage without whitespace at its ends, its offsets moved accordingly."""
    return part_of(passage, 0, len(passage.content))


def part_of(passage: RetrievedContext, start: int, end: int) -> RetrievedContext:
    """The characters ``start`` to ``end`` of a passage, without whitespace at the ends."""
    piece = passage.content[start:end]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if piece == passage.content:
        return passage
    begin = passage.start_offset + start
    return replace(passage, content=piece, start_offset=begin, end_offset=begin + len(piece))


def _date(passage: RetrievedContext) -> str:
    if passage.event_time is not None:
        return passage.event_time.date().isoformat()
    date = passage.metadata.get("date")
    return date.strip() if isinstance(date, str) else ""


def _one_line(text: str) -> str:
    """A header's field: one line of bounded length, without the characters that structure the header."""
    line = defused(" ".join(text.split())).replace("[", "(").replace("]", ")").replace("|", "/")
    return line if len(line) <= _MAX_FIELD_CHARS else line[: _MAX_FIELD_CHARS - 1] + "…"


# Makes harmless what a text could hold to pass for the structure of a prompt. Pure.


# Characters that show nothing: they do not hide an imitation, and separate nothing.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
# A block's header.
_BRACKETS = re.compile("[\\[【⟦〔]")
_HEADER = re.compile(r"[\[【⟦〔](?=\s*sources?\s*[\d#:])", re.IGNORECASE)
# The lines around a context: alone on a line however written, or in capitals anywhere.
_EDGE = re.compile(
    r"^\W*(?:(?i:approved\s+context|end\s+of\s+context))\W*$|APPROVED\s+CONTEXT|END\s+OF\s+CONTEXT", re.MULTILINE
)
# The line between two blocks; three such signs in a row are looked for first, since lines are looked through slowly.
_RULE = re.compile(r"[-–—−_*=][ \t]*[-–—−_*=][ \t]*[-–—−_*=]")
_GAP = re.compile(r"^[ \t>]*(?:[-–—−_*=][ \t]*){3,}$", re.MULTILINE)
# Signs by which servers part the messages of a conversation.
_ROLE = re.compile(
    r"<{2,}\s*context|context\s*>{2,}|<\|[\w ]*\|>|<\|(?=\w)|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>",
    re.IGNORECASE,
)
_MOST_KNOWN_LETTERS = 10_000
_SIGNS = dict(zip("<>[]|【⟦〔=-–—−_*", "‹›()¦(((·······", strict=True))


def without_imitations(text: str) -> str:
    """The text, its imitations of a header, a border or a role changed by single characters; its length is kept."""
    plain = text if text.isascii() else text.translate(_READ)
    patterns = _possible(plain)
    edged = "context" in plain.lower()
    if not (patterns or edged):
        return text
    places = _places(text, plain)
    changed: dict[int, str] = {}
    for pattern in patterns:
        for match in pattern.finditer(plain):
            for at in range(match.start(), match.end()):
                if plain[at] in _SIGNS:
                    changed[places[at]] = _SIGNS[plain[at]]
    for match in _EDGE.finditer(plain) if edged else ():
        for at in range(match.start(), match.end()):
            # "approved·context": to be read, and no line of the prompt.
            changed[places[at]] = "·" if plain[at].isspace() and plain[at] != "\n" else plain[at].lower()
    if not changed:
        return text
    return "".join(changed.get(at, letter) for at, letter in enumerate(text))


def _possible(plain: str) -> list[re.Pattern[str]]:
    """The imitations by signs that a text may hold, told by what none of them is without."""
    bracketed = _BRACKETS.search(plain) is not None
    held = (
        (_HEADER, bracketed),
        (_GAP, _RULE.search(plain) is not None),
        (_ROLE, bracketed or "<" in plain or ">>" in plain),
    )
    return [pattern for pattern, may_be in held if may_be]


def _places(text: str, plain: str) -> Sequence[int]:
    """Where each character of a text as it is read stands in it."""
    if len(plain) == len(text):
        return range(len(text))
    return [at for at, letter in enumerate(text) if not _HIDDEN.match(letter)]


class _Read(dict[int, str]):
    """Each character as a reader takes it: in plain letters, the hidden ones as nothing. Remembers what it met."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        read = "" if _HIDDEN.match(letter) else _plain(letter)
        if len(self) < _MOST_KNOWN_LETTERS:
            self[code] = read
        return read


_READ = _Read()


def _plain(letter: str) -> str:
    folded = unicodedata.normalize("NFKC", letter) if not letter.isascii() else letter
    return folded if len(folded) == 1 else letter


# Room for text: tokens by any counter, characters, or both.


# No tokenizer's vocabulary has words of this length.
_LONGEST_PLAUSIBLE = 64


# Words that are kept with their tokens.
_MOST_KNOWN_WORDS, _LONGEST_KNOWN_WORD = 50_000, 40


def counter_of(
    token_spans: Callable[[str], Sequence[tuple[int, int]]], *, by_words: Callable[[], bool] | None = None
) -> Callable[[str], int]:
    """A counter from a tokenizer that tells where its tokens stand.

    What a tokenizer takes for one token though it is very long (an encoded file, a text without spaces in an unknown
    script) counts as a quarter of its bytes: other models do not swallow it whole.

    Args:
        token_spans: From a text to the characters that each of its tokens covers.
        by_words: Says, once a text is counted, whether a text's tokens are those of what stands between its blanks and
            line breaks, each for itself. Then the counter remembers what words count, and asks for new ones only.
            None: they are not.
    """

    def count(text: str) -> int:
        return sum(
            1 if end - start <= _LONGEST_PLAUSIBLE else estimate_tokens(text[start:end])
            for start, end in token_spans(text)
        )

    if by_words is None:
        return count
    counts = _Counts(count)

    def count_words(text: str) -> int:
        return sum(map(counts.__getitem__, text.replace("\n", " ").split(" "))) if by_words() else count(text)

    return count_words


class _Counts(dict[str, int]):
    """The tokens of each word, looked up without a step of Python for words that were met before."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__({"": 0})
        self._count = count

    def __missing__(self, word: str) -> int:
        counted = self._count(word)
        if len(word) <= _LONGEST_KNOWN_WORD:
            if len(self) >= _MOST_KNOWN_WORDS:
                self.clear()
            self[word] = counted
        return counted


@dataclass(frozen=True, slots=True)
class Budget:
    """What a text may cost.

    Attributes:
        tokens: The most tokens; None: any number.
        characters: The most characters; None: any number.
        count_tokens: Counts the tokens of a text. It need be neither additive nor monotone: whole texts are counted.

    Raises:
        UsageError: A limit is less than 1.
    """

    tokens: int | None
    characters: int | None = None
    count_tokens: Callable[[str], int] = estimate_tokens

    def __post_init__(self) -> None:
        for name, limit in (("token_budget", self.tokens), ("max_context_length", self.characters)):
            if limit is not None and limit < 1:
                message = f"{name} must be at least 1, not {limit!r}"
                raise UsageError(message)

    def fits(self, text: str) -> bool:
        """Whether a text keeps within both limits."""
        if self.characters is not None and len(text) > self.characters:
            return False
        return self.tokens is None or self.count_tokens(text) <= self.tokens


def most(limit: int, fits: Callable[[int], bool]) -> int:
    """The greatest number up to a limit that fits, 0 if 1 does not.

    It doubles before it halves, so that the texts tried are never much longer than the one found. Where ``fits`` is
    not monotone, some number that fits is found, not always the greatest.

    Args:
        limit: The greatest number that makes sense.
        fits: Asked for numbers from 1 to ``limit``.
    """
    good, step = 0, 1
    while good < limit and fits(min(step, limit)):
        good, step = min(step, limit), step * 2
    bad = min(step, limit + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good


SEPARATOR = "\n\n"
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_HEADING = re.compile(r"\s*#{1,6}\s")


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """Passages as a model is shown them.

    Attributes:
        text: All blocks, a blank line between two; empty where no passage was given or none fits.
        blocks: ``blocks[n - 1]`` is block n.
        token_count: Tokens of ``text`` by the counter that was given; 0 where it is empty.
        omitted: How many of the passages that hold any text are not shown at all.
        warnings: What the search for them could not ask, and is missing from it.
        cached: Whether the search for documents was answered from the cache.
    """

    text: str = ""
    blocks: tuple[ContextBlock, ...] = ()
    token_count: int = 0
    omitted: int = 0
    warnings: tuple[str, ...] = ()
    cached: bool = False

    @property
    def passages(self) -> tuple[RetrievedContext, ...]:
        """What is shown of each passage, in order of the numbers."""
        return tuple(block.passage for block in self.blocks)


def assemble(
    passages: Sequence[RetrievedContext],
    *,
    token_budget: int | None,
    count_tokens: Callable[[str], int] = estimate_tokens,
    max_context_length: int | None = None,
    language: str = "en",
    likely: int | None = None,
    separator: str = SEPARATOR,
) -> AssembledContext:
    """Passages as numbered blocks with source, section, page and date, within a budget that is never exceeded.

    They fill the budget in their order. The first that does not fit ends the context: it is shortened to as many whole
    sentences from its start as fit, and left out if not one does. Only a sentence that is longer than the whole budget
    is cut, behind a word, and marked with ``…``. Headers, numbers, separators and marks count like everything else.

    Args:
        passages: Best first, of any source. Empty ones are skipped.
        token_budget: The most tokens of the whole context; None: only ``max_context_length`` counts.
        count_tokens: The model's own tokenizer where it is at hand; otherwise a quarter of the bytes. Asked for whole
            contexts, so a counter that adds markers of its own is obeyed too.
        max_context_length: The most characters of the whole context; None: any number.
        language: ISO 639-1 code of the passages, for sentence boundaries.
        separator: What stands between two blocks.
        likely: How many of the passages are thought to fit whole, which saves counting where it is so; None: all.

    Returns:
        The context; an empty one if there are no passages.

    Raises:
        UsageError: A limit is less than 1.

    Example:
        >>> assemble([], token_budget=1000).text
        ''
    """
    count_tokens = cache(count_tokens)  # what fits in the end was counted before
    budget = Budget(token_budget, max_context_length, count_tokens)
    readable = [trimmed(passage) for passage in passages if passage.content.strip()]
    whole = [_block(passage, number) for number, passage in enumerate(readable, start=1)]

    def all_fit(count: int) -> bool:
        return budget.fits(_text(whole[:count], separator))

    shown = _shown(len(whole), all_fit, len(readable) if likely is None else likely)
    blocks = whole[:shown]
    if shown < len(readable):
        shortened = _shortened(readable[shown], blocks, budget, language, separator)
        blocks += [shortened] if shortened else []
    text = _text(blocks, separator)
    return AssembledContext(
        text=text,
        blocks=tuple(blocks),
        token_count=count_tokens(text) if text else 0,
        omitted=len(readable) - len(blocks),
    )


def _shown(count: int, all_fit: Callable[[int], bool], likely: int) -> int:
    """How many of so many blocks fit; most often as many as is thought: one count, or two, instead of several."""
    if 0 < likely < count:
        if not all_fit(likely):
            return most(likely - 1, all_fit)
        return likely if not all_fit(likely + 1) else likely + most(count - likely, lambda more: all_fit(likely + more))
    return count if count and all_fit(count) else most(count - 1, all_fit)


def _block(passage: RetrievedContext, number: int, *, shortened: bool = False, mark: str = "") -> ContextBlock:
    return ContextBlock(number, passage, context_block(passage, number=number, mark=mark), shortened)


def _text(blocks: Sequence[ContextBlock], separator: str) -> str:
    return separator.join(block.text for block in blocks)


def _shortened(
    passage: RetrievedContext, before: Sequence[ContextBlock], budget: Budget, language: str, separator: str
) -> ContextBlock | None:
    """The start of a passage that fits behind other blocks; None where nothing does."""
    number = len(before) + 1

    def first(end: int, mark: str = "") -> ContextBlock:
        return _block(part_of(passage, 0, end), number, shortened=True, mark=mark)

    def fits(block: ContextBlock) -> bool:
        return budget.fits(_text([*before, block], separator))

    ends = _sentence_ends(passage.content, language)
    # The last sentence's end is the passage's, which is known not to fit.
    sentences = most(len(ends) - 1, lambda count: fits(first(ends[count - 1])))
    if sentences:
        return first(ends[sentences - 1])
    if budget.fits(_block(part_of(passage, 0, ends[0]), 1).text):
        return None
    cuts = [end for _, end in tokenize(passage.content[: ends[0]])][:-1]
    count = most(len(cuts), lambda count: fits(first(cuts[count - 1], CUT_MARK)))
    if not count:
        return None
    end = cuts[count - 1]
    at_space = _word_end(passage.content, end)
    return first(at_space, CUT_MARK) if fits(first(at_space, CUT_MARK)) else first(end, CUT_MARK)


def _sentence_ends(text: str, language: str) -> list[int]:
    """Where a text may end: behind each sentence, but not behind headings with nothing below them."""
    ends = [end for _, end in sentence_spans(text, language)]
    told = next((line.start() for line in _LINE.finditer(text) if not _HEADING.match(line.group())), None)
    return ends if told is None else [end for end in ends if end > told]


def _word_end(text: str, end: int) -> int:
    """The end of the last whole word before a token's end, which may lie inside one ("don't").

    In scripts without spaces, and in endless strings, the token's end is as good a place as any.
    """
    if text[end].isspace():
        return end
    at_space = len(text[:end].rsplit(None, 1)[0])
    return at_space if end - at_space <= LONGEST_TOKEN else end
