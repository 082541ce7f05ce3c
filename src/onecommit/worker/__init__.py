"""The runtime that claims jobs, runs their handlers and records how they ended.

`Worker` assembles it (`machinery`), starts it and ends it (`runtime`, `draining`). One loop per file:
`dispatcher` (claims of one queue), `completer`, `notifier`, `maintenance`, `progress`, `executor` (time
limits), all run by `lifecycle`; `heartbeat` has a thread. Jobs pass from the dispatcher to a `station`,
which steps into handlers and leaves what becomes of them to `executor`, `ending` (pure) and, for
caller-owned jobs, `reconciler`. `supervisor` keeps several such processes running; `monitor` serves
what `readings` and `health` know, through `probe_server`.
"""

from onecommit.worker.runtime import Worker
from onecommit.worker.settings import WorkerSettings

__all__ = ["Worker", "WorkerSettings"]
