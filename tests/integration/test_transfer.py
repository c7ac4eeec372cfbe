"""Exports and imports: what comes back is the same document, for the same people, whatever ingests it afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect import Document, Principal, RAGPipeline
from recollect.model.access import DocumentPermissions
from recollect.model.original import Original
from recollect.model.principal import Permissions
from recollect.pipeline.view import View

CLERK = Principal(user_id="ann", roles=("clerk",))
EVE = Principal(user_id="eve", roles=("clerk",))
STRANGER = Principal(user_id="sam")

FILES = {"hr/pay.md": "Salaries are paid on the 25th.", "hr/leave.md": "Leave is thirty days.", "all.md": "Welcome."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "handbook"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def moved(pipeline: RAGPipeline, tmp_path: Path) -> Callable[..., View]:
    """Exports a collection, and imports it into a tenant of its own, which is a store as good as another."""
    made: list[str] = []

    def move(
        view: View | None = None, change: Callable[[dict[str, Any]], dict[str, Any]] = dict, collection: str = "default"
    ) -> View:
        view = pipeline.view(collections=collection) if view is None else view
        lines = [json.dumps(change(json.loads(line))) for line in view.collections.export_lines()]
        file = tmp_path / "moved.jsonl"
        file.write_text("\n".join(lines), encoding="utf-8")
        made.append(f"other-{len(made)}")
        pipeline.tenants.create(made[-1])
        there = pipeline.view(tenant=made[-1], collections=collection)
        report = there.collections.import_file(file)
        assert (report.added, report.failed) == (len(lines), 0), report.errors
        return there

    return move


def granted(view: View) -> dict[str, list[Permissions]]:
    documents = view.documents.list()
    told: Sequence[DocumentPermissions] = [view.grants.of_documents(one.document_id)[0] for one in documents]
    found: dict[str, list[Permissions]] = {}
    for one in told:
        found.setdefault(one.source, []).append(one.permissions)
    return found


def found_by(view: View, principal: Principal) -> set[str]:
    return {one.source for one in view.view(principal=principal).documents.list()}


def restrict(view: View) -> None:
    view.grants.add("role:clerk", documents="hr/pay.md", only=True)
    view.grants.deny("user:eve", documents="hr/pay.md")
    view.documents.update("hr/pay.md", tags=["payroll"])


def check_moved(there: View) -> None:
    """The folder's documents are there once, for the same people."""
    assert {name: len(lists) for name, lists in granted(there).items()} == dict.fromkeys(FILES, 1)
    assert granted(there)["hr/pay.md"] == [Permissions(grants=("role:clerk",), denials=("user:eve",))]
    assert found_by(there, CLERK) == set(FILES)
    assert found_by(there, EVE) == found_by(there, STRANGER) == {"hr/leave.md", "all.md"}
    hits = there.view(principal=STRANGER).search("When are salaries paid?").results
    assert "25th" not in " ".join(one.content for one in hits)


def test_a_folder_that_is_ingested_after_its_import_updates_what_was_imported(pipeline, folder, moved):
    pipeline.ingest(folder)
    restrict(pipeline)
    there = moved()
    check_moved(there)
    before = {one.source: one.document_id for one in there.documents.list()}
    assert next(one for one in there.documents.list() if one.source == "hr/pay.md").tags == ("payroll",)
    report = there.ingest(folder)
    assert (report.added, report.updated) == (0, 3)
    check_moved(there)
    assert {one.source: one.document_id for one in there.documents.list()} == before
    assert {one.source_type for one in there.documents.list()} == {"directory"}
    assert there.ingest(folder, sync=True).unchanged == 3


@pytest.mark.parametrize("part", ["hr", "hr/pay.md"])
def test_a_part_of_an_imported_folder_meets_what_was_imported(pipeline, folder, moved, part: str):
    pipeline.ingest(folder)
    restrict(pipeline)
    there = moved()
    there.ingest(folder / part)
    assert len(there.documents.list()) == 3
    assert found_by(there, EVE) & {"pay.md", "hr/pay.md"} == set()
    there.ingest(folder, sync=True)
    check_moved(there)


def test_the_folder_around_an_imported_one_meets_what_was_imported(pipeline, folder, moved):
    pipeline.ingest(folder / "hr")
    pipeline.grants.add("role:clerk", documents="pay.md", only=True)
    pipeline.grants.deny("user:eve", documents="pay.md")
    there = moved()
    assert there.ingest(folder).added == 1
    check_moved(there)


def test_what_is_imported_belongs_to_the_folder_that_is_known_there(pipeline, folder, moved, tmp_path):
    pipeline.ingest(folder / "hr")
    pipeline.grants.add("role:clerk", documents="pay.md", only=True)
    file = tmp_path / "in.jsonl"
    file.write_text("".join(pipeline.collections.export_lines()), encoding="utf-8")
    outer = pipeline.view(collections="outer")
    outer.ingest(folder)
    assert outer.collections.import_file(file).updated == 2
    assert granted(outer)["hr/pay.md"] == [Permissions(grants=("role:clerk",))]
    # And the other way round: of the whole folder, what is below the known part is the part's.
    inner = pipeline.view(collections="inner")
    inner.ingest(folder / "hr")
    file.write_text("".join(outer.collections.export_lines()), encoding="utf-8")
    report = inner.collections.import_file(file)
    assert (report.added, report.updated) == (1, 2)
    assert granted(inner)["pay.md"] == [Permissions(grants=("role:clerk",))]


def test_a_folder_under_a_name_of_its_own_keeps_its_documents(pipeline, folder, moved):
    pipeline.sources.add(str(folder), name="book")
    pipeline.sources.refresh("book")
    restrict(pipeline)
    there = moved()
    there.ingest(folder)
    check_moved(there)
    there.sources.add(str(folder), name="volume")
    there.sources.refresh("volume")
    check_moved(there)
    check_moved(moved(there))


def test_uploads_and_texts_update_what_was_imported(pipeline, moved):
    texts = [Document(content="Salaries are paid on the 25th.", source="pay", permissions=("role:clerk",))]
    pipeline.ingest(texts)
    upload = Original.of_bytes(b"Bonuses are paid in May.", name="bonus.txt", mime_type="text/plain")
    (job,) = pipeline.jobs.upload(upload, permissions=["role:clerk"])
    pipeline.jobs.wait(job.job_id)
    there = moved()
    there.ingest(Document(content="Salaries are paid on the 26th.", source="pay"))
    (job,) = there.jobs.upload(
        Original.of_bytes(b"Bonuses are paid in June.", name="bonus.txt", mime_type="text/plain")
    )
    there.jobs.wait(job.job_id)
    assert granted(there) == {name: [Permissions(grants=("role:clerk",))] for name in ("pay", "bonus.txt")}
    assert found_by(there, STRANGER) == set()


def test_what_several_people_store_under_a_name_stays_apart(pipeline, moved, tmp_path):
    pipeline.collections.create("default")
    pipeline.grants.set_collection(writers=["user:ann", "user:eve"])
    pipeline.ingest(Document(content="Of the house.", source="note"))
    for who in (CLERK, EVE):
        pipeline.view(principal=who).ingest(
            Document(content=f"Of {who.user_id}.", source="note", permissions=(f"user:{who.user_id}",))
        )
    there = moved()
    assert len(there.documents.list()) == 3
    assert sorted(told.grants for told in granted(there)["note"]) == [("*",), ("user:ann",), ("user:eve",)]
    there.grants.set_collection(writers=["user:ann", "user:eve"])
    there.view(principal=CLERK).ingest(Document(content="Of ann, again.", source="note"))
    assert len(there.documents.list()) == 3
    # Who may read their own document no longer stores another beside it.
    (hers,) = [one for one in there.view(principal=CLERK).documents.list() if "ann" in there.documents.get(
        one.document_id).content]  # fmt: skip
    there.grants.deny("user:ann", documents=hers.document_id)
    there.view(principal=CLERK).ingest(Document(content="Of ann, anew.", source="note", permissions=("user:ann",)))
    again = moved(moved(there))
    assert sorted(again.documents.get(one.document_id).content for one in again.documents.list()) == [
        "Of ann, again.", "Of ann, anew.", "Of eve.", "Of the house.",
    ]  # fmt: skip
    assert again.collections.import_file(tmp_path / "moved.jsonl").unchanged == 4
    assert pipeline.maintenance.verify().clean


def test_who_does_not_own_a_collection_is_not_told_who_does_what_in_it(pipeline):
    pipeline.collections.create("default")
    pipeline.grants.set_collection(readers=["role:clerk"], writers=["user:ann"])
    pipeline.view(principal=CLERK).ingest(Document(content="Of ann.", source="note"))
    (line,) = map(json.loads, pipeline.view(principal=EVE).collections.export_lines())
    assert {"owner", "twin", "readers"}.isdisjoint(line)
    (line,) = map(json.loads, pipeline.collections.export_lines())
    assert (line["owner"], line["readers"]) == ("ann", ["role:clerk"])


def test_a_writer_who_imports_meets_the_own_documents_later(pipeline, folder, moved, tmp_path):
    pipeline.ingest(folder)
    restrict(pipeline)
    moved()
    theirs = pipeline.view(collections="theirs")
    theirs.collections.create("theirs")
    theirs.grants.set_collection(writers=["user:ann"])
    ann = theirs.view(principal=CLERK)
    assert ann.collections.import_file(tmp_path / "moved.jsonl").added == 3
    assert ann.ingest(folder / "hr").updated == 2
    assert ann.ingest(folder).added == 0
    assert len(theirs.documents.list()) == 3
    assert "hr/pay.md" not in found_by(theirs, STRANGER)


def test_names_without_personal_data_meet_what_was_imported(pipeline, moved, tmp_path):
    root = tmp_path / "of-jane.doe@example.org"
    root.mkdir()
    (root / "pay.md").write_text("Salaries are paid on the 25th.", encoding="utf-8")
    pipeline.ingest(root, permissions=["role:clerk"])
    moved()
    pipeline.tenants.create("strict")
    pipeline.tenants.set_pii("strict", "redact")
    there = pipeline.view(tenant="strict")
    assert there.collections.import_file(tmp_path / "moved.jsonl").added == 1
    assert there.ingest(root).updated == 1
    (one,) = there.documents.list()
    assert "jane" not in one.origin and found_by(there, STRANGER) == set()


def test_what_nobody_may_read_is_imported_for_nobody(pipeline, moved):
    pipeline.ingest([Document(content=f"Secret {name}.", source=name) for name in ("a", "b")])
    for name in ("a", "b"):
        pipeline.grants.remove("*", documents=name)
    pipeline.grants.deny("user:eve", documents="b")
    there = moved()
    assert granted(there) == {"a": [Permissions(grants=())], "b": [Permissions(grants=(), denials=("user:eve",))]}
    assert found_by(there, STRANGER) == set()


def test_the_default_of_a_collection_goes_with_its_documents(pipeline, moved):
    pipeline.ingest(Document(content="Salaries.", source="pay"))
    pipeline.grants.add("role:clerk", only=True, default=True)
    there = moved()
    assert granted(there) == {"pay": [Permissions(grants=("role:clerk",))]}


def test_a_collection_that_is_closed_stays_closed(pipeline, moved, tmp_path):
    pipeline.ingest(Document(content="Salaries.", source="pay"))
    pipeline.grants.set_collection(readers=["role:clerk"])
    there = moved()
    assert there.grants.of_collection().readers == ("role:clerk",)
    assert "default" not in [one.name for one in there.view(principal=STRANGER).collections.list()]
    # A collection that is open and in use stays what it is, and takes nothing that others would read then.
    open_one = pipeline.view(collections="open")
    open_one.ingest(Document(content="Welcome.", source="hello"))
    report = open_one.collections.import_file(tmp_path / "moved.jsonl")
    assert (report.added, report.failed) == (0, 1)
    assert "role:clerk" in report.errors[0].error
    open_one.grants.set_collection(readers=["role:clerk"])
    assert open_one.collections.import_file(tmp_path / "moved.jsonl").added == 1


def test_a_document_ends_when_it_would_have_ended(pipeline, moved, tmp_path):
    pipeline.ingest(Document(content="Of today.", source="today", ttl="1d"))
    pipeline.ingest(Document(content="For ever.", source="ever"))
    there = moved()
    ends = {name: there.documents.history(name).versions[-1].expires_at for name in ("today", "ever")}
    own = pipeline.documents.history("today").versions[-1].expires_at
    assert ends["ever"] is None
    assert abs((ends["today"] - own).total_seconds()) < 60
    lines = [json.loads(line) for line in (tmp_path / "moved.jsonl").read_text(encoding="utf-8").splitlines()]
    (tmp_path / "late.jsonl").write_text(json.dumps({**lines[0], "expires_at": "2020-01-01T00:00:00Z"}))
    report = pipeline.view(collections="late").collections.import_file(tmp_path / "late.jsonl")
    assert (report.added, report.skip_reasons) == (0, {"expired": 1})


def test_files_of_older_versions_are_imported_as_ever(pipeline, tmp_path):
    """What version 0.1 wrote: without origin, owner and end."""
    line = {
        "source": "hr/pay.md", "content": "Salaries are paid on the 25th.", "title": "Pay", "metadata": {"year": 2024},
        "tags": ["payroll"], "department": "hr", "language": "en", "mime_type": "text/markdown", "event_time": None,
        "event_end": None, "permissions": ["role:clerk", "!user:eve"], "headings": [], "pages": [],
        "chunks": [{"start_offset": 0, "end_offset": 30, "embedding": [1.0] + [0.0] * 255, "section": [], "page": None,
                    "token_count": 7, "parent": None, "metadata": {}}],
    }  # fmt: skip
    line["chunks"][0]["embedding"] = [1.0] + [0.0] * (pipeline.embedder.dimension - 1)
    file = tmp_path / "old.jsonl"
    file.write_text(json.dumps(line), encoding="utf-8")
    assert pipeline.collections.import_file(file).added == 1
    assert granted(pipeline) == {"hr/pay.md": [Permissions(grants=("role:clerk",), denials=("user:eve",))]}
    assert pipeline.documents.get("hr/pay.md").origin == "manual"
    assert pipeline.collections.import_file(file).unchanged == 1


def test_other_permissions_in_a_file_that_is_imported_again_count(pipeline, moved, tmp_path):
    pipeline.ingest(Document(content="Salaries.", source="pay"))
    there = moved()
    pipeline.grants.add("role:clerk", documents="pay", only=True)
    file = tmp_path / "again.jsonl"
    file.write_text("".join(pipeline.collections.export_lines()), encoding="utf-8")
    assert there.collections.import_file(file).updated == 1
    assert granted(there) == {"pay": [Permissions(grants=("role:clerk",))]}
    assert there.collections.import_file(file).unchanged == 1


# Files from somebody who means harm


def lines_into(view: View, file: Path, *lines: dict[str, Any]):
    file.write_text("\n".join(json.dumps({"content": "Planted.", **line}) for line in lines), encoding="utf-8")
    return view.collections.import_file(file)


def test_a_writer_gains_nothing_by_an_origin_or_an_owner(pipeline, folder, tmp_path):
    pipeline.ingest(folder)
    restrict(pipeline)
    pipeline.grants.set_collection(writers=["user:sam"])
    before = {one.document_id: one.version for one in pipeline.documents.list()}
    sam = pipeline.view(principal=STRANGER)
    report = lines_into(
        sam,
        tmp_path / "bad.jsonl",
        {"source": "hr/pay.md", "origin": str(folder), "permissions": ["*"]},
        {"source": "hr/pay.md", "origin": str(folder), "owner": "ann", "permissions": ["*"]},
        {"source": "pay.md", "origin": str(folder / "hr"), "owner": "", "permissions": ["*"]},
        {"source": "x", "origin": str(folder), "readers": ["user:sam"]},
    )
    assert report.failed == 1 and "owners" in report.errors[0].error
    assert {one.document_id: one.version for one in pipeline.documents.list() if one.document_id in before} == before
    assert granted(pipeline)["hr/pay.md"].count(Permissions(grants=("role:clerk",), denials=("user:eve",))) == 1
    assert "25th" not in " ".join(one.content for one in sam.search("When are salaries paid?").results)
    assert pipeline.grants.of_collection().readers == ("*",)
    assert pipeline.view(principal=CLERK).documents.list()
    assert pipeline.ingest(folder, sync=True).unchanged == 3, "what he has put there is not the folder's"


def test_an_imported_origin_is_no_folder_that_is_read(pipeline, folder, tmp_path):
    lines_into(pipeline, tmp_path / "bad.jsonl", {"source": "a", "origin": "/"}, {"source": "b", "origin": str(folder)})
    assert {one.type for one in pipeline.sources.list()} == {"manual"}
    assert pipeline.sources.refresh_all().read == ()
    # Nor does it decide what other folders' files are called, and which department they are of.
    pipeline.ingest(folder)
    assert {one.source: one.department for one in pipeline.documents.list() if one.source in FILES} == {
        "hr/pay.md": "hr", "hr/leave.md": "hr", "all.md": None,
    }  # fmt: skip


def test_an_imported_document_is_none_of_a_file_that_was_uploaded_here(pipeline, tmp_path):
    kept = pipeline.files.add(Original.of_bytes(b"Hers.", name="hers.txt", mime_type="text/plain"))
    lines_into(pipeline, tmp_path / "bad.jsonl", {"source": "x", "origin": f"file-{kept.file_id}"})
    pipeline.documents.erase(["x"])
    assert pipeline.files.get(kept.file_id).name == "hers.txt"


@pytest.mark.parametrize(
    "line",
    [
        {"origin": ""},
        {"origin": "ü" * 1_500},
        {"origin": 7},
        {"owner": "x" * 3_000},
        {"owner": "a\nb"},
        {"twin": -1},
        {"twin": 2**63},
        {"expires_at": "soon"},
        {"readers": ["everybody"]},
        {"readers": []},
        {"permissions": ["!*", "nobody"]},
    ],
)  # fmt: skip
def test_a_line_that_says_what_cannot_be_is_refused_alone(pipeline, tmp_path, line):
    report = lines_into(pipeline, tmp_path / "bad.jsonl", {"source": "bad", **line}, {"source": "good"})
    assert (report.added, report.failed) == (1, 1)


def test_names_that_no_table_can_hold_are_told_otherwise(pipeline, tmp_path):
    lines = [
        {"source": "/../../x", "origin": "/" * 90},
        {"source": "x", "origin": "\0"},
    ]
    assert lines_into(pipeline, tmp_path / "odd.jsonl", *lines).failed == 0
    assert pipeline.maintenance.verify().clean
