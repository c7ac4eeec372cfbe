"""What is attached to messages: documents of their own, which share the message's fate."""

from __future__ import annotations

import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from recollect import Document, Principal, RAGPipeline, RetrievalOptions, View
from recollect.documents.reader import read_bytes
from recollect.errors import NotFoundError, PermissionDeniedError

SOUP = "The onion soup costs four crowns and is served from noon until the pot is empty."
OFFER = "# Offer\n\nWe deliver twelve hundred bicycle bells by the end of March at two crowns each."


def mail(subject: str = "Your bells", *, text: str = "Please find our offer attached.", **headers: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "Ann <ann@x.example>", "bo@x.example"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message


def with_file(message: EmailMessage, content: str, name: str) -> EmailMessage:
    message.add_attachment(content.encode(), maintype="text", subtype="markdown", filename=name)
    return message


def sources(rag: RAGPipeline) -> list[str]:
    return sorted(one.source for one in rag.documents.list())


def found(rag: RAGPipeline, query: str) -> list[str]:
    return [one.source for one in rag.search(query, options=RetrievalOptions(top_k=20)).results]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "mails"
    place.mkdir()
    return place


def test_each_is_a_document_that_names_its_message_and_its_thread(pipeline: RAGPipeline, folder: Path):
    message = with_file(mail(Message_ID="<2@x>", References="<0@x> <1@x>"), OFFER, "offer.md")
    inner = with_file(mail("Menu", text="The menu."), SOUP, "soup.md")
    message.add_attachment(inner)
    (folder / "bells.eml").write_bytes(bytes(message))
    pipeline.ingest(folder, tags=["sales"])
    assert sources(pipeline) == [
        "bells.eml",
        "bells.eml/2-offer.md",
        "bells.eml/3-attached.eml",
        "bells.eml/3-attached.eml/2-soup.md",
    ]
    offer = pipeline.documents.get("bells.eml/2-offer.md")
    assert (offer.title, offer.tags) == ("Offer", ("sales",))
    assert offer.metadata["message"] == "bells.eml"
    assert offer.metadata["thread"] == pipeline.documents.get("bells.eml").metadata["thread"] == "<0@x>"
    soup = pipeline.documents.get("bells.eml/3-attached.eml/2-soup.md")
    assert soup.metadata["message"] == "bells.eml/3-attached.eml"
    assert found(pipeline, "bicycle bells by the end of March")[0] == "bells.eml/2-offer.md"
    thread = RetrievalOptions(metadata_filters={"thread": "<0@x>"})
    assert {one.source for one in pipeline.search("bells", options=thread).results} >= {"bells.eml"}


def test_what_is_stored_again_is_there_once_and_what_is_taken_out_goes(pipeline: RAGPipeline, folder: Path):
    path = folder / "bells.eml"
    path.write_bytes(bytes(with_file(with_file(mail(), OFFER, "offer.md"), SOUP, "soup.md")))
    pipeline.ingest(folder)
    before = sources(pipeline)
    assert len(before) == 3
    assert pipeline.ingest(folder, sync=True).unchanged == 1
    pipeline.ingest(folder, force=True)
    assert sources(pipeline) == before
    path.write_bytes(bytes(with_file(mail(text="One file only now."), OFFER, "offer.md")))
    pipeline.ingest(folder, sync=True)
    assert sources(pipeline) == ["bells.eml", "bells.eml/2-offer.md"]
    assert "bells.eml/3-soup.md" not in found(pipeline, "onion soup crowns noon pot")
    assert pipeline.maintenance.status().total_documents == 2
    path.unlink()
    pipeline.ingest(folder, sync=True)
    assert sources(pipeline) == []


@pytest.mark.parametrize("given", ["by the library", "by an upload"])
def test_messages_that_are_given_one_by_one(pipeline: RAGPipeline, given: str):
    data = bytes(with_file(mail(), OFFER, "offer.md"))
    document = read_bytes(data, name="bells.eml", source="bells.eml" if given == "by the library" else "sent/bells.eml")
    pipeline.ingest([document, Document(content="Beside it.", source="other")])
    message = document.source
    assert sources(pipeline) == sorted([message, f"{message}/2-offer.md", "other"])
    offer = pipeline.documents.get(f"{message}/2-offer.md")
    assert pipeline.contents.original(offer.document_id).read() == OFFER.encode()
    assert pipeline.documents.delete([message]) == 2
    assert sources(pipeline) == ["other"]
    pipeline.ingest(document)
    assert len(sources(pipeline)) == 3
    receipt = pipeline.documents.erase([message])
    assert receipt.counts["documents"] == 2
    assert sources(pipeline) == ["other"]


def test_rights_are_the_messages_whatever_a_file_says_of_itself(pipeline: RAGPipeline):
    public = "---\npermissions: ['*']\n---\n" + OFFER
    document = read_bytes(bytes(with_file(mail(), public, "offer.md")), name="bells.eml")
    pipeline.ingest(Document(**{name: getattr(document, name) for name in ("content", "source", "attachments")}))
    bo, cy = (pipeline.view(principal=Principal(user_id=name)) for name in ("bo", "cy"))
    pipeline.grants.add("user:bo", documents="bells.eml", only=True)
    query = "bicycle bells by the end of March"
    assert "bells.eml/2-offer.md" in found(bo, query)
    assert found(cy, query) == []
    # What comes later has the message's rights of now, not the collection's.
    later = with_file(with_file(mail(text="Two files."), public, "offer.md"), SOUP, "soup.md")
    pipeline.ingest(read_bytes(bytes(later), name="bells.eml"))
    assert "bells.eml/3-soup.md" in found(bo, "onion soup crowns")
    assert found(cy, "onion soup crowns") == []
    with pytest.raises(NotFoundError):
        cy.documents.get("bells.eml/3-soup.md")
    pipeline.grants.add("user:cy", documents="bells.eml")
    assert "bells.eml/3-soup.md" in found(cy, "onion soup crowns")


def test_tags_and_department_follow_the_message(pipeline: RAGPipeline):
    pipeline.ingest(read_bytes(bytes(with_file(mail(), OFFER, "offer.md")), name="bells.eml"))
    pipeline.documents.update("bells.eml", tags=["closed"], department="sales", title="Bells")
    offer = pipeline.documents.get("bells.eml/2-offer.md")
    assert (offer.tags, offer.department, offer.title) == (("closed",), "sales", "Offer")


def test_another_tenant_has_a_message_of_that_name_alone(pipeline: RAGPipeline):
    document = read_bytes(bytes(with_file(mail(), OFFER, "offer.md")), name="bells.eml")
    pipeline.ingest(document)
    pipeline.tenants.create("acme")
    acme = pipeline.view(tenant="acme")
    acme.ingest(read_bytes(bytes(with_file(mail(), SOUP, "offer.md")), name="bells.eml"))
    acme.documents.erase(["bells.eml"])
    assert sources(acme) == []
    assert sources(pipeline) == ["bells.eml", "bells.eml/2-offer.md"]


def test_time_to_live_is_the_messages(pipeline: RAGPipeline):
    document = read_bytes(bytes(with_file(mail(), OFFER, "offer.md")), name="bells.eml")
    pipeline.ingest(Document(content=document.content, source="m", attachments=document.attachments, ttl="30d"))
    for days in (30, 3):
        (record,) = pipeline.documents.history("m/2-offer.md").versions
        assert record.expires_at is not None
        assert (record.expires_at - datetime.now(UTC)).days in {days - 1, days}
        pipeline.documents.set_ttl("m", "3d")
    pipeline.documents.set_ttl("m", None)
    assert pipeline.documents.history("m/2-offer.md").versions[0].expires_at is None


def zipped(size: int) -> bytes:
    """A Word file whose text unpacks to so many bytes, as it says itself."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b" ")
        archive.getinfo("word/document.xml").file_size = size
    return packed.getvalue()


def test_hostile_attachments_cost_themselves_alone(pipeline: RAGPipeline, folder: Path):
    message = with_file(mail(), OFFER, "../../offer.md")
    message.add_attachment(zipped(1 << 30), maintype="application", subtype="octet-stream", filename="bomb.docx")
    message.add_attachment(b"\0" * 5000, maintype="application", subtype="pdf", filename="broken.pdf")
    message.add_attachment(b"", maintype="text", subtype="plain", filename="empty.txt")
    for number in range(120):
        message.add_attachment(f"Note {number}.".encode(), maintype="text", subtype="plain", filename=f"n{number}.txt")
    (folder / "mail.eml").write_bytes(bytes(message))
    report = pipeline.ingest(folder)
    assert report.failed == 0
    kept = sources(pipeline)
    assert "mail.eml/2-_.._offer.md" in kept
    assert len(kept) == 1 + 98  # of a hundred, two are damaged
    note = pipeline.documents.get("mail.eml").metadata["attachments_left_out"]
    assert "bomb.docx" in note
    assert "unpacks to more than 1024 MiB" in note
    assert "broken.pdf" in note
    assert "empty.txt is empty" in note


def test_a_message_of_messages_without_end_and_one_that_holds_itself_twice(pipeline: RAGPipeline):
    message = mail("The innermost", text=SOUP)
    for depth in range(12):
        outer = mail(f"Around {depth}", text=f"See what is attached, number {depth}.")
        outer.add_attachment(message)
        message = outer
    twice = mail("Twice")
    twice.add_attachment(message)
    twice.add_attachment(message)
    pipeline.ingest(read_bytes(bytes(twice), name="deep.eml"))
    kept = sources(pipeline)
    assert len(kept) == 1 + 5
    assert max(one.count("/") for one in kept) == 5


def test_what_was_deleted_with_a_message_comes_back_with_it(pipeline: RAGPipeline):
    both = with_file(with_file(mail(), OFFER, "offer.md"), SOUP, "soup.md")
    pipeline.ingest(read_bytes(bytes(both), name="bells.eml"))
    pipeline.documents.delete(["bells.eml/3-soup.md"])  # by itself: it stays away
    pipeline.documents.delete(["bells.eml"])
    assert pipeline.documents.restore("bells.eml", 1).status == "added"
    assert sources(pipeline) == ["bells.eml", "bells.eml/2-offer.md"]
    assert found(pipeline, "bicycle bells by the end of March")[0] == "bells.eml/2-offer.md"
    assert pipeline.maintenance.status().total_documents == 2
    # It hangs there still.
    assert pipeline.documents.delete(["bells.eml"]) == 2
    assert pipeline.documents.restore("bells.eml", 1).version == 3


def test_an_old_version_comes_back_with_what_a_later_one_left_out(pipeline: RAGPipeline):
    pipeline.ingest(read_bytes(bytes(with_file(with_file(mail(), OFFER, "offer.md"), SOUP, "soup.md")), name="m.eml"))
    pipeline.ingest(read_bytes(bytes(with_file(mail(text="One file only."), OFFER, "offer.md")), name="m.eml"))
    pipeline.documents.restore("m.eml", 1)
    assert sources(pipeline) == ["m.eml", "m.eml/2-offer.md", "m.eml/3-soup.md"]
    # What the second version did not have does not come back with it.
    pipeline.documents.delete(["m.eml"])
    pipeline.documents.restore("m.eml", 2)
    assert sources(pipeline) == ["m.eml", "m.eml/2-offer.md"]


def test_what_expired_with_a_message_comes_back_with_it(pipeline: RAGPipeline):
    pipeline.ingest(read_bytes(bytes(with_file(mail(), OFFER, "offer.md")), name="m.eml"))
    pipeline.documents.set_ttl("m.eml", 0.001)
    while pipeline.maintenance.close_expired() < 2 and sources(pipeline):
        pass
    pipeline.documents.restore("m.eml", 1)
    assert sources(pipeline) == ["m.eml", "m.eml/2-offer.md"]


def test_rights_decide_what_comes_back(pipeline: RAGPipeline):
    pipeline.ingest(read_bytes(bytes(with_file(mail(), OFFER, "offer.md")), name="m.eml"))
    pipeline.grants.add("user:bo", documents="m.eml", only=True)
    pipeline.grants.add("user:cy", documents="m.eml/2-offer.md", only=True)
    pipeline.documents.delete(["m.eml"])
    bo = pipeline.view(principal=Principal(user_id="bo"))
    with pytest.raises(PermissionDeniedError):
        bo.documents.restore("m.eml", 1)
    pipeline.tenants.create("acme")
    with pytest.raises(NotFoundError):
        pipeline.view(tenant="acme").documents.restore("m.eml", 1)
    pipeline.documents.restore("m.eml", 1)
    # Nobody gets more than they had.
    assert found(bo, "bicycle bells by the end of March") == ["m.eml"]
    assert found(pipeline.view(principal=Principal(user_id="cy")), "bicycle bells") == ["m.eml/2-offer.md"]


def test_the_same_file_in_two_messages_is_each_ones_own(pipeline: RAGPipeline):
    for name in ("a.eml", "b.eml"):
        pipeline.ingest(read_bytes(bytes(with_file(mail(name), OFFER, "offer.md")), name=name))
    pipeline.documents.erase(["a.eml"])
    assert sources(pipeline) == ["b.eml", "b.eml/2-offer.md"]
    offer = pipeline.documents.get("b.eml/2-offer.md")
    assert pipeline.contents.original(offer.document_id).read() == OFFER.encode()
    # Erased alone, it leaves its message, and does not come back with it.
    pipeline.documents.erase(["b.eml/2-offer.md"])
    pipeline.documents.delete(["b.eml"])
    pipeline.documents.restore("b.eml", 1)
    assert sources(pipeline) == ["b.eml"]


def test_a_message_stored_by_several_at_once_has_its_attachments_once(pipeline: RAGPipeline):
    document = read_bytes(bytes(with_file(with_file(mail(), OFFER, "offer.md"), SOUP, "soup.md")), name="m.eml")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: pipeline.ingest(document, force=True), range(8)))
    assert sources(pipeline) == ["m.eml", "m.eml/2-offer.md", "m.eml/3-soup.md"]
    assert pipeline.documents.delete(["m.eml"]) == 3


def plain(message: EmailMessage, source: str = "m.eml") -> Document:
    """A message as it was stored before attachments were: with its file, and none of them."""
    return replace(read_bytes(bytes(message), name=source, attachments=False), source=source)


@pytest.mark.parametrize("unchanged", [True, False])
def test_a_message_that_was_stored_without_its_attachments_is_read_anew(pipeline: RAGPipeline, unchanged: bool):
    message = with_file(mail(), OFFER, "offer.md")
    message.add_attachment(with_file(mail("Menu"), SOUP, "soup.md"))
    stored = plain(message)
    pipeline.ingest(stored if unchanged else replace(stored, content="Read as it was read then."))
    pipeline.grants.add("user:bo", documents="m.eml", only=True)
    assert sources(pipeline) == ["m.eml"]
    pipeline.documents.reread("m.eml")
    expected = ["m.eml", "m.eml/2-offer.md", "m.eml/3-attached.eml", "m.eml/3-attached.eml/2-soup.md"]
    assert sources(pipeline) == expected
    bo, cy = (pipeline.view(principal=Principal(user_id=name)) for name in ("bo", "cy"))
    assert "m.eml/2-offer.md" in found(bo, "bicycle bells")
    assert found(cy, "bicycle bells") == []
    # A message in a message read anew keeps what hangs on the outer one.
    pipeline.documents.delete(["m.eml/3-attached.eml/2-soup.md"])
    pipeline.documents.reread("m.eml/3-attached.eml", force=True)
    assert sources(pipeline) == expected
    assert pipeline.documents.delete(["m.eml"]) == 4


def test_a_writer_reads_their_own_message_anew_and_nobody_elses(pipeline: RAGPipeline):
    pipeline.collections.create("default")
    pipeline.grants.set_collection(readers=["*"], writers=["user:ann", "user:bo"])
    ann, bo = (pipeline.view(principal=Principal(user_id=name)) for name in ("ann", "bo"))
    message = with_file(mail(), OFFER, "offer.md")
    ann.ingest(plain(message))
    pipeline.ingest(plain(with_file(mail(), SOUP, "offer.md")))
    mine = next(one for one in pipeline.documents.list() if one.source == "m.eml" and one.document_id)
    with pytest.raises((PermissionDeniedError, NotFoundError)):
        bo.documents.reread(mine.document_id)
    ann.documents.reread(mine.document_id)
    (offer,) = [one for one in pipeline.documents.list() if one.source == "m.eml/2-offer.md"]
    assert "bells" in (pipeline.documents.get(offer.document_id).content or "")
    assert pipeline.documents.delete([mine.document_id]) == 2


def exported(view: View) -> list[dict[str, Any]]:
    return [json.loads(line) for line in view.collections.export_lines(originals=True)]


def test_an_export_keeps_what_hangs_on_what(pipeline: RAGPipeline, tmp_path: Path):
    message = with_file(mail(), OFFER, "offer.md")
    message.add_attachment(with_file(mail("Menu"), SOUP, "soup.md"))
    pipeline.ingest([read_bytes(bytes(message), name="m.eml"), Document(content="Beside it.", source="other")])
    lines = exported(pipeline)
    hanging = {one["source"]: one.get("attached_to") for one in lines}
    assert hanging == {
        "m.eml": None,
        "m.eml/2-offer.md": "m.eml",
        "m.eml/3-attached.eml": "m.eml",
        "m.eml/3-attached.eml/2-soup.md": "m.eml",
        "other": None,
    }
    pipeline.tenants.create("acme")
    acme = pipeline.view(tenant="acme")
    # In whatever order, twice, with and without the chunks: nothing is closed, and all of it hangs.
    for number, order in enumerate((lines, lines[::-1], [{**one, "chunks": None} for one in lines])):
        (tmp_path / "some.jsonl").write_text("".join(json.dumps(one) + "\n" for one in order), encoding="utf-8")
        report = acme.collections.import_file(tmp_path / "some.jsonl", force=number == 1)
        assert (report.failed, sources(acme)) == (0, sources(pipeline))
    assert acme.documents.delete(["m.eml"]) == 4
    acme.documents.restore("m.eml", 1)
    assert sources(acme) == sources(pipeline)
    acme.documents.erase(["m.eml"])
    assert sources(acme) == ["other"]
    assert len(sources(pipeline)) == 5


def test_lines_that_hang_on_themselves_on_each_other_and_on_nothing(pipeline: RAGPipeline, tmp_path: Path):
    links = {
        "self": "self",
        "a": "b",
        "b": "a",
        "c": "nowhere",
        "d": "e",
        "e": "f",
        "f": None,
        "g": "x" * 9_000,
        "h": "\0",
    }
    lines = [{"source": name, "content": f"This is {name}.", "attached_to": to} for name, to in links.items()]
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    for _ in range(2):
        assert pipeline.collections.import_file(path).failed == 0
    assert sources(pipeline) == sorted(links)
    assert pipeline.documents.delete(["f"]) == 3
    for name in ("self", "a", "b", "c", "g", "h"):
        pipeline.documents.delete([name])
    assert sources(pipeline) == []


def test_a_writer_hangs_nothing_on_anothers_message(pipeline: RAGPipeline, tmp_path: Path):
    pipeline.collections.create("default")
    pipeline.grants.set_collection(readers=["*"], writers=["user:ann"])
    pipeline.ingest(Document(content="The boss's message.", source="m.eml", permissions=["user:boss"]))
    ann = pipeline.view(principal=Principal(user_id="ann"))
    path = tmp_path / "hers.jsonl"
    path.write_text(json.dumps({"source": "x", "content": "Hers.", "attached_to": "m.eml"}), encoding="utf-8")
    assert ann.collections.import_file(path).added == 1
    assert pipeline.documents.delete(["m.eml"]) == 1
    assert sources(pipeline) == ["x"]
