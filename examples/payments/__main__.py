"""``python -m payments``: the service and a fake provider on ports of this machine, and a story told through them.

With ``--serve`` they stay, for whoever wants to try by hand.
"""

import argparse
import asyncio
import os
import signal

from payments import fake_provider, service
from payments.serving import NotStarted, serving
from payments.settings import Settings
from payments.walkthrough import walk

TRIAL = {
    "PAYMENTS_WEBHOOK_SECRET": "trial-secret",
    "PAYMENTS_TOKENS": "ada:trial-ada viv:trial-viv",
    "PAYMENTS_PROVIDER_TIMEOUT": "2",
}


async def main(*, stay: bool, port: int, provider_port: int) -> None:
    """Start both, then tell the story, or wait for a signal."""
    async with serving(fake_provider.api, port=provider_port) as provider_url:
        environment = TRIAL | os.environ | {"PAYMENTS_PROVIDER_URL": provider_url}
        settings = Settings.from_environment(environment)
        async with serving(service.create(settings), port=port) as url:
            if not stay:
                await walk(url, provider_url, settings)
                return
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            print(f"service  {url}\nprovider {provider_url}", flush=True)
            await stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m payments", description=__doc__)
    parser.add_argument("--serve", action="store_true", help="stay until Ctrl-C")
    parser.add_argument("--port", type=int, default=8000, help="0: any")
    parser.add_argument("--provider-port", type=int, default=8001, help="0: any")
    given = parser.parse_args()
    ports = (given.port, given.provider_port) if given.serve else (0, 0)
    try:
        asyncio.run(main(stay=given.serve, port=ports[0], provider_port=ports[1]))
    except NotStarted as problem:
        raise SystemExit(f"error: {problem}") from None
