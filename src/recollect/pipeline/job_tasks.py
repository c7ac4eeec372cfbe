"""What jobs do that are about documents: each calls a view, as its asker would."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.model import Principal
from recollect.pipeline.standpoint import Standpoint
from recollect.pipeline.view import View

if TYPE_CHECKING:
    from recollect.ingest.report import IngestProgress
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

    def tell(state: IngestProgress) -> None:
        progress(state.stage, state.done, state.total)

    report = view.ingest(
        [Path(path) for path in arguments["paths"]],
        sync=arguments.get("sync", False),
        force=arguments.get("force", False),
        follow_links=arguments.get("follow_links"),
        tags=arguments.get("tags", ()),
        permissions=arguments.get("permissions"),
        on_progress=tell,
    )
    counts = ("added", "updated", "unchanged", "removed", "failed", "skipped", "chunks")
    return {
        **{name: getattr(report, name) for name in counts},
        "errors": [{"path": one.path, "error": one.error} for one in report.errors[:100]],
    }
