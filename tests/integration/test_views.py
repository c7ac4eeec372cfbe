"""Views: whose, who, when and where, said once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import recollect.pipeline
from recollect import Document, Principal, RAGConfig, RAGPipeline, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model.tenant import TenantQuota
from recollect.pipeline.standpoint import Group

ANN = Principal(user_id="ann")


def sources(view: View, query: str = "annual leave and salaries") -> set[str]:
    return {one.source for one in view.retrieve(query)}


@pytest.fixture
def enforced(dsn: str, tmp_path: Path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        access={"mode": "enforce"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        yield rag


def test_a_view_refines_another_and_stays_what_it_is(pipeline: RAGPipeline):
    acme = pipeline.tenants.create("acme").tenant_id
    pipeline.ingest(Document(content="Annual leave is 30 days.", source="leave.md"))
    pipeline.view(tenant="acme", collections="hr").ingest(Document(content="Salaries rise in April.", source="pay.md"))
    hr = pipeline.view(tenant=acme, collections=["hr"])
    ann = hr.view(principal=ANN, as_of="1d")
    assert (sources(hr), sources(pipeline), sources(ann)) == ({"pay.md"}, {"leave.md"}, set())
    assert sources(ann.view(as_of=None)) == {"pay.md"} == sources(hr)
    assert sources(hr.view(tenant=None, collections=None)) == {"leave.md"}
    assert repr(hr) == f"View(tenant={acme}, collections=('hr',))"
    with pytest.raises(AttributeError):
        hr.standpoint.tenant = 1


def test_a_view_is_made_without_a_look_at_the_database(tmp_path: Path):
    config = RAGConfig.load(storage={"dsn": "host=nowhere.invalid"}, embedding={"provider": "hashing"})
    with RAGPipeline(config) as rag:
        kim = rag.view(
            tenant="acme", principal=ANN, collections=["hr", "it"], as_of="2025-03-01", session="s", user="u"
        )
        groups = [kim.documents, kim.collections, kim.sessions, kim.memory, kim.facts, kim.feedback, kim.grants]
        assert all(isinstance(one, Group) for one in (*groups, kim.tenants, kim.audit, kim.maintenance))
        for wrong in ({"as_of": "soon"}, {"collections": []}, {"principal": "ann"}, {"tenant": 1.5}):
            with pytest.raises(UsageError, match=next(iter(wrong)).rstrip("s")):
                rag.view(**wrong)


def test_several_collections_and_all_are_searched_as_one(pipeline: RAGPipeline):
    for name, text in (("hr", "Annual leave is 30 days."), ("it", "Salaries of the help desk."), ("x", "Annual fair.")):
        pipeline.view(collections=name).ingest(Document(content=text, source=f"{name}.md"))
    both = pipeline.view(collections=["hr", "it", "hr"]).search("annual leave and salaries")
    assert both.collection == "hr, it"
    assert {(one.source, one.collection) for one in both.results} == {("hr.md", "hr"), ("it.md", "it")}
    assert sources(pipeline.view(collections="*"), "annual leave and salaries fair") == {"hr.md", "it.md", "x.md"}
    # The default collection is empty rather than missing, also beside others.
    assert sources(pipeline.view(collections=["default", "hr"])) == {"hr.md"}
    with pytest.raises(NotFoundError):
        pipeline.view(collections=["hr", "nowhere"]).search("leave")
    for one in ("*", ["hr", "it"]):
        with pytest.raises(UsageError, match="one collection"):
            pipeline.view(collections=one).ingest("Where would this go?")


def test_a_view_of_the_past_changes_nothing(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="Annual leave is 30 days.", source="leave.md"))
    past = pipeline.view(as_of="1d", session="chat")
    for change in (
        lambda: past.ingest("Annual leave is 31 days."),
        lambda: past.remember("I was there."),
        lambda: past.documents.delete(["leave.md"]),
        lambda: past.documents.list(),
        lambda: past.grants.add("user:ann", documents="leave.md"),
        past.facts.consolidate,
        past.maintenance.cleanup,
        past.audit.list,
    ):
        with pytest.raises(UsageError, match=r"of the past .* take view\(as_of=None\)"):
            change()


def test_what_is_for_the_owner_of_the_store_is_refused_to_anybody_in_particular(enforced: RAGPipeline):
    enforced.ingest(Document(content="Annual leave is 30 days.", source="leave.md"))
    ann = enforced.view(principal=ANN)
    for refused in (
        lambda: ann.collections.create("hers"),
        lambda: ann.collections.delete("default"),
        lambda: ann.collections.ensure(),
        lambda: ann.collections.share("default", 1),
        lambda: ann.tenants.create("hers"),
        lambda: ann.tenants.erase(1),
        lambda: ann.tenants.set_quota(1, TenantQuota(max_documents=0)),
        lambda: ann.tenants.export(1, "out"),
        ann.tenants.list,
        ann.audit.list,
        ann.audit.export,
        ann.maintenance.verify,
        ann.maintenance.scrub,
        ann.maintenance.cleanup,
        lambda: ann.memory.patterns,
    ):
        with pytest.raises(PermissionDeniedError, match="owner of the store"):
            refused()
    assert (sources(ann), ann.maintenance.status().total_documents) == ({"leave.md"}, 1)


def test_a_sessions_documents_and_its_conversation_have_one_id(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="Annual leave is 30 days.", source="leave.md"))
    pipeline.sessions.create("s")
    s = pipeline.view(session="s")
    s.ingest(Document(content="My annual leave begins on Friday.", source="note.md"))
    s.remember("Salaries rise in April.")
    assert s.recall("When do salaries rise?")[0].episode.session == "s"
    assert ([one.source for one in s.documents.list()], sources(s)) == (["note.md"], {"note.md"})
    assert sources(s.view(collections="default")) == {"note.md", "leave.md"}
    pipeline.view(session="other").remember("Salaries rise in May.")
    for assembler, found in ((s, {"memory:s"}), (pipeline, {"memory:s", "memory:other"})):
        assert set(assembler.memory.assembler().assemble("When do salaries rise?", "episodic").sources) == found
    # A conversation without documents of its own is none the less searched beside: collections alone answer.
    talk = pipeline.view(session="talk", collections="default")
    talk.remember("Hello.")
    assert sources(talk) == {"leave.md"}
    for missing in (talk.view(collections=None), talk.view(session="nowhere")):
        with pytest.raises(NotFoundError):
            missing.search("leave")


def test_documents_and_files_are_ingested_by_what_they_are(pipeline: RAGPipeline, tmp_path: Path):
    (tmp_path / "a.md").write_text("Annual leave is 30 days.", encoding="utf-8")
    (tmp_path / "b.md").write_text("Salaries rise in April.", encoding="utf-8")
    assert pipeline.ingest("A text.").status == "added"
    assert [one.status for one in pipeline.ingest(["Another.", Document(content="A third.", source="c")])] == [
        "added"
    ] * 2
    assert [one.status for one in pipeline.ingest(f"Text {number}." for number in range(3))] == ["added"] * 3
    assert pipeline.ingest(()) == []
    assert pipeline.ingest(tmp_path / "a.md").added == 1
    assert pipeline.ingest([tmp_path / "a.md", tmp_path / "b.md"], tags=("x",)).added == 1
    for mixed in ([tmp_path / "a.md", "text"], ["text", tmp_path / "a.md"]):
        with pytest.raises(UsageError, match="paths alone"):
            pipeline.ingest(mixed)
    for options in ({"sync": True}, {"tags": ("x",)}, {"permissions": ()}, {"follow_links": False}):
        with pytest.raises(UsageError, match="for files"):
            pipeline.ingest("A text.", **options)


def test_documents_are_named_in_the_collections_of_the_view(pipeline: RAGPipeline):
    for name in ("hr", "it"):
        pipeline.view(collections=name).ingest(Document(content=f"Rules of {name}.", source="rules.md"))
    with pytest.raises(UsageError, match="Several documents"):
        pipeline.view(collections="*").documents.get("rules.md")
    assert pipeline.view(collections="it").documents.get("rules.md").content == "Rules of it."
    for view in (pipeline, pipeline.view(collections="default")):
        with pytest.raises(NotFoundError, match="is in collections 'hr' and 'it', not in 'default'"):
            view.documents.get("rules.md")


def test_what_is_kept_for_each_tenant_is_bounded(pipeline: RAGPipeline, monkeypatch: pytest.MonkeyPatch):
    assembly = pipeline.standpoint.assembly
    for tenant in range(1, 400):
        assembly.memory(tenant)
    assert len(assembly._memories) == 256
    assert assembly.memory(399) is assembly.memory(399)


def test_no_method_takes_again_what_a_view_holds():
    own = {"tenant", "tenant_id", "principal", "collection", "collections", "as_of", "session_id", "user"}
    for module in pkgutil.iter_modules(recollect.pipeline.__path__, "recollect.pipeline."):
        importlib.import_module(module.name)
    groups = [View, *Group.__subclasses__()]
    assert len(groups) == 18
    subjects = {
        "Tenants": {"tenant", "collection"},
        "Sessions": {"session_id"},
        "Keys": {"principal", "collection"},
        "Logins": {"user"},
        "Grants": {"principal"},
    }
    for group in groups:
        for name, method in inspect.getmembers(group, inspect.isfunction):
            subject = subjects.get(group.__name__, set())
            if not name.startswith("_") and name != "view":
                assert not (own - subject) & set(inspect.signature(method).parameters), f"{group.__name__}.{name}"
