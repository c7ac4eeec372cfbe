from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.documents import FoundFile, SkippedFile, walk
from recollect.documents.walk import ignored, rules_of


@pytest.fixture
def tree(tmp_path):
    for name in ("tests.yaml", "hr/tests.yaml", "hr/leave.md", "drafts/a.md", "hr/drafts/b.md", "hr/old/c.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", encoding="utf-8")
    return tmp_path


def found(root):
    return [one.source for one in walk([root]) if isinstance(one, FoundFile)]


@pytest.mark.parametrize(
    ("patterns", "left_out"),
    [
        ("", set()),
        ("# tests.yaml\n\n   \n/\n!", set()),
        ("tests.yaml", {"tests.yaml", "hr/tests.yaml"}),
        ("/tests.yaml", {"tests.yaml"}),
        ("hr/tests.yaml", {"hr/tests.yaml"}),
        ("drafts/", {"drafts/a.md", "hr/drafts/b.md"}),
        ("leave.md/", set()),
        ("*.md", {"hr/leave.md", "drafts/a.md", "hr/drafts/b.md"}),
        ("*.md\n!leave.md", {"drafts/a.md", "hr/drafts/b.md"}),
        ("hr/**/*.csv", {"hr/old/c.csv"}),
        ("**/b.md", {"hr/drafts/b.md"}),
        ("hr/*.csv", set()),
        ("h?/[l-m]eave.md", {"hr/leave.md"}),
        ("drafts/\n!b.md", {"drafts/a.md", "hr/drafts/b.md"}),
        ("[", set()),
    ],
)
def test_patterns(tree, patterns, left_out):
    everything = set(found(tree))
    (tree / ".recollectignore").write_text(patterns, encoding="utf-8")
    assert set(found(tree)) == everything - left_out


def test_a_deeper_file_counts_from_its_own_folder_and_has_the_last_word(tree):
    (tree / ".recollectignore").write_text("tests.yaml", encoding="utf-8")
    (tree / "hr/.recollectignore").write_text("!tests.yaml\n/leave.md", encoding="utf-8")
    assert {"hr/tests.yaml"} <= set(found(tree)).symmetric_difference({"tests.yaml", "hr/leave.md"})
    assert "tests.yaml" not in found(tree)
    assert "hr/leave.md" not in found(tree)


def test_what_is_ignored_is_reported_with_its_reason_and_can_still_be_given_by_name(tree):
    (tree / ".recollectignore").write_bytes(b"\xef\xbb\xbftests.yaml\r\n\xff\n")
    skipped = {one.source: one for one in walk([tree]) if isinstance(one, SkippedFile)}
    assert skipped["tests.yaml"].kind == "ignored"
    assert ".recollectignore" in skipped["tests.yaml"].reason
    assert found(tree / "tests.yaml") == ["tests.yaml"]


@given(st.text("ab*?[]!/#. \\", max_size=30), st.text("ab/.", min_size=1, max_size=20), st.booleans())
def test_no_pattern_breaks_and_negation_inverts(tmp_path_factory, pattern, path, is_folder):
    folder = tmp_path_factory.mktemp("rules")
    (folder / ".recollectignore").write_text(f"**\n!{pattern}", encoding="utf-8")
    rules = rules_of(folder, "")
    (folder / ".recollectignore").write_text(pattern.lstrip(" !"), encoding="utf-8")
    alone = rules_of(folder, "")
    if len(rules) == 2 and len(alone) == 1 and not pattern.strip().startswith(("!", "#")):
        assert ignored(rules, path, is_folder=is_folder) != ignored(alone, path, is_folder=is_folder)


def test_a_hostile_pattern_takes_no_time(tree):
    (tree / ".recollectignore").write_text("\n".join(["*a" * 100 + "b", "**/" * 100 + "x"]), encoding="utf-8")
    (tree / ("a" * 200)).write_text("", encoding="utf-8")
    assert "hr/leave.md" in found(tree)
