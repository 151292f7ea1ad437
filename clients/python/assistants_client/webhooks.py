"""Verifies the events that the service sends to your server."""

from collections.abc import Mapping
from typing import Any, cast

from standardwebhooks import Webhook

from . import models
from .resources import EVENTS, WebhookEvent


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes | str) -> WebhookEvent | dict[str, Any]:
    """Return the event in a request to your server, whose body nothing has parsed yet.

    A wrong signature is a `WebhookVerificationError`. An event of a kind that is newer than this package is a `dict`.
    """
    event: dict[str, Any] = Webhook(secret).verify(body, dict(headers))
    kind = EVENTS.get(event["event"])
    return cast("WebhookEvent", getattr(models, kind).from_dict(event)) if kind else event
