"""What parsing in worker processes costs an ordinary ingest: two checkouts, interleaved, by the clock.

    python benchmarks/parsing_speed.py --beside ../before/.venv/bin/python

Each round ingests each folder into a new store with either checkout, in a process of its own and with an embedder that
costs nothing, so that parsing has the largest share it can have. The folders are the Cranfield abstracts as text files,
as web pages, and the development data's office files and PDFs, each so many times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import CRANFIELD, machine, say, store_folder, table

OFFICE = CRANFIELD.parent / "files"
# Forty seconds of one library call would hide everything else.
LEFT_OUT = {"GeoTopo-komprimiert.pdf"}


def main() -> None:
    parser = argparse.ArgumentParser(description="What parsing in worker processes costs.")
    parser.add_argument("--beside", required=True, help="the Python of the checkout to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=10, help="of every office file")
    parser.add_argument("--documents", type=int, default=1400)
    parser.add_argument("--ingest", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ingest:
        print(json.dumps(ingest(arguments.ingest)))
        return
    seconds: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folders = prepare(Path(temporary), documents=arguments.documents, copies=arguments.copies)
        for number in range(arguments.rounds):
            sides = {"before": arguments.beside, "now": sys.executable}
            # Whoever comes first meets a colder machine.
            for side, python in list(sides.items())[:: 1 if number % 2 else -1]:
                for folder in folders:
                    command = [python, __file__, "--beside", "-", "--ingest", str(folder)]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    found = json.loads(done.stdout)
                    seconds.setdefault((folder.name, side), []).append(found["seconds"])
                    say(f"round {number + 1}: {folder.name}, {side}: {found}")
        rows = []
        for folder in folders:
            before, now = seconds[folder.name, "before"], seconds[folder.name, "now"]
            ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
            count = sum(1 for _ in folder.iterdir())
            medians = [f"{statistics.median(side):.2f}" for side in (before, now)]
            rows.append([folder.name, count, *medians, f"{ratio:.3f}"])
    print(f"{machine()}; {arguments.rounds} rounds, interleaved, medians\n")
    print(table(["folder", "files", "before, s", "now, s", "now / before"], rows))


def prepare(target: Path, *, documents: int, copies: int) -> list[Path]:
    text, pages, office = (target / name for name in ("text", "web pages", "office and PDF"))
    for folder in (text, pages, office):
        folder.mkdir()
    for line in (CRANFIELD / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:documents]:
        record = json.loads(line)
        (text / f"{record['_id']}.txt").write_text(f"{record['title']}\n\n{record['text']}\n", encoding="utf-8")
        body = f"<h1>{record['title']}</h1><p>{record['text']}</p>"
        (pages / f"{record['_id']}.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    for file in sorted(OFFICE.rglob("*.*")):
        for number in range(copies if file.name not in LEFT_OUT else 0):
            (office / f"{number}-{file.parent.name}-{file.name}").write_bytes(file.read_bytes())
    return [text, pages, office]


def ingest(folder: Path) -> dict[str, float]:
    from recollect import RAGConfig, RAGPipeline
    from recollect.embedding.hashing import HashingEmbedder

    with store_folder() as store:
        Path(store).chmod(0o711)
        config = RAGConfig.load(storage={"data_dir": Path(store) / "data"}, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            rag.collections.ensure()
            start = time.perf_counter()
            report = rag.ingest(folder)
            return {"seconds": round(time.perf_counter() - start, 3), "added": report.added, "failed": report.failed}


if __name__ == "__main__":
    main()
