"""How a collection's documents are cut and embedded: of a new collection, and of one that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from recollect.embedding.cached import CachedEmbedder
from recollect.errors import ConflictError, FetchError, PersonalDataError, UsageError
from recollect.store.embedding_cache import EmbeddingCacheRepository

if TYPE_CHECKING:
    from recollect.chunking.base import ChunkingStrategy, Tokenize
    from recollect.config.storage import PrivacyConfig
    from recollect.embedding.base import EmbeddingProvider
    from recollect.ingest.door import Door
    from recollect.ingest.prepare import Preparer, TokenPacker
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.model.job import NewJob
    from recollect.model.tenant import PersonalDataPolicy
    from recollect.pipeline.assembly import Assembly
    from recollect.pipeline.standpoint import Standpoint
    from recollect.plugins import Plugins
    from recollect.privacy.detector import Detector


def collection_settings(
    assembly: Assembly,
    *,
    language: str | None = None,
    chunking: Mapping[str, Any] | None = None,
    token_vectors: bool | None = None,
    dimensions: int | None = None,
) -> dict[str, Any]:
    """How a new collection is cut, embedded and searched, as repositories take it; what is None is as configured.

    Raises:
        UsageError: The chunking is not valid, or the embedding model gives no token vectors or not that length.
    """
    from recollect.chunking.registry import describe_chunker
    from recollect.retrieval.analysis import Analyzer

    config = assembly.config
    if dimensions is None:
        embedder, spec = assembly.embedder, assembly.embedders.spec
    else:
        embedder, spec = assembly.embedders.of_length(dimensions)
    wanted = config.embedding.token_vectors if token_vectors is None else token_vectors
    if wanted:
        token_packer(embedder)
    configured = {"strategy": config.chunking.strategy, **config.chunking.parameters}
    return {
        "embedding_model": embedder.model_name,
        "embedding_dimension": embedder.dimension,
        "language": Analyzer(language or config.language).language,
        "chunking": dict(describe_chunker(chunker(chunking or configured, embedder, assembly.chunkers))),
        "token_vectors": wanted,
        "embedding_spec": spec,
    }


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Sizes of chunks for some documents, whatever their collection's strategy calls them.

    Attributes:
        size: Of the longest chunk; None: as the collection has it.
        overlap: Of neighbouring chunks; None: the same.
        in_tokens: Whether both count tokens, whatever the collection counts.
    """

    size: int | None = None
    overlap: int | None = None
    in_tokens: bool = False

    def within(self, chunking: Mapping[str, Any], chunkers: Plugins) -> dict[str, Any]:
        """A collection's chunking with these sizes.

        Args:
            chunking: The collection's.
            chunkers: All strategies.

        Raises:
            UsageError: Its strategy has no overlap, or does not count tokens.
        """
        from recollect.chunking.registry import DEFAULT_STRATEGY, parameter_names, size_parameters

        strategy = str(chunking.get("strategy", DEFAULT_STRATEGY))
        window = chunking.get("window_size")
        counted: dict[str, str] = {}
        if self.in_tokens:
            known = parameter_names(strategy, chunkers)
            if "unit" in known:
                counted = {"unit": "tokens"}
            elif "max_tokens" not in known:
                raise UsageError(f"{strategy} chunking does not count tokens: sizes in tokens cannot be given.")
        return {
            **chunking,
            **counted,
            **size_parameters(strategy, size=self.size, overlap=self.overlap, window_size=window, chunkers=chunkers),
        }


def ensure_collection(at: Standpoint, name: str) -> Collection:
    """A collection of the view's tenant, made with the configured settings where it is missing."""
    collections, scope = at.store.collections, at.everything
    found = collections.find(scope, name)
    if found is not None:
        return found
    try:
        return collections.create(scope, name, **collection_settings(at.assembly))
    except ConflictError:  # another process was faster
        return collections.get(scope, name)


def make_preparer(
    assembly: Assembly,
    scope: Scope,
    place: Collection,
    *,
    door: Door | None = None,
    sizes: ChunkSizes | None = None,
) -> Preparer:
    """What cuts and embeds documents for a collection.

    Args:
        assembly: The parts.
        scope: Whose.
        place: The collection.
        door: Applied to what comes in; None: to what is stored already, nothing is.
        sizes: Of the chunks, where they are other than the collection's.

    Raises:
        UsageError: The model that the collection is embedded with cannot be made here.
    """
    from recollect.ingest.prepare import Preparer
    from recollect.retrieval.indexing import TermIndexer

    embedder = assembly.embedder_for(place)
    # A text that is in the store already is embedded faster: somebody in particular must not measure which ones
    # those are, and a session's texts are nobody else's.
    cached = assembly.config.embedding.cache and not place.hidden and scope.principal is None
    chunking = dict(place.chunking) if sizes is None else sizes.within(place.chunking, assembly.chunkers)
    return Preparer(
        chunker(chunking, embedder, assembly.chunkers),
        TermIndexer(place.language, salt=place.collection_id),
        cached_embedder(assembly, scope, embedder) if cached else embedder,
        settings={"chunking": chunking, "embedding": place.first_model, "language": place.language},
        token_packer=token_packer(embedder) if place.token_vectors else None,
        cache=cached,
        door=door,
    )


def token_packer(embedder: EmbeddingProvider) -> TokenPacker:
    """Computes token vectors and packs them.

    Raises:
        UsageError: The model gives none.
    """
    from recollect.retrieval.rerank.late_interaction import TokenEncoder, pack

    if not isinstance(embedder, TokenEncoder):
        raise UsageError(
            "Token vectors require the local embedding model (embedding.provider = 'local'): other providers give "
            "none. Configure it, or make a collection without token vectors."
        )
    return lambda texts: [pack(own) for own in embedder.token_vectors(texts)]


def chunker(description: Mapping[str, Any], embedder: EmbeddingProvider, chunkers: Plugins) -> ChunkingStrategy:
    """The chunker of a description: its strategy, and parameters in place of the strategy's own.

    Args:
        description: ``strategy`` and its parameters.
        embedder: The collection's model.
        chunkers: All strategies.

    Raises:
        UsageError: The strategy or a parameter is unknown, or a value is not allowed.
    """
    from recollect.chunking.registry import DEFAULT_STRATEGY, make_chunker

    def neighbour_similarity(texts: Sequence[str]) -> list[float]:
        vectors = embedder.embed_documents(texts)
        return [float(similarity) for similarity in (vectors[:-1] * vectors[1:]).sum(axis=1)]

    parameters = {key: value for key, value in description.items() if key not in {"algorithm", "tokenize"}}
    strategy = str(parameters.pop("strategy", DEFAULT_STRATEGY))
    # `similarity` is a function of the embedding model; as a setting it says whether to use one.
    similarity = neighbour_similarity if parameters.pop("similarity", None) else None
    tokenize: Tokenize | None = getattr(embedder, "token_spans", None) or getattr(embedder, "chunk_spans", None)
    by_tokens = parameters.get("unit") == "tokens" or "max_tokens" in parameters or strategy == "markdown"
    return make_chunker(
        strategy,
        tokenize=tokenize if by_tokens else None,
        similarity=similarity,
        chunkers=chunkers,
        **parameters,
    )


def cached_embedder(assembly: Assembly, scope: Scope, embedder: EmbeddingProvider) -> EmbeddingProvider:
    """An embedder that asks the store's cache first; whoever stores the texts keeps what was computed."""
    # An embedding is kept in the transaction that stores a chunk of its text: the chunk is what it goes with.
    cache = EmbeddingCacheRepository(assembly.store.database, scope)
    return CachedEmbedder(embedder, cache, keep_computed=False)


# The door of a tenant: which policy for personal data is in force, and what it does with jobs.


def make_door(assembly: Assembly, scope: Scope) -> Door | None:
    """What is applied to everything that the scope's tenant stores; None: nothing is.

    Raises:
        UsageError: The policy asks for it, and the extra ``pii`` is not installed.
    """
    stored, salt = assembly.store.tenants.privacy(scope)
    settings = assembly.config.privacy
    policy = stored or settings.pii
    if policy == "off":
        return None
    from recollect.ingest.door import Door

    detector = _detector(settings.phone_regions)
    return Door(policy, detector, salt=salt, shows_pictures=_shows_pictures(policy, settings))


def shows_pictures(assembly: Assembly, scope: Scope) -> bool:
    """Whether pictures of what the scope's tenant stores may be shown to a model that describes them.

    What they show can be looked at by nobody else before; so by default not where text would not be sent as it is.
    """
    stored, _ = assembly.store.tenants.privacy(scope)
    return _shows_pictures(stored or assembly.config.privacy.pii, assembly.config.privacy)


def _shows_pictures(policy: PersonalDataPolicy, settings: PrivacyConfig) -> bool:
    return policy in {"off", "tag"} or settings.send_pictures


# Where files stand on this machine: their documents' own names pass the door when they are read.
_OF_THE_MACHINE = frozenset({"paths", "folders"})

# Sources that their owner has named are found by that name, which stands with them.
_OF_SOURCES = frozenset({"refresh_source", "watch"})


def admit_job(door: Door | None, job: NewJob) -> NewJob:
    """A job as it may be seen: what it needs of personal data is withheld, which goes when the job has succeeded.

    Headers and bodies of requests are withheld in any case.

    Raises:
        PersonalDataError: Its arguments hold personal data, and the policy is to refuse that.
    """
    if door is None or door.policy == "tag" or job.kind in _OF_SOURCES:
        return job
    held = {name: value for name, value in job.arguments.items() if door.holds(value)}
    if door.policy == "refuse":
        if held.keys() - _OF_THE_MACHINE:
            raise PersonalDataError(
                f"What the job is to do holds personal data ({', '.join(sorted(held))}), which this tenant's policy "
                "refuses. Leave it out, or have the owner of the store choose another policy (recollect tenants "
                "set-pii).",
                kinds=(),
            )
        return job
    return replace(
        job,
        arguments={**job.arguments, **{name: door.renamed(value) for name, value in held.items()}},
        withheld={**held, **job.withheld},
        source=None if job.source is None else door.name(job.source),
        document=None if job.document is None else door.name(job.document),
    )


def shown_error(door: Door | None, error: FetchError) -> FetchError:
    """Why a page cannot be fetched, as it may be kept: its address may hold personal data."""
    if door is None or not door.holds([error.url, error.reason]):
        return error
    return type(error)(
        door.shown(error.url),
        door.shown(error.reason),
        status=error.status,
        retryable=error.retryable,
        retry_after_seconds=error.retry_after_seconds,
    )


@contextmanager
def errors_shown(door: Door | None) -> Iterator[None]:
    """What cannot be fetched is told as `shown_error` has it."""
    try:
        yield
    except FetchError as error:
        raise shown_error(door, error) from None


@cache
def _detector(phone_regions: tuple[str, ...]) -> Detector:
    from recollect.privacy.detector import Detector

    return Detector(phone_regions=phone_regions)
