"""``/v1/feedback``: whether what a context showed has helped."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from recollect.context import WeightAdaptation
from recollect.operations.feedback import FeedbackOperations
from recollect.operations.values import Name
from recollect.server.bound import bind
from recollect.server.dependencies import Reader, Writer
from recollect.server.problems import documented
from recollect.server.schemas.feedback import FeedbackBody

router = APIRouter(prefix="/feedback", tags=["conversations"], responses=documented(404))
bind(router, FeedbackOperations, lambda view: view.feedback)

_Session = Annotated[
    Name | None, Query(description="In contexts of this conversation; left out: in all, for the store's owner.")
]
_User = Annotated[Name | None, Query(description="Whose conversation, where several users have one of that id.")]


@router.get("", summary="What feedback makes of the weights")
def show(caller: Reader, session: _Session = None, user: _User = None) -> WeightAdaptation:
    """Of documents and of memory, in contexts."""
    return caller.view(session=session, user=user).feedback.weights()


@router.post("", summary="Say whether passages of a context helped")
def give(body: FeedbackBody, caller: Writer) -> WeightAdaptation:
    """The side that helps more, documents or memory, weighs a little more from then on, where that is on."""
    return caller.view(session=body.session, user=body.user).feedback.give(body.sources, helpful=body.helpful)
