"""What is found of personal data: kinds and positions, never values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from recollect.installation import install_command

Kind: TypeAlias = Literal["email", "iban", "payment_card", "national_id", "phone", "ip_address"]

#: Every kind, the one first that a stretch of text is called where several fit.
KINDS: tuple[Kind, ...] = get_args(Kind)


def not_installed() -> str:
    """What an error says where nothing can be looked for."""
    return (
        f"Personal data is found by presidio and phonenumbers, which are not installed: {install_command('pii')} (no "
        "model is fetched), or set the policy to off ([rag.privacy] pii)."
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """A stretch of text that is somebody's.

    Attributes:
        kind: What it is.
        start: Its first character.
        end: Behind its last one.
        by_context: Whether it was known by the words beside it, so that it is to be looked for where these are missing.
    """

    kind: Kind
    start: int
    end: int
    by_context: bool = False


def without_overlaps(found: Iterable[Finding]) -> list[Finding]:
    """Findings in order, those that overlap joined: what one kind calls the beginning of is hidden to its end."""
    joined: list[Finding] = []
    for one in sorted(found, key=lambda finding: (finding.start, -finding.end)):
        last = joined[-1] if joined else None
        if last is None or one.start >= last.end:
            joined.append(one)
            continue
        kind = min(last.kind, one.kind, key=KINDS.index)
        by_context = last.by_context and one.by_context
        joined[-1] = Finding(kind, last.start, max(last.end, one.end), by_context)
    return joined


def counted(found: Iterable[Finding]) -> dict[str, int]:
    """How many there are of each kind, in the order of `KINDS`."""
    counts = Counter(finding.kind for finding in found)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def told(found: Sequence[Finding], *, shown: int = 10) -> str:
    """Kinds and positions in words, for an error; no value."""
    places = [f"{finding.kind} at {finding.start:,}-{finding.end:,}" for finding in found[:shown]]
    more = f" and {len(found) - shown:,} more" if len(found) > shown else ""
    return ", ".join(places) + more
