"""Our own connections to the store.

`AsyncStore(settings)` and its generated twin `SyncStore`: `open`, `close`, `run(call)`, `transaction()`,
`listen()`, `notify(payload)`. After `open`, `epoch` and `store_id` say which store it is. Every operation
is bounded; what the server raises arrives as an OnecommitError.
"""
