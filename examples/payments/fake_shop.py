"""Stands for a shop: signs events and sends them, from a program or from a terminal."""

import argparse
import hashlib
import hmac
import json
import os
from typing import Any

import httpx


async def send(
    client: httpx.AsyncClient, kind: str, event: dict[str, Any], *, secret: str
) -> httpx.Response:
    """Send an event to ``/webhooks/<kind>``."""
    body = json.dumps(event).encode()
    return await client.post(f"/webhooks/{kind}", content=body, headers=headers(body, secret))


def headers(body: bytes, secret: str) -> dict[str, str]:
    """The signature of a body."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Shop-Signature": signature}


def field(text: str) -> tuple[str, str | int]:
    """``name=value``; cents are a number."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not name=value")
    return name, int(value) if name == "cents" else value


def main() -> None:
    """``python -m payments.fake_shop orders id=evt-1 shop=shop-1 order=o-1 cents=1200``."""
    parser = argparse.ArgumentParser(prog="python -m payments.fake_shop", description=__doc__)
    parser.add_argument("kind", choices=("orders", "payouts"))
    parser.add_argument("fields", nargs="+", type=field, metavar="name=value")
    given = parser.parse_args()
    kind, body = given.kind, json.dumps(dict(given.fields)).encode()
    url = os.environ.get("PAYMENTS_URL", "http://127.0.0.1:8000")
    secret = os.environ.get("PAYMENTS_WEBHOOK_SECRET", "trial-secret")
    answer = httpx.post(f"{url}/webhooks/{kind}", content=body, headers=headers(body, secret))
    print(answer.status_code, answer.text)


if __name__ == "__main__":
    main()
