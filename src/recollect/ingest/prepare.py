"""One document on its way into the store: cut, counted, compared with others by a sketch, embedded."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from recollect.documents.headings import headings_of_text
from recollect.embedding.models import known_model
from recollect.errors import PersonalDataError, UsageError
from recollect.model import Chunk, Document
from recollect.model.document import DESCRIBED_BY, GENERATED_BY, description_spans
from recollect.model.principal import read_permissions
from recollect.model.stated import stated_fields
from recollect.model.time import read_lifetime, read_time
from recollect.store.prepared import PreparedDocument

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.chunking.base import ChunkingStrategy
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.ingest.door import Door
    from recollect.model.terms import TermCounts
    from recollect.store.search import LexicalRow


# What a chunk does not say itself: the title and headings it stands under, and the chunks around it.
#
# ``docs/explanation/fusion.md`` has the measurements.

#: How much of its neighbours' vectors is mixed into a chunk's, where its model says nothing else.
NEIGHBOUR_WEIGHT = 0.25

# A heading is taken as standing in the chunk already if it is found this close to its beginning.
_MARKUP_CHARACTERS = 8


def searchable_text(document: Document, chunk: Chunk) -> str:
    """The text that both retrievers index of a chunk: title and headings, what situates it, then its own characters.

    A piece of a table is situated by the line above the table and the names of its columns.
    """
    table = [_plain(chunk.metadata.get(name)) for name in ("table_caption", "table_header")]
    wanted = dict.fromkeys(line for line in (document.title, *chunk.section, chunk.context, *table) if line)
    missing = [line for line in wanted if line not in chunk.text[: len(line) + _MARKUP_CHARACTERS]]
    return "\n".join((*missing, chunk.text))


def _plain(line: object) -> str:
    """A line of a table without its pipes."""
    return "; ".join(cell.strip() for cell in line.split("|") if cell.strip()) if isinstance(line, str) else ""


def neighbour_weight(model_name: str) -> float:
    """How much of its neighbours' vectors is mixed into a chunk's that a model embedded.

    Args:
        model_name: Of the model, as embedders give it.
    """
    known = known_model(model_name)
    return NEIGHBOUR_WEIGHT if known is None or known.neighbours is None else known.neighbours


def with_neighbours(vectors: Vectors, *, weight: float = NEIGHBOUR_WEIGHT) -> Vectors:
    """Mix the vectors of the chunks before and after into each chunk's, and bring it back to unit length.

    A passage is often about something that only the passage beside it names.

    Args:
        vectors: float array of shape (chunks of one document in order, dimension).
        weight: Of each neighbour, beside 1 for the chunk itself; 0 changes nothing.

    Returns:
        float32 array of the same shape.
    """
    mixed = vectors.astype(np.float32)
    if len(vectors) > 1 and weight:
        mixed[1:] += weight * vectors[:-1]
        mixed[:-1] += weight * vectors[1:]
    norms = np.linalg.norm(mixed, axis=1, keepdims=True)
    result: Vectors = mixed / np.maximum(norms, np.finfo(np.float32).tiny)
    return result


#: Changes whenever the same file would be read, cut or analysed differently by new code.
PIPELINE_VERSION = 5

# NUL and lone surrogates, which PostgreSQL's text cannot hold.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

_MAX_TITLE_CHARACTERS = 80

#: What stands in an index may have so many bytes as UTF-8: a third of a page is PostgreSQL's limit.
MAX_NAME_BYTES = 2_000

# Chunks embedded in one call: enough to sort by length, little enough to bound the memory.
_EMBED_SLICE = 512

# Chunks whose token vectors are in memory at once, before they are packed: some 200 KB each.
_PACK_SLICE = 64

_Value = TypeVar("_Value")


class TermIndexer(Protocol):
    """Counts and weighs the terms of chunks; `recollect.retrieval.indexing.TermIndexer` is one."""

    def language_of(self, content: str, stated: str | None = None) -> str | None:
        """The language that a document is analysed in; None: the collection's."""
        ...

    def languages(self, texts: Sequence[str], whole: str | None) -> tuple[str, ...]:
        """The language that each part of a document is analysed in."""
        ...

    def count(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> list[TermCounts]:
        """The terms of each text, counted in its language."""
        ...

    def weigh(self, terms: Sequence[TermCounts], *, reference_length: float) -> list[LexicalRow]:
        """What the lexical retriever stores of each."""
        ...

    def acronyms(self, content: str) -> list[tuple[str, str, int]]:
        """The acronyms that a document explains: each with its long form, and how often."""
        ...


#: Gives the packed token vectors of texts, one `bytes` each.
TokenPacker: TypeAlias = Callable[[Sequence[str]], list[bytes]]


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document cut into chunks, with the words of each counted. Not yet embedded.

    Attributes:
        texts: What is indexed of each chunk (see `recollect.ingest.prepare`).
        acronyms: Those that the content explains, with long form and occurrences.
        bands: Of the content, to find nearly equal ones by.
        analysed_as: The language that its words were counted in, and those of the parts in other ones; None: the
            collection's.
        attached: What is attached to it, and to what is; none of these has any.
        keeps_attached: Whether what is attached to it is stored apart, and stays where ``attached`` does not name it.
        owner: The writer who stored it in the store that it comes from, and
        twin: which of that writer's documents of its name it was there, as a number below 0. What somebody who does not
            own the collection stores is theirs in any case.
    """

    document: Document
    chunks: Sequence[Chunk]
    texts: Sequence[str]
    terms: Sequence[TermCounts]
    fingerprint: str
    acronyms: Sequence[tuple[str, str, int]] = ()
    bands: Sequence[int] = ()
    analysed_as: tuple[str, ...] | None = None
    attached: Sequence[CutDocument] = ()
    keeps_attached: bool = False
    owner: str = ""
    twin: int = 0


@dataclass(frozen=True, slots=True)
class Embedded:
    """What the model makes of a document's chunks.

    Attributes:
        vectors: Shape (chunks, dimension).
        token_vectors: Packed, one a chunk; None where the collection does not ask for them.
        cacheable: What the model made of each chunk's text alone, at half precision; None: it is not to be cached.
        space_id: The vector space that they were made for; None: the one that the collection used at first.
        attached: Of what is attached to the document, in its order.
    """

    vectors: Vectors
    token_vectors: Sequence[bytes] | None = None
    cacheable: Vectors | None = None
    space_id: int | None = None
    attached: Sequence[Embedded] = ()


class Preparer:
    """Cuts and embeds documents for one collection. Safe to share between threads.

    Args:
        chunker: The collection's chunking strategy.
        indexer: Counts and weighs the terms of its chunks.
        embedder: The collection's model, cached where that is wanted.
        settings: What besides the document itself decides its chunks and vectors; part of every fingerprint.
        token_packer: Computes token vectors, for a collection that stores them.
        cache: Whether embeddings are kept with the documents, to be found again by their texts.
        door: What documents pass before anything is made of them; None: nothing.
    """

    def __init__(
        self,
        chunker: ChunkingStrategy,
        indexer: TermIndexer,
        embedder: EmbeddingProvider,
        *,
        settings: Mapping[str, Any],
        token_packer: TokenPacker | None = None,
        cache: bool = False,
        door: Door | None = None,
    ) -> None:
        self._chunker = chunker
        self._cache = cache
        self._token_packer = token_packer
        self._indexer = indexer
        self._embedder = embedder
        self.door = door
        if door is not None:
            settings = {**settings, "pii": door.policy}
        self._neighbours = neighbour_weight(embedder.model_name)
        self._settings = json.dumps([PIPELINE_VERSION, self._neighbours, dict(settings)], sort_keys=True, default=str)

    @property
    def shows_pictures(self) -> bool:
        """Whether pictures may be shown to a model that describes them."""
        return self.door is None or self.door.shows_pictures

    def fingerprint(self, given: Mapping[str, Any]) -> str:
        """Names everything but the content that a version depends on.

        Args:
            given: What the caller says about the document (not what is found inside it).
        """
        text = self._settings + json.dumps(dict(given), sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def cut(
        self, document: Document, fingerprint: str, metadata: Mapping[str, Any] = MappingProxyType({})
    ) -> CutDocument:
        """Cut a document and count its words.

        Args:
            document: The document.
            fingerprint: Of its version.
            metadata: Its source's, for keys that the document and its attachments do not have.

        Raises:
            UsageError: The document holds no text, or cannot be stored as it is.
            PersonalDataError: It holds personal data, which the tenant's policy refuses.
        """
        if metadata:
            document = replace(document, metadata={**metadata, **document.metadata})
        given = document
        if self.door is not None:
            require_storable(document)
            document = self.door.admit(document)
        complete = completed(document)
        attached: list[CutDocument] = []
        if given.attachments:
            complete = self._attach(complete, given, fingerprint, attached, metadata)
        # Sentences end by the rules of the document's own language.
        language = complete.language or self._indexer.language_of(complete.content)
        chunks = chunks_of(self._chunker, replace(complete, language=language))
        if not chunks:
            raise UsageError(f"The document {complete.source!r} holds no text: there is nothing to search in it.")
        return replace(self.adopt(complete, chunks, fingerprint), attached=attached)

    def _attach(
        self,
        message: Document,
        given: Document,
        fingerprint: str,
        attached: list[CutDocument],
        metadata: Mapping[str, Any],
    ) -> Document:
        """Cut what is attached to a message, with what is attached to that.

        Args:
            message: As it is stored.
            given: As it was given, whose tags and rights its attachments have.
            fingerprint: Of the message.
            attached: Takes what was cut.
            metadata: As for `cut`.

        Returns:
            The message, with what cannot be stored of its attachments named in its metadata.

        Raises:
            PersonalDataError: Something attached holds personal data, which the tenant's policy refuses.
        """
        left_out = [message.metadata["attachments_left_out"]] if "attachments_left_out" in message.metadata else []
        begun = len(attached)
        for one in attachments_of(message, _as_stated(given), keep_originals=given.original is not None):
            try:
                cut = self.cut(one, fingerprint, metadata)
            except PersonalDataError:
                raise
            except UsageError as exc:
                left_out.append(f"{one.title} {exc}"[:200])
            else:
                attached += [replace(cut, attached=()), *cut.attached]
        told = {"attachments_left_out": "; ".join(left_out)[:500]} if left_out else {}
        message = replace(message, attachments=(), metadata={**message.metadata, **told})
        if self.door is not None and self.door.policy != "tag":
            changed = any("pii" in cut.document.metadata for cut in attached[begun:])
            if changed or left_out:
                # Its own bytes hold what was taken out of its attachments, or nobody has looked at.
                message = replace(message, original=None)
        return message

    def adopt(self, document: Document, chunks: Sequence[Chunk], fingerprint: str) -> CutDocument:
        """Take a document, which has passed the door, with the chunks that it was given, and count their words."""
        complete = completed(document)
        texts = [searchable_text(complete, chunk) for chunk in chunks]
        whole = self._indexer.language_of(complete.content, complete.language)
        languages = self._indexer.languages(texts, whole)
        return CutDocument(
            complete,
            chunks,
            texts,
            self._indexer.count(texts, languages),
            fingerprint,
            self._indexer.acronyms(complete.content),
            bands(complete.content),
            analysed_as=None if whole is None else tuple(dict.fromkeys((whole, *languages))),
        )

    def embed(self, batch: Sequence[CutDocument]) -> list[Embedded]:
        """Embed the chunks of several documents together, with those of what is attached to them."""
        made = iter(self._embed(_flat(batch)))
        return [replace(next(made), attached=list(islice(made, len(cut.attached)))) for cut in batch]

    def _embed(self, batch: Sequence[CutDocument]) -> list[Embedded]:
        alone = self._vectors(batch)
        mixed = self.complete(batch, [self._with_neighbours(own) for own in alone])
        if not self._cache:
            return mixed
        return [replace(one, cacheable=own) for one, own in zip(mixed, alone, strict=True)]

    def _with_neighbours(self, vectors: Vectors) -> Vectors:
        mixed: Vectors = with_neighbours(vectors, weight=self._neighbours).astype(np.float16)
        return mixed

    def complete(self, batch: Sequence[CutDocument], vectors: Sequence[Vectors]) -> list[Embedded]:
        """What `embed` gives, of documents whose vectors are known."""
        if self._token_packer is None:
            return [Embedded(own) for own in vectors]
        # What late interaction reads of a passage: it is scored by the same text whether or not it is stored. Chunks
        # with the same parent are one passage.
        texts = [[_passage_text(cut.document, chunk) for chunk in cut.chunks] for cut in batch]
        different = list(dict.fromkeys(text for own in texts for text in own))
        packed: dict[str, bytes] = {}
        for start in range(0, len(different), _PACK_SLICE):
            part = different[start : start + _PACK_SLICE]
            packed |= zip(part, self._token_packer(part), strict=True)
        return [Embedded(own, [packed[text] for text in of]) for own, of in zip(vectors, texts, strict=True)]

    def _vectors(self, batch: Sequence[CutDocument]) -> list[Vectors]:
        texts = [text for cut in batch for text in cut.texts]
        slices = [
            self._embedder.embed_documents(texts[i : i + _EMBED_SLICE]) for i in range(0, len(texts), _EMBED_SLICE)
        ]
        # Half precision is what is stored; a document of a hundred thousand chunks should not hold more.
        vectors = np.concatenate([part.astype(np.float16) for part in slices])
        ends = np.cumsum([len(cut.chunks) for cut in batch])
        return np.split(vectors, ends[:-1])

    def finish(
        self, batch: Sequence[CutDocument], embedded: Sequence[Embedded], *, reference_length: float
    ) -> list[PreparedDocument]:
        """Join what is known of each document; ``reference_length`` is the collection's."""
        flat, made = _flat(batch), [one for own in embedded for one in (own, *own.attached)]
        weighed = iter(
            self._indexer.weigh([one for cut in flat for one in cut.terms], reference_length=reference_length)
        )
        prepared = iter(
            [
                PreparedDocument(
                    document=cut.document,
                    chunks=cut.chunks,
                    embedding_keys=[hashlib.sha256(text.encode("utf-8")).digest() for text in cut.texts],
                    embeddings=own.vectors,
                    lexical=list(islice(weighed, len(cut.chunks))),
                    fingerprint=cut.fingerprint,
                    acronyms=cut.acronyms,
                    bands=cut.bands,
                    token_vectors=own.token_vectors,
                    cacheable=own.cacheable,
                    analysed_as=cut.analysed_as,
                    keeps_attached=cut.keeps_attached,
                    owner=cut.owner,
                    twin=cut.twin,
                )
                for cut, own in zip(flat, made, strict=True)
            ]
        )
        return [replace(next(prepared), attached=list(islice(prepared, len(cut.attached)))) for cut in batch]


def _flat(batch: Sequence[CutDocument]) -> list[CutDocument]:
    """Documents, each with what is attached to it behind it."""
    return [one for cut in batch for one in (cut, *cut.attached)]


def _passage_text(document: Document, chunk: Chunk) -> str:
    shown = document.content[slice(*chunk.parent)] if chunk.parent else chunk.text
    return passage_text(document.title, shown)


def passage_text(title: str | None, shown: str) -> str:
    """What late interaction reads of a passage."""
    return f"{title}\n{shown}"


def completed(document: Document) -> Document:
    """The document with a source and a title: those given, or the ones that its content suggests.

    Characters that PostgreSQL cannot hold are replaced, one for one, so that every offset stays right.

    Raises:
        UsageError: The document cannot be stored as it is; see `require_storable`.
    """
    document = _as_stated(document)
    require_storable(document)
    source = document.source or document.id or f"sha256:{document.content_hash.hex()[:16]}"
    first_heading = document.headings[0].title if document.headings else None
    first_line = document.content.strip().partition("\n")[0][:_MAX_TITLE_CHARACTERS].strip()
    named = PurePosixPath(document.source).stem if document.source else first_line
    title = document.title or first_heading or named or source
    return replace(
        document,
        content=storable(document.content),
        source=storable(source),
        id=storable(document.id),
        title=storable(title),
        metadata=storable(dict(document.metadata)),
        tags=tuple(storable(tag) for tag in document.tags),
        department=storable(document.department),
        mime_type=storable(document.mime_type),
        language=storable(document.language),
        event_time=_with_zone(document.event_time),
        event_end=_with_zone(document.event_end),
        permissions=_permissions(document),
        headings=tuple(replace(heading, title=storable(heading.title)) for heading in document.headings),
    )


def _as_stated(document: Document) -> Document:
    """The document with what its metadata says where its fields say nothing, and with the headings of its text."""
    content: object = document.content
    if not isinstance(content, str):
        return document
    said = stated_fields(document.metadata, where=f"the metadata of {document.source!r}")
    unread = document.file_hash is None and not document.headings
    return replace(
        document,
        title=document.title or said.title,
        department=document.department or said.department,
        tags=document.tags or said.tags,
        ttl=said.ttl if document.ttl is None else document.ttl,
        event_time=said.event_time if document.event_time is None else document.event_time,
        event_end=said.event_end if document.event_end is None else document.event_end,
        headings=headings_of_text(document.content, mime_type=document.mime_type) if unread else document.headings,
    )


def require_storable(document: Document) -> None:
    """Refuse a document that the store could not take.

    Raises:
        UsageError: Its metadata is not JSON, a name is too long for an index, its id is empty, a value is of the
            wrong type, its event ends before it begins, its ``ttl`` is no length of time, or its permissions are none.
    """
    if not isinstance(document.content, str):
        raise UsageError(f"A document's content is a string, not {type(document.content).__name__}: decode it first.")
    tags: object = document.tags
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in document.tags):
        raise UsageError(f"A document's tags are a tuple of strings, not {tags!r}.")
    if document.id == "":
        raise UsageError("The document's id is empty: leave it out, or give an id that no other document has.")
    for name, value in (
        ("source", document.source),
        ("id", document.id),
        ("department", document.department),
        *(("tag", tag) for tag in document.tags),
    ):
        if value is not None and len(value.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
            raise UsageError(
                f"The document's {name} {value[:60]!r}… is longer than {MAX_NAME_BYTES:,} bytes: shorten it."
            )
    _require_times(document)
    _permissions(document)
    try:
        json.dumps(dict(document.metadata), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise UsageError(f"The metadata of {document.source!r} cannot be stored as JSON: {exc}.") from exc


def _permissions(document: Document) -> tuple[str, ...] | None:
    """Who may read it, by itself or by its metadata. What cannot be read is refused: it must not become everybody's."""
    given = document.metadata.get("permissions") if document.permissions is None else document.permissions
    if given is None:
        return None
    return read_permissions(given, name=f"The permissions of {document.source!r}").as_tokens()


def _require_times(document: Document) -> None:
    start, end = _with_zone(document.event_time), _with_zone(document.event_end)
    if end is not None and (start is None or end < start):
        raise UsageError(f"The event of {document.source!r} ends {end} without having begun: it began {start}.")
    read_lifetime(document.ttl, name=f"The ttl of {document.source!r}")


def _with_zone(moment: datetime | None) -> datetime | None:
    # Times without a zone are read as UTC, here as everywhere.
    return None if moment is None else read_time(moment, name="An event time")


def storable(value: _Value) -> _Value:
    """A value of JSON without the characters that PostgreSQL cannot hold, which are replaced one for one."""
    stored: object = value
    if isinstance(value, str):
        stored = _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    elif isinstance(value, Mapping):
        stored = {storable(key): storable(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        stored = [storable(item) for item in value]
    return cast("_Value", stored)


def average_length(batch: Sequence[CutDocument]) -> float:
    """Average length of the batch's chunks in terms: the estimate that a new collection starts from."""
    lengths = [terms.length for cut in batch for terms in cut.terms]
    return sum(lengths) / len(lengths) if lengths else 1.0


# What is attached to a message, as documents that are stored with it.

# As a principal's names are: what is longer than an index takes is refused.
_LONGEST_SOURCE_BYTES = 2_000
_INHERITED = ("thread", "message_id")


def attachments_of(message: Document, given: Document, *, keep_originals: bool) -> Iterator[Document]:
    """The attachments of a message, as documents of its source.

    Each has the message's tags, department, time to live and rights, whatever it says itself: it came with the message,
    and a file must not say who may read somebody's mail. Its metadata names the message (``message``) and its thread.
    Where the message was given an id, those of its attachments begin with it.

    Args:
        message: As it is stored.
        given: As it was given, with its attachments.
        keep_originals: Whether their files are kept, as the message's is.
    """
    above = message.source or ""
    identity = message.id or above
    told = {"message": above} | {key: message.metadata[key] for key in _INHERITED if key in message.metadata}
    for one in given.attachments:
        yield replace(
            one,
            source=_below(above, one.source or "attached"),
            id=_below(identity, one.id or one.source or "attached") if message.id or one.id else None,
            metadata={**one.metadata, **told},
            tags=given.tags,
            department=given.department,
            ttl=given.ttl,
            permissions=message.permissions,
            event_time=one.event_time or given.event_time,
            original=one.original if keep_originals else None,
        )


def _below(above: str, name: str) -> str:
    """A source below a message's; of a name that makes it too long, the part of the message is left."""
    source = f"{above}/{name}"
    if len(source.encode("utf-8", "surrogatepass")) <= _LONGEST_SOURCE_BYTES:
        return source
    return f"{above}/{name.partition('-')[0]}"


# Documents whose pictures are described are cut so that no chunk holds words of the author and words of a model.


def chunks_of(chunker: ChunkingStrategy, document: Document) -> Sequence[Chunk]:
    """A document's chunks; those of descriptions name the model that has written them (``generated_by``).

    Args:
        chunker: Cuts.
        document: With the descriptions of its pictures, where it has any, behind its text.
    """
    spans = description_spans(document.content, document.metadata)
    if not spans:
        return chunker.chunk(document)
    begins = spans[0][0]
    own = replace(
        document,
        content=document.content[:begins],
        headings=tuple(one for one in document.headings if one.end_offset <= begins),
        pages=tuple(one for one in document.pages if one.end_offset <= begins),
    )
    chunks = list(chunker.chunk(own)) if own.content.strip() else []
    by = str(document.metadata.get(DESCRIBED_BY) or "a model")
    for start, end in spans:
        for one in chunker.chunk(Document(content=document.content[start:end], language=document.language)):
            parent = None if one.parent is None else (one.parent[0] + start, one.parent[1] + start)
            moved = replace(
                one,
                position=len(chunks),
                start_offset=one.start_offset + start,
                end_offset=one.end_offset + start,
                page=document.page_at(start),
                parent=parent,
                metadata={**one.metadata, GENERATED_BY: by},
            )
            chunks.append(moved)
    return chunks


# Sketches of texts, by which nearly equal ones are found without comparing all with all (MinHash, Broder 1997).
#
# A text is the set of its runs of five words. The smallest hash of the set under one function is equal for two texts
# as often as their sets overlap; five such in a row make a band, and a text has sixteen bands. Of two texts that
# share 80 % of their runs, 99.8 % have a band in common; of two that share 30 %, one in twenty-five. What is found is
# compared word by word afterwards.
#
# (`datasketch` has this too, and brings scipy: a quarter of an installation for forty lines.)


#: What is called nearly the same: the share of runs of words that two texts have in common.
NEARLY_THE_SAME = 0.8

_RUN_WORDS = 5
#: Shorter texts are alike by chance.
_FEWEST_RUNS = 16
_BANDS, _ROWS = 16, 5
_WORD = re.compile(r"\w+")
# Finds the same words in a text of ASCII, several times as fast.
_ASCII_WORDS = {code: character.lower() if _WORD.match(character := chr(code)) else " " for code in range(128)}

# Functions that are the same for ever: bands are stored.
_RANDOM = np.random.Generator(np.random.PCG64(20_261_122))
_FACTORS = _RANDOM.integers(0, 1 << 63, _BANDS * _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
# Hashes of which the functions are computed at a time: they fit a processor's cache.
_SLICE = 256


def runs(text: str) -> set[int]:
    """Hashes of the runs of words of a text, case and punctuation aside."""
    words = text.translate(_ASCII_WORDS).split() if text.isascii() else _WORD.findall(text.casefold())
    joined = " ".join(words).encode("utf-8", "replace")
    lengths = map(len, words if text.isascii() else joined.split(b" "))
    # Without a step of Python for each: a long text has a hundred thousand. A run ends before the blank behind it.
    starts = list(accumulate(map((1).__add__, lengths), initial=0))
    ends = map((-1).__add__, starts[_RUN_WORDS:])
    return set(map(zlib.crc32, map(joined.__getitem__, map(slice, starts, ends))))


def bands(text: str) -> tuple[int, ...]:
    """The bands of a text, as 32-bit numbers; none of a text that is too short to be like another one."""
    hashes = np.fromiter(runs(text), np.uint64)
    hashes *= _MIX
    hashes ^= hashes >> _HALF
    if len(hashes) < _FEWEST_RUNS:
        return ()
    least = np.full(_BANDS * _ROWS, np.iinfo(np.uint64).max, np.uint64)
    for start in range(0, len(hashes), _SLICE):
        part = hashes[start : start + _SLICE, np.newaxis]
        least = np.minimum(least, (part * _FACTORS).min(axis=0))
    least >>= _HALF
    return tuple(_number(band, least[band * _ROWS : (band + 1) * _ROWS]) for band in range(_BANDS))


def _number(band: int, rows: np.ndarray[Any, np.dtype[np.uint64]]) -> int:
    unsigned = zlib.crc32(rows.tobytes(), band)
    return unsigned - (1 << 32) if unsigned >= 1 << 31 else unsigned


def likeness(one: str, other: str) -> float:
    """The share of runs of words that two texts have in common, of those that either has."""
    first, second = runs(one), runs(other)
    return len(first & second) / len(first | second) if first or second else 1.0
