"""A watched folder: what changes outside changes inside, and nothing else is looked at."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect import Principal, RAGPipeline
from recollect.documents.walk import look, walk
from recollect.errors import NotFoundError, StoreUnavailableError, UsageError
from recollect.ingest import folder as folder_ingest
from recollect.pipeline import refreshing as pipeline_watching
from recollect.pipeline.ingesting import FileOptions, store_changes
from recollect.pipeline.refreshing import Watching


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "leave.md").write_text("# Leave\n\nAnnual leave is 30 days.\n", encoding="utf-8")
    return made


@pytest.fixture
def watched(pipeline: RAGPipeline, folder: Path) -> Iterator[Watching]:
    watching = pipeline.sources.watch([folder])
    first = next(watching)
    assert first.whole and first.report is not None and first.report.added == 1
    yield watching
    watching.stop()
    assert list(watching) == []


def sources(pipeline: RAGPipeline) -> dict[str, str]:
    return {
        one.source: pipeline.documents.get(one.document_id).content or ""
        for one in pipeline.documents.list(limit=1_000)
    }


def test_what_is_saved_is_found_and_what_is_deleted_is_not(pipeline: RAGPipeline, folder: Path, watched: Watching):
    (folder / "parking.md").write_text("# Parking\n\nThe garage opens at seven.\n", encoding="utf-8")
    assert next(watched).report.added == 1
    assert "garage" in pipeline.retrieve("When does the garage open?")[0].content
    (folder / "parking.md").write_text("# Parking\n\nThe garage opens at nine.\n", encoding="utf-8")
    assert next(watched).report.updated == 1
    assert "nine" in pipeline.retrieve("When does the garage open?")[0].content
    (folder / "parking.md").unlink()
    assert next(watched).report.removed == 1
    assert set(sources(pipeline)) == {"leave.md"}


def test_only_what_has_changed_is_looked_at(pipeline: RAGPipeline, folder: Path, watched: Watching, monkeypatch):
    read = []
    load = folder_ingest.load_file
    monkeypatch.setattr(folder_ingest, "load_file", lambda path, **how: read.append(path.name) or load(path, **how))
    monkeypatch.setattr(folder_ingest, "walk", lambda *args, **how: pytest.fail("the whole folder was looked through"))
    for number in range(20):
        (folder / f"{number}.md").write_text(f"Page {number}", encoding="utf-8")
    done = next(watched)
    assert done.report.added == 20 and not done.whole
    assert sorted(read) == sorted(f"{number}.md" for number in range(20))


def test_a_folder_that_goes_and_comes_back_loses_nothing(pipeline: RAGPipeline, folder: Path, watched: Watching):
    elsewhere = folder.with_name("unmounted")
    folder.rename(elsewhere)
    done = next(watched)
    assert done.report is None and "not there" in done.problem
    assert set(sources(pipeline)) == {"leave.md"}
    (elsewhere / "leave.md").unlink()
    (elsewhere / "new.md").write_text("Something new", encoding="utf-8")
    elsewhere.rename(folder)
    done = next(watched)
    assert done.whole and (done.report.added, done.report.removed) == (1, 1)


def test_a_database_that_is_away_is_waited_for(pipeline: RAGPipeline, folder: Path, watched: Watching, monkeypatch):
    store = pipeline_watching.store_changes
    away = [StoreUnavailableError("The database cannot be reached.")]

    def sometimes(*arguments):
        if away:
            raise away.pop()
        return store(*arguments)

    monkeypatch.setattr(pipeline_watching, "store_changes", sometimes)
    (folder / "new.md").write_text("Something new", encoding="utf-8")
    assert next(watched).problem == "The database cannot be reached."
    done = next(watched)
    assert done.whole and done.report.added == 1


def test_a_collection_that_is_deleted_is_made_anew_by_its_owner(pipeline: RAGPipeline, folder: Path, watched: Watching):
    pipeline.collections.delete("default")
    (folder / "new.md").write_text("Something new", encoding="utf-8")
    assert next(watched).report.added == 1


def test_what_names_what_is_left_out_counts_at_once(pipeline: RAGPipeline, folder: Path, watched: Watching):
    (folder / "drafts").mkdir()
    (folder / "drafts" / "plan.md").write_text("A plan", encoding="utf-8")
    assert next(watched).report.added == 1
    (folder / ".recollectignore").write_text("drafts/\n", encoding="utf-8")
    assert next(watched).report.removed == 1
    (folder / ".recollectignore").unlink()
    assert next(watched).report.added == 1


def test_permissions_and_tags_are_given_to_what_changes(pipeline: RAGPipeline, folder: Path):
    watching = pipeline.sources.watch([folder], tags=["handbook"], permissions=["role:hr"])
    next(watching)
    (folder / "new.md").write_text("Something new", encoding="utf-8")
    next(watching)
    watching.stop()
    assert {one.tags for one in pipeline.documents.list()} == {("handbook",)}
    assert pipeline.view(principal=Principal(user_id="ann", roles=("hr",))).retrieve("Something new")
    assert not pipeline.view(principal=Principal(user_id="bob")).retrieve("Something new")


def test_what_cannot_be_read_is_told_and_stops_nothing(pipeline: RAGPipeline, folder: Path, watched: Watching):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 no more of it")
    done = next(watched)
    assert done.report.failed == 1
    (folder / "new.md").write_text("Something new", encoding="utf-8")
    assert next(watched).report.added == 1


@pytest.mark.parametrize("name", ["nowhere", "leave.md"])
def test_only_folders_that_are_there_can_be_watched(pipeline: RAGPipeline, folder: Path, name: str):
    with pytest.raises((NotFoundError, UsageError), match=name):
        pipeline.sources.watch([folder / name])
    with pytest.raises(UsageError, match="at least one"):
        pipeline.sources.watch([])


def test_a_folder_inside_a_watched_one_is_watched_with_it(pipeline: RAGPipeline, folder: Path):
    (folder / "inner").mkdir()
    watching = pipeline.sources.watch([folder / "inner", folder])
    assert next(watching).folder == folder
    watching.stop()
    assert list(watching) == []


def test_a_part_of_what_was_ingested_before_meets_the_same_documents(pipeline: RAGPipeline, folder: Path):
    (folder / "in").mkdir()
    (folder / "in" / "a.md").write_text("One", encoding="utf-8")
    pipeline.ingest(folder)
    watching = pipeline.sources.watch([folder / "in"])
    assert next(watching).report.unchanged == 1
    (folder / "in" / "a.md").unlink()
    (folder / "in" / "b.md").write_text("Two", encoding="utf-8")
    done = next(watching)
    assert (done.report.added, done.report.removed) == (1, 1)
    assert set(sources(pipeline)) == {"leave.md", "in/b.md"}
    watching.close()


def test_stopping_from_another_thread_ends_the_wait(pipeline: RAGPipeline, watched: Watching):
    threading.Timer(0.05, watched.stop).start()
    assert list(watched) == []


NAMES = ["a.md", "b.md", "in/a.md", "in/b.md", "in/deep/c.md", "other/a.md", "a", "in.md", ".hidden.md"]
WRITTEN = st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(["one", "two"]))
REMOVED = st.tuples(st.just("remove"), st.sampled_from([*NAMES, "in", "in/deep", "other"]), st.just(""))
MOVED = st.tuples(st.just("move"), st.sampled_from(["a.md", "in", "in/deep"]), st.sampled_from(["other", "z", "z.md"]))
IGNORED = st.tuples(st.just("write"), st.just(".recollectignore"), st.sampled_from(["b.md", "in/", "*.md\n!a.md", ""]))


def change(folder: Path, kind: str, name: str, with_: str) -> list[Path]:
    """Do it, and say which paths a system would tell of."""
    path = folder / name
    if kind == "write":
        if path.is_dir() or any(parent.is_file() for parent in path.parents):
            return []
        missing = [parent for parent in path.parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(with_, encoding="utf-8")
        return [path, *missing]
    if not path.exists():
        return []
    if kind == "move":
        if (folder / with_).exists():
            return []
        path.rename(folder / with_)
        return [path, folder / with_]
    inside = [path, *path.rglob("*")] if path.is_dir() else [path]
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return inside


def test_after_any_changes_nothing_is_left_for_a_look_through_everything(
    pipeline: RAGPipeline, tmp_path_factory, monkeypatch
):
    monkeypatch.setattr(folder_ingest, "_PREFIXES", 2)

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.lists(st.one_of(WRITTEN, REMOVED, MOVED, IGNORED), min_size=1, max_size=6), max_size=3))
    def run(batches):
        folder = tmp_path_factory.mktemp("docs")
        at = pipeline.view(collections="default").standpoint
        for batch in batches:
            changed = [path for one in batch for path in change(folder, *one)]
            store_changes(at, folder, list(dict.fromkeys(changed)), FileOptions())
        report = pipeline.ingest(folder, sync=True)
        assert (report.added, report.updated, report.removed) == (0, 0, 0), batches

    run()


def test_a_look_at_some_paths_gives_what_a_walk_gives_of_them(folder: Path):
    (folder / "in" / ".hidden").mkdir(parents=True)
    (folder / "in" / ".recollectignore").write_text("no*.md\n", encoding="utf-8")
    for name in ("in/yes.md", "in/no.md", "in/.hidden/a.md", "in/x.png"):
        (folder / name).write_text("x", encoding="utf-8")
    (folder / "link").symlink_to(folder / "in")
    walked = {one.source: one for one in walk([folder])}
    for name in ("leave.md", "in/yes.md", "in/no.md", "in/x.png", "link"):
        assert list(look(folder, [folder / name])) == [walked[name]]
    # What is behind a hidden folder or a link is not looked at, whoever names it.
    assert list(look(folder, [folder / "in/.hidden/a.md"])) == [walked["in/.hidden"]]
    assert list(look(folder, [folder / "link/yes.md"])) == [walked["link"]]
    assert list(look(folder, [folder / "gone.md"])) == []
