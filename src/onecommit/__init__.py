"""Onecommit: your rows and the job's completion land in one commit."""

from onecommit.app.app import App
from onecommit.app.context import (
    CallerOwnedJobContext,
    JobContext,
    SyncCallerOwnedJobContext,
    SyncJobContext,
)
from onecommit.app.job import Job
from onecommit.app.work import Work
from onecommit.app.work_invocation import SyncWorkInvocation, WorkInvocation
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
from onecommit.domain.work import Accepted, Duplicate, Safety, WorkInquiry, WorkState
from onecommit.domain.work_command import CommandOutcome, CommandResult, OperatorAction
from onecommit.domain.work_exit import (
    AmbiguousExternalOutcome,
    Applied,
    FailedTerminal,
    NotApplied,
    RetryBeforeEffect,
    Succeeded,
    Unknown,
)
from onecommit.domain.work_policy import WorkPlan, WorkRetry
from onecommit.domain.work_view import WorkAction, WorkView
from onecommit.errors import (
    CallbackTimedOut,
    CommandConflict,
    DiscardError,
    InvalidArgument,
    InvalidWork,
    OnecommitError,
    StaleAttempt,
    WorkError,
)
from onecommit.version import __version__ as __version__

__all__ = [
    "Accepted",
    "AmbiguousExternalOutcome",
    "App",
    "Applied",
    "Callback",
    "CallbackAnswer",
    "CallbackTimedOut",
    "CallerOwnedJobContext",
    "Cancel",
    "CommandConflict",
    "CommandOutcome",
    "CommandResult",
    "Complete",
    "Discard",
    "DiscardError",
    "Duplicate",
    "Enqueued",
    "FailedTerminal",
    "FinalizationReceipt",
    "FinalizationToken",
    "FollowUp",
    "InvalidArgument",
    "InvalidWork",
    "Job",
    "JobContext",
    "JobResult",
    "JobState",
    "JobTransition",
    "JobView",
    "NotApplied",
    "OnParentFailure",
    "OnecommitError",
    "OperatorAction",
    "Outcome",
    "Parent",
    "Retry",
    "RetryAfter",
    "RetryBeforeEffect",
    "Safety",
    "Snooze",
    "StaleAttempt",
    "Succeeded",
    "SyncCallerOwnedJobContext",
    "SyncJobContext",
    "SyncWorkInvocation",
    "Transition",
    "Unique",
    "Unknown",
    "Work",
    "WorkAction",
    "WorkError",
    "WorkInquiry",
    "WorkInvocation",
    "WorkPlan",
    "WorkRetry",
    "WorkState",
    "WorkView",
]

# Users see one name for each class, wherever its file may move.
for _name in __all__:
    globals()[_name].__module__ = __name__
del _name
