from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE, passage, written
from recollect.answer import verify
from recollect.answer.writing import markers_in

OTHER = "The canteen opens at 11:30. Lunch costs EUR 6. Guests pay EUR 9."
CONTENTS = {1: LEAVE, 2: OTHER}
BLOCKS = [passage(LEAVE), passage(OTHER, document_id=2, source="general/canteen.txt", rank=2)]


def test_markers_are_renumbered_by_first_use_and_quotes_support_the_statement():
    cited = written("Lunch costs EUR 6 [2]. You have 28 days of annual leave [1].", BLOCKS)
    assert cited.text == "Lunch costs EUR 6 [1]. You have 28 days of annual leave [2]."
    canteen, leave = cited.citations
    assert (canteen.source, canteen.quote) == ("general/canteen.txt", "Lunch costs EUR 6.")
    assert leave.quote == "Full-time employees receive 28 days of paid annual leave per calendar year."
    assert verify(cited.text, cited.citations, CONTENTS) == ()


@pytest.mark.parametrize(
    ("text", "expected", "documents"),
    [
        ("Yes [Source 2].", "Yes [1].", [2]),
        ("Yes [2, 1].", "Yes [1][2].", [2, 1]),
        ("Yes [Sources 1 and 2].", "Yes [1][2].", [1, 2]),
        ("Yes [source 1; source 2]", "Yes [1][2]", [1, 2]),
        ("Yes [Source 2: general/canteen.txt | Section: Lunch].", "Yes [1].", [2]),
        ("Yes [1][1][2].", "Yes [1][1][2].", [1, 2]),
        ("Yes [7].", "Yes.", []),
        ("Yes [0, 2, 99].", "Yes [1].", [2]),
        ("In [2025] it was so.", "In [2025] it was so.", []),
        ("No marker.", "No marker.", []),
    ],
)
def test_marker_forms(text, expected, documents):
    cited = written(text, BLOCKS)
    assert cited.text == expected
    assert [citation.document_id for citation in cited.citations] == documents


def test_neighbouring_sentences_that_support_two_statements_are_quoted_together():
    cited = written("Lunch is EUR 6 [2]. For guests it is EUR 9 [2].", BLOCKS)
    (citation,) = cited.citations
    assert citation.quote == "Lunch costs EUR 6. Guests pay EUR 9."


def test_sentences_far_apart_are_not_joined_to_a_long_quote():
    text = "Alpha opens at nine. " + "Nothing to see here at all. " * 60 + "Omega closes at five."
    (citation,) = written("Alpha opens at nine [1]. Omega closes at five [1].", [passage(text)]).citations
    assert citation.quote in {"Alpha opens at nine.", "Omega closes at five."}


class TestVerify:
    def good(self):
        return written("Lunch costs EUR 6 [2]. There are 28 days of leave [1].", BLOCKS)

    def test_reports_each_fault(self):
        cited = self.good()
        first, second = cited.citations
        wrong_quote = (replace(first, quote="Lunch costs EUR 5."), second)
        assert "quote of citation 1 differs" in verify(cited.text, wrong_quote, CONTENTS)[0]
        outside = (replace(first, end_offset=10_000), second)
        assert "offsets outside" in verify(cited.text, outside, CONTENTS)[0]
        assert "not among the contents" in verify(cited.text, cited.citations, {1: LEAVE})[0]
        assert "not 1 to 2" in verify(cited.text, (second, first), CONTENTS)[0]
        assert "appear in the text in the order" in verify("B [2]. A [1].", cited.citations, CONTENTS)[0]
        assert "no marker in the text" in verify("A [1].", cited.citations, CONTENTS)[0]

    def test_an_empty_quote_is_a_fault(self):
        cited = self.good()
        empty = replace(cited.citations[0], end_offset=cited.citations[0].start_offset, quote="")
        assert verify(cited.text, (empty, cited.citations[1]), CONTENTS)


pieces = st.one_of(
    st.sampled_from(["[1]", "[2]", "[3]", "[9]", "[1, 3]", "[Source 2]", ". ", "\n", "28 days", "[", "]", "[0]"]),
    st.text(max_size=20),
)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(pieces, max_size=12),
    contents=st.lists(st.text(min_size=1, max_size=120), min_size=1, max_size=3),
)
def test_whatever_a_model_writes_the_citations_hold(parts, contents):
    documents = dict(enumerate(contents, start=1))
    blocks = [passage(content, document_id=number) for number, content in documents.items()]
    cited = written("".join(parts), blocks)
    assert verify(cited.text, cited.citations, documents) == ()
    markers = [number for number in markers_in(cited.text) if number <= len(cited.citations)]
    assert markers == list(range(1, len(cited.citations) + 1))
