"""Titles of reports to the Securities and Exchange Commission, read off their covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.documents import read_file
from recollect.documents._parsed import filing_title

PDFS = (Path(__file__).resolve().parents[3] / "../shared/data/filings/pdf").resolve()
HEAD = "UNITED STATES\n\nSECURITIES AND EXCHANGE COMMISSION\n\nWashington, D.C. 20549\n\n"
COVER = HEAD + (
    "FORM 10-K\n\n(Mark One)\n\n☑ ANNUAL REPORT PURSUANT TO SECTION 13 OR 15(d) OF THE SECURITIES EXCHANGE ACT OF 1934 "
    "For the fiscal year ended December 31, 2022\nCommission file number: 001-01011\n\nACME WIDGETS, INC.\n\n"
    "(Exact name of registrant as specified in its charter)\nDelaware  05-0494040\n"
    "Title of each class  Trading Symbol(s)  Name of each exchange on which registered\n"
    "Common Stock, par value $0.01 per share  ACME  New York Stock Exchange\n"
    "0.950% Notes due 2023  ACME23  New York Stock Exchange\n"
)
TITLE = "ACME WIDGETS, INC. (ACME), Form 10-K, fiscal year ended December 31, 2022"


@pytest.mark.parametrize(
    ("cover", "title"),
    [
        (COVER, TITLE),
        (COVER.replace("(Exact name of registrant as specified in its charter)\n", ""), TITLE),
        (COVER.replace("  ACME  New", "  New"), TITLE.replace(" (ACME)", "")),
        (COVER.replace("  ACME  New", " | ACME | New"), TITLE),
        (COVER.replace("\n\nSECURITIES", " SECURITIES"), TITLE),
    ],
)
def test_the_cover_says_company_form_and_period(cover, title):
    assert filing_title(cover) == title


@pytest.mark.parametrize(
    ("form", "period", "expected"),
    [
        (
            "FORM 10-K",
            "for the fiscal year ended January 1, 2023",
            "Form 10-K, fiscal year 2022, ended January 1, 2023",
        ),
        ("Form 10-K/A", "For the Year Ended May 31, 2023", "Form 10-K/A, year ended May 31, 2023"),
        (
            "FORM 10-Q",
            "for the quarterly period ended MARCH 31,2023",
            "Form 10-Q, quarterly period ended March 31, 2023",
        ),
    ],
)
def test_periods_are_named_as_people_name_them(form, period, expected):
    cover = COVER.replace("FORM 10-K", form).replace("For the fiscal year ended December 31, 2022", period)
    assert filing_title(cover) == f"ACME WIDGETS, INC. (ACME), {expected}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Letter to the Securities and Exchange Commission\n\nWe write about your form 10-K.",
        COVER.replace("COMMISSION", "OFFICE"),
        COVER.replace("FORM 10-K", "PROXY STATEMENT"),
        COVER.replace("For the fiscal year ended", "As of"),
        "x" * 2_000 + COVER,
        HEAD + "FORM 10-K\nfor the fiscal year ended May 31, 2022\nCommission file number",
        HEAD + "FORM 10-K\nfor the fiscal year ended May 31, 2022\nCommission file number\n" + "A" * 200,
    ],
)
def test_other_texts_have_no_such_title(text):
    assert filing_title(text) is None


@pytest.mark.shared
@pytest.mark.skipif(not PDFS.is_dir(), reason="the development filings are not beside this checkout")
def test_a_pdf_file_is_titled_by_its_cover():
    read = read_file(PDFS / "ACTIVISIONBLIZZARD_2019_10K.pdf", source="a.pdf")
    assert read.title == "ACTIVISION BLIZZARD, INC. (ATVI), Form 10-K, fiscal year ended December 31, 2019"
