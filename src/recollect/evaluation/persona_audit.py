"""Test cases run as every persona: what each finds of what they may read, and that nobody finds anything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, Field, model_validator

from recollect.evaluation.case_files import (
    Case,
    CaseSearch,
    Evidence,
    Line,
    Lines,
    Strict,
    Suite,
    parsed,
    read_text,
    refusing,
)
from recollect.evaluation.rag_test import Progress, meets, tracked
from recollect.model import RetrievedContext
from recollect.model.principal import Permissions, Principal, read_permissions

#: A document that somebody was shown something of: its source and id.
Shown = tuple[str, int]


class Engine(Protocol):
    """The system under test: it searches and answers as a persona."""

    def search(self, asked: CaseSearch, principal: Principal | None) -> Sequence[RetrievedContext]:
        """Passages, best first; without a principal, as the owner of the store."""
        ...

    def evidence(self, asked: CaseSearch, principal: Principal) -> Sequence[Shown]:
        """Return the documents that an answer cites, or shows passages of, and the nearest one that it names."""
        ...

    def rights(self, tenant_id: int | None) -> CollectionRights:
        """Return the permissions of what is searched."""
        ...


@dataclass(frozen=True, slots=True)
class Leak:
    """A document that a persona was shown something of and may not read.

    Attributes:
        persona: By name.
        case: By name.
        place: Whether a search returned it or an answer showed it.
        source: The document's.
        document_id: The document's.
        department: The document's.
    """

    persona: str
    case: str
    place: Literal["search", "answer"]
    source: str
    document_id: int
    department: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaCase:
    """The result of a case for one persona.

    Attributes:
        case: It.
        readable: Must-haves that are in documents which they may read.
        missing: Those that were not found.
        found: The passages, best first.
        withheld: How many of the passages that the owner of the store finds they may not read.
        leaks: What they were shown and may not read.
    """

    case: Case
    readable: tuple[Evidence, ...]
    missing: tuple[Evidence, ...]
    found: tuple[RetrievedContext, ...]
    withheld: int
    leaks: tuple[Leak, ...]

    @property
    def recall(self) -> float | None:
        """The share that was found of what they may read; None where that is nothing."""
        return (len(self.readable) - len(self.missing)) / len(self.readable) if self.readable else None

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        return {
            "name": self.case.name,
            "within_rights": len(self.readable),
            "outside_rights": len(self.case.must_have) - len(self.readable),
            "recall": self.recall,
            "missing": [str(evidence) for evidence in self.missing],
            "found": [passage.source for passage in self.found],
            "departments": [passage.department for passage in self.found],
            "withheld": self.withheld,
            "leaks": len(self.leaks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaResult:
    """The results of all cases for one persona.

    Attributes:
        name: Of the persona.
        principal: Who that is.
        documents: How many documents there are.
        readable_documents: How many of them they may read.
        cases: Each case.
    """

    name: str
    principal: Principal
    documents: int
    readable_documents: int
    cases: tuple[PersonaCase, ...]

    @property
    def recall(self) -> float | None:
        """The mean over the cases that ask for something that they may read; None where none does."""
        recalls = [case.recall for case in self.cases if case.recall is not None]
        return fmean(recalls) if recalls else None

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """The leaks of all cases."""
        return tuple(leak for case in self.cases for leak in case.leaks)

    @property
    def withheld(self) -> int:
        """The number of passages in all cases that the owner of the store finds and this persona cannot read."""
        return sum(case.withheld for case in self.cases)

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        return {
            "name": self.name,
            "user_id": self.principal.user_id,
            "roles": list(self.principal.roles),
            "department": self.principal.department,
            "groups": list(self.principal.groups),
            "documents": self.documents,
            "readable_documents": self.readable_documents,
            "cases": len(self.cases),
            "cases_within_rights": sum(case.recall is not None for case in self.cases),
            "recall": self.recall,
            "withheld": self.withheld,
            "leaks": len(self.leaks),
            "results": [case.as_json() for case in self.cases],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AsEachResult:
    """The results of all cases for all personas.

    Attributes:
        personas: In the order given.
    """

    personas: tuple[PersonaResult, ...]

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """The leaks of all personas."""
        return tuple(leak for persona in self.personas for leak in persona.leaks)

    @property
    def passed(self) -> bool:
        """Whether there was no leak."""
        return not self.leaks

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        return {
            "passed": self.passed,
            "leaks": len(self.leaks),
            "leaked": [asdict(leak) for leak in self.leaks],
            "personas": [persona.as_json() for persona in self.personas],
        }


def run_persona_audit(
    suite: Suite,
    personas: Mapping[str, Principal],
    engine: Engine,
    *,
    cases: Sequence[Case] | None = None,
    progress: Progress | None = None,
) -> AsEachResult:
    """Run test cases as every persona.

    Every case is searched; those that say whether they are answerable are asked, too. A must-have counts for a persona
    if a document that has it is one that they may read: of one of its sources, or, where it names none, with its words.
    What they may read is computed from the grants, in Python, and whatever a search or an answer shows them beyond that
    is a leak.

    Args:
        suite: The file's defaults and personas (those narrow what is searched; they have no rights of their own).
        personas: Who asks, by name.
        engine: What is tested.
        cases: Some of the suite's; None: all.
        progress: Told about each finished case of each persona.

    Raises:
        UsageError: A case contradicts its persona in the suite.
    """
    chosen = suite.cases if cases is None else cases
    asked = {case.name: suite.search(case) for case in chosen}
    rights = cache(engine.rights)
    owners = {name: engine.search(search, None) for name, search in asked.items()}
    outcomes: dict[str, list[PersonaCase]] = {name: [] for name in personas}
    for name, case in tracked([(name, case) for name in personas for case in chosen], progress):
        search = asked[case.name]
        judge = _Judge(name, personas[name], rights(search.tenant_id))
        outcomes[name].append(judge.run(engine, case, search, owners[case.name]))
    known = rights(asked[chosen[0].name].tenant_id)
    return AsEachResult(
        personas=tuple(
            PersonaResult(
                name=name,
                principal=principal,
                documents=len(known.documents),
                readable_documents=sum(may_read(principal, document, known) for document in known.documents),
                cases=tuple(outcomes[name]),
            )
            for name, principal in personas.items()
        )
    )


@dataclass(frozen=True, slots=True)
class _Judge:
    """Holds what one persona is shown against what they may read."""

    persona: str
    principal: Principal
    rights: CollectionRights

    def run(self, engine: Engine, case: Case, asked: CaseSearch, owners: Sequence[RetrievedContext]) -> PersonaCase:
        found = tuple(engine.search(asked, self.principal))
        answered = () if case.answerable is None else engine.evidence(asked, self.principal)
        shown = [
            (source, document_id)
            for hit in found
            for source, document_id in (
                (hit.source, hit.document_id),
                # Others are named beside it: a newer one, for instance.
                *((note.source or "", note.document_id) for note in hit.notes if note.document_id is not None),
            )
        ]
        readable = tuple(wanted for wanted in case.must_have if self._may_read_any(wanted))
        return PersonaCase(
            case=case,
            readable=readable,
            missing=tuple(wanted for wanted in readable if not any(meets(passage, wanted) for passage in found)),
            found=found,
            withheld=sum(not self._may_read(passage.document_id) for passage in owners),
            leaks=(*self._leaks(case, "search", shown), *self._leaks(case, "answer", answered)),
        )

    def _leaks(self, case: Case, place: Literal["search", "answer"], shown: Sequence[Shown]) -> list[Leak]:
        leaked = []
        # Several passages of one document are one leak.
        for source, document_id in dict.fromkeys(shown):
            if not self._may_read(document_id):
                document = self.rights.find(document_id)
                department = None if document is None else document.department
                leaked.append(Leak(self.persona, case.name, place, source, document_id, department))
        return leaked

    def _may_read(self, document_id: int) -> bool:
        return may_read(self.principal, self.rights.find(document_id), self.rights)

    def _may_read_any(self, wanted: Evidence) -> bool:
        return any(
            may_read(self.principal, document, self.rights) and self._has(document, wanted)
            for document in self.rights.documents
        )

    def _has(self, document: DocumentRights, wanted: Evidence) -> bool:
        if wanted.source:
            return document.source in wanted.source
        return wanted.words_in(self.rights.text(document.document_id))


# Who may read what, by the rules as they are written down: what searches return is held against this. Pure: no I/O.
#
# It
# shares nothing with the statements that enforce permissions: their mistakes are not repeated here.


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRights:
    """A document and its permissions.

    Attributes:
        document_id: It.
        source: Where it comes from.
        department: Of its newest version.
        permissions: Its own, or the default of its collection.
    """

    document_id: int
    source: str
    permissions: Permissions
    department: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionRights:
    """Everything that decides who may read a collection's documents.

    Attributes:
        owners: Tokens of those who read everything in it.
        readers: Tokens of those for whom it exists.
        documents: Those that are known now.
        find: Another document by its id, say one that is known of the past only; None where it does not exist.
        text: A document's content by its id.
        role_departments: By role the departments that it reads as; ``*``: every one.
    """

    owners: tuple[str, ...]
    readers: tuple[str, ...]
    documents: tuple[DocumentRights, ...]
    find: Callable[[int], DocumentRights | None]
    text: Callable[[int], str]
    role_departments: Mapping[str, Sequence[str]] = field(default_factory=dict)


def may_read(principal: Principal, document: DocumentRights | None, rights: CollectionRights) -> bool:
    """Whether somebody may read a document: owners always, others where a grant and no denial includes them."""
    own = {"*"}
    if principal.user_id is not None:
        own.add(f"user:{principal.user_id}")
    if principal.department is not None:
        own.add(f"department:{principal.department}")
    own.update(f"role:{role}" for role in principal.roles)
    own.update(f"group:{group}" for group in principal.groups)
    if not own.isdisjoint(rights.owners):
        return True
    departments = {name for role in principal.roles for name in rights.role_departments.get(role, ())}

    def named(tokens: Sequence[str]) -> bool:
        if not own.isdisjoint(tokens):
            return True
        granted = [token.removeprefix("department:") for token in tokens if token.startswith("department:")]
        return bool(granted) and ("*" in departments or not departments.isdisjoint(granted))

    if document is None or not named(rights.readers):
        return False
    return named(document.permissions.grants) and own.isdisjoint(document.permissions.denials)


# Files of personas: who test cases are run as, and what a folder of test documents is granted.


@refusing
def _granted(given: tuple[str, ...]) -> tuple[str, ...]:
    read_permissions(given, name="grants")
    return given


class Asker(Strict):
    """A persona: somebody who asks.

    Attributes:
        user_id: ``user`` in the file; None: nobody in particular.
        roles: One, or a list.
        department: Where they belong.
        groups: One, or a list.
    """

    user_id: Line | None = Field(None, alias="user")
    roles: Lines = ()
    department: Line | None = None
    groups: Lines = ()

    @model_validator(mode="after")
    def _is_somebody(self) -> Asker:
        refusing(Asker.principal)(self)
        return self

    def principal(self) -> Principal:
        """The persona as searches know them."""
        return Principal(user_id=self.user_id, roles=self.roles, department=self.department, groups=self.groups)


class PersonaFile(Strict):
    """A file of personas.

    Attributes:
        personas: By name.
        grants: Permissions by source, or by a pattern of sources with ``*`` and ``?``, for documents that are ingested
            for the test; of several that fit, the last one counts.
    """

    personas: Mapping[Line, Asker] = Field(..., min_length=1)
    grants: Mapping[Line, Annotated[Lines, AfterValidator(_granted)]] = Field(default_factory=dict)

    def principals(self) -> dict[str, Principal]:
        """Return the principals by name."""
        return {name: asker.principal() for name, asker in self.personas.items()}

    def permissions(self) -> dict[str, Permissions]:
        """Return the permissions of documents, by source or pattern."""
        return {source: read_permissions(given) for source, given in self.grants.items()}


def load_personas(path: Path | str) -> PersonaFile:
    """Read a file of personas.

    Args:
        path: YAML in UTF-8. Unknown and repeated keys, anchors and aliases are refused.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: It is not such a file; the message names the line.
    """
    return parsed(read_text(path, of="personas"), PersonaFile, name=str(path), wanted="personas")
