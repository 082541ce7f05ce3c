"""Registering Work, and accepting it on the App's own connections; mistakes are told before anything is sent."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pydantic
import pytest

from onecommit import App
from onecommit.app.work_registry import WorkRegistry
from onecommit.domain.fingerprint import fingerprint_of
from onecommit.domain.work import Accepted, Duplicate, Safety
from onecommit.domain.work_exit import NotApplied, Succeeded
from onecommit.domain.work_policy import WorkPlan, WorkRetry
from onecommit.domain.work_request import WorkRequest
from onecommit.errors import (
    CommandConflict,
    DeadlineReached,
    InvalidArgument,
    InvalidWork,
    StoreMismatch,
    WorkEpochFenced,
    WorkRegistryRefused,
)

from tests.clusters import Database

SECOND = timedelta(seconds=1)


@dataclass
class Charge:
    cents: int
    note: str | None = None


@dataclass
class Charged:
    reference: str


class Model(pydantic.BaseModel):
    note: str | None = None
    cents: int


class Struct(msgspec.Struct):
    note: str | None
    cents: int


@pytest.fixture
def offline() -> App:
    """An App that never connects."""
    return App("host=192.0.2.1")


def charge_of(app: App, **changes):
    """The usual Work, but for these fields."""
    fields = {
        "version": "1",
        "payload": Charge,
        "result": Charged,
        "safety": Safety.PROVIDER_KEYED,
    }
    return app.work("billing.charge", **fields | changes)


IDENTITIES = {"scope": "tenant-1", "command_id": "c1", "idempotency_key": "k1"}


def test_a_definition_and_the_raw_request_have_equal_fingerprints(offline: App):
    """A definition is a projection: it adds nothing."""
    deadline = datetime(2100, 1, 1, tzinfo=UTC)
    retry = WorkRetry(max_attempts=3)
    charge = charge_of(offline, retry=retry, exits=True, classification="personal")
    projected = charge.contract.request(Charge(cents=100), **IDENTITIES, deadline=deadline)
    raw = WorkRequest(
        **IDENTITIES,
        contract_name="billing.charge",
        contract_version="1",
        exit_aware=True,
        classification="personal",
        payload=b'{"cents":100,"note":null}',
        safety=Safety.PROVIDER_KEYED,
        retry=retry,
        deadline=deadline,
    )
    assert projected == raw
    assert fingerprint_of(projected) == fingerprint_of(raw)


def test_equal_payloads_have_equal_bytes_in_whatever_order_their_fields_are_written(offline: App):
    values = {"1": Charge(100), "2": Model(cents=100), "3": Struct(None, 100)}
    encoded = {
        charge_of(offline, version=v, payload=type(p)).contract.encode_payload(p)
        for v, p in values.items()
    }
    plain = charge_of(offline, version="4", payload=dict).contract
    encoded.add(plain.encode_payload({"note": None, "cents": 100}))
    assert encoded == {b'{"cents":100,"note":null}'}


@pytest.mark.parametrize("payload", [Charge(5, "x"), Model(cents=5), Struct("x", 5)])
def test_a_payload_comes_back_as_its_type(offline: App, payload):
    contract = charge_of(offline, payload=type(payload)).contract
    assert contract.decode_payload(contract.encode_payload(payload)) == payload


@pytest.mark.parametrize(
    "payload",
    [{"cents": "secret"}, {}, None, Charge("secret"), Charge(5, "\ud800secret")],
)
def test_a_payload_that_does_not_fit_is_refused_without_its_text(offline: App, payload):
    contract = charge_of(offline).contract
    with pytest.raises(InvalidWork) as caught:
        contract.encode_payload(payload)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_nan_is_refused_and_not_changed_in_silence(offline: App):
    contract = charge_of(offline, payload=dict).contract
    with pytest.raises(InvalidWork, match="NaN"):
        contract.encode_payload({"amount": float("nan")})


def test_a_payload_or_result_may_have_262144_bytes(offline: App):
    contract = charge_of(offline, payload=str, result=str).contract
    for encode in (contract.encode_payload, contract.encode_result):
        assert len(encode("x" * 262_142)) == 262_144
        with pytest.raises(InvalidWork, match="262145 bytes"):
            encode("x" * 262_143)


def test_stored_bytes_that_do_not_fit_any_more_are_refused(offline: App):
    with pytest.raises(InvalidWork):
        charge_of(offline).contract.decode_payload(b'{"cents": "secret"}')


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("version", {"version": "x" * 101}),
        ("version", {"version": ""}),
        ("classification", {"classification": "very secret"}),
        ("retention_id", {"retention_id": ""}),
        ("safety", {"safety": "sometimes"}),
        ("safety", {"exits": True, "safety": Safety.IDEMPOTENT}),
        ("retry", {"retry": None}),
    ],
)
def test_a_contract_out_of_bounds_names_the_field(offline: App, field, changes):
    with pytest.raises(InvalidWork) as caught:
        charge_of(offline, **changes)
    assert caught.value.field == field
    assert len(offline.registry.work) == 0


@pytest.mark.parametrize("safety", Safety)
def test_a_safety_may_be_given_by_its_value(offline: App, safety: Safety):
    """It is the same contract: a worker compares what was accepted with it."""
    contract = charge_of(offline, safety=safety.value).contract
    assert contract.safety is safety


def test_a_name_and_version_stand_for_one_contract(offline: App):
    charge_of(offline)
    with pytest.raises(WorkRegistryRefused, match="already"):
        charge_of(offline)
    with pytest.raises(WorkRegistryRefused, match="another contract"):
        charge_of(offline, retry=WorkRetry(max_attempts=3))
    assert charge_of(offline, version="2") is offline.registry.work.get("billing.charge", "2")


def test_work_has_one_executor_of_the_form_that_its_contract_says(offline: App):
    plain, typed = charge_of(offline), charge_of(offline, version="2", exits=True)

    async def run(invocation, payload):
        return Charged("r")

    def run_typed(invocation, payload):
        return Succeeded(Charged("r"))

    with pytest.raises(WorkRegistryRefused, match="exits=False"):
        plain.exit_executor(run_typed)
    with pytest.raises(WorkRegistryRefused, match="exits=True"):
        typed.executor(run)
    assert offline.registry.work.executable == []
    assert plain.executor(run) is run
    assert typed.exit_executor(run_typed) is run_typed
    assert (plain.runs.is_async, plain.runs.returns_exit) == (True, False)
    assert (typed.runs.is_async, typed.runs.returns_exit) == (False, True)
    assert offline.registry.work.executable == [plain, typed]
    with pytest.raises(WorkRegistryRefused, match="already has its executor"):
        plain.executor(run)


def test_what_must_be_reconciled_needs_a_reconciler_where_it_runs(offline: App):
    """A process that only accepts needs none."""
    charge = charge_of(offline, safety=Safety.RECONCILE_BEFORE_RETRY)
    offline.registry.check()
    charge.executor(lambda _, __: None)
    with pytest.raises(WorkRegistryRefused, match="no reconciler"):
        offline.registry.check()
    charge.reconciler(lambda _, __: NotApplied())
    offline.registry.check()
    with pytest.raises(WorkRegistryRefused, match="already has its reconciler"):
        charge.reconciler(lambda _, __: NotApplied())


def test_types_that_cannot_travel_are_found_when_a_worker_starts(offline: App):
    charge_of(offline, payload=dict[Charge, set[dict]] | int | Charge | Struct).executor(print)
    with pytest.raises(InvalidWork, match="payload type"):
        offline.registry.check()


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("payload", {"payload": 5}),
        ("scope", {"scope": "a b"}),
        ("command_id", {"command_id": ""}),
        ("idempotency_key", {"idempotency_key": None}),
        ("due_at", {"due_at": datetime(2030, 1, 1)}),  # noqa: DTZ001  refused for that
        ("deadline", {"deadline": SECOND}),
        ("priority", {"priority": 101}),
        ("priority", {"priority": 1.0}),
        (
            "due_at",
            {
                "plan": WorkPlan(offsets=(0 * SECOND,), circuit=SECOND),
                "due_at": datetime(2030, 1, 1, tzinfo=UTC),
            },
        ),
        ("plan", {"plan": (0 * SECOND,)}),
        (
            "max_elapsed",
            {"plan": WorkPlan(offsets=(0 * SECOND,), circuit=timedelta(hours=25))},
        ),
        (
            "due_at",
            {
                "due_at": datetime(2030, 1, 1, tzinfo=UTC),
                "deadline": datetime(2030, 1, 1, tzinfo=UTC),
            },
        ),
    ],
)
async def test_a_request_out_of_bounds_is_told_before_anything_is_sent(
    offline: App, field, changes
):
    fields = {"payload": Charge(1), **IDENTITIES} | changes
    with pytest.raises(InvalidWork) as caught:
        await charge_of(offline).accept(**fields)
    assert caught.value.field == field
    assert isinstance(caught.value, InvalidArgument)


def test_a_registry_without_work_is_in_order():
    WorkRegistry().check()


@pytest.mark.pg
async def test_work_is_accepted_on_a_connection_of_the_app(app: App):
    charge = charge_of(app)
    made = await charge.accept(Charge(100), **IDENTITIES)
    assert isinstance(made, Accepted)
    assert (made.command_id, made.revision) == ("c1", 1)
    again = await charge.accept(payload=Charge(100), **IDENTITIES | {"command_id": "c2"})
    assert again == Duplicate(
        work_id=made.work_id,
        activity_id=made.activity_id,
        command_id="c1",
        revision=1,
        accepted_at=made.accepted_at,
    )
    assert charge.sync.accept(Charge(100), **IDENTITIES) == again
    with pytest.raises(CommandConflict, match="ASDUR102"):
        await charge.accept(Charge(101), **IDENTITIES)


@pytest.mark.pg
async def test_a_deadline_that_has_passed_is_the_servers_to_tell(app: App):
    with pytest.raises(DeadlineReached, match="ASDUR121"):
        await charge_of(app).accept(
            Charge(1), **IDENTITIES, deadline=datetime(2020, 1, 1, tzinfo=UTC)
        )


@pytest.mark.pg
async def test_the_slots_of_a_plan_are_its_attempts(app: App, database: Database):
    """Whatever the contract says of attempts."""
    plan = WorkPlan(offsets=(0 * SECOND, SECOND), circuit=2 * SECOND)
    await charge_of(app).accept(Charge(1), **IDENTITIES, plan=plan)
    with database.connect() as connection:
        row = connection.execute("select max_attempts, offsets_us, circuit_us from onecommit.work")
        assert row.fetchone() == (2, [0, 1_000_000], 2_000_000)


@pytest.mark.pg
async def test_a_process_of_another_epoch_or_store_writes_nothing(database: Database, app: App):
    """It names what it was deployed for; the server compares."""
    store = await app._stores.async_store()
    store._epoch += 1
    with pytest.raises(WorkEpochFenced, match="ASDUR108"):
        await charge_of(app).accept(Charge(1), **IDENTITIES)
    store._epoch -= 1
    store._store_id = uuid4()
    with pytest.raises(StoreMismatch, match="ASDUR115"):
        await charge_of(app, version="2").accept(Charge(1), **IDENTITIES)
