from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.evaluation.datasets import load_beir, load_spans, read_date

SHARED = Path(__file__).resolve().parents[3] / "../shared/data"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-05-08", datetime(2023, 5, 8, tzinfo=UTC)),
        ("2023-05-08T13:56:00+02:00", datetime.fromisoformat("2023-05-08T13:56:00+02:00")),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("8 May 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("May 8, 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("the other day", None),
        ("", None),
        (None, None),
    ],
)
def test_dates_in_the_forms_in_use(text: str, expected: datetime | None):
    assert read_date(text) == expected


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the development data is not beside the checkout")
def test_the_development_data():
    cranfield = load_beir(SHARED / "cranfield")
    assert len(cranfield.questions) == 225
    assert sum(1 for _ in cranfield.documents()) >= 1398
    assert max(max(question.answers.values()) for question in cranfield.questions) == 5
    chunking = load_spans(SHARED / "chunking")
    assert (len(list(chunking.documents())), len(chunking.questions)) == (3, 229)
