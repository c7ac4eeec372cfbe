from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from recollect.errors import UsageError
from recollect.evaluation.compare import SystemRun, compare
from recollect.evaluation.html_report import render_report
from recollect.evaluation.scoring import Outcome, ShownHit

VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Follows the open elements, and gathers what would be fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.text, self.elements = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.fetched += [value for name, value in attrs if name in {"src", "href", "srcset", "data", "action"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def run(name, values, query="how long?"):
    return SystemRun(
        name=name,
        outcomes=tuple(
            Outcome(
                query_id=str(n),
                query=f"{query} {n}",
                metrics={"precision": value / 2, "recall": value},
                milliseconds=float(n + 1),
                curve=(value / 2, value),
                expected=(f"thirty days {n}",),
                found=(ShownHit("hr/leave.md › Annual", "You have thirty days.", value > 0.5),),
            )
            for n, value in enumerate(values)
        ),
    )


def page(runs, **options):
    given = {"title": "Handbook", "curve_points": (1, 10), "curve_label": "passages", **options}
    html = render_report(runs, **given)
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    return html, checker


def test_the_page_is_whole_and_fetches_nothing():
    runs = [run("first", [0.2, 1.0, 0.7]), run("second", [1.0, 1.0, 1.0])]
    html, checker = page(runs, comparison=compare(runs, samples=200), subtitle="3 queries")
    assert checker.fetched == []
    assert checker.elements.count("svg") == 3
    assert "script" not in checker.elements
    assert not re.search(r"url\(|@import|https?:", html)
    text = " ".join(checker.text)
    for expected in ("Handbook", "3 queries", "first", "second", "no difference shown", "0.6333", "passages"):
        assert expected in text
    assert "$" not in text


def test_the_worst_queries_come_first_and_perfect_ones_not_at_all():
    html, checker = page([run("only", [0.7, 1.0, 0.2, 0.9])])
    assert checker.elements.count("details") == 3
    places = [html.index(f"how long? {n}") for n in (2, 0, 3)]
    assert places == sorted(places)
    assert "thirty days 2" in html
    assert "✗ hr/leave.md › Annual" in html
    assert "✓ hr/leave.md › Annual" in html
    assert page([run("only", [0.7, 0.1, 0.2])], worst=1)[1].elements.count("details") == 1


def test_a_perfect_system_is_said_to_be_one():
    text = " ".join(page([run("only", [1.0, 1.0])])[1].text)
    assert "only has found everything that was looked for." in text


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "$title ${legend}"])
def test_texts_of_queries_and_documents_stay_texts(evil):
    _, checker = page([run(evil, [0.1], query=evil)], title=evil, subtitle=evil, curve_label=evil)
    assert not {"script", "img"} & set(checker.elements)
    assert evil in "".join(checker.text)


def test_what_cannot_be_compared():
    first, shorter = run("first", [0.2, 1.0]), run("shorter", [0.2])
    for others in ([], [first], [shorter], [SystemRun(name="none", outcomes=())]):
        with pytest.raises(UsageError):
            compare([first, *others])
