"""``/v1/embeddings``, as the ``openai`` package asks for them."""

from __future__ import annotations

import typing

import numpy as np
import openai
import pytest
from openai.types.embedding_create_params import EmbeddingCreateParams

from recollect.embedding.hashing import HashingEmbedder
from recollect.server.openai.embeddings import EmbeddingsBody


def test_vectors_are_the_collections_own(shelf, client):
    texts = ["annual leave", "Gehalt", "年假"]
    wanted = HashingEmbedder().embed_documents(texts)
    coded = client.embeddings.create(model="default", input=texts)
    plain = client.embeddings.create(model="default", input=texts, encoding_format="float", dimensions=64, user="ada")
    for reply in (coded, plain):
        assert [one.index for one in reply.data] == [0, 1, 2]
        np.testing.assert_allclose([one.embedding for one in reply.data], wanted, rtol=1e-6)
        assert reply.model == HashingEmbedder().model_name
        assert reply.usage.prompt_tokens == reply.usage.total_tokens > 0
    named = client.embeddings.create(model=reply.model, input="annual leave", extra_body={"input_type": "query"})
    np.testing.assert_allclose(named.data[0].embedding, HashingEmbedder().embed_query("annual leave"), rtol=1e-6)


def test_what_is_refused(client):
    for given, param in [
        ({"dimensions": 32}, "dimensions"),
        ({"input": [[1, 2, 3]]}, "input"),
        ({"input": [1, 2, 3]}, "input"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": ["a"] * 2_049}, "input"),
        ({"input": "a\0b"}, "input"),
        ({"extra_body": {"no_such": 1}}, "no_such"),
    ]:
        with pytest.raises(openai.BadRequestError) as told:
            client.embeddings.create(**{"model": "default", "input": "leave", **given})
        assert told.value.param == param


def test_an_empty_text_among_several_is_named_as_what_is_wrong(client):
    # The package @ai-sdk/openai-compatible sends every text in a list, an empty one too.
    with pytest.raises(openai.BadRequestError, match="for input: it is empty"):
        client.embeddings.create(model="default", input=[""])


def test_a_model_that_there_is_not(client):
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="text-embedding-3-small", input="leave")


def test_every_parameter_of_the_client_is_known():
    assert set(typing.get_type_hints(EmbeddingCreateParams)) == set(EmbeddingsBody.model_fields) - {"input_type"}
