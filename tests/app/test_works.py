"""Looking at Work and commanding it, through both clients; the host is asked first."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from onecommit import (
    App,
    Applied,
    CommandConflict,
    CommandOutcome,
    InvalidArgument,
    NotApplied,
    OperatorAction,
    Safety,
    Unknown,
    WorkAction,
    WorkInquiry,
    WorkState,
)
from onecommit.domain.work_command import EncodedEvidence
from onecommit.errors import (
    CommandInProgress,
    ContractUnavailable,
    InvalidWork,
    OnecommitError,
    OperatorNotAuthorized,
    ProofRequired,
    RevisionConflict,
    ScopeDisabled,
    ScopeGenerationChanged,
    ScopeNotFound,
    UsageError,
    WorkNotFound,
    WorkRejected,
    WorkTerminal,
)

from tests.strict import StrictDatabase
from tests.waiting_work import accept, define, leave_behind, suspend

pytestmark = pytest.mark.pg

WHO = {"actor": "ada", "reason": "asked the provider"}
MINUTE = timedelta(minutes=1)


class Threaded:
    """The sync client with the async one's interface: each call in a thread."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: asyncio.to_thread(getattr(self._client, name), *args, **named)


@pytest.fixture
async def app(app: App) -> App:
    app.authorize(lambda action: action.actor == "ada")
    return app


@pytest.fixture(params=["async", "sync"])
def works(request: pytest.FixtureRequest, app: App) -> Any:
    return app.works if request.param == "async" else Threaded(app.sync.works)


@pytest.fixture(params=["async", "sync"])
def scopes(request: pytest.FixtureRequest, app: App) -> Any:
    return app.scopes if request.param == "async" else Threaded(app.sync.scopes)


async def test_work_is_seen_without_its_payload(app: App, works: Any):
    """What it is, why it waits, what can be done, and what happened."""
    view = await suspend(app, define(app))
    assert await works.get(view.work_id) == view
    assert view.state is WorkState.SUSPENDED_RECONCILIATION_REQUIRED
    assert view.action is WorkAction.RECONCILE
    assert (view.unresolved, view.attempt, view.safety) == (1, 1, Safety.RECONCILE_BEFORE_RETRY)
    events = await works.events(view.work_id)
    assert events[0].event == "accepted"
    assert events[-1].to_state is view.state
    assert events[-1].application_code == "app.timeout"
    [permit] = await works.permits(view.work_id)
    assert (permit.attempt, permit.outcome) == (1, "ambiguous")
    assert permit.invocation_admitted_at is not None
    assert await works.get(2**60) is None
    assert await works.events(2**60) == []


async def test_lists_show_what_is_asked_for(app: App, works: Any):
    work = define(app)
    waiting = await suspend(app, work)
    pending = await accept(work, scope=waiting.scope)
    ids = [view.work_id for view in await works.list(scope=waiting.scope)]
    assert ids == [pending.work_id, waiting.work_id]
    assert await works.list(scope=waiting.scope, needs_operator=True) == [waiting]
    assert await works.list(scope=waiting.scope, states=[waiting.state]) == [waiting]
    assert await works.list(contract=work.contract.name, before=pending.work_id) == [waiting]
    [first] = await works.list(contract=work.contract.name, limit=1)
    assert first.work_id == pending.work_id
    assert await works.list(contract="other") == []
    counts = await works.counts()
    assert counts[waiting.state] >= 1
    assert not any(state.is_terminal for state in counts)
    by_value = await works.list(scope=waiting.scope, states=[waiting.state.value])
    assert by_value == [waiting]
    refused = ({"limit": 0}, {"states": ["nonsense"]}, {"before": "x"}, {"scope": "a\0b"})
    for arguments in refused:
        with pytest.raises(InvalidArgument):
            await works.list(**arguments)


@pytest.mark.parametrize("form", ["async def", "def"])
@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (Applied("ch_1"), WorkState.SUCCEEDED),
        (NotApplied(), WorkState.RETRY_WAIT),
        (Unknown(), WorkState.SUSPENDED_RECONCILIATION_REQUIRED),
    ],
)
async def test_the_registered_reconciler_decides(app: App, works: Any, form, evidence, state):
    """It is asked about the attempt, by the key that the provider knows."""
    work = define(app)
    asked = []

    def ask(inquiry: WorkInquiry, payload: dict[str, int]) -> Any:
        asked.append((inquiry.activity_id, inquiry.attempt, inquiry.scope, list(payload)))
        return evidence

    async def ask_async(inquiry: WorkInquiry, payload: dict[str, int]) -> Any:
        return ask(inquiry, payload)

    work.reconciler(ask_async if form == "async def" else ask)
    view = await suspend(app, work)
    command = {"command_id": "ticket-1"} | WHO
    result = await works.reconcile(view.work_id, **command)
    assert (result.outcome, result.state) == (CommandOutcome.RECORDED, state)
    assert asked == [(view.activity_id, 1, view.scope, ["cents"])]
    assert (await works.get(view.work_id)).state is state

    again = await works.reconcile(view.work_id, **command)
    assert again.outcome is CommandOutcome.DUPLICATE
    assert (again.state, again.revision) == (result.state, result.revision)
    assert len(asked) == 1


async def test_no_connection_is_held_while_the_provider_is_asked(
    app: App, database: StrictDatabase
):
    """Not one of the App's connections is in a transaction."""
    work = define(app)
    seen = []

    @work.reconciler
    async def ask(inquiry: WorkInquiry, payload: dict[str, int]) -> Any:
        with database.connect() as observer:
            seen.append(
                observer.execute(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and pid <> pg_backend_pid() and xact_start is not null and backend_type = 'client backend'"
                ).fetchone()[0]
            )
        return Unknown()

    view = await suspend(app, work)
    await app.works.reconcile(view.work_id, command_id="ticket-1", **WHO)
    assert seen == [0]


async def test_a_reconciler_that_raises_leaves_the_command_to_be_resumed(
    app: App, works: Any, database: StrictDatabase
):
    """Nothing is recorded; until its lease has ended the command, and any other, is in progress."""
    work = define(app)
    answers = [RuntimeError("provider is down"), NotApplied()]

    @work.reconciler
    def ask(inquiry: WorkInquiry, payload: dict[str, int]) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    view = await suspend(app, work)
    command = {"command_id": "ticket-1"} | WHO
    with pytest.raises(RuntimeError, match="provider is down"):
        await works.reconcile(view.work_id, **command)
    for command_id in ("ticket-1", "ticket-2"):
        with pytest.raises(CommandInProgress):
            await works.reconcile(view.work_id, command_id=command_id, **WHO)
    assert (await works.get(view.work_id)).revision == view.revision
    with database.connect() as owner:
        owner.execute(
            "update onecommit.operator_command set lease_expires_at = now() where work_id = %s",
            [view.work_id],
        )
    result = await works.reconcile(view.work_id, **command)
    assert result.state is WorkState.RETRY_WAIT


async def test_reconciling_needs_the_contract_and_its_reconciler(
    app: App, works: Any, database: StrictDatabase
):
    """Nothing is begun without."""
    work = define(app)
    view = await suspend(app, work)
    with pytest.raises(ContractUnavailable, match="reconciler"):
        await works.reconcile(view.work_id, command_id="ticket-1", **WHO)
    async with App(database.dsn, **database.identity) as stranger:
        stranger.authorize(lambda _: True)
        with pytest.raises(ContractUnavailable, match="not registered"):
            await stranger.works.reconcile(view.work_id, command_id="ticket-1", **WHO)
        with pytest.raises(ContractUnavailable, match="not registered"):
            await stranger.works.resolve(
                view.work_id, Applied("x"), revision=view.revision, command_id="ticket-1", **WHO
            )
    assert "reconcile_started" not in [e.event for e in await works.events(view.work_id)]
    work.reconciler(lambda _, __: "applied")
    with pytest.raises(UsageError, match="str is no evidence"):
        await works.reconcile(view.work_id, command_id="ticket-1", **WHO)
    with pytest.raises(WorkNotFound):
        await works.reconcile(2**60, command_id="ticket-1", **WHO)
    with pytest.raises(WorkNotFound):
        await works.reconcile(view.work_id, scope="another", command_id="ticket-1", **WHO)


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (Applied("ch_1"), WorkState.SUCCEEDED),
        (NotApplied(), WorkState.RETRY_WAIT),
        (
            EncodedEvidence(evidence="applied", result=b'"ch_1"', codec="json"),
            WorkState.SUCCEEDED,
        ),
    ],
)
async def test_an_operator_resolves(
    app: App, works: Any, database: StrictDatabase, evidence, state
):
    """With the digest of a proof; a repeat is answered, another story under the same id refused."""
    work = define(app, Safety.MANUAL_RESOLUTION)
    view = await suspend(app, work)
    assert view.action is WorkAction.RESOLVE
    proof = hashlib.sha256(b"statement.pdf").digest()
    command = {
        "revision": view.revision,
        "command_id": "ticket-1",
        "proof_sha256": proof,
    } | WHO
    with pytest.raises(InvalidWork):
        await works.resolve(view.work_id, Applied(object()), **command)
    with pytest.raises(ProofRequired):
        await works.resolve(view.work_id, EncodedEvidence(evidence="applied"), **command)
    with pytest.raises(InvalidArgument, match="32 bytes"):
        await works.resolve(view.work_id, evidence, **command | {"proof_sha256": b"short"})
    with pytest.raises(RevisionConflict):
        await works.resolve(view.work_id, evidence, **command | {"revision": view.revision - 1})
    result = await works.resolve(view.work_id, evidence, **command)
    assert (result.outcome, result.state) == (CommandOutcome.RECORDED, state)
    again = await works.resolve(view.work_id, evidence, **command)
    assert (again.outcome, again.revision) == (CommandOutcome.DUPLICATE, result.revision)
    with pytest.raises(CommandConflict):
        await works.resolve(view.work_id, evidence, **command | {"reason": "another"})
    with database.connect() as observer:
        [kept] = observer.execute(
            "select proof_sha256 from onecommit.operator_command where work_id = %s", [view.work_id]
        ).fetchone()
    assert kept == proof


async def test_ambiguous_work_of_a_safe_class_is_tried_once_more(app: App, works: Any):
    view = await suspend(app, define(app, Safety.PROVIDER_KEYED, exits=True))
    assert view.action is WorkAction.RETRY_SAFE
    command = {"revision": view.revision, "command_id": "ticket-1"} | WHO
    result = await works.retry_safe(view.work_id, **command)
    assert (result.outcome, result.state) == (CommandOutcome.RELEASED, WorkState.RETRY_WAIT)
    again = await works.retry_safe(view.work_id, scope=view.scope, **command)
    assert again.outcome is CommandOutcome.DUPLICATE
    with pytest.raises(WorkRejected):
        await works.retry_safe(
            view.work_id, **command | {"revision": result.revision, "command_id": "ticket-2"}
        )


async def test_work_is_canceled_once(app: App, works: Any):
    accepted = await accept(define(app))
    result = await works.cancel(accepted.work_id, command_id="ticket-1", **WHO)
    assert result.outcome is CommandOutcome.CANCELED
    assert result.state is WorkState.CANCELED_BEFORE_EFFECT
    again = await works.cancel(accepted.work_id, command_id="ticket-1", **WHO)
    assert again.outcome is CommandOutcome.DUPLICATE
    with pytest.raises(WorkTerminal):
        await works.cancel(accepted.work_id, command_id="ticket-2", **WHO)
    with pytest.raises(InvalidWork, match="command_id"):
        await works.cancel(accepted.work_id, command_id="two words", **WHO)
    with pytest.raises(InvalidArgument, match="reason"):
        await works.cancel(accepted.work_id, command_id="ticket-3", actor="ada", reason="")


async def test_work_of_an_older_epoch_is_released(app: App, works: Any, database: StrictDatabase):
    """One by one and in bulk, which shows first what it would do."""
    work = define(app, Safety.PROVIDER_KEYED)
    scope = f"left-{uuid4()}"
    accepted = [await accept(work, scope=scope) for _ in range(3)]
    ids = [each.work_id for each in accepted]
    leave_behind(database, *ids)
    view = await works.get(ids[0])
    assert view.action is WorkAction.RELEASE
    one = await works.release(ids[0], revision=view.revision, command_id="one", **WHO)
    assert (one.outcome, one.state) == (CommandOutcome.RELEASED, WorkState.PENDING)

    bulk = {"command_id": "bulk", "contract": work.contract.name, "version": "1"} | WHO
    shown = await works.release_all(scope, preview=True, **bulk)
    assert [(r.work_id, r.outcome) for r in shown] == [
        (work_id, CommandOutcome.PREVIEW) for work_id in ids[1:]
    ]
    done = await works.release_all(scope, **bulk)
    assert [(r.work_id, r.outcome, r.state) for r in done] == [
        (work_id, CommandOutcome.RELEASED, WorkState.PENDING) for work_id in ids[1:]
    ]
    again = await works.release_all(scope, **bulk)
    assert [r.outcome for r in again] == [CommandOutcome.DUPLICATE] * 2
    with pytest.raises(ScopeNotFound):
        await works.release_all("nowhere", **bulk)


async def test_bytes_of_ended_work_are_forgotten(app: App, works: Any):
    """What is left says so, and a late duplicate is still answered."""
    work = define(app)
    accepted = await accept(work)
    await works.cancel(accepted.work_id, command_id="ticket-1", **WHO)
    assert await works.purge(datetime(2020, 1, 1, tzinfo=UTC), **WHO) == 0
    assert await works.purge(datetime.now(UTC) + MINUTE, **WHO) >= 1
    assert (await works.get(accepted.work_id)).purged_at is not None
    with pytest.raises(InvalidArgument, match="time zone"):
        await works.purge(datetime(2020, 1, 1), **WHO)  # noqa: DTZ001  refused for that


async def test_a_scope_is_disabled_for_good(app: App, scopes: Any):
    work = define(app)
    waiting = await suspend(app, work)
    await accept(work, scope=waiting.scope)
    scope = await scopes.get(waiting.scope)
    assert (scope.state, scope.generation, scope.unfinished) == ("active", 1, 2)
    command = {"generation": 1, "command_id": "close"} | WHO
    with pytest.raises(ScopeGenerationChanged):
        await scopes.disable(waiting.scope, **command | {"generation": 2})
    done = await scopes.disable(waiting.scope, **command)
    assert (done.outcome, done.generation, done.projected) == (CommandOutcome.DISABLED, 2, 2)
    again = await scopes.disable(waiting.scope, **command)
    assert (again.outcome, again.generation) == (CommandOutcome.DUPLICATE, 2)
    scope = await scopes.get(waiting.scope)
    assert (scope.state, scope.unfinished) == ("disabled", 1)
    with pytest.raises(ScopeDisabled):
        await accept(work, scope=waiting.scope)
    assert await scopes.get("nowhere") is None
    with pytest.raises(ScopeNotFound):
        await scopes.disable("nowhere", **command)


def commands(works: Any, scopes: Any) -> dict[str, Any]:
    """Every command, as a function of who gives it."""
    moved = {"command_id": "x", "revision": 1}
    return {
        "cancel": lambda **who: works.cancel(1, command_id="x", **who),
        "reconcile": lambda **who: works.reconcile(1, command_id="x", **who),
        "resolve": lambda **who: works.resolve(1, NotApplied(), **moved, **who),
        "retry_safe": lambda **who: works.retry_safe(1, **moved, **who),
        "release": lambda **who: works.release(1, **moved, **who),
        "release_all": lambda **who: works.release_all("t", command_id="x", **who),
        "purge": lambda **who: works.purge(datetime.now(UTC), **who),
        "disable_scope": lambda **who: scopes.disable("t", generation=1, command_id="x", **who),
    }


@pytest.mark.parametrize("client", ["async", "sync"])
@pytest.mark.parametrize("operation", list(commands(None, None)))
async def test_the_host_is_asked_before_anything_else(operation: str, client: str):
    """No connection is opened for a refusal: this server does not exist."""
    app = App("host=192.0.2.1 connect_timeout=1")
    given = app if client == "async" else app.sync
    works, scopes = given.works, given.scopes
    if client == "sync":
        works, scopes = Threaded(works), Threaded(scopes)
    command = commands(works, scopes)[operation]
    with pytest.raises(UsageError, match="authorize"):
        await command(**WHO)

    asked: list[OperatorAction] = []

    @app.authorize
    def may(action: OperatorAction) -> Any:
        asked.append(action)
        return "yes"

    with pytest.raises(OperatorNotAuthorized):
        await command(**WHO)
    [action] = asked
    assert (action.operation, action.actor, action.reason) == (operation, "ada", WHO["reason"])
    with pytest.raises(UsageError, match="already"):
        app.authorize(may)


async def test_an_async_authorization_serves_the_async_client(database: StrictDatabase):
    async with App(database.dsn, **database.identity) as app:

        @app.authorize
        async def may(action: OperatorAction) -> bool:
            return action.operation == "cancel"

        accepted = await accept(define(app))
        with pytest.raises(OnecommitError, match=r"app\.works"):
            await asyncio.to_thread(app.sync.works.cancel, accepted.work_id, command_id="c", **WHO)
        with pytest.raises(OperatorNotAuthorized):
            await app.works.purge(datetime.now(UTC), **WHO)
        result = await app.works.cancel(accepted.work_id, command_id="c", **WHO)
        assert result.outcome is CommandOutcome.CANCELED
        app.sync.close()
