"""What enqueueing one kind of job with one set of options comes down to, worked out once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from onecommit.app.job_definition import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_PRIORITY,
    JobDefinition,
    check_bounds,
)
from onecommit.calls.call import Call
from onecommit.calls.enqueueing import enqueue_conditional_job, enqueue_job, enqueue_jobs
from onecommit.calls.literals import text_array
from onecommit.domain.arguments import BIGINT
from onecommit.domain.follow_up import FollowUp
from onecommit.domain.job import Enqueued, JobOptions, OnParentFailure
from onecommit.domain.queue import checked_name
from onecommit.domain.times import is_readable, microseconds
from onecommit.domain.unique import Unique
from onecommit.errors import InvalidArgument

CHUNK = 5_000
"""Jobs in one statement of a bulk enqueue."""

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """What one enqueue call may set beside the arguments; None leaves what the job's definition says."""

    run_at: datetime | None = None
    delay: timedelta | None = None
    priority: int | None = None
    max_attempts: int | None = None
    queue: str | None = None
    unique: Unique | None = None
    timeout: timedelta | None = None
    tags: Sequence[str] | None = None
    after: int | None = None
    on_parent_failure: str | None = None

    def __post_init__(self) -> None:
        check_bounds(
            priority=self.priority,
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            unique=self.unique,
        )
        microseconds(self.delay, field="delay")
        if self.queue is not None:
            checked_name(self.queue, field="queue")
        self._check_tags()
        self._check_times()
        self._check_parent()

    def _check_tags(self) -> None:
        tags: object = self.tags or ()
        if isinstance(tags, str) or not isinstance(tags, Sequence):
            raise InvalidArgument("`tags` is not a list of texts", field="tags")
        for tag in tags:
            checked_name(tag, field="tags")

    def _check_times(self) -> None:
        if self.run_at is None:
            return
        if self.delay is not None:
            raise InvalidArgument("both `run_at` and `delay` are given", field="delay")
        run_at: object = self.run_at
        if not isinstance(run_at, datetime) or run_at.utcoffset() is None:
            raise InvalidArgument(
                "`run_at` is not a datetime with a time zone",
                field="run_at",
                remedy="Use datetime.now(UTC) + ...",
            )
        if not is_readable(run_at):
            raise InvalidArgument("`run_at` is not in the years 1970 to 9998", field="run_at")

    def _check_parent(self) -> None:
        after: object = self.after
        if after is not None and (type(after) is not int or not 0 < after < 1 << BIGINT):
            raise InvalidArgument(
                "`after` is not the id of a job",
                field="after",
                remedy="Pass the `job_id` that enqueueing the parent returned.",
            )
        if self.on_parent_failure is None:
            return
        if self.on_parent_failure not in list(OnParentFailure):
            raise InvalidArgument(
                "`on_parent_failure` is not cancel, enqueue or discard", field="on_parent_failure"
            )
        if after is None:
            raise InvalidArgument(
                "`on_parent_failure` is given without `after`", field="on_parent_failure"
            )


NO_OPTIONS = EnqueueOptions()


class EnqueuePlan:
    """Makes the calls that enqueue jobs of one kind."""

    def __init__(self, definition: JobDefinition, options: EnqueueOptions = NO_OPTIONS) -> None:
        self.definition = definition
        self._queue = options.queue or definition.queue
        self._kind_array = text_array([definition.kind], field="name")
        self._unique = options.unique or definition.unique
        self._options = _job_options(definition, options)
        self._options_text = None if self._options == JobOptions() else _text(self._options)
        self._priority = self._options.priority or DEFAULT_PRIORITY
        self._max_attempts = self._options.max_attempts or DEFAULT_MAX_ATTEMPTS
        self._travelling = _travelling(self._options)
        conditions = (self._unique, options.run_at, options.delay, options.after)
        self.is_plain = all(condition is None for condition in conditions)
        """Whether such jobs may run at once and stand for themselves: no unique key, time or parent."""

    def one(
        self, positional: tuple[Any, ...], named: dict[str, Any], *, epoch: int
    ) -> Call[Enqueued]:
        """The call for one job."""
        if self.is_plain:
            return self.plain(self.encode(positional, named), epoch=epoch)
        arguments = self._bound(positional, named) if positional else named
        text = self.definition.payload.encode(arguments)
        options = self._options_text
        if self._unique is not None:
            options = _text(self._with_unique_key(self._unique, arguments))
        return enqueue_conditional_job(
            self._queue, kind=self._kind_array, args=text, options=options, epoch=epoch
        )

    def encode(self, positional: tuple[Any, ...], named: dict[str, Any]) -> str:
        """The arguments of one job as JSON."""
        return self.definition.payload.encode(
            self._bound(positional, named) if positional else named
        )

    def plain(self, args: str, *, epoch: int) -> Call[Enqueued]:
        """The call for one plain job. `args`: as `encode` gives them."""
        return enqueue_job(
            self._queue,
            kind=self.definition.kind,
            args=args,
            priority=self._priority,
            max_attempts=self._max_attempts,
            options=self._travelling,
            epoch=epoch,
        )

    def together(self, args: Sequence[str], *, epoch: int) -> Call[list[Enqueued]]:
        """The call for several plain jobs. `args`: as `encode` gives them."""
        return enqueue_jobs(
            self._queue, kinds=self._kind_array, args=args, options=self._options_text, epoch=epoch
        )

    def follow_up(self, positional: tuple[Any, ...], named: dict[str, Any]) -> FollowUp:
        """One job as a value, for another job's transaction."""
        arguments = self._bound(positional, named) if positional else named
        unique = self._unique
        return FollowUp(
            kind=self.definition.kind,
            queue=self._queue,
            args=self.definition.payload.encode(arguments),
            options=_text(self._with_unique_key(unique, arguments))
            if unique
            else self._options_text,
            definition=self.definition,
        )

    def many(
        self, items: Iterable[Mapping[str, Any]], *, epoch: int
    ) -> Iterator[Call[list[Enqueued]]]:
        """The calls for many jobs; each encodes its part of the items when it is asked for."""
        try:
            remaining = iter(items)
        except TypeError:
            raise InvalidArgument(
                "`items` is not a list of arguments of jobs", field="items"
            ) from None
        while chunk := list(islice(remaining, CHUNK)):
            texts = self.definition.payload.encode_all(chunk)
            options = self._options_text
            if self._unique is not None:
                unique = self._unique
                options = _text([self._with_unique_key(unique, item) for item in chunk])
            yield enqueue_jobs(
                self._queue, kinds=self._kind_array, args=texts, options=options, epoch=epoch
            )

    def _bound(self, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        names = self.definition.payload.names
        if len(positional) > len(names):
            raise InvalidArgument(
                f"{self.definition.kind} takes {len(names)} arguments, {len(positional)} were given",
                field="arguments",
            )
        by_position = dict(zip(names, positional, strict=False))
        for name in by_position.keys() & named.keys():
            raise InvalidArgument(f"`{name}` is given twice", field=name)
        return by_position | named

    def _with_unique_key(self, unique: Unique, arguments: Mapping[str, Any]) -> JobOptions:
        values = self.definition.payload.json_values(arguments)
        key = unique.key_of(values, kind=self.definition.kind, queue=self._queue)
        return msgspec.structs.replace(self._options, unique=key)


def _job_options(definition: JobDefinition, options: EnqueueOptions) -> JobOptions:
    """What differs from the store's own defaults; a job without options takes the short way."""
    priority = options.priority or definition.priority
    max_attempts = options.max_attempts or definition.max_attempts
    return JobOptions(
        priority=None if priority == DEFAULT_PRIORITY else priority,
        max_attempts=None if max_attempts == DEFAULT_MAX_ATTEMPTS else max_attempts,
        run_at=options.run_at,
        delay_us=microseconds(options.delay, field="delay"),
        timeout_us=microseconds(options.timeout, field="timeout"),
        tags=tuple(options.tags) if options.tags else None,
        after=options.after,
        on_parent_failure=options.on_parent_failure,
    )


def _travelling(options: JobOptions) -> str | None:
    """What the handler's worker is told, beside what has a parameter of its own."""
    travelling = msgspec.structs.replace(options, priority=None, max_attempts=None)
    return None if travelling == JobOptions() else _text(travelling)


def _text(options: JobOptions | list[JobOptions]) -> str:
    return _encoder.encode(options).decode()
