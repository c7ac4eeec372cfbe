"""``/v1/feedback``: whether what a context showed has helped."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.replies.feedback import (
    ForgottenFeedbackJson,
    JudgementJson,
    WeightAdaptationJson,
    forgotten_feedback_json,
    weight_adaptation_json,
)
from recollect.server.dependencies import Reader, Writer
from recollect.server.problems import documented
from recollect.server.schemas.feedback import FeedbackBody, JudgementBody

router = APIRouter(prefix="/feedback", tags=["conversations"], responses=documented(404))

_Session = Annotated[
    Name | None, Query(description="In contexts of this conversation; left out: in all, for the store's owner.")
]
_User = Annotated[Name | None, Query(description="Whose conversation, where several users have one of that id.")]


@router.get("", summary="What feedback makes of the weights")
def show(caller: Reader, session: _Session = None, user: _User = None) -> WeightAdaptationJson:
    """Of documents and of memory, in contexts."""
    view = caller.view(session=session, user=user)
    return weight_adaptation_json(view.feedback.weights(), on=_on(view))


@router.post("", summary="Say whether passages of a context helped")
def give(body: FeedbackBody, caller: Writer) -> WeightAdaptationJson:
    """The side that helps more, documents or memory, weighs a little more from then on, where that is on."""
    view = caller.view(session=body.session, user=body.user)
    return weight_adaptation_json(view.feedback.give(body.sources, helpful=body.helpful), on=_on(view))


@router.post("/judgement", summary="Say whether an answer helped")
def judge(body: JudgementBody, caller: Writer) -> JudgementJson:
    """An answer of a conversation, which counts for what it cites, once: what was said of it before stays."""
    view = caller.view(session=body.session, user=body.user)
    return {"counted": view.feedback.judge(body.position, helpful=body.helpful)}


@router.delete("", summary="Forget the feedback")
def reset(caller: Writer, session: _Session = None, user: _User = None) -> ForgottenFeedbackJson:
    """The weights are as before it."""
    return forgotten_feedback_json(caller.view(session=session, user=user).feedback.reset())


def _on(view: View) -> bool:
    return view.config.memory.adaptive_weights
