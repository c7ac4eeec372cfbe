from __future__ import annotations

import shutil
from dataclasses import replace

from recollect.cli.demo import handbook
from recollect.model.answer import REFUSAL


def test_the_demo_answers_refuses_and_is_quick_the_second_time(recollect_with_model, tmp_path):
    first = recollect_with_model("demo")
    assert first.out.count("? ") >= 3
    assert "38 documents" in first.out
    assert "During probation the notice period is 2 weeks in Germany. [1]" in first.out
    assert "No exact answer found. These passages may help:" in first.out
    assert "[1] hr/remote_work_policy.md" in first.out
    assert REFUSAL in first.out
    assert "No document says anything about the last one, and nothing is made up." in first.out
    assert "Try next" in first.out
    assert "ask -c demo" in first.out

    again = recollect_with_model("demo", "--json").json
    assert again["ingest"]["unchanged"] == 38
    assert [answer["outcome"] for answer in again["answers"]] == ["answer", "passages", "none"]
    assert [answer["refused"] for answer in again["answers"]] == [False, True, True]
    wide = recollect_with_model.environment | {"COLUMNS": "60"}
    # A handbook that was moved does not answer twice.
    copy = tmp_path / "elsewhere" / "handbook"
    shutil.copytree(handbook(), copy)
    recollect_with_model("ingest", copy, "-c", "demo")
    narrow = replace(recollect_with_model, environment=wide)("demo")
    assert all(len(line) <= 60 for line in narrow.out.splitlines() if not line.startswith(("  ", "[")))
    assert recollect_with_model("status", "--json").json["total_documents"] == 38
