"""Signatures of webhooks (Standard Webhooks)."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping

from . import models

#: The most seconds between the clocks of sender and receiver.
TOLERANCE = 300


class InvalidWebhook(Exception):
    """Message that toolgate did not sign, or that is too old."""


def verify_webhook(secret: str, body: bytes | str, headers: Mapping[str, str]) -> models.WebhookMessage:
    """The message of a request with this raw body, if a signature of it is valid; otherwise raises `InvalidWebhook`.

    `secret` is that of the webhook endpoint (`whsec_…`). The names of `headers` have any case.
    """
    found = {name.lower(): value for name, value in headers.items()}
    body = body.encode() if isinstance(body, str) else body
    try:
        message, sent_at, signatures = (found[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        is_recent = abs(time.time() - int(sent_at)) <= TOLERANCE
    except (KeyError, ValueError):
        raise InvalidWebhook("the headers of a signed message are missing") from None
    if not is_recent:
        raise InvalidWebhook("the message is too old, or the clocks differ")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{message}.{sent_at}.".encode() + body, hashlib.sha256)
    expected = b"v1," + base64.b64encode(digest)
    # During a rotation the header has several signatures.
    if not any(hmac.compare_digest(expected, one.encode()) for one in signatures.split()):
        raise InvalidWebhook("no signature is valid")
    received: models.WebhookMessage = json.loads(body)
    return received
