"""Record what the reader and the checker say, in 32 bits, of a few pairs: ``PYTHONPATH=../src python golden.py``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from recollect.answer.reader import CHECKER, WEIGHTS, Reader
from recollect.embedding.models import ModelCache

CACHE = Path.home() / ".cache/recollect/models"
GOLDEN = Path(__file__).parents[1] / "tests" / "data"
_OFFICE = (
    "The office in Lyon opened in 1994. It is led by Marie Dupont, who joined two years later. "
    "Visitors may park behind the building; the gate closes at 19:30."
)
_TEAM = "- **Owner**: platform team\n- **Channel**: #platform\n- **Next review**: 4 March"
_TABLE = "| Plan | Price | Seats |\n|---|---|---|\n| Basic | 9 EUR | 3 |\n| Team | 29 EUR | 20 |"
_COMMAND = "To list all backups, run:\n\n```\nvault list --all\n```\n\nTo remove one, run:\n\n```\nvault rm NAME\n```"
ASKED = (
    ("When did the office in Lyon open?", _OFFICE, ""),
    ("When did the office in Paris open?", _OFFICE, ""),
    ("who leads the office", _OFFICE, "Offices > Lyon"),
    ("Who is the owner of Billing?", _TEAM, "Services > Billing"),
    ("Who is the owner of Search?", _TEAM, "Services > Billing"),
    ("What is the price of Team?", _TABLE, "Plans"),
    ("What is the price of Enterprise?", _TABLE, "Plans"),
    ("How do I remove a backup?", _COMMAND, "Vault"),
    ("How do I rename a backup?", _COMMAND, "Vault"),
)
STATED = (
    ("The office in Lyon was opened in 1994.", _OFFICE, ""),
    ("The office in Lyon was opened in 1996.", _OFFICE, ""),
    ("Marie Dupont joined in 1996 and leads the office.", _OFFICE, ""),
    ("Visitors may park behind the building at any hour.", _OFFICE, ""),
    ("The channel of the platform team is #platform.", _TEAM, ""),
    ("The platform team was last reviewed on 4 March.", _TEAM, ""),
    ("The Team plan has 20 seats.", _TABLE, ""),
    ("The Basic plan costs 29 EUR.", _TABLE, ""),
)


def main() -> None:
    """Write the files."""
    record(Reader(ModelCache(CACHE), precision="fp32", weights=WEIGHTS), ASKED, GOLDEN / "reader_golden.json")
    record(Reader(ModelCache(CACHE), precision="fp32", weights=CHECKER), STATED, GOLDEN / "checker_golden.json")


def record(reader: Reader, pairs: Iterable[tuple[str, str, str]], path: Path) -> None:
    """Write what is said of questions, or statements, and passages under headings."""
    recorded = []
    for question, passage, heading in pairs:
        (reading,) = reader.read(question, [passage], [heading])
        begins = reading.begins_within(reading.start, reading.end)
        said = {"span": passage[reading.start : reading.end], "probability": reading.probability, "begins": begins}
        recorded.append({"question": question, "passage": passage, "heading": heading, **said})
        print(f"{reading.probability:.2f} {begins:6.1f} {question} -> {said['span']!r}")
    path.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
