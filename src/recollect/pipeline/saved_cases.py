"""Test cases that are kept with a view's collection: saved, listed, run under a configuration, written to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from recollect.errors import PermissionDeniedError, UsageError
from recollect.evaluation.case_files import SPELLINGS, Case, CaseSearch, Suite, complaints, dump_suite
from recollect.evaluation.rag_test import Progress, SuiteResult, run_suite

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Answer, RetrievalOptions, RetrievedContext, Scope
    from recollect.model.saved_case import SavedCase
    from recollect.pipeline.view import View
    from recollect.store.saved_cases import SavedCaseRepository

_LONGEST_NAME = 200

#: Entered for each search and each answer of a run.
Counting = Callable[[Literal["search", "answer"]], AbstractContextManager[object]]


def saved_cases(view: View) -> list[SavedCase]:
    """The test cases of a view's collection, by name: all, or those that its principal saved.

    Raises:
        NotFoundError: There is no such collection.
        UsageError: The view is of several.
    """
    kept, scope, collection_id = _kept(view)
    return kept.list(scope, collection_id)


def save_case(view: View, definition: Mapping[str, Any], *, as_of: datetime | None = None) -> int:
    """Keep a test case with a view's collection; the principal's own of the same name is replaced.

    Args:
        view: Of one collection.
        definition: As a file of cases has it; see `recollect.evaluation.case_files.Case`.
        as_of: As of when it is searched; None: now.

    Returns:
        Its number.

    Raises:
        UsageError: It is no test case.
        NotFoundError: There is no such collection.
        PermissionDeniedError: The principal has no name that the case could be kept under.
        ConflictError: The collection has as many as it may have.
    """
    case = _read(definition)
    if (scope := view.standpoint.scope).principal is not None and scope.principal.user_id is None:
        raise PermissionDeniedError("Test cases are kept for a user, and this credential names none.")
    kept, scope, collection_id = _kept(view)
    written = {SPELLINGS.get(key, key): value for key, value in definition.items()} | {"name": case.name}
    if "answerable" in written:
        written["answerable"] = case.answerable
    return kept.save(scope, collection_id, name=case.name, definition=written, as_of=as_of)


def delete_case(view: View, case_id: int) -> None:
    """Delete a test case of a view's collection.

    Raises:
        NotFoundError: There is no such collection, or no such case for the principal.
    """
    kept, scope, collection_id = _kept(view)
    kept.delete(scope, collection_id, case_id)


def asked_view(view: View, asked: CaseSearch) -> View:
    """Return the view that a case asks: of the tenant and the moment that it names, if any."""
    return view.view(tenant=asked.tenant_id, as_of=asked.as_of)


def found_by(view: View, options: RetrievalOptions, asked: CaseSearch) -> Sequence[RetrievedContext]:
    """Return the passages that a case finds, best first."""
    return asked_view(view, asked).search(asked.query, asked.options(options)).results


def run_cases(
    view: View,
    suite: Suite,
    options: RetrievalOptions,
    *,
    cases: Sequence[Case] | None = None,
    runs: int = 1,
    counting: Counting = lambda _: nullcontext(),
    progress: Progress | None = None,
) -> SuiteResult:
    """Run test cases under one configuration, as whoever the view is of.

    Args:
        view: What is searched. A case that names a tenant or a moment is searched as theirs, or as of that.
        suite: Of a file, or from `suite_of`.
        options: How to search; a case's filters and number of passages stand before them.
        cases: Some of the suite's; None: all.
        runs: How often each case is searched.
        counting: Entered for each search and answer, to count them against limits.
        progress: Told about each finished case.
    """

    def search(asked: CaseSearch) -> Sequence[RetrievedContext]:
        with counting("search"):
            return found_by(view, options, asked)

    def ask(asked: CaseSearch) -> Answer:
        with counting("answer"):
            return asked_view(view, asked).ask(asked.query, replace(asked.options(options), top_k=None))

    return run_suite(suite, search=search, ask=ask, cases=cases, runs=runs, progress=progress)


def cases_as_yaml(cases: Sequence[SavedCase], *, comment: str = "") -> str:
    """Test cases as a file that `recollect.evaluation.case_files.load_suite` reads.

    Args:
        cases: From `saved_cases`, at least one.
        comment: Stands at the top.
    """
    content = _in_file(cases)
    return dump_suite(content["cases"], comment=comment, personas=content["personas"])


def _kept(view: View) -> tuple[SavedCaseRepository, Scope, int]:
    at = view.standpoint
    scope = replace(at.scope, as_of=None)
    return at.store.saved_cases, scope, at.place(scope).collection_id


def _read(definition: Mapping[str, Any]) -> Case:
    try:
        case = Case.model_validate(definition)
    except ValidationError as exc:
        raise UsageError(f"This is no test case: {complaints(exc.errors(include_url=False))}.") from exc
    if len(case.name) > _LONGEST_NAME:
        raise UsageError(f"The name of a test case has {_LONGEST_NAME} characters at most.")
    return case


def suite_of(cases: Sequence[SavedCase]) -> Suite:
    """Test cases, at least one, as they are run."""
    return Suite.model_validate(_in_file(cases))


def _in_file(cases: Sequence[SavedCase]) -> dict[str, Any]:
    """The cases as a file has them; of two of one name, by different people, the second is numbered."""
    personas: dict[str, dict[str, str]] = {}
    written: dict[str, dict[str, Any]] = {}
    for case in cases:
        name = case.definition["name"]
        if name in written:
            name = f"{name} ({case.case_id})"
        written[name] = {**case.definition, "name": name}
        if case.as_of is not None:
            moment = case.as_of.isoformat()
            written[name]["as"] = f"as of {moment}"
            personas[f"as of {moment}"] = {"as_of": moment}
    return {"personas": dict(sorted(personas.items())), "cases": list(written.values())}
