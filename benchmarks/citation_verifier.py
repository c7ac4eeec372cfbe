"""How many altered sentences the citation verifier finds, and how many true ones it flags.

    python benchmarks/citation_verifier.py ../shared/data [--cases 400] [--words] [--files FOLDER] [--show]

Cases are made by rules, the same ones for every text: a sentence of a passage, cited, is true as it stands, with a
lead-in, with a number in another notation, with its first clause moved to the end, or with an aside left out. It is
altered by another number, by another name of the same text, by the marker of another passage, by a marker that names
none, and by a negation. Beside them stand the constructed sets of ``tests/data``, and with ``--files`` statements over
documents of five families, whose checkouts FOLDER holds under their names.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from pathlib import Path

from recollect.answer.statements import StatementStream
from recollect.answer.verification import Verifier
from recollect.answer.writing import WrittenAnswer
from recollect.chunking.sentences import sentence_spans
from recollect.model import RetrievedContext

PASSAGE_CHARACTERS = 900
CONSTRUCTED = Path(__file__).parents[1] / "tests/data/citation_cases.json"
HELD = CONSTRUCTED.with_name("citation_cases_held.json")
TRAINING = Path(__file__).parents[1] / "training"
#: Statements that nothing was trained on, over documents and over invented ones. The weights of the signs were fitted
#: with those in ``training``; of those in ``benchmarks`` only the first run was fresh.
STATED = (
    *(TRAINING / "questions" / name / "statements.jsonl" for name in ("hugo", "publiccode")),
    *sorted((Path(__file__).parent / "questions").glob("*/statements.jsonl")),
)
INVENTED = TRAINING / "dense_held.jsonl"
#: Characters around a statement's evidence that are shown with it.
AROUND = 350
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,3}(?:,\d{3})+(?![\d.,])|(?<![\w.,-])\d{2,4}(?![\w,-]|\.\d)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}(?=[ ,.])")
_VERB = re.compile(r"\b(is|was|are|were|ist|war|sind|waren)\b(?! (?:not|no|never|nicht|kein))")
_MOVED = re.compile(r"(?P<first>(?:In|On|During|After|By|Since) [^,]{3,40}), (?P<rest>[^;]+\.)")
_ASIDE = re.compile(r" \([^()]*\)|, (?:which|who|including|such as|as well as|along with) [^,.]+(?=[,.])")
_LEAD_INS = ("According to the source, ", "The document states that ", "In short: ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cases", type=int, default=400, help="sentences a text")
    parser.add_argument("--words", action="store_true", help="words alone, without the trained reader")
    parser.add_argument("--files", type=Path, help="checkouts of the families whose statements are held out")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    options = parser.parse_args()
    reader = None if options.words else checker()
    print("| text | alterations found | true sentences flagged |\n|---|---|---|")
    if CONSTRUCTED.is_file():
        _report("handbook (constructed)", constructed(), reader, show=options.show)
    _report("second set (constructed)", constructed(HELD), reader, show=options.show)
    _report("invented documents", stated(INVENTED), reader, show=options.show)
    for path in STATED if options.files else ():
        name = path.parent.name
        _report(name, stated(path, options.files / name), reader, show=options.show)
    for name, language, texts in _texts(options.data):
        _report(name, _generated(texts, language, options.cases), reader, language=language, show=options.show)


def checker():
    from recollect.config import RAGConfig
    from recollect.pipeline.assembly import Assembly

    assembly = Assembly(RAGConfig())
    return assembly.checker_for(assembly.embedder)


def _texts(data: Path):
    for language in ("en", "de"):
        path = data / "xquad" / language / "corpus.jsonl"
        if path.is_file():
            yield f"XQuAD {language}", language, [json.loads(line)["text"] for line in path.open(encoding="utf-8")]
    for path in sorted((data / "chunking/corpora").glob("*.md")):
        if path.stem.startswith(("state", "finance", "wiki")):
            text = path.read_text(encoding="utf-8")[:400_000]
            yield (
                path.stem,
                "en",
                [text[at : at + PASSAGE_CHARACTERS] for at in range(0, len(text), PASSAGE_CHARACTERS)],
            )


def constructed(path=CONSTRUCTED):
    document = json.loads(path.read_text(encoding="utf-8"))
    for case in document["cases"]:
        shown = [document["sources"][key] for key in case["sources"]]
        passages = [_passage(one["text"], at, one["source"], one["section"]) for at, one in enumerate(shown, start=1)]
        yield case["kind"], case["supported"], case["answer"], passages


def stated(path, folder=None):
    """Statements that a stretch of a document supports or does not, each with the passage around that stretch."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = row.get("passage") or _around((folder / row["document"]).read_text(encoding="utf-8"), row)
        shown = [_passage(text, 1, row.get("source") or row["document"])]
        for said in row["supported"]:
            yield "true", True, f"{said.rstrip('.')} [1].", shown
        for kind, said in (pair for wrong in row["wrong"] for pair in wrong.items()):
            yield kind, False, f"{said.rstrip('.')} [1].", shown


def _around(text, row):
    start = text.rfind("\n", 0, max(0, row["start"] - AROUND)) + 1
    end = text.find("\n", min(len(text), row["end"] + AROUND))
    return text[start : end if end >= 0 else len(text)]


def _generated(texts, language, count):
    chance = random.Random(7)
    names = sorted({match.group() for text in texts for match in _NAME.finditer(text)})
    places = [(at, *span) for at, text in enumerate(texts) for span in sentence_spans(text, language)]
    places = [place for place in places if 50 < place[2] - place[1] < 300]
    for at, start, end in chance.sample(places, min(count, len(places))):
        sentence = " ".join(texts[at][start:end].split())
        if not sentence.endswith(".") or "[" in sentence or "|" in sentence:
            continue
        others = chance.sample([text for other, text in enumerate(texts) if other != at], 4)
        passages = [_passage(text, number) for number, text in enumerate([texts[at], *others], start=1)]
        for kind, supported, altered, marker in _variants(sentence, names, texts[at], chance, language):
            yield kind, supported, f"{altered[:-1]} {marker}.", passages


def _variants(sentence, names, text, chance, language):
    yield "true", True, sentence, "[1]"
    if language == "en":
        yield "lead-in", True, chance.choice(_LEAD_INS) + sentence, "[1]"
    moved = _MOVED.fullmatch(sentence)
    if moved:
        rest = moved.group("rest").rstrip(".")
        first = moved.group("first")
        yield "moved", True, f"{rest[0].upper()}{rest[1:]} {first[0].lower()}{first[1:]}.", "[1]"
    shorter = _ASIDE.sub("", sentence)
    if shorter != sentence and len(shorter) > 40:
        yield "shortened", True, shorter, "[1]"
    yield "swapped source", False, sentence, "[3]"
    yield "invented marker", False, sentence, "[9]"
    numbers = list(_NUMBER.finditer(sentence))
    if numbers:
        match = chance.choice(numbers)
        other = _other_number(match.group(), chance)
        yield "number", False, sentence[: match.start()] + other + sentence[match.end() :], "[1]"
        if "," in match.group():
            plain = sentence[: match.start()] + match.group().replace(",", " ") + sentence[match.end() :]
            yield "notation", True, plain, "[1]"
    found = list(_NAME.finditer(sentence)) if language == "en" else []
    if found:
        match = chance.choice(found)
        other = chance.choice([name for name in names if name not in text])
        yield "name", False, sentence[: match.start()] + other + sentence[match.end() :], "[1]"
    verb = _VERB.search(sentence)
    if verb and not re.search(r"\b(not|no|never|nicht|kein\w*|without|neither)\b", sentence):
        no = "nicht" if language == "de" else "not"
        yield "negation", False, f"{sentence[: verb.end()]} {no}{sentence[verb.end() :]}", "[1]"


def _other_number(written, chance):
    digits = written.replace(",", "")
    while True:
        at = chance.randrange(len(digits))
        digit = chance.choice("123456789")
        if digit != digits[at]:
            changed = digits[:at] + digit + digits[at + 1 :]
            return f"{int(changed):,}" if "," in written else changed


def _passage(text, number, source="", section=None):
    return RetrievedContext(
        rank=number,
        score=1.0,
        content=text,
        chunk_id=number,
        document_id=number,
        title=source or f"text {number}",
        source=source or f"text_{number}.txt",
        section=section,
        page=None,
        start_offset=0,
        end_offset=len(text),
        metadata={},
    )


def _report(name, cases, reader, *, language="en", show=False):
    right, total, verifiers = Counter(), Counter(), {}
    for kind, supported, answer, passages in cases:
        key = tuple(passage.content for passage in passages)
        if key not in verifiers:
            verifiers = {key: Verifier(passages, language=language, reader=reader)}
        written, stream = WrittenAnswer(verifiers[key]), StatementStream(language)
        for statement in [*stream.feed(answer), *stream.flush()]:
            written.add(statement)
        written.finish()
        unsupported = written.answer("").unsupported
        total[supported, kind] += 1
        right[supported, kind] += bool(unsupported) is not supported
        if show and bool(unsupported) is supported:
            print(f"  {kind}: {answer}\n    {[(one.reason, one.detail) for one in unsupported]}")
    print(f"| {name} | {_share(right, total, False)} | {_share(right, total, True)} |")


def _share(right, total, supported):
    kinds = [kind for known, kind in total if known is supported]
    good, all_of = (sum(counts[supported, kind] for kind in kinds) for counts in (right, total))
    each = ", ".join(f"{kind} {right[supported, kind]}/{total[supported, kind]}" for kind in kinds)
    share = (all_of - good if supported else good) / max(1, all_of)
    return f"{share:.1%} ({each})"


if __name__ == "__main__":
    main()
