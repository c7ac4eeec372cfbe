"""Feedback on what a context showed, and what it makes of the weights of documents and memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from recollect.errors import PermissionDeniedError, UsageError
from recollect.model.feedback import FeedbackCounts
from recollect.pipeline.parts import Parts

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.context import HybridPassage, RetrievalWeights, WeightAdaptation
    from recollect.context.weights import Adapt
    from recollect.model import Principal, Scope
    from recollect.model.memory import SessionRecord

_MEMORY = ("memory:", "fact:")


class Feedback:
    """The part of `RAGPipeline` that learns which side helps more.

    Attributes:
        config: The settings.
    """

    config: RAGConfig
    _parts: Parts

    def feedback(
        self,
        passages: HybridPassage | str | Sequence[HybridPassage | str],
        *,
        helpful: bool,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> WeightAdaptation:
        """Say of passages that a context showed whether they helped.

        Only the side that a passage came from is counted, documents or memory. Where ``[rag.memory] adaptive_weights``
        is on, contexts weigh the side that helps more a little more from then on, within ``max_weight_shift``.

        Args:
            passages: As a context gave them, or their sources (``memory:chat-1``, ``fact:7``, ``hr/leave.md``).
            helpful: Whether they helped.
            session: The conversation it is true of, which must have begun; None: of contexts in general.
            user: Whose conversation, where several users have one of that id.
            tenant_id: Whose memory; None: the default tenant's.
            principal: Who says so: where permissions are enforced, of a conversation of his own.

        Returns:
            What the feedback makes of the weights now, whether that is on or not.

        Raises:
            UsageError: There is no passage.
            NotFoundError: There is no such session.
            PermissionDeniedError: The principal would move the weights of everybody.
        """
        given = [passages] if isinstance(passages, str) or not isinstance(passages, Sequence) else list(passages)
        sources = [one if isinstance(one, str) else one.source for one in given]
        if not sources or not all(source.strip() for source in sources):
            raise UsageError("Name the passages by the sources that a context gave, such as memory:chat-1 or leave.md.")
        scope = self._parts.scope(tenant_id, principal=principal)
        of_memory = sum(source.startswith(_MEMORY) for source in sources)
        of_documents = len(sources) - of_memory
        counts = (
            FeedbackCounts(documents_helpful=of_documents, memory_helpful=of_memory)
            if helpful
            else FeedbackCounts(documents_not=of_documents, memory_not=of_memory)
        )
        self._parts.store.feedback.add(scope, self._place(scope, session, user), counts)
        return self.adapted_weights(session=session, user=user, tenant_id=tenant_id, principal=principal)

    def adapted_weights(
        self,
        weights: RetrievalWeights | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> WeightAdaptation:
        """What feedback makes of weights, whether that is on or not.

        Args:
            weights: As configured; None: `RetrievalWeights.memory_focused`.
            session: In this conversation; None: in general.
            user: Whose conversation, where several users have one of that id.
            tenant_id: Whose memory; None: the default tenant's.
            principal: Who asks; None: the owner of the store.
        """
        from recollect.context import RetrievalWeights

        scope = self._parts.scope(tenant_id, principal=principal)
        return self._adapted(scope, weights or RetrievalWeights.memory_focused(), session, user=user)

    def reset_feedback(
        self,
        *,
        session: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> int:
        """Forget the feedback on a conversation's contexts, or on those in general: the weights are as before it.

        ``user``: whose conversation, where several users have one of that id.

        Returns:
            How many passages it was on.

        Raises:
            NotFoundError: There is no such session.
            PermissionDeniedError: The principal would move the weights of everybody.
        """
        scope = self._parts.scope(tenant_id, principal=principal)
        return self._parts.store.feedback.reset(scope, self._place(scope, session, user))

    def _adapt(self, tenant_id: int | None, principal: Principal | None, user: str | None) -> Adapt | None:
        """What contexts ask for their weights; None where feedback does not move them."""
        if not self.config.memory.adaptive_weights:
            return None
        return partial(self._adapted, self._parts.scope(tenant_id, principal=principal), user=user)

    def _adapted(
        self, scope: Scope, base: RetrievalWeights, session: str | None, *, user: str | None = None
    ) -> WeightAdaptation:
        from recollect.context.weights import adapted

        general, own = self._parts.store.feedback.counts(scope, session, user=user)
        return adapted(base, tenant=general, session=own, max_shift=self.config.memory.max_weight_shift)

    def _place(self, scope: Scope, session: str | None, user: str | None) -> SessionRecord | None:
        if session is not None:
            return self._parts.store.memory.get_session(scope, session, user=user)
        if scope.principal is not None:
            raise PermissionDeniedError("Weights in general are everybody's: name a conversation of your own.")
        return None
