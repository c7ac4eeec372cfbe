"""What a connector names as attached to a message hangs on it, as what is read out of a message's file does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import ClassVar

import pytest

from recollect import Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.sources.base import (
    Change,
    Checkpoint,
    ConnectorSettings,
    Content,
    Found,
    Item,
    ListingBegins,
    ListingEnds,
    Surroundings,
)


class BrokenOff(BaseException):
    """As if the process had been killed."""


@dataclass
class Box:
    """What a source outside holds, by name: a message's text, or what is attached, with its message's name."""

    texts: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    grants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dies_at: str | None = None

    def put(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.revisions[name] = self.revisions.get(name, 0) + 1


class BoxConnector:
    """Reads the box of the test."""

    Settings: ClassVar[type[ConnectorSettings]] = ConnectorSettings
    names_attachments: ClassVar[bool] = True
    box: ClassVar[Box]

    def __init__(self, settings: ConnectorSettings, surroundings: Surroundings) -> None:
        pass

    def changes(self, cursor: str | None) -> Iterator[Change]:
        yield ListingBegins()
        for name in list(self.box.texts):
            message = name.rpartition("/")[0]
            attached_to = f"{message}.eml" if not name.endswith(".eml") else None
            yield Found(Item(uri=name, revision=str(self.box.revisions[name]), attached_to=attached_to))
        yield ListingEnds()
        yield Checkpoint(None)

    def fetch(self, item: Item, *, max_bytes: int) -> Content:
        if item.uri == self.box.dies_at:
            raise BrokenOff
        if item.attached_to:
            return Content(data=self.box.texts[item.uri].encode(), metadata={"message": item.attached_to})
        message = EmailMessage()
        message["Subject"], message["From"] = item.uri, "ann@x.example"
        message.set_content(self.box.texts[item.uri])
        for name, text in self.box.texts.items():
            if name.startswith(item.uri.removesuffix(".eml") + "/"):
                message.add_attachment(text.encode(), maintype="text", subtype="plain", filename="note.txt")
        return Content(data=bytes(message), content_type="message/rfc822", attachments=False)

    def grants(self, item: Item) -> tuple[str, ...] | None:
        return self.box.grants.get(item.uri)

    def close(self) -> None:
        pass


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Box:
    monkeypatch.setattr(BoxConnector, "box", Box(), raising=False)
    # First where it is used: imported now, that would keep the other's replacement for good.
    for place in ("recollect.pipeline.refreshing.connector_class", "recollect.sources.declared.connector_class"):
        monkeypatch.setattr(place, lambda name: BoxConnector)
    for number in (1, 2):
        BoxConnector.box.put(f"in/{number}.eml", f"Message {number} says hello.")
        BoxConnector.box.put(f"in/{number}/2-note.txt", "The same note hangs on both.")
    return BoxConnector.box


@pytest.fixture
def name(pipeline: RAGPipeline, box: Box) -> str:
    return pipeline.sources.add("box", connector="box").name


def stored(pipeline: RAGPipeline) -> dict[str, int]:
    return {one.source: one.version for one in pipeline.documents.list()}


def test_they_share_its_fate(pipeline: RAGPipeline, box: Box, name: str):
    pipeline.sources.refresh(name)
    assert pipeline.documents.delete(["in/1.eml"]) == 2
    assert set(stored(pipeline)) == {"in/2.eml", "in/2/2-note.txt"}
    pipeline.documents.restore("in/1.eml", 1)
    assert len(stored(pipeline)) == 4
    assert pipeline.documents.erase(["in/1.eml"]).counts["documents"] == 2
    assert set(stored(pipeline)) == {"in/2.eml", "in/2/2-note.txt"}
    # One that is erased by itself is missing until the source is read again, which still names it.
    pipeline.documents.erase(["in/2/2-note.txt"])
    assert set(stored(pipeline)) == {"in/2.eml"}
    pipeline.sources.refresh(name)
    assert len(stored(pipeline)) == 4
    assert pipeline.documents.delete(["in/1.eml", "in/2.eml"]) == 4


def test_a_message_that_changes_keeps_what_the_source_still_names(pipeline: RAGPipeline, box: Box, name: str):
    pipeline.sources.refresh(name)
    box.put("in/1.eml", "Message 1 says something else.")
    report = pipeline.sources.refresh(name)
    assert (report.updated, report.unchanged, report.removed) == (1, 3, 0)
    assert stored(pipeline) == {"in/1.eml": 2, "in/1/2-note.txt": 1, "in/2.eml": 1, "in/2/2-note.txt": 1}
    del box.texts["in/1/2-note.txt"]
    assert pipeline.sources.refresh(name).removed == 1
    assert "in/1/2-note.txt" not in stored(pipeline)


def test_a_run_that_is_killed_between_them_is_made_good_by_the_next(
    pipeline: RAGPipeline, box: Box, name: str, monkeypatch: pytest.MonkeyPatch
):
    def killed(*_: object) -> None:
        raise BrokenOff

    with monkeypatch.context() as patched, pytest.raises(BrokenOff):
        patched.setattr("recollect.store.closing.AttachmentRepository.hang", killed)
        pipeline.sources.refresh(name)
    assert len(stored(pipeline)) == 4
    box.dies_at = "in/1.eml"  # nothing is fetched again
    assert pipeline.sources.refresh(name).unchanged == 4
    assert pipeline.documents.delete(["in/2.eml"]) == 2


def test_a_message_that_could_not_be_stored_before_gets_what_was(pipeline: RAGPipeline, box: Box, name: str):
    box.texts["in/1.eml"] = " "
    pipeline.sources.refresh(name)
    box.put("in/1.eml", "There is something in it now.")
    pipeline.sources.refresh(name)
    assert pipeline.documents.delete(["in/1.eml"]) == 2


def test_the_source_says_who_reads_what(pipeline: RAGPipeline, box: Box, name: str):
    eve = pipeline.view(principal=Principal(user_id="eve"))
    box.grants = {"in/1.eml": ("user:ann",), "in/1/2-note.txt": ("user:ann",)}
    pipeline.sources.refresh(name)
    # The message is opened to somebody, and what is attached to it is not.
    box.grants["in/1.eml"] = ("user:ann", "user:eve")
    pipeline.sources.refresh(name)
    assert [one.source for one in eve.documents.list() if "1" in one.source] == ["in/1.eml"]
    # By hand, what is attached goes along, as everywhere.
    pipeline.grants.add("user:eve", documents="in/1.eml")
    assert "in/1/2-note.txt" in {one.source for one in eve.documents.list()}


def test_reading_the_message_anew_adds_nothing_that_the_source_names(dsn: str, box: Box, tmp_path: Path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        ingest={"keep_originals": "always"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as pipeline:
        name = pipeline.sources.add("box", connector="box").name
        pipeline.sources.refresh(name)
        before = set(stored(pipeline))
        pipeline.documents.reread("in/1.eml", force=True)
        assert set(stored(pipeline)) == before
        # Also once it is no source any more.
        pipeline.sources.remove(name, documents="keep")
        pipeline.documents.reread("in/1.eml", force=True)
        assert set(stored(pipeline)) == before
