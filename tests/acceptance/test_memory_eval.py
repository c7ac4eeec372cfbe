"""``recollect eval memory`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "conversations" / "locomo-dev.json"

FILE = {
    "conversations": [
        {
            "id": name,
            "sessions": [
                {
                    "id": f"{name}-1",
                    "date": "2023-05-08",
                    "turns": [
                        {"id": "1", "speaker": "Ada", "text": f"I moved to {place} with my sister."},
                        {"id": "2", "speaker": "Ben", "text": "Which neighbourhood?"},
                        {"id": "3", "speaker": "Ada", "text": "Close to the castle."},
                    ],
                }
            ],
            "questions": [{"question": f"Who moved to {place}?", "category": 1, "evidence": ["1"]}],
        }
        for name, place in (("first", "Lisbon"), ("second", "Oslo"))
    ]
}


def test_figures_as_json_and_for_people_and_nothing_left_behind(recollect, tmp_path: Path):
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(FILE))
    figures = recollect("eval", "memory", path, "--json").json
    assert figures["metrics"] == {
        "evidence_recall@5": 1.0,
        "evidence_recall@10": 1.0,
        "evidence_recall@20": 1.0,
        "session_hit@10": 1.0,
    }
    assert (figures["questions"], figures["turns"]) == (2, 6)
    assert set(figures["by_conversation"]) == {"first", "second"}
    shown = recollect("eval", "memory", path, "--mode", "lexical").out
    assert "recall@10" in shown
    assert "2 questions on 6 turns" in shown


def test_a_wrong_file_is_refused(recollect, tmp_path: Path):
    assert "not a file" in recollect("eval", "memory", tmp_path / "missing.json", status=1).err
    (tmp_path / "bad.json").write_text("{}")
    assert "expected a list" in recollect("eval", "memory", tmp_path / "bad.json", status=2).err


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_file(), reason="needs the conversations beside the checkout")
def test_evidence_is_found_in_a_long_conversation(recollect_with_model, tmp_path: Path):
    # One of the five: 19 sessions of 369 turns, and 105 questions.
    conversations = json.loads(SHARED.read_text(encoding="utf-8"))["conversations"]
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"conversations": [one for one in conversations if one["id"] == "conv-30"]}))
    figures = recollect_with_model("eval", "memory", path, "--json").json
    assert figures["questions"] == 105
    assert figures["metrics"]["evidence_recall@10"] >= 0.80
    assert figures["metrics"]["session_hit@10"] >= 0.98
