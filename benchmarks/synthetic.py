"""A large corpus of English that nobody has to download, with vectors that behave like a model's.

Sentences of the development data and of the example handbook are recombined:

- a *document* draws its sentences from three source texts near one topic, so that its chunks belong together;
- a *chunk* takes such sentences until it has 440 characters on average, in one paragraph;
- in each sentence every twelfth word or so is replaced by a made-up word (consonants and vowels in turn, now and then
  with digits) drawn from a vocabulary of 120,000 with Zipf's distribution, so that the vocabulary goes on growing with
  the corpus, as real ones do, and rare terms exist;
- a chunk's *vector* is the normalised sum of its sentences' real MiniLM vectors and of a little noise, so that nearest
  neighbours are those that share sentences or topics, and the vectors lie in the narrow, clustered part of the space
  that a real model fills, where graph indexes have to work harder than on random points.

Everything follows from a seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import CHUNKING, CRANFIELD

CHUNK_CHARACTERS = 440
CHUNKS_A_DOCUMENT = 10
SOURCES_A_DOCUMENT = 3
MADE_UP_WORDS = 120_000
REPLACED = 1 / 12
NOISE = 0.25
SENTENCE = re.compile(r"[^.!?]*[.!?]+(?:\s|$)|[^.!?]+$")
WORD = re.compile(r"\b[^\W\d_]{4,}\b")
LONGEST, SHORTEST = 300, 30


@dataclass(frozen=True)
class Sentences:
    """Sentences with their vectors; those of source text i are the numbers from ``starts[i]`` to ``starts[i + 1]``."""

    texts: list[str]
    vectors: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True)
class MadeDocument:
    """The paragraphs of a document, and a unit vector of each."""

    name: str
    paragraphs: list[str]
    vectors: np.ndarray


def source_texts() -> list[str]:
    lines = (CRANFIELD / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    for file in sorted((CHUNKING / "corpora").iterdir()):
        # Long texts are cut into stretches of one topic.
        text = file.read_text(encoding="utf-8")
        texts += [text[start : start + 4000] for start in range(0, len(text), 4000)]
    for file in sorted(Path("examples/handbook").rglob("*.md")):
        texts.append(file.read_text(encoding="utf-8"))
    return texts


def questions(limit: int | None = None) -> list[str]:
    """Real questions of both data sets, in turn."""
    found = []
    for file, field in ((CRANFIELD / "queries.jsonl", "text"), (CHUNKING / "questions.jsonl", "question")):
        lines = file.read_text(encoding="utf-8").splitlines()
        found.append([json.loads(line)[field] for line in lines])
    mixed = [text for pair in zip(*found, strict=False) for text in pair]
    return mixed[:limit]


def embed(texts: list[str]) -> np.ndarray:
    from harness import model_cache

    from recollect.embedding.local import LocalEmbedder
    from recollect.embedding.models import ModelCache

    return LocalEmbedder(cache=ModelCache(model_cache())).embed_documents(texts)


def load_sentences(cache: Path, *, sample: int | None = None) -> Sentences:
    """The sentences of the source texts, embedded once and kept in ``cache``."""
    texts: list[str] = []
    starts = [0]
    for source in source_texts()[:sample]:
        plain = [" ".join(found.split()) for found in SENTENCE.findall(source)]
        texts += [text[:LONGEST] for text in plain if len(text) >= SHORTEST]
        if len(texts) > starts[-1]:
            starts.append(len(texts))
    file = cache / f"sentences-{len(texts)}.npy"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(file, embed(texts).astype(np.float16))
    return Sentences(texts, np.load(file).astype(np.float32), np.array(starts))


def made_up_words(generator: np.random.Generator) -> np.ndarray:
    consonants, vowels = list("bcdfghjklmnprstvwz"), list("aeiou")
    words: dict[str, None] = {}
    while len(words) < MADE_UP_WORDS:
        count = int(generator.integers(2, 5))
        pairs = zip(generator.choice(consonants, count), generator.choice(vowels, count), strict=True)
        word = "".join(a + b for a, b in pairs)
        if generator.random() < 0.1:
            word += f"-{generator.integers(1, 10_000)}"
        words[word] = None
    return np.array(list(words))


def documents(
    sentences: Sentences, *, chunks: int, seed: int = 7, chunks_a_document: int = CHUNKS_A_DOCUMENT
) -> Iterator[MadeDocument]:
    """Documents of ten chunks each, ``chunks`` chunks together."""
    generator = np.random.default_rng(seed)
    words = made_up_words(generator)
    sources = len(sentences.starts) - 1
    centroids = np.stack(
        [
            sentences.vectors[start:end].mean(axis=0)
            for start, end in zip(sentences.starts, sentences.starts[1:], strict=False)
        ]
    )
    for number in range(-(-chunks // chunks_a_document)):
        first = int(generator.integers(sources))
        near = np.argsort(-(centroids @ centroids[first]))[:30]
        chosen = generator.choice(near, SOURCES_A_DOCUMENT, replace=False)
        pool = np.concatenate([np.arange(sentences.starts[s], sentences.starts[s + 1]) for s in chosen])
        wanted = min(chunks_a_document, chunks - number * chunks_a_document)
        made = [_paragraph(sentences, pool, words, generator) for _ in range(wanted)]
        name = f"made/{number % 12:02}/{number:06}.txt"
        yield MadeDocument(name, [text for text, _ in made], np.stack([vector for _, vector in made]))


def _paragraph(
    sentences: Sentences, pool: np.ndarray, words: np.ndarray, generator: np.random.Generator
) -> tuple[str, np.ndarray]:
    target = CHUNK_CHARACTERS + generator.normal(0, 60)
    parts: list[str] = []
    vector = np.zeros(sentences.vectors.shape[1], np.float32)
    length = 0
    while length < target:
        index = int(generator.choice(pool))
        room = max(int(target) - length, SHORTEST)
        parts.append(_changed(sentences.texts[index][: room + 40], words, generator))
        vector += sentences.vectors[index]
        length += len(parts[-1]) + 1
    vector /= np.linalg.norm(vector)
    noise = generator.normal(size=len(vector)).astype(np.float32)
    vector += NOISE * noise / np.linalg.norm(noise)
    return " ".join(parts), vector / np.linalg.norm(vector)


def _changed(text: str, words: np.ndarray, generator: np.random.Generator) -> str:
    def word(match: re.Match) -> str:
        if generator.random() >= REPLACED:
            return match.group()
        return str(words[int(generator.zipf(1.25)) % len(words)])

    return WORD.sub(word, text)
