"""Settings of what is done with personal data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from recollect.config.sections import Section


class PrivacyConfig(Section):
    """``[rag.privacy]``: what becomes of personal data in what is stored; a tenant may have a policy of its own."""

    pii: Literal["off", "tag", "redact", "refuse"] = Field(
        "off",
        description="What becomes of e-mail addresses, telephone, card, account and identity numbers and IP addresses: "
        "off looks for none; tag counts them by kind; redact takes them out before anything is stored; refuse stores "
        "nothing that has any. A tenant's own policy (recollect tenants set-pii) goes before.",
    )
    send_pictures: bool = Field(
        False,
        description="Whether pictures are sent to the model of rag.documents.describe_images also where personal data "
        "is redacted or refused: what they show cannot be looked at before.",
    )
    phone_regions: tuple[Annotated[str, Field(pattern=r"^[A-Z]{2}$")], ...] = Field(
        ("US", "GB", "DE", "FR", "IL", "IN", "CA", "BR"),
        description="Countries whose telephone numbers are known without their code (ISO 3166-1).",
    )
