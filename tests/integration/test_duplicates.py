"""Documents that say the same: listed under each, shown once in searches, and gone one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import Document, Principal, RAGPipeline, RetrievalOptions
from recollect.errors import NotFoundError
from recollect.model.page import cursor_at

POLICY = "Employees have thirty days of annual leave. " + " ".join(
    f"Rule {number} says what a manager of team {number} signs before day {number * 3}." for number in range(40)
)
EDITED = POLICY.replace("Rule 7 says", "Rule seven states")


def named(found) -> list[str]:
    return [one.source for one in found]


@pytest.fixture
def several(pipeline: RAGPipeline, tmp_path: Path) -> RAGPipeline:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "leave.txt").write_text(POLICY)
    pipeline.ingest(folder)
    pipeline.ingest([Document(content=POLICY, source="upload"), Document(content=EDITED, source="edited")])
    pipeline.ingest(Document(content="Something else entirely about parking lots and bicycles.", source="other"))
    pipeline.view(collections="archive").ingest(Document(content=POLICY, source="old"))
    return pipeline


def test_copies_are_named_wherever_they_came_from(several: RAGPipeline):
    found = several.documents.duplicates("upload")
    assert named(found.same) == ["leave.txt", "old"]
    assert [one.collection for one in found.same] == ["default", "archive"]
    assert named(found.near) == ["edited"]
    assert 0.8 <= found.near[0].likeness < 1
    assert named(several.documents.duplicates("edited").near) == ["leave.txt", "upload", "old"]
    other = several.documents.duplicates("other")
    assert (other.same, other.near) == ((), ())
    (group,) = several.documents.list_duplicates()
    assert named(group) == ["leave.txt", "upload", "old"]
    assert not several.documents.list_duplicates(cursor=cursor_at(group[0].document_id))


def test_nobody_learns_of_a_copy_that_they_may_not_read(several: RAGPipeline):
    several.grants.deny("user:ann", documents="upload")
    several.view(collections="archive").grants.set_collection(readers=["user:bob"])
    ann, bob = (several.view(principal=Principal(user_id=name)) for name in ("ann", "bob"))
    assert named(ann.documents.duplicates("leave.txt").same) == []
    assert named(ann.documents.duplicates("leave.txt").near) == ["edited"]
    assert not ann.documents.list_duplicates()
    with pytest.raises(NotFoundError):
        ann.documents.duplicates("upload")
    assert named(bob.documents.duplicates("leave.txt").same) == ["upload", "old"]
    (passage,) = [one for one in ann.search("annual leave days").results if "thirty days" in one.content]
    assert "upload" not in repr(passage)
    several.tenants.create("acme")
    acme = several.view(tenant="acme")
    acme.ingest(Document(content=POLICY, source="theirs"))
    assert acme.documents.duplicates("theirs").same == ()


def test_a_search_shows_it_once_and_names_the_others(several: RAGPipeline):
    reply = several.search("thirty days of annual leave")
    (passage,) = [one for one in reply.results if "thirty days" in one.content]
    assert {passage.source, *named(passage.also_in)} == {"leave.txt", "upload", "edited"}
    everywhere = several.view(collections="*").search("thirty days of annual leave")
    (passage,) = [one for one in everywhere.results if "thirty days" in one.content]
    assert {(one.source, one.collection) for one in passage.also_in} | {(passage.source, passage.collection)} == {
        ("leave.txt", "default"), ("upload", "default"), ("edited", "default"), ("old", "archive"),
    }  # fmt: skip
    apart = several.search("thirty days of annual leave", RetrievalOptions(collapse_duplicates=False))
    assert all(one.also_in == () for one in apart.results)


def test_erasing_one_leaves_the_others(several: RAGPipeline):
    receipt = several.documents.erase(["upload"])
    assert len(receipt.copies) == 2
    assert named(several.documents.duplicates("leave.txt").same) == ["old"]
    reply = several.search("thirty days of annual leave")
    (passage,) = [one for one in reply.results if "thirty days" in one.content]
    assert {passage.source, *named(passage.also_in)} == {"leave.txt", "edited"}


def test_copies_do_not_take_the_places_of_others(pipeline: RAGPipeline):
    pipeline.ingest(
        [
            *(Document(content="Annual leave is thirty days.", source=f"copy-{number}") for number in range(70)),
            *(Document(content=f"Annual leave in office {word} is thirty days, and more.", source=word)
              for word in ("Rome", "Oslo", "Bern", "Bonn")),
        ]
    )  # fmt: skip
    reply = pipeline.search("annual leave thirty days", RetrievalOptions(top_k=5))
    assert {one.source for one in reply.results} >= {"Rome", "Oslo", "Bern", "Bonn"}
    (copy,) = [one for one in reply.results if one.source.startswith("copy-")]
    assert len({one.document_id for one in copy.also_in}) == 69


def test_a_restored_version_is_found_as_what_it_says(several: RAGPipeline):
    several.ingest(Document(content="Now about something else, in few words.", source="upload"))
    assert named(several.documents.duplicates("leave.txt").same) == ["old"]
    several.documents.restore("upload", 1)
    assert named(several.documents.duplicates("leave.txt").same) == ["upload", "old"]
    assert named(several.documents.duplicates("edited").near) == ["leave.txt", "upload", "old"]
