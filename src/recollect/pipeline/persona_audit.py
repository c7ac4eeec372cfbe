"""Test cases run as every persona, on a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.persona_audit import AsEachResult, CollectionRights, DocumentRights, Shown, run_persona_audit
from recollect.model import Principal, RetrievalOptions, RetrievedContext
from recollect.store.access import PermissionChange

if TYPE_CHECKING:
    from recollect.evaluation.case_files import Case, CaseSearch, Suite
    from recollect.evaluation.rag_test import Progress
    from recollect.model.access import DocumentPermissions
    from recollect.model.principal import Permissions
    from recollect.pipeline.view import View

_PAGE_DOCUMENTS = 1_000


def evaluate_personas(
    view: View,
    suite: Suite,
    personas: Mapping[str, Principal],
    *,
    options: RetrievalOptions | None = None,
    cases: Sequence[Case] | None = None,
    progress: Progress | None = None,
) -> AsEachResult:
    """Run test cases as every persona, and hold what each is shown against the grants; see `run_persona_audit`.

    Args:
        view: What is tested: its collection, as its owner sees it.
        suite: Test cases, for instance of `recollect.evaluation.case_files.load_suite`.
        personas: Who asks, by name, for instance of `recollect.evaluation.persona_audit.load_personas`.
        options: How to search; None: the configured defaults.
        cases: Some of the suite's; None: all.
        progress: Told about each finished case of each persona.

    Raises:
        UsageError: There is no persona, or a case contradicts its persona in the suite.
        NotFoundError: There is no such collection.
    """
    if not personas:
        raise UsageError("There is no persona to run the cases as.")
    return run_persona_audit(suite, personas, _Engine(view, options), cases=cases, progress=progress)


def give_permissions(view: View, permissions: Mapping[str, Permissions]) -> int:
    """Give documents the permissions of the last pattern that fits their source, in place of what they have.

    Args:
        view: Of the collection that they are in.
        permissions: By source, or by a pattern of sources with ``*`` and ``?``.

    Returns:
        How many documents were given permissions.

    Raises:
        UsageError: A pattern fits no document, which is then likely misspelt.
    """
    chosen: dict[str, list[int]] = {pattern: [] for pattern in permissions}
    fitting: set[str] = set()
    for document in _documents(view):
        fits = [pattern for pattern in permissions if fnmatchcase(document.source, pattern)]
        fitting.update(fits)
        if fits:
            chosen[fits[-1]].append(document.document_id)
    unused = [pattern for pattern in permissions if pattern not in fitting]
    if unused:
        raise UsageError(
            f"The grants for {unused[0]!r} fit no document: sources read for instance hr/leave.md or hr/*."
        )
    for pattern, document_ids in chosen.items():
        given = permissions[pattern]
        # Denials alone leave the grants what they are.
        change = PermissionChange(add=given, only=bool(given.grants))
        view.store.access.change(view.scope, document_ids, change)
    return sum(map(len, chosen.values()))


class _Engine:
    """A pipeline as somebody sees it, and the grants as its owner does."""

    def __init__(self, view: View, options: RetrievalOptions | None) -> None:
        self._view = view
        self._options = options or RetrievalOptions()

    def search(self, asked: CaseSearch, principal: Principal | None) -> Sequence[RetrievedContext]:
        try:
            return self._as(asked, principal).search(asked.query, asked.options(self._options)).results
        except NotFoundError:
            if principal is None:
                raise
            return ()  # the collection does not exist for them

    def evidence(self, asked: CaseSearch, principal: Principal) -> Sequence[Shown]:
        options = replace(asked.options(self._options), top_k=None)
        try:
            answer = self._as(asked, principal).ask(asked.query, options)
        except NotFoundError:
            return ()
        nearest = () if answer.nearest is None else (answer.nearest.evidence,)
        return [(one.source, one.document_id) for one in (*answer.citations, *answer.passages, *nearest)]

    def rights(self, tenant_id: int | None) -> CollectionRights:
        view = self._view.view(tenant=tenant_id)
        access, scope = view.grants.of_collection(), view.scope

        @cache
        def find(document_id: int) -> DocumentRights | None:
            told = view.store.access.of_documents(scope, [document_id])
            return _rights(told[0]) if told else None

        @cache
        def text(document_id: int) -> str:
            return view.documents.get(document_id).content or ""

        return CollectionRights(
            owners=access.owners,
            readers=access.readers,
            documents=tuple(_documents(view)),
            find=find,
            text=text,
            role_departments=view.config.access.role_departments,
        )

    def _as(self, asked: CaseSearch, principal: Principal | None) -> View:
        return self._view.view(tenant=asked.tenant_id, as_of=asked.as_of, principal=principal)


def _documents(view: View) -> Iterator[DocumentRights]:
    cursor: str | None = None
    while page := view.documents.list(cursor=cursor, limit=_PAGE_DOCUMENTS):
        yield from map(_rights, view.store.access.of_documents(view.scope, [one.document_id for one in page]))
        cursor = page.next_cursor
        if cursor is None:
            break


def _rights(told: DocumentPermissions) -> DocumentRights:
    return DocumentRights(
        document_id=told.document_id, source=told.source, department=told.department, permissions=told.permissions
    )
