"""Onecommit: your rows and the job's completion land in one commit."""

from onecommit.app.app import App
from onecommit.app.context import (
    CallerOwnedJobContext,
    JobContext,
    SyncCallerOwnedJobContext,
    SyncJobContext,
)
from onecommit.app.job import Job
from onecommit.domain.callback import Callback, CallbackAnswer
from onecommit.domain.follow_up import FollowUp, JobTransition, Transition
from onecommit.domain.job import (
    Enqueued,
    JobResult,
    JobState,
    JobView,
    OnParentFailure,
    Outcome,
    Parent,
)
from onecommit.domain.outcome import Cancel, Complete, Discard, RetryAfter, Snooze
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt, FinalizationToken
from onecommit.domain.unique import Unique
from onecommit.errors import (
    CallbackTimedOut,
    DiscardError,
    InvalidArgument,
    OnecommitError,
    StaleAttempt,
)
from onecommit.version import __version__ as __version__

__all__ = [
    "App",
    "Callback",
    "CallbackAnswer",
    "CallbackTimedOut",
    "CallerOwnedJobContext",
    "Cancel",
    "Complete",
    "Discard",
    "DiscardError",
    "Enqueued",
    "FinalizationReceipt",
    "FinalizationToken",
    "FollowUp",
    "InvalidArgument",
    "Job",
    "JobContext",
    "JobResult",
    "JobState",
    "JobTransition",
    "JobView",
    "OnParentFailure",
    "OnecommitError",
    "Outcome",
    "Parent",
    "Retry",
    "RetryAfter",
    "Snooze",
    "StaleAttempt",
    "SyncCallerOwnedJobContext",
    "SyncJobContext",
    "Transition",
    "Unique",
]

# Users see one name for each class, wherever its file may move.
for _name in __all__:
    globals()[_name].__module__ = __name__
del _name
