"""A client of the Conversational Assistant Management API."""

from standardwebhooks import WebhookVerificationError

from .calls import ApiError, AsyncPages, Pages
from .resources import AsyncClient, Client, WebhookEvent
from .types import UNSET, Unset
from .webhooks import verify_webhook

__all__ = [
    "UNSET",
    "ApiError",
    "AsyncClient",
    "AsyncPages",
    "Client",
    "Pages",
    "Unset",
    "WebhookEvent",
    "WebhookVerificationError",
    "verify_webhook",
]
