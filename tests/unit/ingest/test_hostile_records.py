"""Lines of JSON that are no documents cost an error each, and no more memory than a line may have."""

from __future__ import annotations

import io

import pytest

from recollect.embedding import local as model_settings
from recollect.errors import ModelUnavailableError
from recollect.ingest.records import BadLine, ImportedDocument, read_records, records_of


def test_a_line_that_does_not_end_is_never_held():
    asked: list[int] = []
    content = b"x" * 350 + b"\n" + b'{"text": "a"}\n' + b"y" * 101 + b"\n" + b'{"text": "b"}\n' + b"z" * 1_000

    class File(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            asked.append(-1 if size is None else size)
            return super().readline(size)

    found = list(records_of(File(content), most=100))
    assert [type(one) for one in found] == [BadLine, ImportedDocument, BadLine, ImportedDocument, BadLine]
    assert [one.line for one in found] == [1, 2, 3, 4, 5]
    assert set(asked) == {101}


@pytest.mark.parametrize(
    "line",
    [
        "[" * 200_000,
        '{"text": "a", "metadata": ' + '{"a":' * 5_000 + "1" + "}" * 5_000 + "}",
        '{"text": "a", "metadata": {"n": 1' + "0" * 100_000 + "}}",
        '{"text": "a", "chunks": [{"text": "a", "embedding": [NaN, 1]}]}',
        '{"text": "a", "chunks": [{"text": "a", "embedding": [1e999]}]}',
        '{"text": "a", "chunks": [{"start": -1, "end": 99999999999999999999, "text": "a"}]}',
        '{"text": 1, "text": {"a": 1}}',
    ],
)
def test_what_is_no_document_is_a_bad_line(tmp_path, line):
    (tmp_path / "f.jsonl").write_text(line + '\n{"text": "good"}\n', encoding="utf-8")
    bad, good = read_records(tmp_path / "f.jsonl")
    assert isinstance(bad, BadLine)
    assert isinstance(good, ImportedDocument)


def test_a_model_whose_settings_are_nested_without_end_is_refused(tmp_path):
    file = tmp_path / "modules.json"
    file.write_text("[" * 200_000, encoding="utf-8")
    with pytest.raises(ModelUnavailableError, match="cannot be read"):
        model_settings._read(file)
