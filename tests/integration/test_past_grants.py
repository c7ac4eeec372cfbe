"""A past version keeps its grants, and neither a withdrawal nor a later grant is undone by asking for the past."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, RecollectError
from recollect.model import Scope

ANN = Principal(user_id="ann", department="hr")
BOB = Principal(user_id="bob", department="it")
EVE = Principal(user_id="eve", roles=("boss",))
PEOPLE = (ANN, BOB, EVE)
EVERYTHING = RetrievalOptions(top_k=100, candidates=200, collapse_duplicates=False, rerank="none", use_cache=False)


@pytest.fixture(params=[False, True], ids=["compared", "indexed"])
def rag(request: pytest.FixtureRequest, dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 1 if request.param else 10_000},
        embedding={"provider": "hashing"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder(16)) as opened:
        opened.collections.ensure()
        opened.grants.set_collection(writers=["user:ann", "user:bob"])
        yield opened


def found(rag: RAGPipeline, principal: Principal | None, as_of: datetime | None = None) -> set[str]:
    return {one.content for one in rag.view(principal=principal, as_of=as_of).retrieve("word", EVERYTHING)}


def versions(rag: RAGPipeline, number: int, principal: Principal | None) -> list[int]:
    try:
        return [one.version for one in rag.view(principal=principal).documents.history(number).versions]
    except NotFoundError:
        return []


def test_the_past_is_read_by_whom_it_was_granted_and_nobody_else(rag: RAGPipeline):
    number = rag.ingest(Document(content="word salaries", source="d", permissions=("user:ann",))).document_id
    first = datetime.now(UTC)
    rag.ingest(Document(content="word redacted", source="d", permissions=("*",)))
    # A later grant does not open what was written before it.
    assert found(rag, BOB) == found(rag, ANN) == {"word redacted"}
    assert found(rag, BOB, first) == set() and found(rag, ANN, first) == {"word salaries"}
    assert (versions(rag, number, BOB), versions(rag, number, ANN)) == ([2], [1, 2])
    with pytest.raises(NotFoundError, match="has no version 1; it has 2"):
        rag.view(principal=BOB).documents.diff(number, from_version=1, to_version=2)
    assert "salaries" in "\n".join(rag.view(principal=ANN).documents.diff(number).lines)
    rag.grants.add("user:bob", documents=number)
    assert found(rag, BOB, first) == set()
    # Nor does asking for the past undo a withdrawal, in whatever way it came about.
    for withdraw, give_back in (
        (
            lambda: rag.grants.deny("user:ann", documents=number),
            lambda: rag.grants.remove("!user:ann", documents=number),
        ),
        (
            lambda: rag.grants.add("user:bob", documents=number, only=True),
            lambda: rag.grants.add("*", documents=number),
        ),
    ):
        withdraw()
        assert found(rag, ANN, first) == found(rag, ANN) == set()
        assert versions(rag, number, ANN) == []
        give_back()
        assert found(rag, ANN, first) == {"word salaries"}
    assert rag.maintenance.check() == [] and rag.maintenance.verify().clean


def test_the_past_of_what_has_the_default(rag: RAGPipeline):
    rag.view(collections="default").grants.add("department:hr", only=True, default=True)
    rag.ingest(Document(content="word of hr", source="d"))
    first = datetime.now(UTC)
    rag.ingest(Document(content="word for all", source="d"))
    rag.view(collections="default").grants.add("*", only=True, default=True)
    assert found(rag, BOB) == {"word for all"}
    assert found(rag, BOB, first) == set() and found(rag, ANN, first) == {"word of hr"}
    rag.documents.delete(["d"])
    assert found(rag, BOB, first) == set() and found(rag, ANN, first) == {"word of hr"}
    assert rag.maintenance.check() == [] and rag.maintenance.verify().clean


def test_a_document_of_which_no_version_may_be_read_does_not_exist(rag: RAGPipeline):
    number = rag.ingest(Document(content="word", source="gone", permissions=("user:ann",))).document_id
    rag.documents.delete([number])
    rag.grants.add("*", documents=number)
    for name, absent in (("gone", "never"), (str(number), str(number + 1))):
        told = []
        for one in (name, absent):
            with pytest.raises(NotFoundError) as error:
                rag.view(principal=BOB).documents.get(one)
            told.append(str(error.value).replace(one, "X"))
        assert told[0] == told[1]
    assert versions(rag, number, BOB) == [] and versions(rag, number, ANN) == [1]


def test_a_version_is_restored_by_who_may_read_it_under_the_grants_of_today(rag: RAGPipeline):
    number = (
        rag.view(principal=ANN).ingest(Document(content="word one", source="d", permissions=("user:ann",))).document_id
    )
    rag.grants.add("user:bob", documents=number, only=True)
    rag.store.writer.close(Scope(), [number])  # a version that Bob alone may read, of Ann's document
    rag.grants.add("user:ann", documents=number, only=True)
    with pytest.raises(NotFoundError):
        rag.view(principal=ANN).documents.restore(number, 1)
    with pytest.raises(NotFoundError):
        rag.view(principal=BOB).documents.restore(number, 1)
    rag.documents.restore(number, 1)
    assert (found(rag, ANN), found(rag, BOB)) == ({"word one"}, set())
    assert rag.maintenance.check() == [] and rag.maintenance.verify().clean


# An oracle: the rule in a few lines of Python, beside the store.

TOKENS = st.lists(st.sampled_from(["*", "user:ann", "user:bob", "role:boss", "department:hr"]), min_size=1, max_size=2)
ACTIONS = ["store", "store", "store", "grant", "deny", "delete", "restore", "default", "place"]


@dataclass(frozen=True)
class Step:
    """What somebody does; numbers choose among what there is by then."""

    who: Principal | None
    action: str
    name: str
    given: tuple[str, ...] | None
    tokens: tuple[str, ...]
    number: int


# Drawn at once, before anything runs: other threads draw random numbers of their own meanwhile.
STEPS = st.builds(
    Step,
    who=st.sampled_from([None, *PEOPLE]),
    action=st.sampled_from(ACTIONS),
    name=st.sampled_from(["a", "b"]),
    given=st.none() | TOKENS.map(lambda some: tuple(sorted(set(some)))),
    tokens=TOKENS.map(tuple),
    number=st.integers(0, 999),
)


class Model:
    """Documents by (name, owner): their grants and denials now, and each version with those that it was closed with."""

    def __init__(self) -> None:
        self.owners: set[str] = set()
        self.writers: set[str] = {"user:ann", "user:bob"}
        self.default: tuple[frozenset[str], frozenset[str]] = (frozenset("*"), frozenset())
        self.documents: list[ModelDocument] = []

    def allows(self, principal: Principal | None, access: tuple[frozenset[str], frozenset[str]]) -> bool:
        if principal is None or self.owners & set(principal.tokens):
            return True
        return bool(access[0] & set(principal.tokens)) and not access[1] & set(principal.tokens)

    def access_of(self, document: ModelDocument) -> tuple[frozenset[str], frozenset[str]]:
        return document.access or self.default

    def may_read(self, principal: Principal | None, document: ModelDocument) -> bool:
        return self.allows(principal, self.access_of(document))

    def may_change(self, principal: Principal | None, document: ModelDocument) -> bool:
        if principal is None or self.owners & set(principal.tokens):
            return True
        writes = bool(self.writers & set(principal.tokens))
        return writes and document.owner == principal.user_id and self.may_read(principal, document)

    def sees(self, principal: Principal | None, document: ModelDocument, version: ModelVersion) -> bool:
        now = self.may_read(principal, document)
        return now and (version.access is None or self.allows(principal, version.access))

    def line(self, principal: Principal | None) -> str:
        if principal is None or self.owners & set(principal.tokens):
            return ""
        return principal.user_id or ""

    def met(self, principal: Principal | None, name: str) -> ModelDocument | None:
        own = [d for d in self.documents if (d.name, d.owner) == (name, self.line(principal))]
        return next((d for d in reversed(own) if self.may_read(principal, d)), None)

    def close(self, document: ModelDocument) -> None:
        if document.current is not None:
            document.current.access = self.access_of(document)
            document.current = None


class ModelVersion:
    def __init__(self, number: int, text: str) -> None:
        self.number, self.text = number, text
        self.access: tuple[frozenset[str], frozenset[str]] | None = None  # None: current


class ModelDocument:
    def __init__(self, name: str, owner: str) -> None:
        self.name, self.owner, self.number = name, owner, 0
        self.access: tuple[frozenset[str], frozenset[str]] | None = None  # None: the default
        self.versions: list[ModelVersion] = []
        self.current: ModelVersion | None = None


@pytest.mark.slow
@given(steps=st.lists(STEPS, min_size=4, max_size=10))
@settings(max_examples=5 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_writes_and_reads_of_now_and_then_against_an_oracle(rag: RAGPipeline, steps: list[Step]):
    rag.collections.delete("default")
    rag.collections.ensure()
    rag.grants.set_collection(writers=["user:ann", "user:bob"])
    model = Model()
    moments: list[tuple[datetime, list[tuple[ModelDocument, ModelVersion]]]] = []
    for text, step in enumerate(steps):
        _take(rag, model, step, f"word {text}")
        known = [(d, d.current) for d in model.documents if d.current is not None]
        moments.append((datetime.now(UTC), known))
        for who in PEOPLE:
            readable = {v.text for d, v in known if model.may_read(who, d)}
            assert found(rag, who) == readable
            assert {one.document_id for one in rag.view(principal=who).documents.list()} == {
                d.number for d, _ in known if model.may_read(who, d)
            }
    for moment, known in moments:
        for who in PEOPLE:
            assert found(rag, who, moment) == {v.text for d, v in known if model.sees(who, d, v)}
    for document in model.documents:
        for who in PEOPLE:
            seen = [v.number for v in document.versions if model.sees(who, document, v)]
            assert versions(rag, document.number, who) == seen
    assert rag.maintenance.check() == []


def _take(rag: RAGPipeline, model: Model, step: Step, text: str) -> None:
    match step.action:
        case "store":
            _store(rag, model, step.who, step.name, text, step.given)
        case "default":
            rag.view(collections="default").grants.add(step.tokens, only=True, default=True)
            model.default = (frozenset(step.tokens), frozenset())
        case "place":
            model.owners = [set(), {"role:boss"}][step.number % 2]
            model.writers = [set(), {"user:ann"}, {"user:ann", "user:bob"}][step.number % 3]
            rag.grants.set_collection(owners=sorted(model.owners), writers=sorted(model.writers))
        case change if model.documents:
            _change(rag, model, step, model.documents[step.number % len(model.documents)], change)


def _store(
    rag: RAGPipeline, model: Model, who: Principal | None, name: str, text: str, given: tuple[str, ...] | None
) -> None:
    tokens = set() if who is None else set(who.tokens)
    owns = who is None or bool(tokens & model.owners)
    if not owns and not tokens & model.writers:
        with pytest.raises(PermissionDeniedError):
            rag.view(principal=who).ingest(Document(content=text, source=name, permissions=given))
        return
    document = model.met(who, name)
    before = model.access_of(document) if document else model.default
    access = document.access if document else None
    if given is not None:
        access = (frozenset(given), before[1])
    if not owns:
        told = access or before
        if tokens & told[1]:
            with pytest.raises(PermissionDeniedError):
                rag.view(principal=who).ingest(Document(content=text, source=name, permissions=given))
            return
        if not tokens & told[0]:
            access = (told[0] | {f"user:{who.user_id}"}, told[1])
    written = rag.view(principal=who).ingest(Document(content=text, source=name, permissions=given))
    fresh = document is None
    if document is None:
        document = ModelDocument(name, model.line(who))
        document.number = written.document_id
        model.documents.append(document)
    assert written.document_id == document.number
    assert written.status == ("added" if fresh or document.current is None else "updated")
    model.close(document)
    document.access = access
    document.current = ModelVersion(len(document.versions) + 1, text)
    document.versions.append(document.current)
    assert written.version == document.current.number


def _change(rag: RAGPipeline, model: Model, step: Step, document: ModelDocument, change: str) -> None:
    who, some, number = step.who, step.tokens, document.number
    version = document.versions[step.number // 7 % len(document.versions)]
    actions = {
        "grant": lambda: rag.view(principal=who).grants.add(some, documents=number, only=True),
        "deny": lambda: rag.view(principal=who).grants.deny(some[0], documents=number),
        "delete": lambda: rag.view(principal=who).documents.delete([number]),
        "restore": lambda: rag.view(principal=who).documents.restore(number, version.number),
    }
    visible = any(model.sees(who, document, one) for one in document.versions)
    allowed = visible and model.may_change(who, document)
    if change == "restore":
        allowed = allowed and model.sees(who, document, version)
    if not allowed:
        with pytest.raises(RecollectError) as refused:
            actions[change]()
        assert refused.type is (
            NotFoundError if not visible or model.may_change(who, document) else PermissionDeniedError
        )
        return
    text, old = version.text, model.access_of(document)
    actions[change]()
    match change:
        case "grant" if (frozenset(some), old[1]) != old:
            document.access = (frozenset(some), old[1])
        case "deny" if some[0] not in old[1]:
            document.access = (old[0], old[1] | {some[0]})
        case "delete":
            model.close(document)
        case "restore" if version is not document.current:
            model.close(document)
            document.current = ModelVersion(len(document.versions) + 1, text)
            document.versions.append(document.current)
