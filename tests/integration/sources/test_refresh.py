"""What holds for every connector: the store becomes what the source holds, whatever happens on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recollect import Principal, RAGPipeline
from recollect.errors import ConflictError, NotFoundError, PermissionDeniedError, SourceError, UsageError
from recollect.ingest import source
from recollect.sources import git, s3

from .conftest import Bucket, Repository

HR, STAFF = Principal(user_id="ann", roles=("hr",)), Principal(user_id="bob", roles=("staff",))


@dataclass
class Place:
    """A source outside, whichever it is."""

    location: str
    settings: dict[str, Any]
    write: Callable[[dict[str, str | None]], None]


@pytest.fixture(params=["s3", "git"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "git":
        repository: Repository = request.getfixturevalue("repository")
        monkeypatch.setattr(git, "_CHECKPOINT_EVERY", 4)
        return Place(repository.url, {}, lambda files: repository.commit(dict(files)))
    bucket: Bucket = request.getfixturevalue("bucket")
    monkeypatch.setattr(s3, "_PAGE", 4)

    def write(files: dict[str, str | None]) -> None:
        for name, text in files.items():
            bucket.delete(name) if text is None else bucket.put(name, text)

    return Place(bucket.location, {"endpoint_url": bucket.endpoint_url}, write)


def stored(pipeline: RAGPipeline) -> dict[str, int]:
    """The version of each current document."""
    return {one.source: one.version for one in pipeline.documents.list(limit=1_000)}


def finds(pipeline: RAGPipeline, who: Principal | None, words: str) -> set[str]:
    return {one.source for one in pipeline.view(principal=who).retrieve(words)}


def files(count: int) -> dict[str, str | None]:
    return {f"page-{number:03}.md": f"# Page {number}\n\nIt says {number}.\n" for number in range(count)}


class BrokenOff(BaseException):
    """As if the process had been killed."""


def count_fetches(monkeypatch: pytest.MonkeyPatch, *, dies_at: int | None = None) -> Counter[str]:
    fetched: Counter[str] = Counter()
    for kind in (git.GitConnector, s3.S3Connector):

        def fetch(self, item, *, max_bytes, fetch=kind.fetch):
            if dies_at is not None and fetched.total() >= dies_at:
                raise BrokenOff
            fetched[item.uri] += 1
            return fetch(self, item, max_bytes=max_bytes)

        monkeypatch.setattr(kind, "fetch", fetch)
    return fetched


def test_a_run_that_is_broken_off_goes_on_where_it_was(pipeline: RAGPipeline, place: Place, monkeypatch):
    place.write(files(14))
    name = pipeline.sources.add(place.location, settings=place.settings).name
    with monkeypatch.context() as patched:
        first = count_fetches(patched, dies_at=10)
        with pytest.raises(BrokenOff):
            pipeline.sources.refresh(name)
    assert 8 <= len(stored(pipeline)) < 14
    assert pipeline.sources.get(name).state == "refreshing"
    second = count_fetches(monkeypatch)
    report = pipeline.sources.refresh(name)
    assert set(first) | set(second) == set(files(14)) and report.removed == 0
    # Nothing in front of the last checkpoint is fetched again, nothing is stored twice.
    assert not {f"page-{number:03}.md" for number in range(8)} & set(second)
    assert stored(pipeline) == dict.fromkeys(files(14), 1)
    assert pipeline.sources.refresh(name).added == 0


def test_what_goes_while_a_run_is_broken_off_is_closed_by_the_next(pipeline: RAGPipeline, place: Place, monkeypatch):
    place.write(files(8))
    name = pipeline.sources.add(place.location, settings=place.settings).name
    pipeline.sources.refresh(name)
    place.write({"page-003.md": None, "page-006.md": "# Page 6\n\nIt says something else.\n", "new.md": "New"})
    with monkeypatch.context() as patched:
        count_fetches(patched, dies_at=0)
        with pytest.raises(BrokenOff):
            pipeline.sources.refresh(name)
    assert "page-003.md" in stored(pipeline)
    place.write({"page-004.md": None})
    pipeline.sources.refresh(name)
    expected = dict.fromkeys(files(8), 1) | {"page-006.md": 2, "new.md": 1}
    assert stored(pipeline) == {uri: version for uri, version in expected.items() if uri[5:8] not in {"003", "004"}}


def test_grants_follow_the_source(pipeline: RAGPipeline, place: Place):
    place.write(
        {"hr/pay.md": "The pay scale", "guide.md": "The guide", "GRANTS.md": "* role:staff role:hr\nhr/ role:hr\n"}
    )
    name = pipeline.sources.add(place.location, settings={**place.settings, "grants_file": "GRANTS.md"}).name
    pipeline.sources.refresh(name)
    assert finds(pipeline, STAFF, "The pay scale") == {"guide.md"}
    assert finds(pipeline, HR, "The pay scale") == {"guide.md", "hr/pay.md"}
    # The rules alone change; no document is stored anew.
    place.write({"GRANTS.md": "* role:hr\nhr/ role:staff !user:ann\n"})
    report = pipeline.sources.refresh(name)
    assert (report.updated, report.unchanged) == (0, 2)
    assert finds(pipeline, STAFF, "The pay scale") == {"hr/pay.md"}
    assert finds(pipeline, HR, "The pay scale") == {"guide.md"}
    # What is denied no longer, and what no rule names any more.
    place.write({"GRANTS.md": "hr/ role:hr\n"})
    pipeline.sources.refresh(name)
    assert finds(pipeline, HR, "The pay scale") == {"guide.md", "hr/pay.md"}
    assert finds(pipeline, STAFF, "The pay scale") == {"guide.md"}


def test_rules_that_cannot_be_read_let_nobody_in(pipeline: RAGPipeline, place: Place):
    place.write({"pay.md": "The pay scale"})
    name = pipeline.sources.add(place.location, settings={**place.settings, "grants_file": "GRANTS.md"}).name
    with pytest.raises(SourceError, match="GRANTS"):
        pipeline.sources.refresh(name)
    place.write({"GRANTS.md": "* everybody\n"})
    with pytest.raises(SourceError, match="GRANTS"):
        pipeline.sources.refresh(name)
    assert stored(pipeline) == {}
    record = pipeline.sources.get(name)
    assert record.state == "error" and "GRANTS" in (record.problem or "")


def test_a_listing_that_has_lost_most_of_it_closes_nothing_before_it_is_confirmed(
    pipeline: RAGPipeline, place: Place, monkeypatch
):
    monkeypatch.setattr(source, "_FEW", 3)
    place.write(files(8))
    name = pipeline.sources.add(place.location, settings=place.settings).name
    pipeline.sources.refresh(name)
    place.write(dict.fromkeys(list(files(8))[:6]) | {"new.md": "New"})
    for _ in range(2):
        with pytest.raises(SourceError, match=r"6 of its 9 documents .* --confirm-removals"):
            pipeline.sources.refresh(name)
    assert len(stored(pipeline)) == 9
    assert pipeline.sources.refresh(name, confirm_removals=True).removed == 6
    assert len(stored(pipeline)) == 3


def test_what_cannot_be_read_fails_alone_and_is_not_fetched_again(pipeline: RAGPipeline, place: Place, monkeypatch):
    place.write({"good.md": "Good", "bad.pdf": "no PDF at all", "empty.md": ""})
    name = pipeline.sources.add(place.location, settings=place.settings).name
    report = pipeline.sources.refresh(name)
    assert (report.added, report.failed) == (1, 2)
    fetched = count_fetches(monkeypatch)
    report = pipeline.sources.refresh(name, anew=True)
    assert (report.unchanged, report.failed) == (1, 2) and not fetched
    assert pipeline.sources.get(name).failed == 2
    place.write({"empty.md": "No longer"})
    assert pipeline.sources.refresh(name).added == 1


def test_what_was_deleted_here_comes_back_and_what_is_left_out_does_not_come(pipeline: RAGPipeline, place: Place):
    place.write({"in/a.md": "One", "in/b.md": "Two", "out/c.md": "Three", ".hidden/d.md": "Four"})
    settings = {**place.settings, "include": ["in/"], "exclude": ["b.*"], "tags": ["outside"]}
    name = pipeline.sources.add(place.location, name="outside", settings=settings).name
    pipeline.sources.refresh(name)
    assert stored(pipeline) == {"in/a.md": 1}
    assert pipeline.documents.list()[0].tags == ("outside",) and pipeline.documents.list()[0].department == "in"
    pipeline.documents.delete(["in/a.md"])
    pipeline.sources.refresh(name, anew=True)
    assert stored(pipeline) == {"in/a.md": 2}


@pytest.mark.parametrize(("documents", "left", "history"), [("close", 0, 1), ("keep", 1, 1), ("erase", 0, 0)])
def test_a_source_is_removed_with_its_documents_or_without(
    pipeline: RAGPipeline, repository: Repository, documents, left: int, history: int
):
    repository.commit({"a.md": "One"})
    name = pipeline.sources.add(repository.url).name
    pipeline.sources.refresh(name)
    number = pipeline.documents.list()[0].document_id
    folder = pipeline.config.storage.data_dir / "sources"
    assert list(folder.iterdir())
    assert pipeline.sources.remove(name, documents=documents) == 1 - left
    assert len(stored(pipeline)) == left and not list(folder.iterdir())
    if history:
        assert len(pipeline.documents.history(number).versions) == 1
    else:
        with pytest.raises(NotFoundError):
            pipeline.documents.history(number)
        assert not pipeline.sources.list()
    with pytest.raises((NotFoundError, UsageError)):
        pipeline.sources.refresh(name)


def test_a_folder_is_a_source_too(pipeline: RAGPipeline, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("One", encoding="utf-8")
    record = pipeline.sources.add(str(folder), every="1h")
    assert (record.type, record.connector, record.state) == ("directory", "directory", "new")
    assert pipeline.sources.refresh(record.name).added == 1
    (folder / "a.md").rename(folder / "b.md")
    assert pipeline.sources.refresh(record.name).removed == 1
    record = pipeline.sources.get(record.name)
    assert record.state == "fresh" and record.due_at is not None and record.interval_seconds == 3_600
    folder.rename(tmp_path / "gone")
    with pytest.raises(SourceError, match="not there"):
        pipeline.sources.refresh(record.name)
    assert set(stored(pipeline)) == {"b.md"}


def test_sources_are_for_the_owner_and_refused_where_they_make_no_sense(pipeline: RAGPipeline, repository: Repository):
    name = pipeline.sources.add(repository.url).name
    with pytest.raises(ConflictError):
        pipeline.sources.add(repository.url)
    for refused in ("ftp://host/x", "nowhere", "s3://", "https://user:pass@host/x.git"):
        with pytest.raises(UsageError):
            pipeline.sources.add(refused)
    with pytest.raises(UsageError, match="unknown"):
        pipeline.sources.add(repository.url, connector="unknown")
    ann = pipeline.view(principal=HR).sources
    for refused in (ann.list, lambda: ann.refresh(name), lambda: ann.remove(name), lambda: ann.add("s3://x")):
        with pytest.raises(PermissionDeniedError):
            refused()
    pipeline.ingest("A text.")
    with pytest.raises(UsageError, match="documents are put there"):
        pipeline.sources.refresh("manual")


def test_two_refreshes_at_once_store_everything_once(pipeline: RAGPipeline, repository: Repository):
    repository.commit(dict(files(12)))
    name = pipeline.sources.add(repository.url).name
    with ThreadPoolExecutor(2) as both:
        for done in [both.submit(pipeline.sources.refresh, name) for _ in range(2)]:
            # Git lets one of two fetch into the same copy; the other is tried again as a job.
            with suppress(SourceError):
                done.result()
    pipeline.sources.refresh(name)
    assert stored(pipeline) == dict.fromkeys(files(12), 1)


def test_a_source_is_its_tenants_own(pipeline: RAGPipeline, repository: Repository):
    repository.commit({"a.md": "One"})
    name = pipeline.sources.add(repository.url).name
    pipeline.sources.refresh(name)
    pipeline.tenants.create("other")
    other = pipeline.view(tenant="other", collections="*").sources
    assert not other.list()
    for refused in (other.get, other.refresh, other.remove):
        with pytest.raises((NotFoundError, UsageError)):
            refused(name)


def test_of_an_erased_document_nothing_is_kept(pipeline: RAGPipeline, repository: Repository):
    repository.commit({"private.md": "One", "b.md": "Two"})
    name = pipeline.sources.add(repository.url).name
    pipeline.sources.refresh(name)
    repository.commit({"private.md": None})
    pipeline.documents.erase(["private.md"])
    with pipeline.store.database.transaction(pipeline.scope) as connection:
        kept = connection.execute("SELECT uri FROM source_items").fetchall()
    assert kept == [("b.md",)]
    assert pipeline.sources.refresh(name).removed == 0


def test_what_was_imported_is_brought_up_to_date_by_its_source(pipeline: RAGPipeline, place: Place, tmp_path):
    place.write({"pay.md": "Salaries are paid on the 25th.", "hello.md": "Welcome."})
    pipeline.sources.add(place.location, name="pages", settings=place.settings)
    pipeline.sources.refresh("pages")
    pipeline.grants.add("role:hr", documents="pay.md", only=True)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(pipeline.collections.export_lines()), encoding="utf-8")
    pipeline.tenants.create("other")
    other = pipeline.view(tenant="other")
    assert other.collections.import_file(lines).added == 2
    other.sources.add(place.location, name="pages", settings=place.settings)
    place.write({"pay.md": "Salaries are paid on the 26th."})
    report = other.sources.refresh("pages")
    assert (report.added, report.updated) == (0, 2)
    assert sorted(one.source for one in other.documents.list()) == ["hello.md", "pay.md"]
    assert finds(other, STAFF, "salaries") == {"hello.md"}
    assert "26th" in other.view(principal=HR).retrieve("salaries")[0].content


def test_sources_are_listed_page_by_page(pipeline: RAGPipeline, tmp_path: Path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        pipeline.sources.add(str(tmp_path / name), name=name)
    everywhere = pipeline.view(collections="*").sources
    first = everywhere.list(limit=2)
    second = everywhere.list(limit=2, cursor=first.next_cursor)
    assert ([one.name for one in first], [one.name for one in second]) == (["a", "b"], ["c"])
    assert second.next_cursor is None and [*everywhere.each()] == [*first, *second]
    assert [one.name for one in pipeline.sources.list(name="b")] == ["b"]
    with pytest.raises(UsageError, match="cursor"):
        pipeline.sources.list(cursor="MQ")
