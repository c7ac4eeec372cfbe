"""The data of `growth.py`: made once for each size and written to disk, so that every system reads the same.

In the folder of a size:

- ``documents.jsonl``: the file for ``recollect import``, documents of ten chunks with their vectors; above two million
  chunks it is left out, because it takes 1.6 kB a chunk;
- ``chunks.jsonl`` and ``vectors.npy`` (half precision): the same chunks for the peers;
- ``metadata.npy``: for each document the values of the fields that filters ask for. ``tenth`` has ten values,
  ``hundredth`` a hundred, ``rare`` ten thousand: by equality they keep 10 %, 1 % and 0.01 % of the documents, and one
  document at the least. ``reader`` is the one group of ten that may read a document: recollect grants it and searches
  as a member, the peers, which have no rights, filter by it;
- ``queries.json``, ``queries.npy``: half of them three to twelve words of a chunk as they follow one another, half of
  them words from all over it, embedded with the local model;
- ``extra.json``, ``extra.npy``: documents to be added to the full store;
- ``truth.json``: the exact answers. Dense: all inner products. Lexical: BM25 of every chunk, from the same analysis of
  the same text as recollect's, so it holds for recollect only.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import synthetic
from harness import say
from peers.base import READER, Query, Rows

#: Fields by the number of their values, and what a filter on them keeps.
FIELDS = {"tenth": 10, "hundredth": 100, "rare": 10_000, READER: 10}
FILTERS = {"none": None, "10 %": "tenth", "1 %": "hundredth", "0.01 %": "rare", "reads 10 %": READER}
#: So many different values of each field are asked for.
VALUES = 8
DEPTH = 30
K1, B = 1.2, 0.75
_BLOCK = 50_000
#: Questions whose inner products with every chunk are in memory at a time.
_QUESTIONS = 25
_MOST_AS_DOCUMENTS = 2_000_000
_WORD = re.compile(r"\w[\w-]*")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True)
class Sizes:
    """How much is made."""

    chunks: int
    chunks_a_document: int = synthetic.CHUNKS_A_DOCUMENT
    queries: int = 250
    extra: int = 20


@dataclass
class Pending:
    """The texts that questions are made from, met while the corpus is written."""

    wanted: set[int]
    texts: dict[int, str] = field(default_factory=dict)


class DataSet:
    """The files of one size, and what is read from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents = folder / "documents.jsonl"
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        self.chunks: int = about["chunks"]
        self.chunks_a_document: int = about["chunks_a_document"]
        self.filter_values: dict[str, list[int]] = about["filter_values"]

    @cached_property
    def metadata(self) -> np.ndarray:
        return np.load(self.folder / "metadata.npy")

    def rows(self, batch: int) -> Iterator[Rows]:
        """Every chunk, in batches."""
        vectors = np.load(self.folder / "vectors.npy", mmap_mode="r")
        with (self.folder / "chunks.jsonl").open(encoding="utf-8") as lines:
            for start in range(0, self.chunks, batch):
                records = [json.loads(line) for line in islice(lines, batch)]
                yield _rows(records, vectors[start : start + len(records)])

    @cached_property
    def queries(self) -> list[Query]:
        """The questions without filters."""
        texts = json.loads((self.folder / "queries.json").read_text(encoding="utf-8"))
        vectors = np.load(self.folder / "queries.npy").astype(np.float32)
        return [Query(text, vector) for text, vector in zip(texts, vectors, strict=True)]

    def filtered(self, name: str) -> list[Query]:
        """The questions under a filter; its value changes from one to the next."""
        chosen = FILTERS[name]
        if chosen is None:
            return self.queries
        values = self.filter_values[chosen]
        return [
            Query(query.text, query.vector, chosen, values[number % len(values)])
            for number, query in enumerate(self.queries)
        ]

    def kept(self, query: Query) -> np.ndarray:
        """Which documents a question's filter keeps."""
        if query.field is None:
            return np.ones(len(self.metadata), bool)
        return self.metadata[:, list(FIELDS).index(query.field)] == query.value

    def keeps(self, query: Query, identifier: str) -> bool:
        """Whether a result may be one under the question's filter."""
        if query.field is None:
            return True
        document = identifier.partition(":")[0]
        if not document.isdigit():
            return False
        row = self.metadata[int(document)]
        return int(row[list(FIELDS).index(query.field)]) == query.value

    @property
    def extra(self) -> list[Rows]:
        records = json.loads((self.folder / "extra.json").read_text(encoding="utf-8"))
        vectors = np.load(self.folder / "extra.npy")
        return [_rows([record], vectors[i : i + 1]) for i, record in enumerate(records)]

    @cached_property
    def truth(self) -> dict:
        return json.loads((self.folder / "truth.json").read_text(encoding="utf-8"))


def _rows(records: Sequence[dict], vectors: np.ndarray) -> Rows:
    return Rows(
        [record["id"] for record in records],
        [record["text"] for record in records],
        np.asarray(vectors, dtype=np.float32),
        [record["metadata"] for record in records],
    )


def folder_of(work: Path, chunks: int, chunks_a_document: int) -> Path:
    """Where the data of a size lies."""
    flat = "" if chunks_a_document == synthetic.CHUNKS_A_DOCUMENT else f"-by-{chunks_a_document}"
    return work / "data" / f"{chunks}{flat}"


def make(work: Path, sizes: Sizes) -> Path:
    """Make the data of a size; what is complete already is left alone."""
    folder = folder_of(work, sizes.chunks, sizes.chunks_a_document)
    if (folder / "truth.json").exists():
        say(f"{folder}: complete already")
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    sentences = synthetic.load_sentences(work)
    generator = np.random.default_rng(sizes.chunks)
    pending = Pending(set(generator.choice(sizes.chunks, sizes.queries, replace=False).tolist()))
    _corpus(folder, sizes, sentences, pending)
    texts = [_question(pending.texts[number], generator) for number in sorted(pending.wanted)]
    order = generator.permutation(len(texts))
    texts = [texts[number] for number in order]
    (folder / "queries.json").write_text(json.dumps(texts), encoding="utf-8")
    np.save(folder / "queries.npy", synthetic.embed(texts).astype(np.float32))
    _extra(folder, sizes, sentences)
    write_truth(DataSet(folder))
    return folder


def _corpus(folder: Path, sizes: Sizes, sentences: synthetic.Sentences, pending: Pending) -> None:
    count = -(-sizes.chunks // sizes.chunks_a_document)
    permuted = np.random.default_rng(1).permutation(count)
    columns = [(permuted // 10 if name == READER else permuted) % values for name, values in FIELDS.items()]
    metadata = np.stack(columns, axis=1).astype(np.int32)
    np.save(folder / "metadata.npy", metadata)
    shape = (sizes.chunks, sentences.vectors.shape[1])
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float16, shape=shape)
    made = synthetic.documents(sentences, chunks=sizes.chunks, chunks_a_document=sizes.chunks_a_document)
    done = 0
    whole = sizes.chunks <= _MOST_AS_DOCUMENTS
    with (
        (folder / "documents.jsonl" if whole else Path(os.devnull)).open("w", encoding="utf-8") as documents,
        (folder / "chunks.jsonl").open("w", encoding="utf-8") as chunks,
    ):
        for number, document in enumerate(made):
            own = document.vectors.astype(np.float16)
            vectors[done : done + len(own)] = own
            values = {name: int(value) for name, value in zip(FIELDS, metadata[number], strict=True)}
            if whole:
                documents.write(import_line(str(number), document.paragraphs, own, values) + "\n")
            for start, text in zip(_starts(document.paragraphs), document.paragraphs, strict=True):
                record = {"id": f"{number}:{start}", "text": text, "metadata": values}
                chunks.write(json.dumps(record, ensure_ascii=False) + "\n")
                if done in pending.wanted:
                    pending.texts[done] = text
                done += 1
            if done % 50_000 < sizes.chunks_a_document:
                say(f"{done:,} of {sizes.chunks:,} chunks made")
    vectors.flush()
    about = {
        "chunks": sizes.chunks,
        "chunks_a_document": sizes.chunks_a_document,
        "filter_values": {name: np.unique(metadata[:, column])[:VALUES].tolist() for column, name in enumerate(FIELDS)},
    }
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def import_line(source: str, paragraphs: Sequence[str], vectors: np.ndarray, metadata: dict[str, int]) -> str:
    """A document as ``recollect import`` reads it: in the flat form where it is a single chunk."""
    from recollect.store.export import packed_vector

    numbers = [packed_vector(vector) for vector in vectors]
    kept, granted = described(metadata)
    # A first line that looks like a heading would be the title of all chunks, which the exact answers know nothing of.
    about = f'"title":"{source}","metadata":{json.dumps(kept)},"permissions":{json.dumps(granted)}'
    if len(paragraphs) == 1:
        text = json.dumps(paragraphs[0], ensure_ascii=False)
        return f'{{"id":"{source}","text":{text},{about},"vector":"{numbers[0]}"}}'
    chunks = ",".join(
        f'{{"start_offset":{start},"end_offset":{start + len(text)},"vector":"{vector}"}}'
        for start, text, vector in zip(_starts(paragraphs), paragraphs, numbers, strict=True)
    )
    content = json.dumps("\n\n".join(paragraphs), ensure_ascii=False)
    return f'{{"source":"{source}","content":{content},{about},"chunks":[{chunks}]}}'


def described(metadata: dict[str, int]) -> tuple[dict[str, int], list[str]]:
    """The metadata of a document in recollect, and who may read it."""
    kept = {name: value for name, value in metadata.items() if name != READER}
    return kept, [f"group:{READER}{metadata[READER]}"]


def _starts(paragraphs: Sequence[str]) -> list[int]:
    lengths = [0, *(len(text) + 2 for text in paragraphs[:-1])]
    return np.cumsum(lengths).tolist()


def _question(text: str, generator: np.random.Generator) -> str:
    """Three to twelve words, in the order of the chunk: as they follow one another, or from all over it."""
    count = int(generator.integers(3, 13))
    if generator.random() < 0.5:
        words = _WORD.findall(text)
        start = int(generator.integers(max(1, len(words) - count)))
        return " ".join(words[start : start + count])
    words = list(dict.fromkeys(_LONG_WORD.findall(text)))
    chosen = sorted(generator.choice(len(words), min(count, len(words)), replace=False))
    return " ".join(words[number] for number in chosen)


def _extra(folder: Path, sizes: Sizes, sentences: synthetic.Sentences) -> None:
    made = synthetic.documents(sentences, chunks=sizes.extra, chunks_a_document=1, seed=99)
    records, vectors = [], []
    for number, document in enumerate(made):
        text = f"{document.paragraphs[0]} newcomer{number}x"
        records.append({"id": f"extra-{number}:0", "text": text, "metadata": dict.fromkeys(FIELDS, 0)})
        vectors.append(document.vectors[0])
    (folder / "extra.json").write_text(json.dumps(records), encoding="utf-8")
    np.save(folder / "extra.npy", np.stack(vectors).astype(np.float16))


def write_truth(data: DataSet) -> None:
    """Compute the exact answers."""
    say(f"{data.folder}: exact answers")
    scorers = {"dense": DenseTruth(data), "lexical": LexicalTruth(data)}
    owner = np.arange(data.chunks) // data.chunks_a_document
    identifiers = _identifiers(data)
    truth: dict[str, dict[str, list]] = {retriever: {name: [] for name in FILTERS} for retriever in scorers}
    filtered = {name: data.filtered(name) for name in FILTERS}
    for number in range(len(data.queries)):
        every = {retriever: scorer.scores(number) for retriever, scorer in scorers.items()}
        for name in FILTERS:
            kept = data.kept(filtered[name][number])[owner]
            for retriever, scores in every.items():
                allowed = kept & (scores > 0) if retriever == "lexical" else kept
                best = _best(scores, allowed)
                ids = [identifiers[chunk] for chunk in best]
                found = {"ids": ids, "scores": [round(float(scores[chunk]), 7) for chunk in best]}
                truth[retriever][name].append(found | {"matching": int(allowed.sum())})
    (data.folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")


def _identifiers(data: DataSet) -> list[str]:
    with (data.folder / "chunks.jsonl").open(encoding="utf-8") as lines:
        return [line[8 : line.index('"', 8)] for line in lines]


def _best(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    places = np.flatnonzero(allowed)
    own = scores[places]
    if len(own) > DEPTH:
        top = np.argpartition(-own, DEPTH)[:DEPTH]
        places, own = places[top], own[top]
    return places[np.argsort(-own, kind="stable")]


class DenseTruth:
    """Every inner product of a question; of some questions at a time, which are asked for in order."""

    def __init__(self, data: DataSet) -> None:
        self._vectors = np.load(data.folder / "vectors.npy", mmap_mode="r")
        self._questions = np.stack([query.vector for query in data.queries])
        self._scores = np.empty((_QUESTIONS, data.chunks), np.float32)

    def scores(self, number: int) -> np.ndarray:
        if number % _QUESTIONS == 0:
            questions = self._questions[number : number + _QUESTIONS]
            for start in range(0, len(self._vectors), _BLOCK):
                block = self._vectors[start : start + _BLOCK].astype(np.float32)
                block /= np.linalg.norm(block, axis=1, keepdims=True)
                self._scores[: len(questions), start : start + len(block)] = questions @ block.T
        return self._scores[number % _QUESTIONS]


class LexicalTruth:
    """BM25 by brute force (Robertson and Zaragoza 2009), for the words of the questions."""

    def __init__(self, data: DataSet) -> None:
        from recollect.retrieval.analysis import Analyzer

        self._analyzer = Analyzer("en")
        self._questions = [self._analyzer.query_terms(query.text) for query in data.queries]
        self._wanted = {term for question in self._questions for term in question}
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}
        holders = {term: array("i") for term in self._wanted}
        counts = {term: array("i") for term in self._wanted}
        lengths = np.zeros(data.chunks)
        for chunk, text in enumerate(_indexed_texts(data)):
            lengths[chunk], found = self._count(text)
            for term, count in found.items():
                holders[term].append(chunk)
                counts[term].append(count)
        self._postings = {
            term: (np.array(holders[term], dtype=np.int32), np.array(counts[term], dtype=np.float64))
            for term in self._wanted
        }
        self._saturation = K1 * (1 - B + B * lengths / lengths.mean())

    def scores(self, number: int) -> np.ndarray:
        scores = np.zeros(len(self._saturation))
        for term in self._questions[number]:
            holders, tf = self._postings[term]
            idf = np.log(1 + (len(scores) - len(holders) + 0.5) / (len(holders) + 0.5))
            scores[holders] += idf * tf * (K1 + 1) / (tf + self._saturation[holders])
        return scores

    def _count(self, text: str) -> tuple[int, Counter[str]]:
        length, found = 0, []
        for token in self._analyzer.tokens(text):
            known = self._known.get(token)
            if known is None:
                terms = self._analyzer.token_terms(token)
                known = self._known[token] = (len(terms), tuple(term for term in terms if term in self._wanted))
            length += known[0]
            found += known[1]
        return length, Counter(found)


def _indexed_texts(data: DataSet) -> Iterable[str]:
    """What recollect indexes of each chunk: the document's title, which is its source here, and the text."""
    with (data.folder / "chunks.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            source, text = record["id"].split(":")[0], record["text"]
            yield text if source in text[: len(source) + 8] else f"{source}\n{text}"
