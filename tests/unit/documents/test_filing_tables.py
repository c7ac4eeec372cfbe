"""Tables and items of annual reports, beside what people read on the pages."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path

import pytest
from pypdfium2 import PdfDocument

from hostile import EFFORT
from recollect.documents.reader import parse

PDFS = (Path(__file__).resolve().parents[3] / "../shared/data/filings/pdf").resolve()

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not PDFS.is_dir(), reason="the development data is not beside the checkout"),
]

# Read off the pictures of ten pages: file, page, the ends of the columns' labels, and rows of label and values.
# "~" is the dash for nothing.
CELLS = """
3M_2018_10K 60: 2018, 2017, 2016
Net income including noncontrolling interest: 5,363 4,869 5,058
Depreciation and amortization: 1,488 1,544 1,474
Company pension and postretirement contributions: (370) (967) (383)
Gain on sale of businesses: (545) (586) (111)
Deferred income taxes: (57) 107 7
Changes in assets and liabilities › Accounts receivable: (305) (245) (313)
Net cash provided by (used in) operating activities: 6,439 6,240 6,662
Purchases of property, plant and equipment (PP&E): (1,577) (1,373) (1,420)
Proceeds from sale of businesses, net of cash sold: 846 1,065 142
Dividends paid to shareholders: (3,193) (2,803) (2,678)
Cash and cash equivalents at end of period: 2,853 3,053 2,398

3M_2018_10K 58: December 31, 2018; December 31, 2017
Finished goods: 2,120 1,915
Total current assets: 13,709 14,277
Property, plant and equipment — net: 8,738 8,866
Goodwill: 10,051 10,513
Long-term debt: 13,411 12,096

3M_2018_10K 96: Level 1 › 2018; Level 1 › 2017; Level 2 › 2018; Level 2 › 2017; Level 3 › 2017
Equities › U.S. equities: 1,369 1,568 ~ ~ ~
U.S. corporate bonds: 9 10 2,941 2,904 ~
Private Equity › Derivative instruments: ~ ~ ~ ~ (7)
Total Fixed Income: 1,900 2,680 4,347 4,282 ~
Total Cash and Cash Equivalents: 412 109 3 (488) 1

3M_2022_10K 25: 2022 › Net Sales; 2022 › % of Total; 2022 › Operating Income (Loss); 2021 › Net Sales
Safety and Industrial: 11,604 33.9% 1,199 11,981
Transportation and Electronics: 8,902 26.0 1,012 9,262
Consumer: 5,298 15.5 994 5,513
Total Company: 34,229 100.0% 6,539 35,355

3M_2022_10K 25: Year ended December 31, 2022 › Organic sales; Divestitures; Translation; Total sales change
Safety and Industrial: 1.0% ~% (4.2)% (3.2)%
Health Care: 3.2 (1.4) (3.8) (2.0)
Consumer: (0.9) (0.4) (2.6) (3.9)

3M_2022_10K 25: Year ended December 31, 2021 › Americas; Asia Pacific; Europe, Middle East & Africa; Worldwide
Net sales (millions): 18,097 10,600 6,660 35,355
Organic sales: 9.8 8.5 6.3 8.8
Total sales change: 9.5% 10.8% 9.0% 9.9%

ACTIVISIONBLIZZARD_2019_10K 70: 2019, 2018, 2017
Product sales: 1,975 2,255 2,110
Total net revenues: 6,489 7,500 7,017
Cost of revenues—product sales › Product costs: 656 719 733
Product development: 998 1,101 1,069
Interest and other expense (income), net (Note 18): (26) 71 146
Loss on extinguishment of debt: ~ 40 12
Net income: 1,503 1,848 273
Earnings per common share › Basic: 1.96 2.43 0.36
Earnings per common share › Diluted: 1.95 2.40 0.36
Weighted-average number of shares outstanding › Diluted: 771 771 766

ACTIVISIONBLIZZARD_2019_10K 69: At December 31, 2019; At December 31, 2018
Cash and cash equivalents: 5,794 4,225
Inventories, net: 32 43
Property and equipment, net: 253 282
Accounts payable: 292 253
Retained earnings: 7,813 6,593

ACTIVISIONBLIZZARD_2019_10K 93: December 31, 2019; (Level 1); (Level 2); (Level 3)
Money market funds: 5,320 5,320 ~ ~
Foreign government treasury bills: 37 37 ~ ~
U.S. treasuries and government agency securities: 65 65 ~ ~
Total recurring fair value measurements: 5,422 5,422 ~ ~

CVSHEALTH_2022_10K 110: At December 31 › 2022; At December 31 › 2021
Cash and cash equivalents: 12,945 9,408
Assets held for sale: 908 ~
Total current assets: 65,682 60,008
Property and equipment, net: 12,873 12,896
Goodwill: 78,150 79,121
Total assets: 228,275 232,999
Policyholders’ funds: 1,500 4,301
Accumulated other comprehensive income (loss): (1,465) 965
Total shareholders’ equity: 71,315 75,381

CVSHEALTH_2022_10K 146: Value; Level 1; Level 2; Level 3; Total
December 31, 2022 › Assets › Mortgage loans: 1,044 ~ ~ 978 978
With a fixed maturity: 3 ~ ~ 3 3
Without a fixed maturity: 332 ~ ~ 305 305

JOHNSON_JOHNSON_2022_10K 46: 2022, 2021
Cash and cash equivalents (Notes 1 and 2): 14,127 14,487
Inventories (Notes 1 and 3): 12,483 10,387
Total assets: 187,378 182,018
Accrued liabilities: 11,456 13,612
Long-term debt (Note 7): 26,888 29,985
Accumulated other comprehensive income (loss) (Note 13): (12,967) (13,058)
Retained earnings: 128,345 123,060

PFIZER_2021_10K 57: 2021, 2020, 2019
Revenues: 81,288 41,651 40,905
Cost of sales(a): 30,821 8,484 8,054
Research and development expenses(a): 13,829 9,393 8,385
(Gain) on completion of Consumer Healthcare JV transaction: ~ (6) (8,107)
Other (income)/deductions––net: (4,878) 1,219 3,497
Net income before allocation to noncontrolling interests: 22,025 9,195 16,056
Weighted-average shares––basic: 5,601 5,555 5,569
"""

# In the same form, of pages that were drawn by lot, and of two beside which a rule was repaired.
FURTHER_CELLS = Path(__file__).resolve().parents[2] / "data/filing_cells.txt"

# Where items begin, by their own words: what stands between two of them stands under the first.
ITEMS = {
    "3M_2018_10K": "1 1A 1B 2 3 4 5 6 7 7A 8 9 9A 9B 10 11 12 13 14 15 16",
    "3M_2022_10K": "1 1A 1B 2 3 4 5 6 7 7A 8 9 9A 9B 9C 10 11 12 13 14 15 16",
    "ACTIVISIONBLIZZARD_2019_10K": "1 1A 1B 2 3 4 5 6 7 7A 8 9 9A 9B 10 11 12 13 14 15 16",
    "CVSHEALTH_2022_10K": "1 1A 1B 2 3 4 5 6 7 7A 8 9 9A 9B 9C 10 11 12 13 14 15 16",
    "JOHNSON_JOHNSON_2022_10K": "1 1A 1B 2 3 4 5 6 7 7A 8 9 9A 9B 9C 10 11 12 13 14 15 16",
    # 1B, 4 and 9B are named in its table of contents alone.
    "PFIZER_2021_10K": "1 1A 2 3 5 6 7 7A 8 9 9A 10 11 12 13 14 15 16",
}


@cache
def read(name):
    return parse((PDFS / f"{name}.pdf").read_bytes(), f"{name}.pdf")


@cache
def tables_of(name, page):
    """The tables of a page, taken out of its file: labels of the columns, and rows."""
    with PdfDocument(PDFS / f"{name}.pdf") as whole, PdfDocument.new() as alone:
        alone.import_pages(whole, [page - 1])
        data = io.BytesIO()
        alone.save(data)
    content = parse(data.getvalue(), f"{name}.pdf").content
    tables = []
    for block in re.finditer(r"(?:^\|[^\n]*(?:\n|\Z))+", content, re.MULTILINE):
        header, _, *rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in block[0].strip().split("\n")]
        tables.append((header[1:], rows))
    return tables


def plain(value):
    return re.sub(r"[$\s]", "", value).replace("—", "~")


def held(tables, label, column, value):
    """Whether a value stands in the row and the column of these labels."""
    return any(
        (row[0] == label or row[0].endswith(f"› {label}"))
        and any(named.endswith(column) and plain(cell) == value for named, cell in zip(names, row[1:], strict=True))
        for names, rows in tables
        for row in rows
    )


def listed(cells):
    """File, page, label, column and value of each cell."""
    for block in cells.strip().split("\n\n"):
        head, *rows = block.split("\n")
        place, names = head.split(": ", 1)
        file, page = place.split()
        columns = [one.strip() for one in re.split(";" if ";" in names else ",", names)]
        for row in rows:
            label, values = row.rsplit(": ", 1)
            for column, value in zip(columns, values.split(), strict=True):
                yield file, int(page), label, column, value


@pytest.mark.parametrize(
    ("listing", "pages"),
    [(CELLS, 10), (FURTHER_CELLS.read_text(encoding="utf-8"), 37)],
    ids=["ten pages", "drawn by lot"],
)
def test_cells_stand_in_their_rows_and_columns(listing, pages):
    cells = list(listed(listing))
    assert len(cells) >= 200
    assert len({(file, page) for file, page, *_ in cells}) >= pages
    wrong = [cell for cell in cells if not held(tables_of(*cell[:2]), *cell[2:])]
    assert len(wrong) <= 0.05 * len(cells), wrong


# Other reports take ten seconds more each.
_ALWAYS = ("JOHNSON_JOHNSON_2022_10K", "3M_2018_10K", "PFIZER_2021_10K")


@pytest.mark.parametrize("name", ITEMS if EFFORT > 1 else _ALWAYS)
def test_what_stands_under_an_item_is_found_under_it(name):
    parsed = read(name)
    found = [heading for heading in parsed.headings if re.match(r"item\s", heading.title, re.IGNORECASE)]
    assert [one.title.split()[1].strip(".").upper() for one in found] == ITEMS[name].split()
    assert len({one.level for one in found}) == 1
    level = found[0].level
    inside = [one for one in parsed.headings if one.start_offset > found[0].start_offset]
    # Nothing but a part is of a higher rank, so that the sections below an item cannot end it.
    assert all(one.level > level or one in found or one.title.upper().startswith("PART") for one in inside)
    assert found[0].start_offset < 0.08 * len(parsed.content)
