"""`python -m onecommit.demo.worker_process`: one worker of the demo, with a short rescue window."""

import asyncio
import signal

from onecommit.demo.invoices import QUEUE, app
from onecommit.worker.runtime import Worker
from onecommit.worker.settings import WorkerSettings

SETTINGS = WorkerSettings(queues={QUEUE: 12}, heartbeat_interval=0.5, rescue_window=2.0)


async def main() -> None:
    """Work until SIGTERM, then drain."""
    worker = await Worker(app, SETTINGS).start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.request_stop)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
