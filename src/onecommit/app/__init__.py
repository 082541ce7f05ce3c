"""The application's side: registering jobs, enqueueing them, and what their handlers are given.

For a worker: `App.registry` holds one `JobDefinition` per kind (`get(kind)`); `definition.payload.decode(
attempt.args)` gives the keyword arguments; `definition.context(attempt, port, deadline=...)` the first one.
`AttemptPort` is what a context asks of the runtime. `ctx.finalization_error` tells what `complete_in_tx`
raised, however the handler ended after it.
"""
