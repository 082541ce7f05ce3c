"""One builder per SQL function. A `Call` is a value: what to run, with which arguments, how to read it.

No I/O here: a driver or a store runs a call with `run(call)` and returns what `read` makes of the rows.
Every argument travels as text and is cast in the statement, so that all drivers send the same thing and
each statement is prepared once. Builders that change the store take `epoch`, the caller's runtime epoch.

- `enqueueing`    enqueue_jobs                 - `finalization`  complete_job, attempt_status
- `attempts`      claim_jobs, complete_jobs, finish_jobs, set_progress
- `workers`       register, heartbeat, cancellations, retire, lead
- `maintenance`   promote, rescue, tend_ring, lanes
- `operators`     cancel, retry and purge, pause and resume
- `views`         get_job, list_jobs, queues, workers
- `stores`        store_status (the schema manager rotates epochs itself)
"""
