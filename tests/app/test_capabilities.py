"""Every method that reaches the store works with a capability of its table, and names it where the login lacks it."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from onecommit import App, JobContext, NotApplied, Safety
from onecommit.app.capabilities import METHODS
from onecommit.calls.finalization import complete_job
from onecommit.calls.work_handoff import handoff_lock
from onecommit.domain.token import issue_token
from onecommit.domain.work import WorkFence
from onecommit.drivers.driver import async_driver_for
from onecommit.errors import CapabilityMissing, OnecommitError, SchemaInconsistent
from onecommit.schema.grants import capabilities

from tests.clusters import Cluster
from tests.schema.provisioned import Provisioned, strict_store

pytestmark = pytest.mark.pg

WHO = {"actor": "ada", "reason": "test"}
NAMED = {**WHO, "command_id": "c1"}
NOBODY = 10**12
"""An id that no job and no Work has: the answer is another refusal, or None."""


@pytest.fixture(scope="module")
def strict(postgres: Cluster) -> Iterator[Provisioned]:
    with strict_store(postgres) as provisioned:
        yield provisioned


async def complete_in_tx(app: App) -> None:
    token = issue_token(
        job_id=1, run_lease=1, claim_slot=0, receipt_id=1, batch_id=1, batch_index=1
    )
    await _in_transaction(app, complete_job(token, progress=None))


async def handoff(app: App) -> None:
    fence = WorkFence(
        scope="s", work_id=1, attempt=1, lease_generation=1, scope_generation=1, owner=1,
        epoch=app.settings.epoch,
    )  # fmt: skip
    await _in_transaction(app, handoff_lock(fence, store_id=app.settings.store_id))


async def _in_transaction(app: App, call: Any) -> None:
    async with await psycopg.AsyncConnection.connect(app.settings.dsn) as connection:
        await async_driver_for(connection, schema="onecommit").run(call)


METHOD: dict[str, Callable[[App], Awaitable[Any]]] = {
    "job.enqueue": lambda app: app.send.enqueue(to="a"),
    "job.enqueue_many": lambda app: app.send.enqueue_many([{"to": "a"}]),
    "work.accept": lambda app: app.charge.accept(
        {}, scope="s", command_id=str(uuid4()), idempotency_key=str(uuid4())
    ),
    "invocation.handoff": handoff,
    "ctx.complete_in_tx": complete_in_tx,
    "app.jobs.get": lambda app: app.jobs.get(NOBODY),
    "app.jobs.list": lambda app: app.jobs.list(),
    "app.jobs.cancel": lambda app: app.jobs.cancel(NOBODY, **WHO),
    "app.jobs.cancel_many": lambda app: app.jobs.cancel_many([NOBODY], **WHO),
    "app.jobs.cancel_all": lambda app: app.jobs.cancel_all(queue="nowhere", **WHO),
    "app.queues.list": lambda app: app.queues.list(),
    "app.queues.finalization": lambda app: app.queues.finalization(),
    "app.queues.pause": lambda app: app.queues.pause("q", **WHO),
    "app.queues.resume": lambda app: app.queues.resume("q", **WHO),
    "app.queues.disable_caller_owned": lambda app: app.queues.disable_caller_owned("q", **WHO),
    "app.queues.allow_caller_owned": lambda app: app.queues.allow_caller_owned("q", **WHO),
    "app.dead_letters.list": lambda app: app.dead_letters.list(),
    "app.dead_letters.retry": lambda app: app.dead_letters.retry([NOBODY], **WHO),
    "app.dead_letters.purge": lambda app: app.dead_letters.purge([NOBODY], **WHO),
    "app.workers.list": lambda app: app.workers.list(),
    "app.workers.loads": lambda app: app.workers.loads(),
    "app.ring.get": lambda app: app.ring.get(),
    "app.callbacks.list": lambda app: app.callbacks.list(),
    "app.callbacks.resume": lambda app: app.callbacks.resume(uuid4()),
    "app.callbacks.complete": lambda app: app.callbacks.complete(uuid4()),
    "app.callbacks.fail": lambda app: app.callbacks.fail(uuid4(), reason="r"),
    "app.callbacks.retry": lambda app: app.callbacks.retry(uuid4(), reason="r"),
    "app.works.get": lambda app: app.works.get(NOBODY),
    "app.works.list": lambda app: app.works.list(),
    "app.works.events": lambda app: app.works.events(NOBODY),
    "app.works.permits": lambda app: app.works.permits(NOBODY),
    "app.works.counts": lambda app: app.works.counts(),
    "app.works.counts_by_contract": lambda app: app.works.counts_by_contract(),
    "app.works.cancel": lambda app: app.works.cancel(app.item, **NAMED),
    "app.works.reconcile": lambda app: app.works.reconcile(app.item, **NAMED),
    "app.works.resolve": lambda app: app.works.resolve(app.item, NotApplied(), revision=1, **NAMED),
    "app.works.retry_safe": lambda app: app.works.retry_safe(app.item, revision=1, **NAMED),
    "app.works.release": lambda app: app.works.release(app.item, revision=1, **NAMED),
    "app.works.release_all": lambda app: app.works.release_all("s", **NAMED),
    "app.works.purge": lambda app: app.works.purge(datetime.now(UTC), **WHO),
    "app.scopes.get": lambda app: app.scopes.get("s"),
    "app.scopes.disable": lambda app: app.scopes.disable("nowhere", generation=1, **NAMED),
}
COMMANDS_THAT_LOOK_FIRST = {"cancel", "reconcile", "resolve", "retry_safe", "release"}
"""They look their Work up, so a login that cannot do that either is told of this."""


def opened(dsn: str, admin: psycopg.Connection, *, item: int = 0) -> App:
    """An App with one job and one contract, on a login."""
    store_id, epoch = admin.execute(
        "select store_id, active_epoch from onecommit.store_status()"
    ).fetchone()
    app = App(dsn, store_id=UUID(str(store_id)), epoch=epoch)
    app.authorize(lambda _: True)

    @app.job(queue="q")
    async def send(ctx: JobContext, to: str) -> None: ...

    app.send = send
    app.charge = app.work(
        "charge", version="1", payload=dict[str, int], result=str, safety=Safety.PROVIDER_KEYED
    )
    app.charge.reconciler(lambda _, __: NotApplied())
    app.item = item
    return app


async def accepted(strict: Provisioned) -> int:
    app = opened(strict.login("work_acceptor"), strict.admin)
    async with app:
        return (await METHOD["work.accept"](app)).work_id


@pytest.mark.parametrize("capability", sorted(capabilities()))
async def test_a_method_works_with_its_capability_and_with_no_other(
    capability: str, strict: Provisioned
):
    """A refusal carries what would have been needed; any other answer shows that the call went through."""
    item = await accepted(strict)
    wrong = {}
    async with opened(strict.login(capability), strict.admin, item=item) as app:
        for name, method in METHOD.items():
            missing = await refusal(method, app)
            may = (capability,) in METHODS[name]
            if may is not (missing is None):
                wrong[name] = missing
            elif missing is not None:
                looks = name.rpartition(".")[2] in COMMANDS_THAT_LOOK_FIRST
                if not (set(METHODS[name]) <= set(missing.needs) or looks):
                    wrong[name] = missing.needs
    assert wrong == {}


async def refusal(method: Callable[[App], Awaitable[Any]], app: App) -> CapabilityMissing | None:
    try:
        await method(app)
    except CapabilityMissing as error:
        return error
    except OnecommitError:
        return None
    return None


def test_every_public_method_is_in_the_table(strict: Provisioned):
    """What an App offers that reaches the store; a worker is tried as the command."""
    app = opened(strict.login("reader"), strict.admin)
    clients = {
        "jobs", "queues", "dead_letters", "workers", "ring", "callbacks", "works", "scopes",
    }  # fmt: skip
    offered = {
        f"app.{client}.{name}"
        for client in clients
        for name in dir(getattr(app, client))
        if not name.startswith("_") and name != "in_tx"
    }
    assert {name for name in METHODS if name.count(".") > 1} == offered
    assert METHODS.keys() - METHOD.keys() == {"app.worker"}


async def test_a_login_without_any_capability_is_told_so_at_once(strict: Provisioned):
    """When the App opens, before it is asked for anything."""
    with pytest.raises(CapabilityMissing, match="no capability of this store") as caught:
        async with opened(strict.login(), strict.admin):
            pass
    assert "provision --print" in str(caught.value)


def test_sync_callers_are_told_the_same(strict: Provisioned):
    app = opened(strict.login("reader"), strict.admin)
    with app.sync, pytest.raises(CapabilityMissing, match="capability operator, which pause_queue"):
        app.sync.queues.pause("q", **WHO)


async def test_roles_that_were_changed_by_hand_are_no_lack_of_the_login(strict: Provisioned):
    """The login may call the routine, whose owner may not write: nothing that it is granted would help."""
    owner = strict.role("execution")
    async with opened(strict.login("producer"), strict.admin) as app:
        strict.admin.execute(f'revoke insert on onecommit.queue from "{owner}"')
        try:
            with pytest.raises(SchemaInconsistent, match="inside enqueue_job"):
                await app.send.options(queue="new").enqueue(to="a")
        finally:
            strict.admin.execute(f'grant insert on onecommit.queue to "{owner}"')
        await app.send.options(queue="new").enqueue(to="a")
