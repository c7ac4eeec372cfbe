"""The door for clients of OpenAI's API: collections answer as models, and are searched as vector stores."""

from recollect.server.openai import (
    chat_completions,
    embeddings,
    files,
    models,
    responses,
    vector_store_files,
    vector_stores,
)

#: Everything of this door, under ``/v1``.
RESOURCES = (
    chat_completions.router,
    responses.router,
    models.router,
    embeddings.router,
    vector_stores.router,
    vector_store_files.router,
    files.router,
)
