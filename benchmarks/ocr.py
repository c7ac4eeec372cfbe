"""Text recognition on clean renders: pages of PDF files, drawn and recognised, beside the words that they hold.

Every ``--every``-th page of a file is drawn at 150 dots an inch, saved as a scan, and read as a document is, in worker
processes. Recall is the share of the words of the page's own text (runs of letters and digits, each as often as it
stands there) that were recognised; precision the share of recognised words that stand there.

    python benchmarks/ocr.py ../shared/data/filings/pdf [--every 40]
"""

from __future__ import annotations

import argparse
import io
import re
import resource
import time
from collections import Counter
from pathlib import Path

import pypdfium2
from harness import machine, say, table, versions

from recollect.documents import read_bytes
from recollect.documents.workers import ParseLimits, ParserWorkers

_WORD = re.compile(r"\w+")
_LEAST_WORDS = 20


def scan(page: pypdfium2.PdfPage) -> bytes:
    out = io.BytesIO()
    page.render(scale=150 / 72).to_pil().convert("L").save(out, "PDF", resolution=150)
    return out.getvalue()


def words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text))


def measure(path: Path, every: int, workers: ParserWorkers) -> tuple[object, ...]:
    held = found = both = pages = 0
    start = time.perf_counter()
    document = pypdfium2.PdfDocument(path)
    for number in range(every // 2, len(document), every):
        expected = words(document[number].get_textpage().get_text_bounded())
        if expected.total() < _LEAST_WORDS:
            continue
        recognised = words(read_bytes(scan(document[number]), name="scan.pdf", workers=workers).content)
        held, found, pages = held + expected.total(), found + recognised.total(), pages + 1
        both += (expected & recognised).total()
    seconds = time.perf_counter() - start
    return path.name, pages, held, f"{both / held:.3f}", f"{both / found:.3f}", f"{seconds / pages:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=40)
    given = parser.parse_args()
    workers = ParserWorkers(ParseLimits(seconds=300), at_once=1)
    rows = [measure(path, given.every, workers) for path in sorted(given.folder.glob("*.pdf"))]
    workers.close()
    say(machine(), ", ".join(versions(("rapidocr", "onnxruntime", "pypdfium2"))))
    say(table(("file", "pages", "words", "recall", "precision", "by the clock, a page"), rows))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    pages = sum(int(str(row[1])) for row in rows)
    say(f"{used.ru_utime / pages:.1f} CPU seconds a page; {used.ru_maxrss / 1024:.0f} MB at most")


if __name__ == "__main__":
    main()
