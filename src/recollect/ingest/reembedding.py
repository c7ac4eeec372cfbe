"""Embedding what is stored anew: the vectors of another space, made as an ingest makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from recollect import interruption
from recollect.errors import ConflictError
from recollect.ingest.prepare import TokenPacker, neighbour_weight, passage_text, searchable_text, with_neighbours
from recollect.model import Chunk, Document, Scope
from recollect.store.spaces import BEGINNING, EmbeddedText, NewVector, SpaceRepository

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model.space import Space

#: Chunks embedded and stored at a time: little enough that searches wait for none of them, and that little is lost.
BATCH_CHUNKS = 64

# After so many rounds writers are held up for the last few chunks: they may write as fast as a model embeds.
_ROUNDS = 3

# So often a rest looks up whether it is still wanted.
_LOOK_UP_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class FillProgress:
    """How far a space is filled.

    Attributes:
        filled: Chunks that have a vector there.
        total: Chunks that there are, those of past versions included.
    """

    filled: int
    total: int


FillCallback: TypeAlias = Callable[[FillProgress], None]


@dataclass(eq=False, repr=False)
class SpaceFiller:
    """Fills a space of a collection, batch by batch, each of them a transaction.

    Attributes:
        repository: Reads texts and stores vectors.
        scope: The tenant.
        space: That is filled.
        embedder: Its model.
        cached: The same with a cache, where embeddings are kept with the chunks, to be found again by their texts.
        token_packer: Makes packed token vectors, in a collection that stores them.
        rest: How long to rest after a batch, in multiples of what it took: searches have the machine meanwhile.
        on_progress: Told after every batch.
    """

    repository: SpaceRepository
    _: KW_ONLY
    scope: Scope
    space: Space
    embedder: EmbeddingProvider
    cached: EmbeddingProvider | None = None
    token_packer: TokenPacker | None = None
    rest: float = 0.0
    on_progress: FillCallback | None = None

    def fill(self) -> int:
        """Embed every chunk that lacks a vector in the space; returns how many were stored.

        Raises:
            ModelChangedError: The space was dropped meanwhile.
            NotFoundError: The collection was deleted meanwhile.
        """
        total, filled = self.repository.counts(self.scope, self.space)
        stored = 0
        for batch in self._batches():
            started = time.monotonic()
            added = self.repository.add(self.scope, self.space, self.embedded(batch))
            stored += added
            if self.on_progress:
                # What others write meanwhile is counted at the next round.
                self.on_progress(FillProgress(min(filled + stored, total), total))
            _rest(self.rest * (time.monotonic() - started))
        return stored

    def switch(self, *, action: str, actor: str) -> int:
        """Have the collection use the space, once it lacks nothing; returns how many more chunks were embedded.

        Raises:
            ModelChangedError: The space was dropped meanwhile.
            NotFoundError: The collection was deleted meanwhile.
        """
        stored = 0
        for attempt in range(_ROUNDS + 2):
            stored += self.fill()
            most = BATCH_CHUNKS if attempt >= _ROUNDS else 0
            if self.repository.switch(
                self.scope,
                self.space,
                complete=self._embedded_alone,
                most=most,
                action=action,
                actor=actor,
                passages=self.token_packer is not None,
            ):
                return stored
        raise ConflictError(
            "Documents are written faster than they can be embedded with the new model. Everything so far is kept: run "
            "the command again when less is written."
        )

    def embedded(self, texts: Sequence[EmbeddedText]) -> list[NewVector]:
        """The vectors of those of some chunks that lack one; what stands beside them is mixed in, as at an ingest."""
        return self._made(texts, self.cached or self.embedder)

    def _embedded_alone(self, texts: Sequence[EmbeddedText]) -> list[NewVector]:
        # Within a transaction: a cache would want another connection.
        return self._made(texts, self.embedder)

    def _made(self, texts: Sequence[EmbeddedText], embedder: EmbeddingProvider) -> list[NewVector]:
        if not texts:
            return []
        alone = embedder.embed_documents([_searchable(one) for one in texts]).astype(np.float16)
        tokens = self._packed([one for one in texts if one.lacks])
        found: list[NewVector] = []
        start = 0
        for stretch in _stretches(texts):
            vectors = alone[start : start + len(stretch)]
            start += len(stretch)
            mixed = with_neighbours(
                vectors.astype(np.float32), weight=neighbour_weight(self.embedder.model_name)
            ).astype(np.float16)
            found += [
                NewVector(chunk, mixed[at], vectors[at] if self.cached else None, tokens.get(chunk.chunk_id))
                for at, chunk in enumerate(stretch)
                if chunk.lacks
            ]
        return found

    def _packed(self, texts: Sequence[EmbeddedText]) -> dict[int, bytes]:
        """The token vectors of chunks, by their numbers; those with the same parent are one passage."""
        if self.token_packer is None:
            return {}
        passages = {one.chunk_id: passage_text(one.title, one.passage) for one in texts}
        different = list(dict.fromkeys(passages.values()))
        packed = dict(zip(different, self.token_packer(different), strict=True)) if different else {}
        return {chunk_id: packed[text] for chunk_id, text in passages.items()}

    def _batches(self) -> Iterator[list[EmbeddedText]]:
        after = BEGINNING
        while True:
            interruption.check()
            batch = self.repository.lacking(
                self.scope, self.space, after=after, limit=BATCH_CHUNKS, passages=self.token_packer is not None
            )
            if not batch:
                return
            yield batch
            # Behind what was tried: a chunk that was erased or changed meanwhile is looked for in the next round.
            after = max((one.version_id, one.position) for one in batch if one.lacks)


def _rest(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        interruption.check()
        time.sleep(min(left, _LOOK_UP_SECONDS))


def _searchable(one: EmbeddedText) -> str:
    document = Document(content=one.text, title=one.title)
    chunk = Chunk(
        text=one.text,
        position=one.position,
        start_offset=0,
        end_offset=len(one.text),
        section=tuple(one.section),
        metadata=one.metadata,
        context=one.context,
    )
    return searchable_text(document, chunk)


def _stretches(texts: Sequence[EmbeddedText]) -> Iterator[list[EmbeddedText]]:
    """Chunks that stand beside one another in a version."""
    numbered = enumerate(texts)
    for _, stretch in groupby(numbered, key=lambda pair: (pair[1].version_id, pair[1].position - pair[0])):
        yield [one for _, one in stretch]
