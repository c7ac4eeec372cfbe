"""Feedback on what a view's contexts showed, and what it makes of the weights of documents and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from recollect.context import RetrievalWeights
from recollect.context.hybrid import adapted
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model.arguments import checked
from recollect.model.feedback import FeedbackCounts
from recollect.operations.conversations import FeedbackOperations
from recollect.operations.declaring import implements
from recollect.pipeline.remembered_answers import SOURCES
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from recollect.context import HybridPassage, WeightAdaptation
    from recollect.model import Scope
    from recollect.model.memory import SessionRecord
    from recollect.pipeline.standpoint import Standpoint

_MEMORY = ("memory:", "fact:")


@implements(FeedbackOperations)
@checked
class Feedback(Group, FeedbackOperations):
    """Feedback on the contexts of a view's conversation, which must have begun; without one, on contexts in general.

    See `recollect.View`. Where permissions are enforced, a principal speaks of a conversation of its own.
    """

    def give(self, passages: HybridPassage | str | Sequence[HybridPassage | str], *, helpful: bool) -> WeightAdaptation:
        """Say of passages that a context showed whether they helped.

        Only the side that a passage came from is counted, documents or memory. Where ``[rag.memory] adaptive_weights``
        is on, contexts weigh the side that helps more a little more from then on, within ``max_weight_shift``.

        Args:
            passages: As a context gave them, or their sources (``memory:chat-1``, ``fact:7``, ``hr/leave.md``).
            helpful: Whether they helped.

        Returns:
            What the feedback makes of the weights now, whether that is on or not.

        Raises:
            UsageError: There is no passage.
            NotFoundError: There is no such conversation.
            PermissionDeniedError: The principal would move the weights of everybody.
        """
        given = [passages] if isinstance(passages, str) or not isinstance(passages, Sequence) else list(passages)
        sources = [one if isinstance(one, str) else str(getattr(one, "source", "")) for one in given]
        if not sources or not all(source.strip() for source in sources):
            raise UsageError("Name the passages by the sources that a context gave, such as memory:chat-1 or leave.md.")
        scope = self._at.present()
        of_memory = sum(source.startswith(_MEMORY) for source in sources)
        of_documents = len(sources) - of_memory
        counts = (
            FeedbackCounts(documents_helpful=of_documents, memory_helpful=of_memory)
            if helpful
            else FeedbackCounts(documents_not=of_documents, memory_not=of_memory)
        )
        self._at.store.feedback.add(scope, self._conversation(scope), counts)
        for _ in sources:
            self._at.assembly.activity.count(scope.tenant_id, "feedback", "helpful" if helpful else "not")
        return self.weights()

    @override
    def judge(self, position: int, *, helpful: bool) -> bool:
        at, scope = self._at, self._at.present()
        if at.session is None:
            raise UsageError("Say which conversation this is of: view(session=...).")
        record = at.store.memory.get_session(scope, at.session, user=at.user)
        turns = at.store.memory.turns(scope, record, after=position - 1, limit=1)
        cited = turns[0].metadata.get(SOURCES) if turns and turns[0].position == position else None
        if not isinstance(cited, list) or not cited:
            raise NotFoundError(f"There is no answer at {position} that cites anything.")
        if not at.store.conversations.judge(scope, record, position, helpful=helpful):
            return False
        said = FeedbackCounts(documents_helpful=len(cited)) if helpful else FeedbackCounts(documents_not=len(cited))
        at.store.feedback.add(scope, record, said)
        return True

    def weights(self, weights: RetrievalWeights | None = None) -> WeightAdaptation:
        """What feedback makes of weights, whether that is on or not.

        Args:
            weights: As configured; None: `RetrievalWeights.memory_focused`.
        """
        return adapted_weights(self._at, weights or RetrievalWeights.memory_focused(), self._at.session)

    @override
    def reset(self) -> int:
        scope = self._at.present()
        return self._at.store.feedback.reset(scope, self._conversation(scope))

    def _conversation(self, scope: Scope) -> SessionRecord | None:
        if self._at.session is not None:
            return self._at.store.memory.get_session(scope, self._at.session, user=self._at.user)
        if scope.principal is not None:
            raise PermissionDeniedError("Weights in general are everybody's: name a conversation of your own.")
        return None


def adapted_weights(at: Standpoint, base: RetrievalWeights, session: str | None) -> WeightAdaptation:
    """What feedback makes of weights in a conversation; None: in general."""
    general, own = at.store.feedback.counts(at.scope, session, user=at.user)
    settings = at.config.memory
    found = adapted(base, tenant=general, session=own, max_shift=settings.max_weight_shift)
    return replace(found, on=settings.adaptive_weights)
