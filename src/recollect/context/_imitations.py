"""Makes harmless what a text could hold to pass for the structure of a prompt. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Characters that show nothing: they do not hide an imitation, and separate nothing.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
# A block's header.
_HEADER = re.compile(r"[\[【⟦〔](?=\s*sources?\s*[\d#:])", re.IGNORECASE)
# The lines around a context: alone on a line however written, or in capitals anywhere.
_EDGE = re.compile(
    r"^\W*(?:(?i:approved\s+context|end\s+of\s+context))\W*$|APPROVED\s+CONTEXT|END\s+OF\s+CONTEXT", re.MULTILINE
)
# The line between two blocks.
_GAP = re.compile(r"^[ \t>]*(?:[-–—−_*=][ \t]*){3,}$", re.MULTILINE)
# Signs by which servers part the messages of a conversation.
_ROLE = re.compile(
    r"<{2,}\s*context|context\s*>{2,}|<\|[\w ]*\|>|<\|(?=\w)|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>",
    re.IGNORECASE,
)
_SIGNS = dict(zip("<>[]|【⟦〔=-–—−_*", "‹›()¦(((·······", strict=True))


def without_imitations(text: str) -> str:
    """The text, its imitations of a header, a border or a role changed by single characters; its length is kept."""
    plain, places = _as_read(text)
    changed: dict[int, str] = {}
    for pattern in (_HEADER, _GAP, _ROLE):
        for match in pattern.finditer(plain):
            for at in range(match.start(), match.end()):
                if plain[at] in _SIGNS:
                    changed[places[at]] = _SIGNS[plain[at]]
    for match in _EDGE.finditer(plain):
        for at in range(match.start(), match.end()):
            # "approved·context": to be read, and no line of the prompt.
            changed[places[at]] = "·" if plain[at].isspace() and plain[at] != "\n" else plain[at].lower()
    if not changed:
        return text
    return "".join(changed.get(at, letter) for at, letter in enumerate(text))


def _as_read(text: str) -> tuple[str, Sequence[int]]:
    """The text as a reader takes it, without hidden characters and in plain letters, and where each of them stands."""
    if text.isascii():
        return text, range(len(text))
    shown = [(at, _plain(letter)) for at, letter in enumerate(text) if not _HIDDEN.match(letter)]
    return "".join(letter for _, letter in shown), [at for at, _ in shown]


def _plain(letter: str) -> str:
    folded = unicodedata.normalize("NFKC", letter) if not letter.isascii() else letter
    return folded if len(folded) == 1 else letter
