"""Pictures that models are shown, as each provider wants them."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest
from wire_formats import anthropic, bedrock, google, ollama, openai
from wire_formats.server import KEY, ModelServer

from recollect.llm.base import ChatMessage, ChatPicture
from recollect.providers.connection import Secret

PICTURE = ChatPicture(b"\x89PNG\r\n\x1a\n picture", "image/png")
CODED = b64encode(PICTURE.data).decode()
URL = f"data:image/png;base64,{CODED}"
MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "What is it?", (PICTURE,))]

WANTED = [
    (
        openai.ChatCompletions(),
        lambda body: body["messages"][1]["content"],
        [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": URL}}],
    ),
    (
        openai.Responses(),
        lambda body: next(one["content"] for one in body["input"] if one["role"] == "user"),
        [
            {"type": "input_text", "text": "What is it?"},
            {"type": "input_image", "image_url": URL, "detail": "auto"},
        ],
    ),
    (
        anthropic.Chat(),
        lambda body: body["messages"][0]["content"],
        [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": CODED}},
            {"type": "text", "text": "What is it?"},
        ],
    ),
    (
        ollama.Chat(),
        lambda body: (body["messages"][1]["content"], body["messages"][1]["images"]),
        ("What is it?", [CODED]),
    ),
    (
        bedrock.Chat(),
        lambda body: body["messages"][0]["content"],
        [{"image": {"format": "png", "source": {"bytes": CODED}}}, {"text": "What is it?"}],
    ),
    (
        google.Chat(),
        lambda body: body["contents"][0]["parts"],
        [{"inlineData": {"data": CODED, "mime_type": "image/png"}}, {"text": "What is it?"}],
    ),
]


@pytest.mark.parametrize(("wire", "shown", "wanted"), WANTED, ids=lambda one: getattr(one, "name", ""))
def test_a_picture_is_sent_with_its_question(wire, shown, wanted, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "key")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ModelServer(wire)
    try:
        model = wire.make(server.base_url, max_retries=0, timeout_seconds=20.0, api_key=Secret(KEY))

        async def answer():
            return [piece async for piece in model.stream(MESSAGES)]

        assert asyncio.run(answer())
        (request,) = server.requests
        assert shown(request.body) == wanted
    finally:
        server.close()
