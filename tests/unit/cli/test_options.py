from __future__ import annotations

import pytest

from recollect import RAGConfig, RetrievalOptions
from recollect.cli._options import ChunkingOptions, key_values
from recollect.cli._searching import SearchOptions
from recollect.cli.ingest import parse_size
from recollect.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [("year=2024", 2024), ('year="2024"', "2024"), ("a=b=c", "b=c"), ("flag=true", True), ("x=", ""), ("x=NaN", "NaN")],
)
def test_values_have_the_type_that_json_gives_them(text, value):
    assert list(key_values([text], option="--where").values()) == [value]


@pytest.mark.parametrize("text", ["", "year", "=2024"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(UsageError, match="--where takes KEY=VALUE"):
        key_values([text], option="--where")


def test_size_and_overlap_have_the_strategys_own_names():
    options = ChunkingOptions(chunk_size=300, chunk_overlap=50)
    assert options.parameters("recursive") == {"size": 300, "overlap": 50}
    assert options.parameters("sliding_window") == {"window_size": 300, "stride": 250}
    with pytest.raises(UsageError, match="paragraph chunking has no overlap"):
        options.parameters("paragraph")
    assert ChunkingOptions(chunk_size=99).parameters("markdown") == {"max_tokens": 99}
    assert ChunkingOptions(chunk_overlap=50).parameters("sliding_window") == {"stride": 450}
    with pytest.raises(UsageError, match="has no parameter 'colour'; it has size"):
        ChunkingOptions(chunking_option=["colour=red"]).parameters("recursive")


def test_the_default_window_is_the_strategys():
    from recollect.chunking.chunkers import SlidingWindowChunker

    assert SlidingWindowChunker().window_size == 500


def test_only_options_that_were_given_count():
    assert not ChunkingOptions().given
    assert not ChunkingOptions(chunking_option=[]).given
    assert ChunkingOptions(chunk_overlap=0).given


def test_no_option_leaves_the_configured_defaults():
    configured = RAGConfig.load(retrieval={"mode": "lexical", "top_k": 7})
    assert SearchOptions().retrieval(configured) == RetrievalOptions()


@pytest.mark.parametrize(("text", "size"), [("500", 500), ("1kB", 1024), ("20MB", 20 << 20), ("2 GiB", 2 << 30)])
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1.5MB", "-1", "0", "5 apples", "1e6", "kB5"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="--max-file-size takes"):
        parse_size(text)
