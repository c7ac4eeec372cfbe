"""Tools that recall what was said, and remember something for later conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError
from recollect.model.memory import RecallOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model.memory import Episode, Recollection
    from recollect.pipeline.view import View
    from recollect.tools.results import Room

# Characters of the turns around one that was found: they say what it was about.
_AROUND = 300


def recall(view: View, room: Room, *, query: str, limit: int, start_offset: int) -> dict[str, Any]:
    """What was said in conversations about something."""
    found = _recalled(view, query, RecallOptions(top_k=limit))
    turns: list[dict[str, Any]] = []
    cut = False
    for one in found:
        turn = _turn(one.episode) | {
            "before": [f"{said.role}: {said.content[:_AROUND]}" for said in one.before],
            "after": [f"{said.role}: {said.content[:_AROUND]}" for said in one.after],
        }
        whole = one.episode.content[start_offset:]
        text = room.cut(whole, turn)
        turn["text"] = text
        cut = len(text) < len(whole)
        if (cut and not text) or not room.take(turn):
            cut = True
            break
        turns.append(turn)
        if cut:
            break
    told: dict[str, Any] = {"turns": turns}
    if not found:
        told["note"] = "Nothing that was said is about this."
    elif cut:
        told["note"] = "Cut to fit: ask for fewer turns; of a single long turn continue_with gives the rest."
        if len(turns) == 1:
            told["continue_with"] = {"limit": 1, "start_offset": start_offset + len(turns[0]["text"])}
    return told


def _recalled(view: View, query: str, options: RecallOptions) -> Sequence[Recollection]:
    try:
        return view.recall(query, options)
    except NotFoundError:
        # A conversation that begins is not stored before something of it is remembered.
        at = view.standpoint
        if at.session is None:
            raise
        return [] if at.user is None else view.view(session=None).recall(query, options)


def remember(view: View, room: Room, *, text: str, role: str) -> dict[str, Any]:  # noqa: ARG001 - it always fits
    """Store something in the conversation."""
    done = view.remember(text, role=role)
    return {"remembered": True, "session": done.session, "position": done.positions[0]}


def _turn(episode: Episode) -> dict[str, Any]:
    told = {
        "session": episode.session,
        "position": episode.position,
        "role": episode.role,
        "at": episode.at.isoformat() if episode.at else None,
    }
    return {name: value for name, value in told.items() if value is not None}
