"""The door for clients of OpenAI's API: collections answer as models, and are searched as vector stores."""

from fastapi import APIRouter

from recollect.server.openai import chat_completions, embeddings, models

#: Everything of this door, under ``/v1``.
router = APIRouter(tags=["openai"])
for resource in (chat_completions, models, embeddings):
    router.include_router(resource.router)
