"""What is told before anything is asked of a store is refused by its name: settings, options, policies, registrations."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from onecommit import (
    AmbiguousExternalOutcome,
    App,
    FailedTerminal,
    FinalizationReceipt,
    FinalizationToken,
    InvalidArgument,
    InvalidWork,
    JobContext,
    OperatorAction,
    Retry,
    RetryBeforeEffect,
    Safety,
    Transition,
    Unique,
    WorkPlan,
    WorkRetry,
    schema,
)
from onecommit.domain.settings import StoreSettings
from onecommit.domain.work_command import EncodedEvidence
from onecommit.domain.work_request import WorkRequest
from onecommit.embedded import EmbeddedPostgres, Server
from onecommit.errors import ForgeryRefused, UsageError
from onecommit.telemetry.events import AttemptCompleted
from onecommit.worker import WorkerSettings

from tests.nonsense import (
    NO_DURATION,
    NO_FLAG,
    NO_NAME,
    NO_NUMBER,
    NO_TEXT,
    NO_TIME,
    SECRET,
    shown,
)

HOUR = timedelta(hours=1)
NO_COUNT = (*NO_NUMBER, 0, -1)
NO_SECONDS = ("x", True, -1, 0, float("nan"), float("inf"), 10**30, 10**5000, [1], HOUR, None)
NO_PATH = (5, f"{SECRET}\0", [SECRET], object())
NO_CODE = ("", "a b", "x" * 121, "ASDUR100", *NO_TEXT)
NO_MAP = (5, "x", True, ["email"], object(), {"email": 0}, {"email": "5"}, {"email": True}, {5: 1}, {None: 1}, {f"{SECRET}\0": 1}, {"": 1})  # fmt: skip
WHO = {"actor": "ada", "reason": "a test"}
NO_WHO = {**dict.fromkeys(WHO, (None, "", " ", *NO_TEXT)), "schema": NO_NAME}
JOB = {
    "queue": NO_NAME,
    "max_attempts": (*NO_COUNT, 32_768),
    "timeout": (*NO_DURATION, timedelta(0)),
    "priority": (*NO_COUNT, 5),
    "retry": (None, 5, "x", WorkRetry()),
    "unique": (5, "to", ("to",), True),
}
COUNTS = ("threads", "waiting_limit", "largest_claim", "flush_size")
SECONDS = tuple(
    name for name, field in WorkerSettings.__dataclass_fields__.items() if field.type is float
)


def register(app: App, decorate: Callable[..., Any], **options: Any) -> Any:
    """A job with these options."""

    async def handler(ctx: JobContext, to: str) -> None: ...

    return decorate(app, **options)(handler)


def job(**options: Any) -> Any:
    return register(App(), App.job, **options)


def caller_owned(**options: Any) -> Any:
    return register(App(), App.caller_owned_job, **options)


def options(**given: Any) -> Any:
    return register(App(), App.job).options(**given)


def follow_up(**given: Any) -> Any:
    return App().follow_up(**{"kind": "k", "transition": Transition.COMPLETED} | given)(
        lambda _: None
    )


def work(**given: Any) -> Any:
    right = {
        "name": "w",
        "version": "1",
        "payload": str,
        "result": str,
        "safety": Safety.IDEMPOTENT,
    }
    return App().work(**right | given)


def work_request(**given: Any) -> WorkRequest:
    right = {
        "scope": "s", "command_id": "c", "idempotency_key": "i", "contract_name": "n", "contract_version": "1",
        "payload": b"{}", "safety": Safety.IDEMPOTENT,
    }  # fmt: skip
    return WorkRequest(**right | given)


def work_plan(**given: Any) -> WorkPlan:
    return WorkPlan(**{"offsets": (timedelta(0), HOUR), "circuit": 2 * HOUR} | given)


def on_schema(function: Callable[..., Any], **right: Any) -> Callable[..., Any]:
    """What `onecommit.schema` offers, on a server that is not there."""

    def call(**given: Any) -> Any:
        return function("host=127.0.0.1 port=1", **right | given)

    call.__qualname__ = function.__name__
    return call


def worker(**given: Any) -> WorkerSettings:
    return WorkerSettings(**{"queues": {"email": 1}} | given)


def app_worker(**given: Any) -> Any:
    return App().worker(**{"queues": {"email": 1}} | given)


def evidence(**given: Any) -> EncodedEvidence:
    return EncodedEvidence(**{"evidence": "applied", "result": b"1", "codec": "json"} | given)


def action(**given: Any) -> OperatorAction:
    return OperatorAction(**{"operation": "cancel", "actor": "ada", "reason": "r"} | given)


STORE = {
    "dsn": NO_TEXT,
    "schema": NO_NAME,
    "store_id": (5, "abc", str(UUID(int=1)), b"x"),
    "epoch": NO_COUNT,
    "max_connections": (*NO_COUNT, None),
    "transaction_pooler": NO_FLAG,
    "operation_timeout": (*NO_DURATION, None, timedelta(0), timedelta(days=25)),
}
TABLE: list[tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = [
    (App, STORE),
    (
        StoreSettings,
        {**STORE, "connect_timeout": STORE["operation_timeout"], "application_name": (None, *NO_TEXT)},
    ),
    (App.embedded, {"data_dir": NO_PATH, "schema": (*NO_NAME, "pg_x", "public", 'a"b')}),
    (
        EmbeddedPostgres,
        {
            "data_dir": NO_PATH,
            "bin_dir": NO_PATH,
            "settings": (5, "x", [1], {"port": "1"}, {"work_mem": 5}, {"work_mem": "a\nb"}, {"work_mem": "\ud800"}, {"a b": "1"}, {5: "1"}),
        },
    ),
    (Server.find, {"data_dir": (None, *NO_PATH)}),
    (
        worker,
        {
            "queues": (None, *NO_MAP),
            "work": (None, *NO_MAP, {"a b": 1}),
            "name": NO_NAME[:1] + NO_NAME[2:],
            "metrics_port": (*NO_NUMBER, -1, 65_536),
            "metrics_host": (None, "", *NO_TEXT),
            "application_connections": NO_COUNT,
            "shared_pool": NO_COUNT,
            **dict.fromkeys(COUNTS, (*NO_COUNT, None)),
            **dict.fromkeys(SECONDS, NO_SECONDS),
        },
    ),
    (app_worker, {"queues": NO_MAP, "work": NO_MAP, "threads": NO_COUNT}),
    (job, JOB | {"name": NO_NAME[1:]}),
    (caller_owned, JOB | {"name": NO_NAME[1:]}),
    (
        options,
        {
            **{name: tuple(each for each in values if each is not None) for name, values in JOB.items() if name != "retry"},
            "run_at": NO_TIME[1:],
            "delay": NO_DURATION,
            "tags": (5, "x", b"x", [5], [None], [""], [f"{SECRET}\0"], {"a"}),
            "after": NO_COUNT,
            "on_parent_failure": ("lost", 5, True, [1]),
        },
    ),
    (follow_up, {"kind": NO_NAME, "transition": (None, "lost", 5, [1])}),
    (
        work,
        {
            "name": (*NO_NAME, "a b"),
            "version": (*NO_NAME, "a b"),
            "safety": (None, "lost", 5, True, [1]),
            "retry": (None, 5, Retry()),
            "exits": NO_FLAG,
            "classification": (*NO_NAME, "a b"),
            "retention_id": (*NO_NAME, "a b"),
        },
    ),
    (
        work_request,
        {
            **dict.fromkeys(
                ("scope", "command_id", "idempotency_key", "contract_name", "contract_version", "codec", "classification", "retention_id"),
                (*NO_NAME, "a b"),
            ),
            "payload": (None, 5, "x", bytearray(b"x"), b"x" * 262_145),
            "safety": (None, "lost", 5, [1]),
            "exit_aware": NO_FLAG,
            "retry": (None, 5, Retry()),
            "plan": (5, "x", [HOUR]),
            "deadline": NO_TIME[1:],
            "due_at": NO_TIME[1:],
            "priority": (*NO_NUMBER, None, -101, 101),
        },
    ),
    (
        WorkRetry,
        {
            "algorithm": (None, "lost", 5),
            "max_attempts": (*NO_COUNT, None, 1_001),
            **dict.fromkeys(
                ("max_elapsed", "initial_delay", "max_delay", "lease", "renewal", "max_lease"),
                (*NO_DURATION, None, timedelta(0)),
            ),
        },
    ),
    (
        work_plan,
        {
            "offsets": (None, 5, "x", (), (HOUR,), [timedelta(0), "x"], (timedelta(0),) * 2, [timedelta(0), None]),
            "circuit": (*NO_DURATION, None, timedelta(0), HOUR),
        },
    ),
    (
        Retry,
        {
            "first": (None, *NO_DURATION),
            "longest": (None, *NO_DURATION, timedelta(days=2)),
            "factor": (None, "2", 0, -1, True, float("nan"), float("inf"), 10**5000, [1], HOUR),
            "jitter": (None, "2", -1, 2, True, float("nan"), float("inf"), 10**5000, [1], HOUR),
        },
    ),
    (
        Unique,
        {"by": (None, 5, "to", b"to", [5], [None], [""], [["to"]]), "within": (*NO_DURATION, timedelta(0))},
    ),
    (on_schema(schema.initialize_epoch, **WHO), {**NO_WHO, "candidate": NO_COUNT}),
    (on_schema(schema.ensure_epoch, **WHO), NO_WHO),
    (
        on_schema(schema.rotate_epoch, expected=1, **WHO),
        {**NO_WHO, "candidate": NO_COUNT, "expected": (None, *NO_COUNT)},
    ),
    (
        on_schema(schema.fence_writers, **WHO),
        {"actor": NO_TEXT, "reason": NO_TEXT, "schema": NO_NAME, "writer_min": NO_NUMBER},
    ),
    (on_schema(schema.add_lanes, count=1), {"count": (None, *NO_COUNT), "schema": NO_NAME}),
    (schema.script, {"installed_version": (*NO_NUMBER, -1, 999), "schema": NO_NAME}),
    (
        schema.Patience,
        dict.fromkeys(("attempt", "table_attempt", "total"), (None, timedelta(0), *NO_DURATION)),
    ),
    (evidence, {"evidence": (None, *NO_TEXT), "result": (5, "x", bytearray(1)), "codec": NO_TEXT}),
    (
        action,
        {"actor": (None, *NO_TEXT), "reason": (None, *NO_TEXT), "scope": (*NO_NAME[1:], "a b"), "work_id": NO_NUMBER},
    ),
    *((kind, {"code": (None, *NO_CODE)}) for kind in (RetryBeforeEffect, FailedTerminal, AmbiguousExternalOutcome)),
]  # fmt: skip


def yields(*_: Any) -> Any:
    yield 1


async def yields_later(*_: Any) -> Any:
    yield 1


@pytest.mark.parametrize("function", [None, 5, "x", yields, yields_later])
@pytest.mark.parametrize(
    "decorate",
    [
        App().authorize,
        App().on(AttemptCompleted),
        App().job(name="j"),
        App().caller_owned_job(name="j"),
        work().executor,
        work(safety=Safety.PROVIDER_KEYED, exits=True).exit_executor,
        work().reconciler,
    ],
    ids=lambda decorate: getattr(decorate, "__qualname__", type(decorate).__qualname__),
)
def test_what_is_no_function_is_not_registered(decorate: Callable[..., Any], function: Any):
    """It would be found out when the function is needed: for Work, after its provider may have been called."""
    with pytest.raises(UsageError, match=r"not a function|yields"):
        decorate(function)


@pytest.mark.parametrize("wrong", [5, "Unknown", object()], ids=lambda wrong: type(wrong).__name__)
def test_types_of_work_that_cannot_travel_are_named_at_the_first_payload(wrong: Any):
    with pytest.raises(InvalidWork) as refused:
        work(payload=wrong).contract.encode_payload("x")
    assert refused.value.field == "payload"
    with pytest.raises(InvalidWork) as refused:
        work(result=wrong).contract.decode_result(b"1")
    assert refused.value.field == "result"


@pytest.mark.parametrize("opaque", [FinalizationToken, FinalizationReceipt])
@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3, 4, 5, 6), ("x",)])
def test_tokens_and_receipts_are_made_by_nobody_else(opaque: Any, arguments: tuple[Any, ...]):
    with pytest.raises(ForgeryRefused):
        opaque(*arguments)


@pytest.mark.parametrize(
    ("make", "wrong"), TABLE, ids=lambda part: getattr(part, "__qualname__", "")
)
def test_a_bad_value_is_refused_by_its_name(
    make: Callable[..., Any], wrong: dict[str, tuple[Any, ...]]
):
    """And the message does not repeat it."""
    faults = []
    for name, values in wrong.items():
        for value in values:
            said = f"{name}={shown(value)}: "
            try:
                make(**{name: value})
            except InvalidArgument as error:
                if error.field != name:
                    faults.append(f"{said}names {error.field}: {error}")
                if SECRET in str(error):
                    faults.append(f"{said}says the value")
            except Exception as error:  # noqa: BLE001 - whatever else it is, it is wrong
                faults.append(f"{said}{type(error).__qualname__}: {error!s:.100}")
            else:
                faults.append(f"{said}accepted")
    assert not faults, "\n".join(faults)
