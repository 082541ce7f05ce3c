"""The numbers that name things."""

from typing import NewType

JobId = NewType("JobId", int)
RunLease = NewType("RunLease", int)
"""Names one attempt of a job; every claim hands out the next."""
WorkerId = NewType("WorkerId", int)
"""One incarnation of a worker: a process that registered once."""
Epoch = NewType("Epoch", int)
"""The runtime epoch; a store has one active epoch and fences every other."""
