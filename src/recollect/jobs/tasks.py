"""Which kinds of jobs there are, and what runs each.

A task is a function ``(view, arguments, progress) -> result``, in `recollect.pipeline`:

- ``view`` is a `recollect.View` of whoever asked, where they asked: tenant, principal, and collection or session.
- ``arguments`` are those of `recollect.model.job.NewJob`, the shown and the withheld ones together: plain JSON.
- ``progress("fetch", 3, 10)`` says how far a stage has come, and is where a job that was cancelled ends. Call it
  between documents; it costs next to nothing.
- What it returns (plain JSON, or None) is the job's result, which everybody who may see the job is shown.

An error ends the attempt. Where another attempt could not succeed either, the job is cancelled at once with the error
as its reason (`recollect.jobs.running` says which errors those are; an error of one's own says so by an attribute
``retryable``); otherwise it is tried again later. A worker may be killed at any moment and the task be run once more
from its beginning, so what it does must be the same done twice: storing a document again that is stored already is.

Where several jobs are quicker at once than one after the other, a task says so (`Task.together`): a worker that has
taken one takes others with it that wait, are of the same asker and source, and differ in one argument alone. The task
takes them as it has room for more (`recollect.jobs.together.Together`), and says of each what became of it, as soon as
that is known.

To add one: write the function, and a line in `_TASKS`. To ask for it: `recollect.pipeline.jobs.enqueue`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.jobs.progress import Progress
    from recollect.jobs.together import Together

#: What runs a job. Its first argument is a `recollect.View`, which stands above this package.
TaskFunction: TypeAlias = "Callable[[Any, Mapping[str, Any], Progress], Mapping[str, Any] | None]"
#: What runs several that are alike.
TogetherFunction: TypeAlias = "Callable[[Any, Together], None]"
#: What takes back what a run left that nobody wants any more.
GivenUpFunction: TypeAlias = "Callable[[Any, Mapping[str, Any]], None]"

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A kind of job.

    Attributes:
        kind: Its name, which jobs carry.
        function: What runs it, as ``module:function``, imported when the first such job is run; or the function itself.
        stages: The names of what it comes through, in order.
        together: What runs several at once, where that is quicker than one after the other: ``(view, together)``. They
            differ in ``differs`` alone, and are of one asker and source.
        differs: The argument that each has its own of.
        given_up: What takes back what a run may have left whose worker was killed, where the job is not run again
            because it was cancelled: ``(view, arguments)``.
    """

    kind: str
    function: str | TaskFunction
    stages: tuple[str, ...] = ()
    together: str | TogetherFunction | None = None
    differs: str = ""
    given_up: str | GivenUpFunction | None = None


_TASKS = {
    task.kind: task
    for task in (
        Task(kind="ingest", function="recollect.pipeline.job_tasks:ingest_paths", stages=("files",)),
        Task(
            kind="ingest_upload",
            function="recollect.pipeline.uploading:store_upload",
            stages=("read", "cut", "embed", "store"),
            given_up="recollect.pipeline.uploading:give_up",
        ),
        Task(
            kind="ingest_url",
            function="recollect.pipeline.web:store_page",
            stages=("fetch", "read", "cut", "embed", "store"),
            together="recollect.pipeline.web:store_pages",
            differs="url",
        ),
        Task(kind="contextualise", function="recollect.pipeline.job_tasks:contextualise", stages=("documents",)),
        Task(kind="reembed", function="recollect.pipeline.job_tasks:reembed", stages=("embed", "compare", "switch")),
        Task(kind="crawl", function="recollect.pipeline.job_tasks:crawl", stages=("pages",)),
        Task(kind="refresh_source", function="recollect.pipeline.job_tasks:refresh_source", stages=("documents",)),
        Task(kind="watch", function="recollect.pipeline.job_tasks:watch_folders", stages=("passes",)),
    )
}


def register(task: Task) -> None:
    """Add a kind of job, or replace one, for this process."""
    _TASKS[task.kind] = task


def task_kinds() -> frozenset[str]:
    """Every kind of job that this process knows."""
    return frozenset(_TASKS)


def task_of(kind: str) -> Task:
    """The task of a kind of job.

    Raises:
        UsageError: There is none.
    """
    if kind not in _TASKS:
        known = ", ".join(sorted(_TASKS))
        raise UsageError(f"There is no kind of job {kind!r}; this recollect knows {known}.")
    return _TASKS[kind]


def given_up_of(kind: str) -> GivenUpFunction | None:
    """What takes back what a run of a kind of job left, imported if need be; None: nothing does."""
    given_up = _TASKS[kind].given_up if kind in _TASKS else None
    return None if given_up is None else imported(given_up)


def imported(function: str | _Function) -> _Function:
    """A function, imported where it is named as ``module:name``: what jobs do stands above this package."""
    if not isinstance(function, str):
        return function
    module, attribute = function.split(":")
    found: _Function = getattr(import_module(module), attribute)
    return found
