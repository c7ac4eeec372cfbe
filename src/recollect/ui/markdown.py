"""Markdown of answers as HTML: every tag is written here, every text is escaped, and nothing is loaded from elsewhere.

Markers become footnotes, and sentences that the sources do not support are marked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_inline import text as read_text
from markdown_it.token import Token
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

#: Makes the footnote of a marker; None: the answer has none of that number.
Footnote = Callable[[int], "Markup | None"]

_MARKER = re.compile(r"\[(\d{1,3})\]")
# The ends of a mark in texts that Markdown has been read from: no characters, which no `&#…;` can write.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_SENTINELS = re.compile(f"[{_BEGIN}{_END}]")
_CUT_MARKER = re.compile(rf"\[[{_BEGIN}{_END}]*(?:\d[{_BEGIN}{_END}]*){{1,3}}\]")
_NEWLINE = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)", re.MULTILINE)
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")

# What else is written than what is written by its own rule; whatever is of no such kind is shown as text.
_TAGS = frozenset({"p", "ul", "ol", "li", "blockquote", "strong", "em", "s", "thead", "tbody", "tr", "th", "td"})


@dataclass(frozen=True, slots=True)
class Marked:
    """Characters of a text that are marked, and what is said of them.

    Attributes:
        start: The first one.
        end: Just behind the last one.
        reason: Why the sources do not support them, in words; empty: they are what matters in the text.
    """

    start: int
    end: int
    reason: str = ""


def finished(text: str) -> int:
    """How much of a text that goes on is whole blocks, which nothing behind them changes."""
    cut = text.rfind("\n\n")
    while cut > 0:
        before, behind = text[:cut], text[cut:].lstrip("\n")
        # A list goes on behind an empty line, and so does what is indented or fenced.
        if len(_FENCE.findall(before)) % 2 == 0 and behind and not re.match(r"\s|[-*+>|]|\d{1,9}[.)]", behind):
            return cut + 2
        cut = text.rfind("\n\n", 0, cut)
    return 0


def to_html(text: str, *, footnote: Footnote | None = None, marked: Sequence[Marked] = ()) -> Markup:
    """A text in Markdown as HTML.

    Raw HTML in it is shown as text, images are links, and links lead to the web alone.

    Args:
        text: What a model or a document says.
        footnote: Makes the footnote of a marker such as ``[1]``; None: markers stay text.
        marked: What the sources do not support, or what matters.
    """
    text = _SENTINELS.sub("\ufffd", text)
    reasons: list[str] = []
    # Marks are put in when the blocks are known, and cannot change what a line is.
    tokens = _parser().parse(text, {"text": text, "marked": marked, "reasons": reasons, "cuts": []})
    return Markup("").join(_Writing(footnote or (lambda _: None), reasons).blocks(tokens))


@cache
def _parser() -> MarkdownIt:
    # Without references: `[1]` is a marker, whatever the text defines under that name.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline", "image"])
    parser.validateLink = _is_of_the_web  # type: ignore[method-assign]
    parser.core.ruler.at("inline", _read_inlines)
    parser.inline.ruler.at("text", _read_text_to_cut)
    parser.inline.ruler.before("text", "cuts", _put_in_cuts)
    return parser


def _is_of_the_web(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        return parts.scheme.lower() in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def _read_inlines(state: StateCore) -> None:
    """Reads the text of each block, with the ends of marks at their characters."""
    cuts = _cuts(state)
    for at, token in enumerate(state.tokens):
        if token.type == "inline":
            token.children = []
            state.env["cuts"] = cuts.get(at, [])
            state.md.inline.parse(token.content, state.md, state.env, token.children)
            for _, sign in state.env["cuts"]:
                token.children.append(Token("text", "", 0, content=sign))
        else:
            for place, sign in reversed(cuts.get(at, [])):
                token.content = token.content[:place] + sign + token.content[place:]


def _cuts(state: StateCore) -> dict[int, list[tuple[int, str]]]:
    """Where in the text of which block marks begin and end; what they say goes to ``reasons``."""
    cuts: dict[int, list[tuple[int, str]]] = {}
    if not state.env["marked"]:
        return cuts
    spots = list(_spots(state))
    done = 0
    for one in sorted(state.env["marked"], key=lambda each: each.start):
        first, behind = (bisect_left(spots, (place,)) for place in (max(one.start, done), one.end))
        if first < behind:
            _, block, place = spots[first]
            cuts.setdefault(block, []).append((place, _BEGIN))
            _, block, place = spots[behind - 1]
            cuts.setdefault(block, []).append((place + 1, _END))
            state.env["reasons"].append(one.reason)
            done = one.end
    return cuts


def _spots(state: StateCore) -> Iterator[tuple[int, int, int]]:
    """Of each character of a block but white space: its place in the whole text, its block, and its place there."""
    starts = [0, *(line.end() for line in _NEWLINE.finditer(state.env["text"]))]
    lines = state.src.split("\n")
    behind = 0
    for block, token in enumerate(state.tokens):
        if token.type not in {"inline", "fence", "code_block"} or token.map is None:
            continue
        cell = state.tokens[block - 1].type in {"th_open", "td_open"}
        place = 0
        for number, part in enumerate(token.content.split("\n"), token.map[0] + (token.type == "fence")):
            if part.strip():
                # A line's text is the end of the line; a cell begins behind the cell before it.
                line, start = lines[number], starts[number]
                at = max(behind - start, 0) if cell else max(line.rfind(part.strip()), 0)
                for index, char in enumerate(part, place):
                    if not char.isspace():
                        at = max(line.find(char, at), at)
                        yield start + at, block, index
                        at += 1
                behind = start + at
            place += len(part) + 1


def _put_in_cuts(state: StateInline, silent: bool) -> bool:
    """Puts the ends of marks into the text that is read, where no other rule sees them; reads nothing itself."""
    cuts = state.env["cuts"]
    if silent or not cuts:
        return False
    reach = state.pos
    if state.src[reach] in "`<&\\" and cuts[0][1] == _BEGIN:
        # What is one thing, such as code, is marked as a whole.
        state.md.inline.skipToken(state)
        state.pos, reach = reach, state.pos - 1
    while cuts and cuts[0][0] <= (reach if cuts[0][1] == _BEGIN else state.pos):
        state.pending += cuts.pop(0)[1]
    return False


def _read_text_to_cut(state: StateInline, silent: bool) -> bool:
    """Reads text without markup, up to the next end of a mark."""
    found = read_text(state, silent)
    cuts = state.env["cuts"]
    if found and not silent and cuts and cuts[0][0] < state.pos:
        state.pending = state.pending[: cuts[0][0] - state.pos]
        state.pos = cuts[0][0]
    return found


@dataclass
class _Writing:
    """One text on its way to HTML."""

    footnote: Footnote
    reasons: list[str]
    _inside: bool = False
    _seen: int = 0

    def blocks(self, tokens: Sequence[Token]) -> Iterator[Markup]:
        for token in tokens:
            match token.type:
                case "inline":
                    yield from self.inlines(token.children or [])
                case "fence" | "code_block":
                    yield self._code(token)
                case "hr":
                    yield Markup("<hr>")
                case "heading_open" | "heading_close":
                    # The page has headings of its own, which an answer's do not stand among.
                    yield Markup('<p class="title">' if token.nesting > 0 else "</p>")
                case "table_open":
                    yield Markup('<div class="scroll" tabindex="0"><table>')
                case "table_close":
                    yield Markup("</table></div>")
                case "paragraph_open" | "paragraph_close" if token.hidden:
                    continue
                case _:
                    yield self._tag(token)

    def inlines(self, tokens: Sequence[Token]) -> Iterator[Markup]:
        href = ""
        for token in tokens:
            match token.type:
                case "text":
                    text = _CUT_MARKER.sub(_uncut, token.content)
                    yield from self._text(text, self._with_footnotes)
                case "code_inline":
                    yield self._piece(Markup("<code>{}</code>").format(token.content))
                case "softbreak":
                    yield Markup("\n")
                case "hardbreak":
                    yield Markup("<br>")
                case "link_open":
                    href = str(token.attrs.get("href", ""))
                    yield Markup('<a href="{}" rel="noopener noreferrer nofollow" target="_blank">').format(href)
                case "link_close":
                    # A text can claim to lead elsewhere: where a link leads is shown before it is followed.
                    yield Markup("</a>")
                    if token.info != "auto":
                        yield Markup(' <span class="soft small">({})</span>').format(urlsplit(href.strip()).hostname)
                case _:
                    yield self._tag(token)

    def _tag(self, token: Token) -> Markup:
        tag = token.tag
        if tag not in _TAGS:
            return escape(token.content)
        if token.nesting < 0:
            return Markup(f"</{tag}>")
        start = token.attrs.get("start")
        if tag == "ol" and isinstance(start, int):
            return Markup('<ol start="{}">').format(start)
        return Markup(f"<{tag}>")

    def _code(self, token: Token) -> Markup:
        language = _LANGUAGE.match(token.info or "")
        content = Markup("").join(self._text(token.content, lambda text: [self._piece(escape(text))]))
        head = Markup('<span class="soft small">{}</span>').format(language.group()) if language else Markup("")
        return Markup('<div class="code">{}<pre tabindex="0"><code>{}</code></pre></div>').format(head, content)

    def _text(self, text: str, written: Callable[[str], Iterable[Markup]]) -> Iterator[Markup]:
        for part in re.split(f"([{_BEGIN}{_END}])", text):
            if part == _BEGIN:
                self._inside = True
            elif part == _END:
                yield from self._ended()
            elif part:
                yield from written(part)

    def _with_footnotes(self, text: str) -> Iterator[Markup]:
        done = 0
        for marker in _MARKER.finditer(text):
            note = self.footnote(int(marker[1]))
            if note is None:
                continue
            if text[done : marker.start()]:
                yield self._piece(escape(text[done : marker.start()]))
            yield note
            done = marker.end()
        if text[done:]:
            yield self._piece(escape(text[done:]))

    def _piece(self, html: Markup) -> Markup:
        if not self._inside:
            return html
        reason = self.reasons[self._seen] if self._seen < len(self.reasons) else ""
        if not reason:
            return Markup("<mark>{}</mark>").format(html)
        return Markup('<mark class="unsupported" title="{}">{}</mark>').format(reason, html)

    def _ended(self) -> Iterator[Markup]:
        if not self._inside:
            return
        reason = self.reasons[self._seen] if self._seen < len(self.reasons) else ""
        if reason:
            yield Markup('<span class="visually-hidden"> ({})</span>').format(reason)
        self._inside, self._seen = False, self._seen + 1


def _uncut(marker: re.Match[str]) -> str:
    return _SENTINELS.sub("", marker.group()) + "".join(_SENTINELS.findall(marker.group()))
