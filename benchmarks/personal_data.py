"""What the detector of personal data takes for somebody's in texts that hold next to nothing of it, and how fast it is.

    python benchmarks/personal_data.py ../shared/data

Reads the texts of the development data (annual reports as PDF, handbooks and logs, abstracts), and prints the findings
by kind, with `--show` each of them with the words around it, for a person to judge.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from recollect.documents.reader import parse
from recollect.privacy.detector import Detector


def corpora(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and texts."""
    yield "chunking", [path.read_text() for path in sorted((data / "chunking/corpora").glob("*.md"))]
    for name in ("cranfield", "scifact", "xquad/en", "xquad/de"):
        lines = (data / name / "corpus.jsonl").read_text().splitlines()
        yield name, ["\n".join(json.loads(line)["text"] for line in lines)]
    # Their headings make no difference here, and take long to confirm.
    filings = sorted((data / "filings").rglob("*.pdf"))
    yield "filings", [parse(path.read_bytes(), path.name, structure=False).content for path in filings]


def main() -> None:
    """Read, find, count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    detector = Detector()
    for name, texts in corpora(given.data):
        counts: Counter[str] = Counter()
        start = time.perf_counter()
        found = [detector.find(text) for text in texts]
        seconds = time.perf_counter() - start
        characters = sum(map(len, texts))
        for text, own in zip(texts, found, strict=True):
            counts.update(one.kind for one in own)
            for one in own if given.show else ():
                around = text[max(0, one.start - 50) : one.end + 20].replace("\n", " ")
                print(f"  {one.kind:12} {text[one.start : one.end]!r} in …{around}…")
        print(f"{name:12} {characters:>10,} characters {characters / seconds / 1e6:5.2f} M/s {dict(counts)}")


if __name__ == "__main__":
    main()
