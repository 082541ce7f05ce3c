"""Registering handlers: mistakes are told at once, with the remedy."""

import functools
from datetime import UTC, datetime, timedelta

import pytest

from onecommit import (
    App,
    CallerOwnedJobContext,
    FollowUp,
    InvalidArgument,
    JobContext,
    JobTransition,
    SyncCallerOwnedJobContext,
    SyncJobContext,
    Transition,
    Unique,
)
from onecommit.app.job_definition import JobDefinition
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
        ({"timeout": timedelta.max}, "timeout"),
        ({"max_attempts": "5"}, "max_attempts"),
        ({"max_attempts": True}, "max_attempts"),
        ({"max_attempts": 2.5}, "max_attempts"),
        ({"priority": "high"}, "priority"),
        ({"priority": 2.0}, "priority"),
        ({"unique": "to"}, "unique"),
        ({"retry": 5}, "retry"),
    ],
)
def test_a_bad_setting_is_named(app: App, settings, field):
    with pytest.raises(InvalidArgument) as caught:

        @app.job(**settings)
        async def send(ctx: JobContext) -> None: ...

    assert caught.value.field == field
    assert len(app.registry) == 0


async def no_parameter() -> None: ...
async def named(*, ctx: JobContext) -> None: ...
async def value(to: str) -> None: ...
async def values(ids: list[int]) -> None: ...
async def postponed(to: "dict[str, int]") -> None: ...


@pytest.mark.parametrize("handler", [no_parameter, named, value, values, postponed])
def test_a_handler_without_a_context_is_refused(app: App, handler):
    """It would get the context in the place of its first argument."""
    with pytest.raises(UsageError, match="takes no context"):
        app.job()(handler)


async def not_annotated(ctx) -> None: ...
async def anything(ctx: object) -> None: ...
async def late(ctx: "JobContext") -> None: ...


@pytest.mark.parametrize("handler", [not_annotated, anything, late])
def test_a_context_need_not_be_annotated_as_one(app: App, handler):
    assert app.job()(handler).definition.handler is handler


@pytest.mark.parametrize("register", [App.job, App.caller_owned_job])
def test_a_decorator_without_parentheses_is_told_to_have_some(app: App, register):
    """As is a queue that is not named: other queues' decorators take it so."""
    for unnamed in (late, "email"):
        with pytest.raises(UsageError, match=r"named arguments only.*\(queue="):
            register(app, unnamed)
    assert not len(app.registry)


class Sender:
    async def __call__(self, ctx: JobContext) -> None: ...


@pytest.mark.parametrize(
    "handler", [functools.partial(print, "x"), Sender(), Sender], ids=["partial", "object", "class"]
)
def test_only_a_function_is_a_handler(app: App, handler):
    with pytest.raises(UsageError, match="not a function"):
        app.job(name="send")(handler)
    assert len(app.registry) == 0


def test_a_generator_is_no_handler(app: App):
    def several(ctx: SyncJobContext):
        yield 1

    async def several_async(ctx: JobContext):
        yield 1

    for handler in (several, several_async):
        with pytest.raises(UsageError, match="yields"):
            app.job()(handler)
    assert len(app.registry) == 0


def test_an_async_decorator_makes_a_handler_async(app: App):
    def work(ctx: SyncJobContext) -> None: ...

    @functools.wraps(work)
    async def wrapper(ctx: JobContext) -> None:
        return work(ctx)

    assert app.job()(wrapper).definition.is_async


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
        ({"run_at": datetime.max.replace(tzinfo=UTC)}, "run_at"),
        ({"run_at": datetime.min.replace(tzinfo=UTC)}, "run_at"),
        ({"priority": 0}, "priority"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"timeout": timedelta(0)}, "timeout"),
        ({"queue": "q" * 300}, "queue"),
        ({"tags": [""]}, "tags"),
        ({"tags": "urgent"}, "tags"),
        ({"tags": 5}, "tags"),
        ({"delay": timedelta.max}, "delay"),
        ({"max_attempts": "5"}, "max_attempts"),
        ({"unique": "to"}, "unique"),
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


# --- follow-ups


def register_settle(app: App):
    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> None: ...

    return settle


@pytest.mark.parametrize("order", ["job first", "function first", "decorator"])
def test_a_caller_owned_job_has_no_follow_ups_on_completed(app: App, order: str):
    """In either order; the remedy is to enqueue in the caller's transaction."""

    def register() -> None:
        match order:
            case "job first":
                register_settle(app)
                app.follow_up("settle", Transition.COMPLETED)(lambda _: None)
            case "function first":
                app.follow_up("settle", Transition.COMPLETED)(lambda _: None)
                register_settle(app)
            case _:
                register_settle(app).on_completed(lambda _: None)

    with pytest.raises(UsageError, match=r"settle is caller-owned.*in_tx\(connection\)"):
        register()


@pytest.mark.parametrize("order", ["job first", "function first"])
def test_a_refused_registration_leaves_nothing_behind(app: App, order: str):
    """The job can be registered after the mistake was repaired, or is as it was."""
    follow = app.follow_up("settle", Transition.COMPLETED)
    if order == "job first":
        register_settle(app)
        with pytest.raises(UsageError):
            follow(lambda _: None)
        assert not app.registry.follow_ups.of("settle")
    else:
        follow(lambda _: None)
        with pytest.raises(UsageError):
            register_settle(app)
        assert app.registry.get("settle") is None


@pytest.mark.parametrize("transition", sorted(set(Transition) - {Transition.COMPLETED}))
def test_the_other_transitions_of_a_caller_owned_job_may_be_followed(
    app: App, transition: Transition
):
    """The worker decides them."""
    settle = register_settle(app)
    getattr(settle, f"on_{transition}")(lambda _: None)
    assert len(app.registry.follow_ups.of("settle")[transition]) == 1


def test_a_follow_up_function_stays_what_it_is(app: App):
    """So that a test can call it."""

    @app.job()
    async def send(ctx: JobContext, to: str) -> None: ...

    @send.on_completed
    def follow(about: JobTransition) -> FollowUp:
        return send.follow_up(to=about.arguments["to"].upper())

    about = JobTransition(
        transition=Transition.COMPLETED,
        job_id=1,
        kind="send",
        attempt=1,
        max_attempts=1,
        run_lease=1,
        arguments={"to": "ada"},
    )
    assert follow(about) == send.follow_up("ADA")
    assert follow(about) != send.follow_up("ada")


async def an_async_function(_: JobTransition) -> None: ...


@pytest.mark.parametrize("function", [an_async_function, None, "send"])
def test_a_follow_up_function_is_a_plain_function(app: App, function):
    """It decides; what takes time is for the follow-up's own handler."""

    @app.job()
    async def send(ctx: JobContext) -> None: ...

    with pytest.raises(UsageError, match="not a plain function"):
        send.on_completed(function)


def test_an_unknown_transition_is_refused(app: App):
    with pytest.raises(InvalidArgument, match="`transition` is not one of"):
        app.follow_up("send", "finished")(lambda _: None)


def test_a_follow_up_does_not_show_its_arguments(app: App):
    """Neither in a log nor in an exception."""

    @app.job()
    async def send(ctx: JobContext, to: str) -> None: ...

    assert "secret" not in repr(send.follow_up(to="secret"))


@pytest.mark.parametrize("to", [5, None, "\0", "\ud800", "x" * 2_000_000])
def test_the_arguments_of_a_follow_up_are_checked_where_it_is_made(app: App, to):
    """As by enqueue."""

    @app.job()
    async def send(ctx: JobContext, to: str) -> None: ...

    with pytest.raises(InvalidArgument) as refused:
        send.follow_up(to=to)
    assert refused.value.field == "to"
