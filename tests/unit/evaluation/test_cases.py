from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import Evidence, dump_suite, load_suite, parse_suite
from recollect.model.filter import OPERATORS

SMALL = "cases:\n- name: a\n  query: q\n  must_have: [x.md]\n"


def test_a_file_with_everything():
    suite = parse_suite(
        """
defaults:
  top_k: 5
  thresholds: {recall: 0.5, mrr: 0.2}
personas:
  anna: {department: [hr, finance], tags: staff}
cases:
- name: leave
  query: how long is leave?
  must_have:
  - hr/leave.md
  - {source: [hr/leave.md, hr/old.md], text: 30 days}
  must_not_have: {text: secret}
  as: anna
  filters: {department: hr, tags: [current], metadata: {year: 2026}}
  thresholds: {mrr: 1.0, latency_ms: 500}
- {name: pets, query: what about pets, answerable: false}
"""
    )
    leave, pets = suite.cases
    assert leave.must_have[0] == Evidence(source=("hr/leave.md",))
    assert str(leave.must_have[1]) == "“30 days” in hr/leave.md or hr/old.md"
    assert leave.must_not_have[0].text == ("secret",)
    thresholds = suite.thresholds(leave)
    assert (thresholds.recall, thresholds.mrr, thresholds.latency_ms, thresholds.precision) == (0.5, 1.0, 500, None)
    filters = suite.search(leave).filters
    assert (filters.department, filters.tags, filters.metadata) == (("hr",), ("current", "staff"), {"year": 2026})
    assert suite.search(pets).filters.department == ()
    assert suite.thresholds(pets).mrr == 0.2


def test_without_thresholds_every_must_have_is_wanted():
    suite = parse_suite(SMALL)
    assert suite.thresholds(suite.cases[0]).recall == 1


def test_a_persona_cannot_ask_beyond_what_it_sees():
    suite = parse_suite(
        "personas: {bob: {department: it}}\n"
        "cases:\n- {name: a, query: q, answerable: true, as: bob, filters: {department: hr}}\n"
        "- {name: b, query: q, answerable: true, as: bob}\n"
    )
    with pytest.raises(UsageError, match=r"'a': 'bob' sees none of the departments \['hr'\]"):
        suite.search(suite.cases[0])
    assert suite.search(suite.cases[1]).filters.department == ("it",)


def filtered(filters):
    return parse_suite(SMALL + f"  filters: {filters}\n").cases[0].filters


def test_filters_have_short_forms_and_the_full_language_beside_them():
    plain = filtered("{department: [hr, it], tags: current, metadata: {year: 2026}}")
    assert (plain.department, plain.tags, plain.metadata, plain.where) == (
        ("hr", "it"),
        ("current",),
        {"year": 2026},
        None,
    )
    full = filtered(
        "{source: a.md, department: {ne: hr}, metadata.year: {gte: 2024}, metadata: {kind: memo, pages: {lt: 9}},"
        " or: [{language: de}, {not: {source_type: {in: [web, api]}}}]}"
    )
    assert (full.source, full.department, full.metadata) == (("a.md",), (), {"kind": "memo"})
    assert full.where == {
        "department": {"ne": "hr"},
        "metadata.year": {"gte": 2024},
        "metadata.pages": {"lt": 9},
        "or": [{"language": "de"}, {"not": {"source_type": {"in": ["web", "api"]}}}],
    }


def test_dates_in_filters_are_compared_as_they_are_written():
    full = filtered("{event_time: {gte: 2026-01-31}, metadata: {from: {lte: 2026-02-01}, until: 2026-12-31}}")
    assert full.where == {"event_time": {"gte": "2026-01-31"}, "metadata.from": {"lte": "2026-02-01"}}
    assert full.metadata == {"until": "2026-12-31"}


def test_every_operator_of_the_language_is_understood():
    for operator in OPERATORS:
        operand = {"in": [1], "nin": [1], "exists": True}.get(operator, 1)
        assert filtered(f"{{metadata.n: {{{operator}: {str(operand).lower()}}}}}").where == {
            "metadata.n": {operator: operand}
        }


def test_a_persona_is_a_tenant_at_a_time():
    suite = parse_suite(
        "personas:\n"
        "  them: {tenant_id: 2}\n"
        "  then: {as_of: 2026-01-31, tags: old}\n"
        "  later: {as_of: '2026-01-31T12:00:00+02:00'}\n"
        "cases:\n"
        + "".join(f"- {{name: {n}, query: q, answerable: true, as: {n}}}\n" for n in ("them", "then", "later"))
    )
    them, then, later = map(suite.search, suite.cases)
    assert (them.tenant_id, them.as_of) == (2, None)
    assert (then.tenant_id, then.as_of, then.filters.tags) == (None, datetime(2026, 1, 31, tzinfo=UTC), ("old",))
    assert later.as_of == datetime(2026, 1, 31, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        (SMALL + "  filters: {departement: hr}", ":5: case 'a' filters: There is no field 'departement' to filter by"),
        (SMALL + "  filters: {metadata.year: {gt: 3}, tags: {gt: a}}", "case 'a' filters: 'tags' has no order"),
        (SMALL + "  filters: {title: {like: x}}", "case 'a' filters: 'title' has no operator 'like'"),
        (SMALL + "  filters: {title: {eq: x, like: y}}", "case 'a' filters: 'title' has no operator 'like'"),
        (SMALL + "  filters: {where: {tags: x}}", "case 'a' filters: There is no field 'where'"),
        (SMALL + "  filters: [hr]", "case 'a' filters: must be a mapping"),
        (SMALL + "  filters: {department: [3]}", "must be text: put '3' in quotes"),
        ("personas: {b: {roles: [admin]}}\n" + SMALL, "no such key; there are department, tags, tenant_id, as_of"),
        ("personas: {b: {tenant_id: 0}}\n" + SMALL, ":1: personas.b.tenant_id"),
        ("personas: {b: {as_of: yesterday}}\n" + SMALL, "personas.b.as_of: It must be a time such as 2026-01-31"),
        ("personas: {b: {as_of: 7}}\n" + SMALL, "personas.b.as_of: It must be a time such as 2026-01-31"),
        (SMALL + "  thresholds: {recal: 1}", "there is no such key; there are precision, recall, mrr, latency_ms"),
        ("just text", "expected a mapping"),
        ("cases: []", ":1: there are no cases"),
        ("cases: 5", ":1: cases: must be a list"),
        ("x: 1\n" + SMALL, ":1: x: there is no such key"),
        (SMALL.replace("query", "qery"), ":3: case 'a' qery: there is no such key"),
        (SMALL.replace("  query: q\n", ""), "case 'a' query: is missing"),
        (SMALL.replace("[x.md]", "[x.md, {txt: y}]"), ":4: case 'a' must_have.1.txt: there is no such key"),
        (SMALL.replace("[x.md]", "{}"), ":4: case 'a' must_have.0: give a source, a text or both"),
        (SMALL.replace("[x.md]", "{text: 30}"), "must be text: put '30' in quotes"),
        (SMALL.replace("query: q", "query: 2026-01-31"), "put '2026-01-31' in quotes"),
        (SMALL.replace("query: q", "query: ' '"), "case 'a': the query is blank"),
        (SMALL + "  thresholds: {recall: 2}", ":5: case 'a' thresholds.recall: Input should be less than or equal"),
        (SMALL + "  thresholds: {latency_ms: 0}", "greater than 0"),
        (SMALL + "  top_k: 0", "top_k"),
        (SMALL + "  answerable: false", "case 'a': a case that is not answerable has no must_have"),
        (SMALL + "- {name: a, query: r, answerable: true}", "two cases named 'a'"),
        (SMALL + "  as: bob", "case 'a' runs as 'bob', which is no persona (known: none"),
        (SMALL + "- 7", ":5: case 2: must be a mapping"),
        (SMALL + "- {query: q, name: a}", "two cases named 'a'"),
        (SMALL + "- {query: r, expected_refusal: 5}", ":5: case 2 expected_refusal: "),
        (SMALL + "- {query: r, question: r}", ":5: case 2: give question or query, not both"),
        (SMALL + "  query: r", ":5: not valid YAML: the key 'query' is there twice"),
        ("cases:\n- &one {name: a}\n- *one", ":3: not valid YAML: aliases are not allowed"),
        ("cases:\n- {{a: b}: c}", "a key must be plain text"),
        ("cases: !!python/object/apply:os.system [ls]", "not valid YAML"),
        ("cases: [", "not valid YAML"),
        ("[" * 1500, "not valid YAML"),
        ("a: 2026-99-99", "not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_complaints_name_the_place(text, complaint):
    with pytest.raises(UsageError) as error:
        parse_suite(text, name="tests.yaml")
    assert complaint in str(error.value)
    assert str(error.value).startswith("tests.yaml")


def test_every_problem_is_named_at_once():
    with pytest.raises(UsageError) as error:
        parse_suite(SMALL.replace("query", "qery"))
    assert len(str(error.value).splitlines()) == 2


def test_files(tmp_path):
    with pytest.raises(NotFoundError, match=r"none\.yaml"):
        load_suite(tmp_path / "none.yaml")
    path = tmp_path / "tests.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load_suite(path).cases[0].name == "a"
    path.write_bytes(b"cases: \xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_suite(path)
    with path.open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    with pytest.raises(UsageError, match="is larger than"):
        load_suite(path)


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(str.strip)


@given(st.lists(st.tuples(words, words, words), min_size=1, max_size=5, unique_by=lambda one: one[0]))
def test_what_is_written_reads_back(drafts):
    cases = [{"name": n, "query": q, "must_have": [{"source": s, "text": q}]} for n, q, s in drafts]
    suite = parse_suite(dump_suite(cases, comment="drafted\nby a machine"))
    assert [(c.name, c.query, c.must_have[0].source, c.must_have[0].text) for c in suite.cases] == [
        (n, q, (s,), (q,)) for n, q, s in drafts
    ]


def test_one_format_for_searches_and_answers_with_the_old_spellings():
    suite = parse_suite(
        "thresholds: {faithfulness: 0.9}\n"
        "cases:\n"
        "- question: How much leave?\n"
        "  expected_facts: [30 days, [1 April, April 1]]\n"
        '- {question: "May I bring a cat?", expected_refusal: true}\n'
        '- {name: plain, query: "Who?"}\n'
        "- {query: Passwords, must_not_have: it.md, thresholds: {recall: 0.5}}\n"
    )
    leave, cat, plain, passwords = suite.cases
    assert (leave.name, leave.query, leave.answerable) == ("How much leave?", "How much leave?", True)
    assert leave.expected_facts == (("30 days",), ("1 April", "April 1"))
    assert (cat.answerable, plain.answerable, passwords.answerable) == (False, True, None)
    assert [case.of_answer for case in suite.cases] == [True, True, True, False]
    reached = suite.thresholds(leave)
    assert (reached.recall, reached.faithfulness, reached.fact_recall) == (1.0, 0.9, 1.0)
    assert suite.thresholds(passwords).recall == 0.5
