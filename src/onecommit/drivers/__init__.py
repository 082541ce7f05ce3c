"""The caller's connection: one adapter per driver, each with one method that matters, `run(call)`.

`async_driver_for(connection, schema=...)` and `sync_driver_for(...)` find the adapter by the type of the
connection; the driver's library is imported only then. An adapter joins the transaction that the caller
has open, never begins, commits or rolls back, and `sever` makes any later commit impossible.
"""
