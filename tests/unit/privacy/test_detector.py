"""What counts as personal data, and what only looks like it."""

from __future__ import annotations

import logging

import pytest

from recollect.privacy.detector import Detector, Finding, counted, told, without_overlaps


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector()


def found(detector: Detector, text: str) -> list[tuple[str, str]]:
    return [(one.kind, text[one.start : one.end]) for one in detector.find(text)]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Write to ann.o'neil+hr@corp.internal.", "email", "ann.o'neil+hr@corp.internal"),
        ("müller@straße.de schreibt", "email", "müller@straße.de"),
        ("Card 4111 1111 1111 1111.", "payment_card", "4111 1111 1111 1111"),
        ("amex 3782-822463-10005", "payment_card", "3782-822463-10005"),
        ("5555555555554444", "payment_card", "5555555555554444"),
        ("IBAN: DE89 3704 0044 0532 0130 00 2 days", "iban", "DE89 3704 0044 0532 0130 00"),
        ("gb82west12345698765432", "iban", "gb82west12345698765432"),
        ("Call +49 171 1234567 now", "phone", "+49 171 1234567"),
        ("(415) 555-2671", "phone", "(415) 555-2671"),
        ("020 7946 0958", "phone", "020 7946 0958"),
        ("Phone: 4155552671", "phone", "4155552671"),
        ("123-45-6780", "national_id", "123-45-6780"),
        ("my ssn is 536904399", "national_id", "536904399"),
        ("131052-308T", "national_id", "131052-308T"),
        ("NINO AB123456C", "national_id", "AB123456C"),
        ("NHS number 943 476 5919", "national_id", "943 476 5919"),
        ("AB 12 34 56 C", "national_id", "AB 12 34 56 C"),
        ("DNI 12345678Z", "national_id", "12345678Z"),
        ("Steuer-ID 86095742719", "national_id", "86095742719"),
        ("from 192.168.1.17 at noon", "ip_address", "192.168.1.17"),
        ("2001:db8::8a2e:370:7334", "ip_address", "2001:db8::8a2e:370:7334"),
        ("４１１１ １１１１ １１１１ １１１１", "payment_card", "４１１１ １１１１ １１１１ １１１１"),
        ("4111\u20111111\u20111111\u20111111", "payment_card", "4111\u20111111\u20111111\u20111111"),
        ("ann\u200b@exa\u00admple.com", "email", "ann\u200b@exa\u00admple.com"),
    ],
)
def test_what_is_found(detector: Detector, text: str, kind: str, value: str):
    assert found(detector, text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "Revenue was 1,234,567 in 2019 and 2,345,678 in 2020.",
        "4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01",
        "see section 3.2.1.4 of version 10.2.3.1",
        "mask 255.255.255.0 on 127.0.0.1",
        "at 12:30:45 std::vector a::b",
        "order 4000123412341234567",
        "the antagonist SR141716A",
        "Cell lines were given PD 0332991 and others",
        "2012-2013 2014-2015 12.05.2014",
        "in millions: 2023 2024 2025 2026",
        "12 345 678 901 234",
        "3@4.5 @handle a@b",
        "[redacted email] [redacted payment card]",
        "the number 943 476 5919 of something",
        "",
        "@",
    ],
)
def test_what_only_looks_like_it(detector: Detector, text: str):
    assert found(detector, text) == []


def test_what_was_known_by_its_context_is_found_without_it_too(detector: Detector):
    text = "Her NHS number is 943 476 5919." + " Filler." * 40 + " As said: 943 476 5919."
    assert found(detector, text) == [("national_id", "943 476 5919")] * 2


def test_what_stands_across_the_end_of_a_piece_is_found(detector: Detector):
    for before in (59_979, 59_985, 59_990, 59_999, 60_001):
        text = "x" * (before - 1) + " 4111 1111 1111 1111 and more"
        assert found(detector, text) == [("payment_card", "4111 1111 1111 1111")]


@pytest.mark.parametrize(
    "piece", ["a@", "1", "1 ", "+1", "a-", "0 0", "DE89 ", "(", "::", "1.", "AB12", "a@b.", "0-", "4111 1111 "]
)
def test_no_text_takes_longer_than_its_length_times_its_own(detector: Detector, piece: str):
    detector.find(piece * 8_000 + "x")


def test_findings_that_overlap_are_one():
    several = [Finding("phone", 5, 12, by_context=True), Finding("payment_card", 0, 8), Finding("email", 20, 22)]
    assert without_overlaps(several) == [Finding("payment_card", 0, 12), Finding("email", 20, 22)]
    assert counted(several) == {"email": 1, "payment_card": 1, "phone": 1}
    assert told(several, shown=1) == "phone at 5-12 and 2 more"


def test_nothing_of_it_reaches_a_log(detector: Detector, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        detector.find("IBAN GB82WEST12345698765432, card 4111 1111 1111 1111")
    assert caplog.text == ""
