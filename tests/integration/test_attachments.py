"""What is attached to messages: documents of their own, which share the message's fate."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest

from recollect import Document, Principal, RAGPipeline, RetrievalOptions
from recollect.documents.reader import read_bytes
from recollect.errors import NotFoundError

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
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b" " * size)
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
