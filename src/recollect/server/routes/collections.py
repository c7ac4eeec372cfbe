"""``/v1/collections``, and what models say of every chunk of one: ``…/spaces`` and ``…/contexts``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from recollect.errors import ConfigurationError, UsageError
from recollect.model.collection import Collection
from recollect.model.contexts import ContextEstimate
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.model.space import Space, SpaceReport
from recollect.operations.collections import CollectionOperations
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.server.bodies import Body
from recollect.server.bound import bind
from recollect.server.dependencies import Administrator, Asking, Operator, Reader
from recollect.server.downloads import LinesResponse
from recollect.server.etags import IfMatch, require_match, tagged
from recollect.server.problems import documented


class CollectionChanges(Body):
    """What is said of a collection; how it is cut and embedded stays as it was made."""

    description: Text = Field(max_length=10_000)


class ReembedBody(Body):
    """A model that a collection is to be embedded with; the fields are the options of `recollect reembed`."""

    model: Name = Field(description="As its provider names it, or as collections show theirs.")
    provider: Name | None = Field(None, description="Whose model it is; left out: the configured one's.")
    dimensions: int | None = Field(None, ge=1, le=100_000, description="The length of a vector; left out: its own.")
    samples: int = Field(100, ge=0, le=1_000, description="Questions to compare both models by; 0: no comparison.")
    minimum: dict[Name, float] = Field(
        default_factory=dict,
        max_length=100,
        description="What figures of the new model must reach, by name.",
        # Of the names, pydantic says only which of them have these values.
        json_schema_extra={"additionalProperties": False},
    )
    switch: bool = Field(True, description="Whether to change to it in the end.")
    pause: float = Field(1.0, ge=0, le=1_000, description="Rest after each batch, in multiples of what it took.")


class RollbackBody(Body):
    """A change back to the model before."""

    pause: float = Field(0.0, ge=0, le=1_000, description="Rest after each batch, in multiples of what it took.")


router = APIRouter(tags=["collections"])


bind(router, CollectionOperations, lambda view: view.collections)


@router.patch("/collections/{name:named}", summary="Describe a collection", responses=documented(404, 412))
def change(
    name: Name, body: CollectionChanges, caller: Administrator, response: Response, if_match: IfMatch = None
) -> Collection:
    """What is said of it; how it is cut and embedded stays as it was made."""

    def check(now: Collection) -> None:
        require_match(if_match, now)

    return tagged(response, caller.collections.update(name, description=body.description, check=check))


@router.get(
    "/collections/{name:named}/export",
    summary="Export a collection",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}, **documented(404)},
)
async def export(
    name: Name,
    caller: Reader,
    service: Asking,
    request: Request,
    originals: Annotated[
        bool, Query(description="With the files that documents were read from, up to 64 MiB each.")
    ] = False,
) -> StreamingResponse:
    """As JSON Lines: its current documents with their chunks and vectors, as far as they may be read."""

    def made() -> StreamingResponse:
        return LinesResponse(caller.view(collections=name).collections.export_lines(originals=originals))

    return await service.searches.run_long(request, made)


# `/v1/collections/{name}/spaces` and `…/contexts`: what models say of every chunk of a collection.


@router.get(
    "/collections/{name:named}/spaces", summary="Show the embedding models of a collection", responses=documented(404)
)
def spaces(name: Name, caller: Administrator) -> SpaceReport:
    """As `recollect reembed --status --json`: the one that is used, and how far those beside it are."""
    return _of(caller, name).spaces.status()


@router.post(
    "/collections/{name:named}/spaces",
    status_code=202,
    summary="Change the embedding model",
    responses=documented(404, 409),
)
def reembed(name: Name, body: ReembedBody, caller: Operator, response: Response) -> Job:
    """As `recollect reembed --model --background`: a worker embeds everything anew, compares, and changes to it.

    Searches and ingests go on meanwhile. Which models the server loads and pays for is for whoever runs it to say.
    """
    try:
        job = _of(caller, name).jobs.reembed(
            body.model,
            provider=body.provider,
            dimensions=body.dimensions,
            samples=body.samples,
            minimum=body.minimum,
            switch=body.switch,
            rest=body.pause,
        )
    except ConfigurationError as exc:
        # Not of how the server is set up, as elsewhere, but of what was asked for: a provider that it has not.
        raise UsageError(str(exc)) from exc
    return _asked(response, job)


@router.post(
    "/collections/{name:named}/spaces/rollback",
    status_code=202,
    summary="Go back to the model before",
    responses=documented(404, 409),
)
def rollback(name: Name, body: RollbackBody, caller: Administrator, response: Response) -> Job:
    """As `recollect reembed --rollback`, as a job: what came since is embedded with it, and it is used again."""
    return _asked(response, _of(caller, name).jobs.rollback(rest=body.pause))


@router.delete(
    "/collections/{name:named}/spaces", summary="Remove what is kept of other models", responses=documented(404, 409)
)
def drop(name: Name, caller: Administrator) -> Page[Space]:
    """As `recollect reembed --drop --json`: there is no way back then, and what was half made is gone."""
    return _of(caller, name).spaces.drop()


@router.get(
    "/collections/{name:named}/contexts",
    summary="Estimate what situating the chunks would take",
    responses=documented(404),
)
def estimate(name: Name, caller: Administrator) -> ContextEstimate:
    """As `recollect contextualise --estimate --json`: nothing is asked of a language model."""
    return _of(caller, name).maintenance.estimate_contexts()


@router.post(
    "/collections/{name:named}/contexts",
    status_code=202,
    summary="Situate the chunks in their documents",
    responses=documented(404),
)
def contextualise(name: Name, caller: Administrator, response: Response) -> Job:
    """As `recollect contextualise --background`: a worker asks the configured model about what it was not asked yet."""
    return _asked(response, _of(caller, name).jobs.contextualise())


def _of(caller: View, name: str) -> View:
    return caller.view(collections=name)


def _asked(response: Response, job: Job) -> Job:
    response.headers["Location"] = f"/v1/jobs/{job.job_id}"
    return job
