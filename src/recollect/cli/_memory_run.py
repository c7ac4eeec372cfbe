"""Conversations remembered and asked, as an evaluation talks to memory; nothing of them is left."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.evaluation.memory import RecalledTurn
    from recollect.evaluation.memory_files import Conversation
    from recollect.model.memory import RecallMode
    from recollect.pipeline import View

# Enough turns to hold ten sessions wherever there are as many.
_DEPTH = 200


class MemoryRun:
    """One run: its sessions have names that no others have.

    Args:
        view: Whose memory it is put into.
        mode: How turns are searched.
    """

    def __init__(self, view: View, mode: RecallMode) -> None:
        self._view = view
        self._mode: RecallMode = mode
        self._prefix = f"eval-{uuid.uuid4().hex[:12]}"
        self._users: dict[str, str] = {}
        self._sessions: dict[str, str] = {}

    def remember(self, conversation: Conversation) -> int:
        """Store a conversation as a user's; turns without words are passed over."""
        from recollect.model.memory import Turn

        user = self._users.setdefault(conversation.conversation_id, f"{self._prefix}/{len(self._users) + 1}")
        stored = 0
        for number, one in enumerate(conversation.sessions, start=1):
            name = f"{user}/{number}"
            turns = [
                Turn(content=turn.text, role=turn.speaker, at=one.at, metadata={"eval_turn": turn.turn_id})
                for turn in one.turns
                if turn.text.strip()
            ]
            if turns:
                self._sessions[name] = one.session_id
                stored += self._view.view(session=name, user=user).remember(turns).added
        return stored

    def recall(self, conversation: Conversation, question: str) -> list[RecalledTurn]:
        """The turns of a conversation that answer a question, best first."""
        from recollect.evaluation.memory import RecalledTurn
        from recollect.model.memory import RecallOptions

        options = RecallOptions(top_k=_DEPTH, mode=self._mode, before=0, after=0, counted=False)
        found = self._view.view(user=self._users[conversation.conversation_id]).recall(question, options)
        return [RecalledTurn(self._sessions[hit.episode.session], hit.episode.metadata["eval_turn"]) for hit in found]

    def remove(self) -> None:
        """Remove the sessions of this run."""
        for name in self._sessions:
            self._view.memory.delete(name, actor="eval memory")
