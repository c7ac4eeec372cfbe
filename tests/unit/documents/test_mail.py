"""Messages: their threads, what they quote, who signs, and what is attached."""

from __future__ import annotations

import struct
from email.message import EmailMessage

import pytest

from recollect.documents._mail import marks_of, parse_mail, unpack_tnef
from recollect.documents.reader import read_bytes

ATTRIBUTIONS = [
    "On Tue, 3 Mar 2026 at 10:00, Bo <bo@x.example> wrote:",
    "Am 03.03.2026 um 10:00 schrieb Bo:",
    "Le 3 mars 2026, Bo a écrit :",
    "El 3 mar 2026, Bo escribió:",
    "Il giorno 3 mar 2026 Bo ha scritto:",
    "3 марта 2026 г. Bo пишет:",
]


def titles(text: str) -> list[str]:
    return [one.title for one in marks_of(text)]


@pytest.mark.parametrize("line", ATTRIBUTIONS)
@pytest.mark.parametrize("quote", ["> The old text.\n> Its second line.", "The old text,\nas HTML mails quote it."])
def test_a_quote_begins_at_the_line_that_says_whose_it_is(line: str, quote: str):
    text = f"I agree with that.\n\n{line}\n\n{quote}\n"
    (mark,) = marks_of(text)
    assert mark.title == line
    assert text[mark.start_offset : mark.end_offset] == line


@pytest.mark.parametrize(
    "above",
    [
        "-----Original Message-----",
        "-----Ursprüngliche Nachricht-----",
        "---------- Forwarded message ---------",
        "From: Bo\nSent: Tuesday\nTo: Ann\nSubject: Bells",
        "Von: Bo\nGesendet: Dienstag\nAn: Ann\nBetreff: Glocken",
        "________________________________\nDe : Bo\nEnvoyé : mardi\nÀ : Ann\nObjet : Cloches",
    ],
)
def test_a_message_below_a_banner_or_its_header_is_a_quote(above: str):
    assert len(marks_of(f"My own words.\n\n{above}\n\nThe old text.")) == 1


def test_an_answer_between_the_lines_stays_with_its_question():
    text = "Bo wrote:\n> Is it blue?\n\nYes.\n\n> Is it large?\n\nNo.\n"
    assert titles(text) == []
    assert titles(text + "\n> One more line.\n") == ["Quoted message"]


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        ("Text.\n\n-- \nAnn\nSales", "-- "),
        ("Text.\n\nBest regards,\nAnn Smith\n+49 421 1", "Best regards,"),
        ("Text.\n\nMit freundlichen Grüßen\nAnn", "Mit freundlichen Grüßen"),
        ("Text.\n\nSent from my iPhone", "Sent from my iPhone"),
        ("Text.\n\nKind regards\nAnn\n\nOn Tuesday Bo wrote:\n> Hello.\n> Regards\n> Bo", "Kind regards"),
    ],
)
def test_a_signature_is_a_section_of_its_own(text: str, signed: str):
    mark = marks_of(text)[0]
    assert mark.title == "Signature"
    assert text[mark.start_offset : mark.end_offset] == signed


def test_what_is_no_signature_and_no_quote_is_not_marked():
    assert titles("Give him my best regards.\nThen we go on.\n\n" + "A long paragraph follows here. " * 9) == []
    assert titles("From: here to there it takes an hour.\nAnd then we rest.") == []
    assert titles("> only\n> a quote") == []
    assert titles("") == []


def test_nothing_of_the_text_is_lost_and_marks_stand_in_it():
    message = EmailMessage()
    message["Subject"], message["From"] = "Re: Bells", "ann@x.example"
    body = "Yes.\n\nBest regards,\nAnn\n\nOn Tuesday Bo wrote:\n> Do you\n> agree?\n"
    message.set_content(body)
    document = read_bytes(bytes(message), name="a.eml")
    assert body.strip() in document.content
    assert [document.content[one.start_offset : one.end_offset] for one in document.headings] == [
        "Best regards,",
        "On Tuesday Bo wrote:",
    ]
    assert document.section_path(document.content.index("agree?")) == ("On Tuesday Bo wrote:",)


def test_of_many_lines_that_look_like_attributions_the_first_are_looked_at():
    assert titles("\n".join(f"Line {number} wrote:\n> quoted\nown" for number in range(40_000))) == []


def test_threads():
    message = EmailMessage()
    message["Subject"], message["From"] = "x", "ann@x.example"
    message["Message-ID"], message["In-Reply-To"] = "<3@x>", "<2@x>"
    assert parse_mail(bytes(message)).metadata["thread"] == "<2@x>"
    message["References"] = "<1@x>  <2@x>"
    read = parse_mail(bytes(message)).metadata
    assert (read["message_id"], read["in_reply_to"], read["references"], read["thread"]) == (
        "<3@x>",
        "<2@x>",
        "<1@x> <2@x>",
        "<1@x>",
    )
    del message["References"]
    message["References"] = " ".join(f"<{number}@x>" for number in range(300))
    kept = str(parse_mail(bytes(message)).metadata["references"]).split()
    assert (len(kept), kept[0], kept[-1]) == (50, "<0@x>", "<299@x>")


def test_texts_beside_the_body_are_kept_but_not_its_other_form():
    lines = [
        b"From: ann@x.example",
        b"Subject: s",
        b'Content-Type: multipart/mixed; boundary="o"',
        b"",
        b"--o",
        b'Content-Type: multipart/alternative; boundary="i"',
        b"",
        b"--i",
        b"Content-Type: text/plain; charset=no-such-one",
        b"",
        b"Plain \xe4.",
        b"--i",
        b"Content-Type: text/html",
        b"",
        b"<p>Other form.</p>",
        b"--i--",
        b"--o",
        b"Content-Type: text/plain",
        b"",
        b"What the list appends.",
        b"--o--",
    ]
    read = parse_mail(b"\r\n".join(lines))
    assert "Plain ä." in read.content
    assert "What the list appends." in read.content
    assert "Other form" not in read.content


def alternatives(plain: str, html: str) -> str:
    message = EmailMessage()
    message["Subject"], message["From"] = "s", "ann@x.example"
    message.set_content(plain)
    message.add_alternative(html, subtype="html")
    return parse_mail(bytes(message)).content


def test_the_form_that_says_more_is_read():
    words = "<p>Only this form says what the meeting has decided about the budget of next year.</p>"
    assert "decided" in alternatives(" \n", words)
    assert "decided" in alternatives("Cannot show HTML.", words)
    assert "decided" not in alternatives("The budget of next year was the subject of the meeting.", words)
    table = "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Screw</td><td>1.20</td></tr></table>"
    assert "| Screw | 1.20 |" in alternatives("Item\nPrice\nScrew\n1.20\n", table)
    assert "| Screw" not in alternatives(
        "Item\nPrice\nScrew\n1.20\nAnd much more that the other form leaves out.", table
    )


def test_a_small_encoding_means_what_programs_write_under_its_name():
    head = b"Subject: s\r\nFrom: a@x.example\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\n"
    assert parse_mail(head + "“5 €” – done".encode("cp1252")).content.endswith("“5 €” – done")


def test_lines_that_were_broken_to_be_sent_are_whole_again():
    def read(params: str, text: str) -> str:
        head = f"Subject: s\r\nFrom: a@x.example\r\nContent-Type: text/plain; charset=utf-8; {params}\r\n\r\n"
        return parse_mail((head + text.replace("\n", "\r\n")).encode()).content.partition("\n\n")[2]

    text = "One sentence that \nwas broken.\n From its own line.\n\n> quoted \n> words\n>> older \n> newer\n-- \nAnn"
    assert read("format=flowed", text) == (
        "One sentence that was broken.\nFrom its own line.\n\n> quoted words\n>> older\n> newer\n-- \nAnn"
    )
    assert read("format=flowed; delsp=yes", "会議は \n三時です") == "会議は三時です"
    assert read("format=fixed", "kept \napart") == "kept \napart"


def part(kind: int, value: bytes) -> bytes:
    return struct.pack("<BII", 2, kind, len(value)) + value + b"\0\0"


def winmail() -> bytes:
    name = "Größe.csv".encode("utf-16-le") + b"\0\0"
    long_name = b"\x1f\x00\x07\x37" + struct.pack("<II", 1, len(name)) + name
    return (
        struct.pack("<IH", 0x223E9F78, 1)
        + part(0x00069002, b"\0" * 14)
        + part(0x00018010, b"GROE~1.CSV\0")
        + part(0x0006800F, b"a,b\n1,2\n")
        + part(0x00069005, long_name)
        + part(0x00069002, b"\0" * 14)
        + part(0x00018010, b"note.txt\0")
        + part(0x0006800F, b"A note.")
    )


def test_winmail_is_unpacked():
    message = EmailMessage()
    message["Subject"], message["From"] = "s", "ann@x.example"
    message.set_content("See attached.")
    message.add_attachment(winmail(), maintype="application", subtype="ms-tnef", filename="winmail.dat")
    document = read_bytes(bytes(message), name="a.eml")
    assert [(one.source, one.content) for one in document.attachments] == [
        ("2.1-Größe.csv", "a: 1; b: 2"),
        ("2.2-note.txt", "A note."),
    ]
    assert document.metadata["attachments"] == "Größe.csv, note.txt"


@pytest.mark.parametrize("cut", [0, 3, 6, 10, 40, 60, 100])
def test_a_damaged_winmail_gives_what_is_whole(cut: int):
    assert len(unpack_tnef(winmail()[:cut], "2")) <= 1
    assert unpack_tnef(winmail().replace(b"\x08\0\0\0", b"\xff\xff\xff\xff", 1), "2") is not None


def test_ornaments_of_a_letterhead_are_no_documents():
    message = EmailMessage()
    message["Subject"], message["From"] = "s", "ann@x.example"
    message.set_content("Text.")
    message.add_attachment(
        b"\x89PNG\r\n" + b"\0" * 900, maintype="image", subtype="png", disposition="inline", filename="l.png"
    )
    document = read_bytes(bytes(message), name="a.eml")
    assert document.attachments == ()
    assert "attachments_left_out" not in document.metadata


def test_a_file_without_a_name_and_one_encoded_as_nobody_should():
    message = EmailMessage()
    message["Subject"], message["From"] = "s", "ann@x.example"
    message.set_content("Text.")
    message.add_attachment(b"Unnamed text.", maintype="text", subtype="plain")
    message.add_attachment(b"%%%", maintype="text", subtype="plain", filename="=?utf-9?b?zzz?= .txt")
    document = read_bytes(bytes(message), name="a.eml")
    first, second = document.attachments
    assert (first.source, first.content, second.content) == ("2-attached.txt", "Unnamed text.", "%%%")
