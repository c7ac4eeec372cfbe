"""One real file of each of many formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.documents import read_file
from recollect.errors import ParseError

FILES = (Path(__file__).resolve().parents[3] / "../shared/data/files").resolve()
PATHS = sorted(path for path in FILES.glob("*/*") if path.is_file())

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not PATHS, reason="the development data is not beside the checkout"),
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_every_file_reads_or_says_why(path):
    reason = {"encrypted-password.pdf": "password", "empty.pdf": "empty"}.get(path.name)
    if reason:
        with pytest.raises(ParseError, match=reason):
            read_file(path, source=path.name)
        return
    document = read_file(path, source=path.name)
    assert document.content.strip()
    assert "data:image" not in document.content
    assert path.suffix != ".pdf" or document.pages


def read(name):
    return read_file(FILES / name, source=name)


def test_two_columns_are_read_one_after_the_other():
    content = read("pdf/multicolumn.pdf").content
    assert "consectetuer adipiscing elit. Ut purus elit, vestibulum ut, placerat ac" in content


def test_arabic_letters_stand_in_the_order_in_which_they_are_read():
    assert "حَبيبي" in read("pdf/arabic.pdf").content


def test_page_numbers_of_a_long_document():
    document = read("pdf/GeoTopo-komprimiert.pdf")
    assert document.pages[-1].number == 117
    assert document.page_at(document.content.index("Danksagungen")) == 2


def test_sections():
    document = read("pdf/mistitled_outlines_example.pdf")
    assert [one.title for one in document.headings][1:] == [
        f"{n} {w}" for n, w in enumerate(["Foo", "Bar", "Baz"] * 3, 1)
    ] or (len(document.headings) >= 9)
