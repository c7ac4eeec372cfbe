"""Where a message's own text ends: its signature, and what it quotes or forwards.

Neither is taken out of the text, and both begin a section of their own. So a passage is either what somebody wrote or
what they quote, and says which; and who signs where can be found still. A quote that is answered line by line stays
where it is: an answer says nothing without its question.
"""

from __future__ import annotations

import re

from recollect.model import Heading

_LONGEST_LINE = 300
_LONGEST_SIGNATURE_LINES = 12
_LONGEST_SIGNATURE_LINE = 90
_HEADER_LINES = 6
# Each is looked at with all that follows it.
_MOST_ATTRIBUTIONS = 50

# What programs write above a message that they quote whole.
_BANNER = re.compile(
    r"[-_*= ]{2,}\s*(?:original message|original appointment|forwarded message|begin forwarded message|"
    r"ursprüngliche nachricht|weitergeleitete nachricht|message d'origine|message transféré|mensaje original|"
    r"mensaje reenviado|messaggio originale|messaggio inoltrato|oorspronkelijk bericht|doorgestuurd bericht|"
    r"mensagem original|mensagem encaminhada|oprindelig meddelelse|ursprungligt meddelande|wiadomość oryginalna|"
    r"исходное сообщение|пересылаемое сообщение|原始邮件|转发邮件|元のメッセージ)\s*[-_*= ]{2,}",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r".*(?:\bwrote|\bschrieb(?:en)?\b.*|\ba écrit|\bescribió|\bha scritto|\bschreef\b.*|\bescreveu|\bskrev\b.*|"
    r"\bnapisał(?:a|\(a\))?|\bпишет|\bнаписал(?:а|\(а\))?|写道|のメール|さんは書きました)\s*[:：]",
    re.IGNORECASE,
)
# The first lines of a message as Outlook repeats them: who, when, to whom.
_WHO = re.compile(r"(?:from|von|de|da|van|от|发件人|差出人)\s?[:：]\s*\S", re.IGNORECASE)
_WHEN = re.compile(
    r"(?:sent|date|gesendet|datum|envoyé|enviado(?: el)?|fecha|inviato|data|verzonden|enviada em|отправлено|дата|"
    r"发送时间|送信日時)\s?[:：]",
    re.IGNORECASE,
)
_WHOM = re.compile(
    r"(?:to|an|à|para|a|aan|кому|收件人|宛先|subject|betreff|objet|asunto|oggetto)\s?[:：]", re.IGNORECASE
)
_CLOSING = re.compile(
    r"(?:(?:with\s+)?(?:best|kind|kindest|warm|warmest|many)\s+(?:regards|wishes|thanks)|regards|best|cheers|"
    r"(?:yours\s+)?(?:sincerely|faithfully|truly)(?:\s+yours)?|thanks|thank you|"
    r"(?:mit\s+)?(?:freundlichen?|besten?|herzlichen?|lieben?|vielen?|schönen?)\s+gr(?:ü|ue)(?:ß|ss)e?n?|mfg|gruß|"
    r"(?:bien\s+)?cordialement|salutations|saludos(?: cordiales)?|atentamente|(?:cordiali|distinti)\s+saluti|"
    r"met vriendelijke groet(?:en)?|atenciosamente|med vänlig hälsning|с уважением|此致|よろしくお願いします)\s*[,.!]?",
    re.IGNORECASE,
)
_SENT_FROM = re.compile(r"(?:sent from my|von meinem|envoyé de mon|get outlook for)\b.{0,40}", re.IGNORECASE)


def marks_of(text: str) -> list[Heading]:
    """Headings where a message's signature and what it quotes begin, in order; none where there is neither.

    Args:
        text: Of the message, without its header lines.
    """
    lines, starts = _lines(text)
    quoted = _quote_begins(lines)
    end = len(lines) if quoted is None else quoted
    signed = _signature_begins(lines[:end])
    marks: list[Heading] = []
    if signed is not None:
        marks.append(_mark("Signature", starts[signed], lines[signed]))
    if quoted is not None and any(line.strip() for line in lines[:quoted]):
        title = lines[quoted].strip().strip("-_*= ")[:100]
        named = title if title and not title.startswith(">") else "Quoted message"
        marks.append(_mark(named, starts[quoted], lines[quoted]))
    return marks


def _mark(title: str, start: int, line: str) -> Heading:
    return Heading(1, title, start, start + len(line))


def _lines(text: str) -> tuple[list[str], list[int]]:
    lines = text.split("\n")
    starts: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return lines, starts


def _quote_begins(lines: list[str]) -> int | None:
    """The line from which on a message says what others said."""
    looked = 0
    for at, line in enumerate(lines):
        if len(line) > _LONGEST_LINE:
            continue
        plain = line.strip()
        if _BANNER.fullmatch(plain) or _is_header(lines, at):
            return at
        if looked < _MOST_ATTRIBUTIONS and not plain.startswith(">") and _ATTRIBUTION.fullmatch(plain):
            looked += 1
            if _only_quotes(lines, at + 1, html=True):
                return at
    return _trailing_quote(lines)


def _is_header(lines: list[str], at: int) -> bool:
    """Whether the header of another message stands here."""
    if not _WHO.match(lines[at].strip().lstrip("*")):
        return False
    below = [line.strip().lstrip("*")[:_LONGEST_LINE] for line in lines[at + 1 : at + _HEADER_LINES]]
    return any(map(_WHEN.match, below)) and any(map(_WHOM.match, below))


def _only_quotes(lines: list[str], at: int, *, html: bool = False) -> bool:
    """Whether nothing of the message's own follows, but a signature.

    Args:
        lines: Of the message.
        at: From here on.
        html: Whether lines may be quoted without a mark: then none of them has one.
    """
    below = [line for line in lines[at:] if line.strip()]
    marked = [line.startswith(">") for line in below]
    if html and below and not any(marked):
        return True
    if True not in marked:
        return False
    last = len(marked) - 1 - marked[::-1].index(True)
    own = [line for line, is_marked in zip(below[:last], marked[:last], strict=True) if not is_marked]
    return not own and len(below) - last - 1 <= _LONGEST_SIGNATURE_LINES


def _trailing_quote(lines: list[str]) -> int | None:
    """Where the quote begins that a message ends with, with the line above it that says whose it is."""
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].startswith(">")):
        at -= 1
    first = next((index for index in range(at, len(lines)) if lines[index].startswith(">")), None)
    if first is None:
        return None
    above = at - 1
    while above >= 0 and first - above <= 2 and lines[above].strip().endswith((":", "：")):
        return above
    return first


def _signature_begins(lines: list[str]) -> int | None:
    """The line that a signature begins with: ``-- ``, or a closing phrase over a few short lines."""
    for at in range(len(lines) - 1, max(-1, len(lines) - 60), -1):
        if lines[at].rstrip() == "--" and at:
            return at
    for at in range(len(lines) - 1, max(0, len(lines) - _LONGEST_SIGNATURE_LINES - 8), -1):
        plain = lines[at].strip()
        if len(plain) > _LONGEST_SIGNATURE_LINE:
            return None
        if _CLOSING.fullmatch(plain) or _SENT_FROM.fullmatch(plain):
            below = [line for line in lines[at + 1 :] if line.strip()]
            return at if len(below) <= _LONGEST_SIGNATURE_LINES else None
    return None
