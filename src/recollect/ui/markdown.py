"""Markdown of answers as HTML: every tag is written here, every text is escaped, and nothing is loaded from elsewhere.

Markers become footnotes, and sentences that the sources do not support are marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it.token import Token

#: Makes the footnote of a marker; None: the answer has none of that number.
Footnote = Callable[[int], "Markup | None"]

_MARKER = re.compile(r"\[(\d{1,3})\]")
# Stand for the ends of what is marked while Markdown is read: of the private use area, which texts are cleaned of.
_BEGIN, _END = "\ue010", "\ue011"
_SENTINELS = re.compile(f"[{_BEGIN}{_END}]")
# What makes a line a list item, a quotation or a heading: a sentence begins behind it.
_LEAD = re.compile(r"(?:\s*(?:>|[-*+]\s|\d{1,9}[.)]\s|#{1,6}\s))*\s*")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)", re.MULTILINE)
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")

_TAGS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "strong": "strong",
    "em": "em",
    "s": "s",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
}


@dataclass(frozen=True, slots=True)
class Marked:
    """Characters of a text that are marked, and what is said of them.

    Attributes:
        start: The first one.
        end: Just behind the last one.
        reason: In words.
    """

    start: int
    end: int
    reason: str


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
        marked: What the sources do not support.
    """
    writing = _Writing(footnote or (lambda _: None), [one.reason for one in marked])
    return Markup("").join(writing.blocks(_parser().parse(_with_sentinels(text, marked))))


@cache
def _parser() -> MarkdownIt:
    # Without references: `[1]` is a marker, whatever the text defines under that name.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline", "image"])
    parser.validateLink = _is_of_the_web  # type: ignore[method-assign]
    return parser


def _is_of_the_web(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        return parts.scheme.lower() in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def _with_sentinels(text: str, marked: Sequence[Marked]) -> str:
    # One for one, so that offsets stay.
    text = _SENTINELS.sub("\ufffd", text)
    for one in sorted(marked, key=lambda each: each.start, reverse=True):
        lead = _LEAD.match(text, one.start, one.end)
        start = one.start if lead is None else lead.end()
        text = f"{text[:start]}{_BEGIN}{text[start : one.end]}{_END}{text[one.end :]}"
    return text


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
                    yield from self._text(token.content)
                case "code_inline":
                    yield self._piece(Markup("<code>{}</code>").format(_SENTINELS.sub("", token.content)))
                    self._pass(token.content)
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
        tag = _TAGS.get(token.type.removesuffix("_open").removesuffix("_close"))
        if tag is None:
            return escape(token.content)
        if token.nesting < 0:
            return Markup(f"</{tag}>")
        start = token.attrs.get("start")
        if tag == "ol" and isinstance(start, int):
            return Markup('<ol start="{}">').format(start)
        return Markup(f"<{tag}>")

    def _code(self, token: Token) -> Markup:
        language = _LANGUAGE.match(token.info or "")
        content = _SENTINELS.sub("", token.content)
        self._pass(token.content)
        head = Markup('<span class="soft small">{}</span>').format(language.group()) if language else Markup("")
        return Markup('<div class="code">{}<pre tabindex="0"><code>{}</code></pre></div>').format(head, content)

    def _text(self, text: str) -> Iterator[Markup]:
        for part in re.split(f"([{_BEGIN}{_END}])", text):
            if part == _BEGIN:
                self._inside = True
            elif part == _END:
                yield from self._ended()
            elif part:
                yield from self._with_footnotes(part)

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
        return Markup('<mark class="unsupported" title="{}">{}</mark>').format(reason, html)

    def _ended(self) -> Iterator[Markup]:
        if not self._inside:
            return
        reason = self.reasons[self._seen] if self._seen < len(self.reasons) else ""
        yield Markup('<span class="visually-hidden"> ({})</span>').format(reason)
        self._inside, self._seen = False, self._seen + 1

    def _pass(self, text: str) -> None:
        """Notice the ends of what is marked in a text whose characters are shown as they are."""
        for sign in _SENTINELS.findall(text):
            if sign == _BEGIN:
                self._inside = True
            elif self._inside:
                self._inside, self._seen = False, self._seen + 1
