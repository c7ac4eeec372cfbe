"""The page on problems quotes messages that the program has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/troubleshooting.md"


def test_every_message_quoted_on_the_page_is_one_of_the_programs():
    quoted = re.findall(r"^\| `(.+?)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(quoted) >= 20
    texts = [
        node.value
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.toml")]
    pieces = [piece.strip() for message in quoted for piece in message.split("…") if piece.strip()]
    assert [piece for piece in pieces if not any(piece in text for text in texts)] == []
