"""Questions and texts in five languages: each asked of its own and of the others, and the multilingual tokenizer.

XQuAD says the same in every language, so a question in one is answered by the paragraph of the same number in another.
Prints nDCG@10 by words alone, by the defaults and by meaning alone, for each pair of ``--pairs`` (question:text; by
default every language with itself, and every one with English). ``--tokens`` compares the compiled vocabulary of the
multilingual tokenizer with the library's, token for token, on all of these texts, and tells what either takes to load.
Run from the repository root after ``recollect models pull multilingual``::

    python benchmarks/languages.py [--shared ../shared/data] [--model multilingual] [--every 1] [--pairs de:de zh:en …]
    python benchmarks/languages.py --tokens
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path

from harness import SHARED, machine, model_cache, say, store_folder, table, versions

from recollect import RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding._tokens import TextTokenizer
from recollect.embedding.models import MULTILINGUAL_MODEL, ModelCache
from recollect.evaluation.datasets import DataSet, load_beir
from recollect.evaluation.scoring import ranking_metrics

LANGUAGES = ("en", "de", "tr", "ar", "zh")
MODES = ("lexical", "hybrid", "dense")
#: As many passages as a hundred documents usually take.
DEPTH = 340


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--model", default="multilingual")
    parser.add_argument("--every", type=int, default=1, help="every how many questions are asked")
    parser.add_argument("--pairs", nargs="*", default=[], metavar="QUESTION:TEXT")
    parser.add_argument("--modes", nargs="*", default=MODES, choices=MODES)
    parser.add_argument("--tokens", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.shared / "xquad"
    sets = {code: load_beir(folder / code) for code in LANGUAGES if (folder / code).is_dir()}
    print(machine(), "; ".join(versions()), sep="\n", end="\n\n")
    if arguments.tokens:
        compare_tokens(sets)
        return
    own = [f"{code}:{code}" for code in sets]
    given = arguments.pairs or [*own, *(f"{code}:en" for code in sets if code != "en")]
    by_text: dict[str, list[str]] = defaultdict(list)
    for pair in given:
        asked, text = pair.split(":")
        by_text[text].append(asked)
    rows = [
        row
        for text, asked in by_text.items()
        for row in ask(sets, text, asked, model=arguments.model, every=arguments.every, modes=arguments.modes)
    ]
    print(table(("question", "text", "questions", *arguments.modes), rows))


def ask(sets: dict[str, DataSet], text: str, languages: list[str], *, model: str, every: int, modes: list[str]):
    """A row for each language that the texts of one are asked in."""
    with store_folder() as data:
        config = RAGConfig.load(storage={"data_dir": Path(data)}, embedding={"model": model})
        with RAGPipeline(config) as rag:
            rag.ingest(sets[text].documents())
            for asked in languages:
                queries = sets[asked].questions[::every]
                judged = {query.question_id: query.answers for query in queries}
                found = []
                for mode in modes:
                    options = RetrievalOptions(mode=mode, top_k=DEPTH, use_cache=False)
                    rankings = {
                        query.question_id: list(
                            dict.fromkeys(one.source for one in rag.search(query.text, options).results)
                        )
                        for query in queries
                    }
                    found.append(f"{ranking_metrics(rankings, judged)['nDCG@10']:.4f}")
                say(asked, text, *found)
                yield asked, text, len(queries), *found


def compare_tokens(sets: dict[str, DataSet]) -> None:
    """Print what is equal, and what either takes."""
    files = ModelCache(model_cache()).find(MULTILINGUAL_MODEL)
    if files is None:
        raise SystemExit("recollect models pull multilingual")
    TextTokenizer(files.tokenizer, compiled=files.build_directory).ids_batch([""])
    rows = []
    texts = [one.content for data in sets.values() for one in data.documents()]
    texts += [query.text for data in sets.values() for query in data.questions]
    found = []
    for name, compiled in (("compiled", files.build_directory), ("library", None)):
        began = time.perf_counter()
        tokenizer = TextTokenizer(files.tokenizer, compiled=compiled)
        loaded = time.perf_counter()
        tokenizer.ids_batch(["Wann wird die Rechnung bezahlt?"])
        first = time.perf_counter()
        cpu = time.process_time()
        found.append(tokenizer.ids_batch(texts))
        rows.append(
            (name, f"{loaded - began:.3f} s", f"{(first - loaded) * 1000:.1f} ms", f"{time.process_time() - cpu:.2f} s")
        )
    print(table(("tokenizer", "to load", "first question", f"{len(texts)} texts, processor"), rows))
    differ = sum(one != other for one, other in zip(*found, strict=True))
    print(f"\n{differ} of {len(texts)} texts differ ({sum(map(len, found[0])):,} tokens)")


if __name__ == "__main__":
    main()
