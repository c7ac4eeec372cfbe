"""``/v1/collections/{name}/spaces`` and ``…/contexts``: what models say of every chunk of a collection."""

from __future__ import annotations

from fastapi import APIRouter, Response

from recollect.errors import ConfigurationError, UsageError
from recollect.model.contexts import ContextEstimate
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.model.space import Space, SpaceReport
from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.server.dependencies import Administrator, Operator
from recollect.server.problems import documented
from recollect.server.schemas.models import ReembedBody, RollbackBody

router = APIRouter(prefix="/collections/{name:named}", tags=["collections"], responses=documented(404))


@router.get("/spaces", summary="Show the embedding models of a collection")
def spaces(name: Name, caller: Administrator) -> SpaceReport:
    """As `recollect reembed --status --json`: the one that is used, and how far those beside it are."""
    return _of(caller, name).spaces.status()


@router.post("/spaces", status_code=202, summary="Change the embedding model", responses=documented(409))
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


@router.post("/spaces/rollback", status_code=202, summary="Go back to the model before", responses=documented(409))
def rollback(name: Name, body: RollbackBody, caller: Administrator, response: Response) -> Job:
    """As `recollect reembed --rollback`, as a job: what came since is embedded with it, and it is used again."""
    return _asked(response, _of(caller, name).jobs.rollback(rest=body.pause))


@router.delete("/spaces", summary="Remove what is kept of other models", responses=documented(409))
def drop(name: Name, caller: Administrator) -> Page[Space]:
    """As `recollect reembed --drop --json`: there is no way back then, and what was half made is gone."""
    return _of(caller, name).spaces.drop()


@router.get("/contexts", summary="Estimate what situating the chunks would take")
def estimate(name: Name, caller: Administrator) -> ContextEstimate:
    """As `recollect contextualise --estimate --json`: nothing is asked of a language model."""
    return _of(caller, name).maintenance.estimate_contexts()


@router.post("/contexts", status_code=202, summary="Situate the chunks in their documents")
def contextualise(name: Name, caller: Administrator, response: Response) -> Job:
    """As `recollect contextualise --background`: a worker asks the configured model about what it was not asked yet."""
    return _asked(response, _of(caller, name).jobs.contextualise())


def _of(caller: View, name: str) -> View:
    return caller.view(collections=name)


def _asked(response: Response, job: Job) -> Job:
    response.headers["Location"] = f"/v1/jobs/{job.job_id}"
    return job
