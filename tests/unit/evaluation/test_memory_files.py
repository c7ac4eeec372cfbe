"""Files of conversations: what is read, and what is refused in words."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.memory_files import load_memory, read_date

FILE = {
    "conversations": [
        {
            "id": "c1",
            "sessions": [
                {
                    "id": "s1",
                    "date": "1:56 pm on 8 May, 2023",
                    "turns": [
                        {"id": "D1:1", "speaker": "Ada", "text": "I moved to Lisbon."},
                        {"id": "D1:2", "speaker": "Ben", "text": ""},
                    ],
                },
                {"id": 2, "date": "some day", "turns": [{"id": 7, "speaker": "Ada", "text": "Hello."}]},
            ],
            "questions": [
                {"question": "Where did Ada move?", "category": 1, "evidence": ["D1:1", "D1:1", 7]},
                {"question": "Who is Cleo?", "category": "adversarial", "evidence": []},
            ],
        }
    ]
}


def written(folder: Path, content: object) -> Path:
    path = folder / "memory.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_file_is_read(tmp_path: Path):
    dataset = load_memory(written(tmp_path, FILE))
    (conversation,) = dataset.conversations
    assert conversation.turn_ids == {"D1:1", "D1:2", "7"}
    assert [session.session_id for session in conversation.sessions] == ["s1", "2"]
    assert conversation.sessions[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert conversation.sessions[1].at is None
    (question,) = conversation.questions
    assert (question.category, question.evidence) == ("1", ("D1:1", "7"))
    assert (dataset.unanswered, dataset.undated) == (1, 1)
    assert load_memory(written(tmp_path, FILE["conversations"])) == dataset


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
    ],
)
def test_dates_in_the_forms_in_use(text: str, expected: datetime | None):
    assert read_date(text) == expected


def broken(**changes: object) -> dict:
    content = copy.deepcopy(FILE)
    content["conversations"][0].update(changes)
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no question"),
        ({"conversations": {}}, "expected a list"),
        ({"conversations": ["x"]}, "conversation 1: expected a JSON object"),
        (broken(sessions=None), "expected a list"),
        (broken(questions=[{"question": "x", "evidence": "D1:1"}]), "question 1: 'evidence'"),
        (broken(questions=[{"question": " ", "evidence": []}]), "question 1: 'question'"),
        (broken(id=""), "'id'"),
        (broken(sessions=[{"id": "s", "turns": [{"id": "1", "speaker": "A", "text": "a"}] * 2}]), "id '1'"),
        (broken(sessions=[{"id": "s", "turns": [{"id": "1", "text": "a"}]}]), "session 1, turn 1: 'speaker'"),
        ({"conversations": [FILE["conversations"][0]] * 2}, "same id"),
        (broken(questions=[]), "no question"),
    ],
)
def test_another_shape_is_refused_with_its_place(tmp_path: Path, content: object, message: str):
    with pytest.raises(UsageError, match=message):
        load_memory(written(tmp_path, content))


def test_a_missing_or_binary_file(tmp_path: Path):
    with pytest.raises(NotFoundError):
        load_memory(tmp_path / "missing.json")
    with pytest.raises(NotFoundError):
        load_memory(tmp_path)
    path = tmp_path / "binary.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        load_memory(path)
