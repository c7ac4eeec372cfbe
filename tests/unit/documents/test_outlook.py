"""Outlook's messages: what is attached to them, and what a damaged or hostile file of them gives."""

from __future__ import annotations

import random
import struct
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.documents._mail import CompoundFileError, Storage, outlook_parts, read_compound
from recollect.documents.reader import read_bytes

from .made_outlook import compound, outlook

BODY = "Dear Bo,\n\nsee attached.\n\nBest regards,\nAnn\n\nFrom: Bo\nSent: Tuesday\nTo: Ann\nSubject: Bells\n\nSend it."
LARGE = b"Office,Days\n" + b"".join(b"Office %d,%d\n" % (number, number * 3) for number in range(900))


def message() -> bytes:
    inner = outlook("Menu", "The menu.", attachments=[("soup.md", b"Onion soup.")])
    files = [("offer.md", b"# Offer\n\nBells."), ("days.csv", LARGE), ("menu.msg", inner)]
    headers = "Message-ID: <2@x>\r\nReferences: <1@x>\r\n\r\n"
    return compound(outlook("Bells", BODY, attachments=files, headers=headers))


def test_what_is_attached_becomes_documents_and_messages_in_messages_too():
    document = read_bytes(message(), name="bells.msg")
    assert document.content.endswith(BODY)
    assert [one.title for one in document.headings] == ["Signature", "From: Bo"]
    starts = [document.content[one.start_offset :] for one in document.headings]
    assert starts[0].startswith("Best regards,")
    assert starts[1].startswith("From: Bo\nSent")
    told = {name: document.metadata[name] for name in ("attachments", "message_id", "thread")}
    assert told == {"attachments": "offer.md, days.csv, menu.msg", "message_id": "<2@x>", "thread": "<1@x>"}
    assert [one.source for one in document.attachments] == ["1-offer.md", "2-days.csv", "3-menu.eml"]
    offer, days, menu = document.attachments
    assert offer.content == "# Offer\n\nBells."
    assert days.content.endswith("Office: Office 899; Days: 2697")
    assert (menu.title, menu.content.endswith("The menu.")) == ("Menu", True)
    assert [one.content for one in menu.attachments] == ["Onion soup."]


def test_a_compound_file_gives_every_stream_back():
    tree = {"a": b"", "b": b"x" * 4095, "c": b"y" * 4096, "d": {"e": bytes(range(256)) * 99}}
    root = read_compound(compound(tree))
    assert root.streams == {"a": b"", "b": b"x" * 4095, "c": b"y" * 4096}
    assert root.storages == {"d": Storage(streams={"e": bytes(range(256)) * 99})}


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_gives_what_is_whole_or_nothing(seed: int):
    data = bytearray(message())
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 12)):
        # Sector numbers among them: into the head, the tables and the directory.
        at = chance.choice([chance.randrange(28, 512), chance.randrange(len(data) - 4)])
        data[at : at + 4] = struct.pack(
            "<I", chance.choice([0, 1, 2, 0xFFFFFFFE, 0xFFFFFFFF, chance.randrange(1 << 32)])
        )
    attached, thread = outlook_parts(bytes(data[: chance.choice([len(data), chance.randrange(len(data))])]))
    assert sum(len(one.data) for one in attached) <= 4 * len(data)
    assert isinstance(thread, dict)


def test_sectors_that_follow_one_another_for_ever_are_given_up():
    data = bytearray(compound({"stream": b"z" * 9000}))
    number = data.index(b"z" * 512) // 512 - 1
    table = len(data) - 512
    struct.pack_into("<I", data, table + 4 * number, number)
    with pytest.raises(CompoundFileError):
        read_compound(bytes(data))


@pytest.mark.parametrize("data", [b"", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"no" * 600])
def test_what_is_no_compound_file(data: bytes):
    with pytest.raises(CompoundFileError):
        read_compound(data)
    assert outlook_parts(data) == ([], {})


def test_a_message_that_another_program_has_written():
    """By msgforge 1.0.0 (MIT), which knows nothing of how messages are read here: HTML in RTF, and two files."""
    data = (Path(__file__).parents[2] / "data" / "bells.msg").read_bytes()
    message = read_bytes(data, name="bells.msg")
    header, _, text = message.content.partition("\n\n")
    assert header.splitlines()[:4] == [
        "Subject: Your bells – an offer",
        'From: "Ann Ärger" <ann@x.example>',
        'To: "Bo" <bo@x.example>',
        'CC: "Cy" <cy@x.example>',
    ]
    assert text.startswith("Dear Bo,\nplease find our offer attached.")
    assert "Oslo\t900" in text
    assert (message.title, message.metadata["author"]) == ("Your bells – an offer", "Ann Ärger")
    assert message.event_time == datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert [(one.source, one.content) for one in message.attachments] == [
        ("1-offer.md", "# Offer\n\nWe deliver twelve hundred bicycle bells by the end of March."),
        ("2-note.txt", "Größe: fünf Meter."),
    ]
