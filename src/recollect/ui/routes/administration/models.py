"""What models say of every chunk of a collection, made anew by jobs.

Another embedding model is compared with the first one before the change; a language model situates chunks in their
documents.
"""

from __future__ import annotations

import math
from typing import Annotated, get_args

from fastapi import Form, Query
from starlette.responses import Response

from recollect.config.models import EmbeddingConfig
from recollect.errors import NotFoundError, UsageError
from recollect.model.contexts import ContextEstimate
from recollect.model.job import Job
from recollect.model.space import SpaceReport
from recollect.pipeline import View
from recollect.ui.routes.administration.asking import MODELS, shown
from recollect.ui.visit import Administering, page_router

router = page_router()

_Text = Annotated[str, Form(max_length=500)]
_Asked = Annotated[str, Query(min_length=1, max_length=500)]
_Number = Annotated[str, Form(max_length=20)]
_JOBS = 20
_KINDS = ("reembed", "contextualise")
_PROVIDERS = get_args(EmbeddingConfig.model_fields["provider"].annotation)


@router.get(MODELS.path)
async def models(visit: Administering) -> Response:
    """Every collection with its model, what stands beside it, and the jobs under way."""
    spaces, jobs = await visit.run(_looked_up, visit.administration)
    return shown(
        visit,
        MODELS,
        "models.html",
        spaces=spaces,
        jobs=jobs,
        providers=_PROVIDERS,
        situating=visit.administration.config.ingest.contextualise,
    )


@router.post(MODELS.path)
async def reembed(
    visit: Administering,
    collection: _Text,
    model: _Text = "",
    provider: _Text = "",
    dimensions: _Number = "",
    samples: _Number = "100",
    figure: _Text = "",
    least: _Number = "",
    switch: Annotated[bool, Form()] = False,
) -> Response:
    """Ask for a change of the model; which ones the server loads and pays for is for whoever runs it to say."""
    visit.caller.require("operator")
    if not model.strip():
        raise UsageError("Name the model, as its provider does.")
    minimum = {figure: _read(least, "The least")} if figure and least.strip() else None
    view = visit.administration.view(collections=collection)
    job = await visit.run(
        lambda: view.jobs.reembed(
            model.strip(),
            provider=provider or None,
            dimensions=int(_read(dimensions, "The dimensions")) if dimensions.strip() else None,
            samples=int(_read(samples, "The questions")),
            minimum=minimum,
            switch=switch,
        )
    )
    return visit.go_to(f"{MODELS.path}/jobs/{job.job_id}")


@router.get(f"{MODELS.path}/jobs/{{job_id}}")
async def job(visit: Administering, job_id: int) -> Response:
    """How far a change is, and what the comparison found."""
    found = await visit.run(_job, visit.administration, job_id)
    if visit.is_fragment:
        return visit.fragment("administration/model_job_state.html", job=found)
    return shown(visit, MODELS, "model_job.html", job=found)


@router.post(f"{MODELS.path}/jobs/{{job_id}}/cancel")
async def cancel(visit: Administering, job_id: int) -> Response:
    """Stop it at its next batch."""
    found = await visit.run(_job, visit.administration, job_id)
    await visit.run(visit.administration.jobs.cancel, found.job_id)
    return visit.go_to(f"{MODELS.path}/jobs/{job_id}?told=cancelled")


@router.post(f"{MODELS.path}/rollback")
async def rollback(visit: Administering, collection: _Text) -> Response:
    """Ask for the model before: what came since is embedded with it first."""
    view = visit.administration.view(collections=collection)
    job = await visit.run(lambda: view.jobs.rollback())
    return visit.go_to(f"{MODELS.path}/jobs/{job.job_id}")


@router.get(f"{MODELS.path}/contexts")
async def situate(visit: Administering, collection: _Asked) -> Response:
    """What situating the chunks of a collection would take; no model is asked."""
    view = visit.administration.view(collections=collection)
    estimate: ContextEstimate | None = None
    problem: str | None = None
    try:
        estimate = await visit.run(view.maintenance.estimate_contexts)
    except UsageError as exc:
        problem = str(exc)
    return shown(visit, MODELS, "situate.html", collection=collection, estimate=estimate, problem=problem)


@router.post(f"{MODELS.path}/contexts")
async def contextualise(visit: Administering, collection: _Text) -> Response:
    """Ask for it."""
    job = await visit.run(visit.administration.view(collections=collection).jobs.contextualise)
    return visit.go_to(f"{MODELS.path}/jobs/{job.job_id}")


@router.post(f"{MODELS.path}/drop")
async def drop(visit: Administering, collection: _Text) -> Response:
    """Remove what is kept of the model before, and what was begun of another."""
    view = visit.administration.view(collections=collection)
    await visit.run(view.spaces.drop)
    return visit.go_to(f"{MODELS.path}?told=dropped")


def _looked_up(view: View) -> tuple[list[SpaceReport], list[Job]]:
    spaces = [view.view(collections=one.name).spaces.status() for one in view.collections.each()]
    jobs = [one for kind in _KINDS for one in view.jobs.list(kind=kind, limit=_JOBS)]
    return spaces, sorted(jobs, key=lambda one: one.job_id, reverse=True)[:_JOBS]


def _job(view: View, job_id: int) -> Job:
    found = view.jobs.get(job_id)
    if found.kind not in _KINDS:
        raise NotFoundError(f"The job {job_id} is none of a model's.")
    return found


def _read(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{what} must be a number, not {text[:20]!r}.")
    return number
