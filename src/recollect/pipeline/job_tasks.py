"""What jobs do that are about documents: each calls a view, as its asker would."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.model import Principal
from recollect.model.record import json_of
from recollect.pipeline.spaces import Reembedding
from recollect.pipeline.standpoint import Standpoint
from recollect.pipeline.view import View

if TYPE_CHECKING:
    from recollect.ingest.reembedding import FillProgress
    from recollect.ingest.report import IngestProgress, IngestReport, ProgressCallback
    from recollect.jobs.progress import Progress
    from recollect.model.job import JobRun
    from recollect.pipeline.assembly import Assembly


def view_of(assembly: Assembly, run: JobRun) -> View:
    """The view that a job's task is given: that of whoever asked."""
    asker = run.asker
    return View(
        Standpoint(
            assembly=assembly,
            tenant=run.tenant_id,
            principal=None if asker.principal is None else Principal(**asker.principal),
            collections=None if asker.collection is None else (asker.collection,),
            session=asker.session,
        )
    )


def ingest_paths(view: View, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    """Files and folders, as `View.ingest` takes them."""
    given = dict(arguments)
    paths = [Path(path) for path in given.pop("paths")]
    return _told(view.ingest(paths, **given, on_progress=_teller(progress, "files")))


def contextualise(view: View, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:  # noqa: ARG001
    """What is missing of the collection's contexts, as `Maintenance.write_contexts` writes it."""
    return asdict(view.maintenance.write_contexts(on_progress=partial(progress, "documents")))


def reembed(view: View, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    """Another embedding model for the collection, as `Spaces.reembed` takes it; a killed run is gone on with."""
    stage = "embed"

    def begin(name: str) -> None:
        nonlocal stage
        stage = name
        progress(name, 0, 1)

    def tell(state: FillProgress) -> None:
        # What was written meanwhile is embedded as it changes: that is no further chunk of the first stage.
        if stage == "embed":
            progress("embed", state.filled, state.total)

    arguments = dict(arguments)
    view = view.view(actor=arguments.pop("actor"))
    if "back_to" in arguments:
        change = Reembedding(at=view.standpoint, rest=arguments["rest"], on_progress=tell, on_stage=begin)
        report = change.back(arguments["back_to"])
    else:
        wanted = {name: arguments[name] for name in ("model", "provider", "dimensions")}
        # A worker may have died with the change made, and before that was written down.
        report = view.spaces.reembedded(**wanted) or view.spaces.reembed(**arguments, on_progress=tell, on_stage=begin)
    for name, done in (("compare", True), ("switch", report.switched)):
        progress(name, int(done), 1)
    return report.as_json()


def crawl(view: View, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    """The pages of a site, as `View.ingest_url` takes them."""
    from recollect.pipeline.web import UrlRequest, store_site

    request = UrlRequest.of_job(arguments)
    return _told(store_site(view.standpoint, request, on_progress=_teller(progress, "pages")))


def refresh_source(view: View, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    """A source, as `Sources.refresh` takes it."""
    return _told(view.sources.refresh(**arguments, on_progress=_teller(progress, "documents")))


def watch_folders(view: View, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    """Folders, as `Sources.watch` takes them, until the job is cancelled."""
    watching = view.sources.watch(
        [Path(folder) for folder in arguments["folders"]],
        **{name: value for name, value in arguments.items() if name != "folders"},
    )
    with closing(watching):
        for count, _ in enumerate(watching, 1):
            progress("passes", count)
            progress.write_down()
    return {}


def _teller(progress: Progress, unit: str) -> ProgressCallback:
    def tell(state: IngestProgress) -> None:
        progress(unit if state.stage == "files" else state.stage, state.done, state.total)

    return tell


def _told(report: IngestReport) -> dict[str, Any]:
    told: dict[str, Any] = json_of(replace(report, errors=report.errors[:100]))
    return told
