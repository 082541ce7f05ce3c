"""Registering handlers: mistakes are told at once, with the remedy."""

from datetime import timedelta

import pytest

from onecommit import (
    App,
    CallerOwnedJobContext,
    InvalidArgument,
    JobContext,
    SyncCallerOwnedJobContext,
    SyncJobContext,
    Unique,
)
from onecommit.app.registration import JobDefinition
from onecommit.errors import UsageError


@pytest.fixture
def app() -> App:
    """An App that never connects."""
    return App("host=192.0.2.1")


def test_a_job_is_named_as_its_function_and_goes_to_its_queue(app: App):
    @app.job(queue="email", max_attempts=3, timeout=timedelta(seconds=5), priority=1)
    async def send(ctx: JobContext, to: str) -> None:
        """Send one message."""

    assert app.registry.get("send") is send.definition
    assert app.registry.queues == {"email"}
    assert (send.__name__, send.__doc__) == ("send", "Send one message.")
    assert repr(send) == "<Job 'send' of queue 'email'>"


async def test_calling_a_job_calls_its_handler(app: App):
    """So that a unit test needs no database."""

    @app.job()
    async def double(ctx: JobContext, number: int) -> int:
        return number * 2

    @app.job()
    def half(ctx: SyncJobContext, number: int) -> float:
        return number / 2

    assert await double(None, 4) == 8
    assert half(None, number=4) == 2


@pytest.mark.parametrize(
    ("caller_owned", "is_async", "context"),
    [
        (False, True, JobContext),
        (False, False, SyncJobContext),
        (True, True, CallerOwnedJobContext),
        (True, False, SyncCallerOwnedJobContext),
    ],
)
def test_each_kind_of_handler_has_its_context(app: App, caller_owned, is_async, context):
    async def asynchronous(ctx) -> None: ...
    def synchronous(ctx) -> None: ...

    register = app.caller_owned_job() if caller_owned else app.job()
    job = register(asynchronous if is_async else synchronous)
    assert isinstance(job.definition.context(None, None), context)
    assert job.definition.is_async is is_async
    assert job.definition.caller_owned is caller_owned


def test_a_name_stands_for_one_handler(app: App):
    @app.job()
    async def send(ctx: JobContext) -> None: ...

    with pytest.raises(UsageError, match="registered already"):

        @app.job(name="send")
        async def other(ctx: JobContext) -> None: ...


def test_a_lambda_needs_a_name(app: App):
    with pytest.raises(UsageError, match="no name of its own"):
        app.job()(lambda ctx: ctx)
    assert app.job(name="tiny")(lambda ctx: ctx).definition.kind == "tiny"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"queue": ""}, "queue"),
        ({"queue": "q" * 300}, "queue"),
        ({"queue": "a\0b"}, "queue"),
        ({"queue": 5}, "queue"),
        ({"name": "n" * 201}, "name"),
        ({"name": ""}, "name"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 40_000}, "max_attempts"),
        ({"priority": 5}, "priority"),
        ({"timeout": timedelta(0)}, "timeout"),
        ({"timeout": timedelta(seconds=-1)}, "timeout"),
        ({"timeout": 30}, "timeout"),
    ],
)
def test_a_bad_setting_is_named(app: App, settings, field):
    with pytest.raises(InvalidArgument) as caught:

        @app.job(**settings)
        async def send(ctx: JobContext) -> None: ...

    assert caught.value.field == field
    assert len(app.registry) == 0


def test_a_handler_without_a_context_is_refused(app: App):
    with pytest.raises(UsageError, match="takes no context"):

        @app.job()
        async def send() -> None: ...


def test_a_unique_rule_over_an_unknown_argument_is_found_before_the_first_job(app: App):
    @app.job(unique=Unique(by=("recipient",)))
    async def send(ctx: JobContext, to: str) -> None: ...

    with pytest.raises(InvalidArgument, match="recipient"):
        app.registry.check()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"delay": timedelta(seconds=-1)}, "delay"),
        ({"delay": 5}, "delay"),
        ({"run_at": "tomorrow"}, "run_at"),
        ({"priority": 0}, "priority"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"timeout": timedelta(0)}, "timeout"),
        ({"queue": "q" * 300}, "queue"),
        ({"tags": [""]}, "tags"),
    ],
)
def test_a_bad_option_is_named(app: App, options, field):
    @app.job()
    async def send(ctx: JobContext) -> None: ...

    with pytest.raises(InvalidArgument) as caught:
        send.options(**options)
    assert caught.value.field == field


def test_a_definition_belongs_to_no_app_until_it_is_registered():
    async def send(ctx: JobContext) -> None: ...

    definition = JobDefinition(kind="send", queue="q", handler=send, caller_owned=False)
    assert App("host=192.0.2.1").registry.get(definition.kind) is None
