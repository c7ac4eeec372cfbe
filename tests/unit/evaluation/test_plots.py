from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.evaluation.html_report import Series, bar_chart, legend, line_chart, shares, ticks

positive = st.floats(1e-3, 1e6)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


def test_bars_are_as_long_as_their_values():
    root = ET.fromstring(
        bar_chart([("recall", [("a", 0.5), ("b", 1.0)]), ("mrr", [("a", 0.0), ("b", 0.25)])], title="t")
    )
    widths = [float(bar.get("width")) for bar in root.iter("rect")]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)
    assert widths[3] == pytest.approx(widths[0] / 2, abs=0.2)
    assert widths[2] == 0.5
    assert [bar.get("class") for bar in root.iter("rect")] == ["s0", "s1", "s0", "s1"]
    ends = [float(bar.get("x")) + float(bar.get("width")) for bar in root.iter("rect")]
    assert max(ends) < 440


def test_a_line_goes_where_its_points_are():
    chart = line_chart([Series("a", ((1, 0.0), (10, 0.5), (100, 1.0)))], title="t", x_label="k", y_label="recall")
    (line,) = ET.fromstring(chart).iter("polyline")
    (x1, y1), (x2, y2), (x3, y3) = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert y1 > y3


@given(
    st.lists(st.builds(Series, names, st.lists(st.tuples(positive, st.floats(-1, 2))).map(tuple)), max_size=8),
    names,
)
def test_whatever_the_figures_and_names_it_is_a_picture_that_fits(lines, name):
    chart = line_chart(lines, title=name, x_label=name, y_label=name)
    root = ET.fromstring(chart)
    width, height = map(float, root.get("viewBox").split()[2:])
    for line in root.iter("polyline"):
        for point in line.get("points").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
    bars = bar_chart([(name, [(name, 0.5), (name, 7.0)])], title=name)
    ET.fromstring(bars)
    ET.fromstring(legend([name]))


def test_names_cannot_become_markup():
    evil = '<script>alert(1)</script>"'
    for markup in (
        bar_chart([(evil, [(evil, 1.0)])], title=evil),
        line_chart([Series(evil, ((1, 1),))], title=evil, x_label=evil, y_label=evil),
        legend([evil]),
    ):
        assert "<script" not in markup
        ET.fromstring(markup)


@given(positive, positive)
def test_ticks_are_few_and_within_and_round_over_more_than_a_power_of_ten(a, b):
    low, high = sorted((a, b))
    found = ticks(low, high)
    assert 1 <= len(found) <= 8
    assert found == sorted(set(found))
    assert all(low <= tick <= high for tick in found)
    if high > 100 * low:
        assert all(re.fullmatch(r"[125]0*(\.0+)?|0\.0*[125]", f"{tick:.9f}".rstrip("0").rstrip(".")) for tick in found)


@given(st.lists(st.floats(0, 1e6), max_size=300))
def test_a_distribution_rises_to_one(values):
    points = shares(values)
    assert list(points) == sorted(points)
    assert len(points) <= 100
    if values:
        assert points[-1] == (max(values), 1.0)
    for x, share in points:
        assert sum(value <= x for value in values) >= share * len(values) - 1e-9
