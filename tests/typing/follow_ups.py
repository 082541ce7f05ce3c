"""Follow-ups keep the signature of their job; a function that gives something else does not check."""

from typing import assert_type

from onecommit import (
    App,
    CallerOwnedJobContext,
    Complete,
    FinalizationReceipt,
    FollowUp,
    JobContext,
    JobTransition,
    SyncJobContext,
    Transition,
)
from onecommit.telemetry.events import AttemptCompleted, AttemptEvent, Event

app = App()


@app.job()
async def send(ctx: JobContext, to: str, *, copies: int = 1) -> Complete:
    return Complete({"sent": to}, follow_ups=[send.follow_up(to)])


assert_type(send.follow_up("a", copies=2), FollowUp)
assert_type(send.options(priority=1).follow_up(to="a"), FollowUp)
send.follow_up()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
send.follow_up(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
send.follow_up("a", cc="b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Complete(follow_ups=["send"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


@send.on_completed
def one(about: JobTransition) -> FollowUp:
    return send.follow_up(str(about.arguments["to"]))


def call_directly(about: JobTransition) -> None:
    assert_type(one(about), FollowUp)


@send.on_retried
@send.on_exhausted
def several(about: JobTransition) -> list[FollowUp]:
    return []


@send.on_cancelled
def perhaps(about: JobTransition) -> FollowUp | None:
    return None


@send.on_rescued  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportUntypedFunctionDecorator]
def gives_a_text(about: JobTransition) -> str:
    return "send"


@send.on_completed  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportUntypedFunctionDecorator]
async def is_async(about: JobTransition) -> None: ...


@send.on_completed  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportUntypedFunctionDecorator]
def takes_the_arguments(to: str) -> None: ...


@app.follow_up("send", Transition.COMPLETED)
def by_name(about: JobTransition) -> None: ...


@app.on(AttemptCompleted)
def observe(event: AttemptCompleted) -> None: ...


@app.on(AttemptCompleted)
async def observe_a_base(event: Event) -> None: ...


@app.on(AttemptEvent)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def observe_too_little(event: AttemptCompleted) -> None: ...


# --- an ordinary handler cannot claim to have finalized


@app.job()  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def returns_a_receipt(ctx: JobContext) -> FinalizationReceipt:
    raise NotImplementedError


@app.job()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
def returns_a_receipt_too(ctx: SyncJobContext) -> FinalizationReceipt:
    raise NotImplementedError


@app.caller_owned_job()
async def fakes_a_receipt(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
    return FinalizationReceipt(ctx.token)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@app.caller_owned_job()
async def fakes_it_from_nothing(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
    return FinalizationReceipt()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
