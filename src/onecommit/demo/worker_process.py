"""`python -m onecommit.demo.worker_process PART`: one worker of the demo, with short times."""

import asyncio
import signal
import sys

from onecommit.app.app import App
from onecommit.demo import invoices, orders
from onecommit.worker.runtime import Worker
from onecommit.worker.settings import WorkerSettings
from onecommit.worker.supervisor import stop_with_parent

WORK_SLOTS = 3
"""Items of each contract that a worker runs at a time: fewer than the provider leaves unanswered."""


def _settings(part: str) -> tuple[App, WorkerSettings]:
    if part == "invoices":
        return invoices.app, WorkerSettings(
            queues={invoices.QUEUE: 12}, heartbeat_interval=0.5, rescue_window=2.0
        )
    slots = {work.contract.name: WORK_SLOTS for work in orders.app.registry.work}
    return orders.app, WorkerSettings(
        queues={}, work=slots, heartbeat_interval=0.5, rescue_window=2.0, poll_interval=0.5
    )


async def main(part: str) -> None:
    """Work until SIGTERM or until the demo is gone, then drain."""
    stop_with_parent(budget=10)
    worker = await Worker(*_settings(part)).start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.request_stop)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
