"""The operations of Work, each through a login of the role that may call it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onecommit.domain.work_request import WorkRequest

from tests.engine import Engine
from tests.logins import Logins
from tests.stores import Store
from tests.work_requests import arguments, request

CONTRACT = ("billing.charge", "1")
FENCE = "p_work_id, p_attempt, p_lease_generation, p_scope_generation"
CLOCK = "create or replace function onecommit.store_now() returns timestamptz language sql volatile parallel safe as"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)


class Clock:
    """The clock of the store, which a test may stop and move."""

    def __init__(self, store: Store) -> None:
        self.owner = store.observer
        self.now = NOON

    def stop(self, at: datetime = NOON) -> None:
        self.now = at
        self.owner.execute(f"{CLOCK} $$ select timestamptz '{at.isoformat()}' $$")

    def pass_(self, time: timedelta) -> None:
        """Let time go by, or step back."""
        self.stop(self.now + time)

    def run(self) -> None:
        self.owner.execute(f"{CLOCK} $$ select clock_timestamp() $$")


class Runtime:
    """A worker's incarnation: its claims and what it does with them, as `work_runtime`."""

    def __init__(self, engine: Engine, *, owner: int, epoch: int) -> None:
        self.engine = engine
        self.owner = owner
        self.engine.epoch = epoch
        self._request = 0

    def claim(
        self, *items: tuple[int, int], scope: str = "tenant-1", request: int | None = None
    ) -> list[Any]:
        """One row for each (work id, revision)."""
        self._request = request or self._request + 1
        return self.engine.call(
            "claim_work",
            p_scope_id=scope,
            p_work_ids=[work_id for work_id, _ in items],
            p_revisions=[revision for _, revision in items],
            p_owner=self.owner,
            p_request=self._request,
        )

    def take(self, *works: Any) -> Any:
        """The one claim of freshly accepted Work that must succeed."""
        [claimed] = self.claim(*((w.work_id, w.revision) for w in works))
        assert claimed.outcome == "claimed", claimed
        return claimed

    def fence(self, claimed: Any, **differences: Any) -> dict[str, Any]:
        """The arguments by which an operation names the attempt."""
        return {
            "p_scope_id": "tenant-1",
            "p_work_id": claimed.work_id,
            "p_attempt": claimed.attempt,
            "p_lease_generation": claimed.lease_generation,
            "p_scope_generation": claimed.scope_generation,
            "p_owner": self.owner,
        } | differences

    def permit(self, claimed: Any, **differences: Any) -> Any:
        return self.engine.call("acquire_permit", **self.fence(claimed, **differences))[0]

    def admit(self, claimed: Any, **differences: Any) -> Any:
        return self.engine.call("admit_invocation", **self.fence(claimed, **differences))[0]

    def invoke(self, claimed: Any) -> None:
        """Get as far as the provider."""
        assert self.permit(claimed).outcome == "granted"
        assert self.admit(claimed).outcome == "admitted"

    def complete(
        self,
        claimed: Any,
        event: str = "succeeded",
        *,
        code: str | None = None,
        result: bytes | None = b"{}",
        **differences: Any,
    ) -> Any:
        """With a result where the event has one."""
        succeeded = event == "succeeded"
        return self.engine.call(
            "complete_work",
            **self.fence(claimed)
            | {
                "p_event": event,
                "p_code": code,
                "p_result": result if succeeded else None,
                "p_result_codec": "json" if succeeded else None,
            }
            | differences,
        )[0]

    def suspend(self, claimed: Any, **differences: Any) -> Any:
        return self.engine.call("suspend_contract", **self.fence(claimed, **differences))[0]

    def renew(self, *claimed: Any, **differences: Any) -> list[Any]:
        return self.engine.call(
            "renew_work",
            **{
                "p_scope_id": "tenant-1",
                "p_work_ids": [c.work_id for c in claimed],
                "p_attempts": [c.attempt for c in claimed],
                "p_lease_generations": [c.lease_generation for c in claimed],
                "p_scope_generations": [c.scope_generation for c in claimed],
                "p_owner": self.owner,
            }
            | differences,
        )


class Operator:
    """Who decides about Work that waits, as `work_operator`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._commands = 0

    def call(self, operation: str, **arguments: Any) -> Any:
        """The one row of a command with an id of its own unless it is given."""
        self._commands += 1
        named = {
            "p_scope_id": "tenant-1",
            "p_command_id": f"op{self._commands}",
            "p_actor": "ada",
            "p_reason": "asked the provider",
        }
        return self.engine.call(operation, **named | arguments)[0]

    def cancel(self, work_id: int, **arguments: Any) -> Any:
        return self.call("cancel_work", p_work_id=work_id, **arguments)

    def disable(self, generation: int = 1, **arguments: Any) -> Any:
        return self.call("disable_scope", p_generation=generation, **arguments)

    def begin(self, work_id: int, **arguments: Any) -> Any:
        """Begin to reconcile, for a minute."""
        defaults = {"p_work_id": work_id, "p_owner": "host-1", "p_lease_us": 60_000_000}
        return self.call("reconcile_begin", **defaults | arguments)

    def finish(
        self,
        work_id: int,
        command: str,
        revision: int,
        evidence: str,
        *,
        result: bytes | None = None,
    ) -> Any:
        return self.engine.call(
            "reconcile_finish",
            p_scope_id="tenant-1",
            p_command_id=command,
            p_work_id=work_id,
            p_revision=revision,
            p_evidence=evidence,
            p_result=result,
            p_result_codec=None if result is None else "json",
        )[0]

    def resolve(
        self,
        work_id: int,
        revision: int,
        evidence: str,
        *,
        result: bytes | None = None,
        **arguments: Any,
    ) -> Any:
        return self.call(
            "resolve_work",
            p_work_id=work_id,
            p_revision=revision,
            p_evidence=evidence,
            p_result=result,
            p_result_codec=None if result is None else "json",
            p_proof_sha256=None,
            **arguments,
        )

    def retry_safe(self, work_id: int, revision: int, **arguments: Any) -> Any:
        return self.call("retry_safe", p_work_id=work_id, p_revision=revision, **arguments)

    def release(self, work_id: int, revision: int, **arguments: Any) -> Any:
        return self.call("release_recovery", p_work_id=work_id, p_revision=revision, **arguments)

    def release_all(
        self, *, preview: bool, limit: int = 100, command: str = "bulk", **arguments: Any
    ) -> list[Any]:
        named = {
            "p_scope_id": "tenant-1",
            "p_contract_name": None,
            "p_contract_version": None,
            "p_limit": limit,
            "p_preview": preview,
            "p_command_id": command,
            "p_actor": "ada",
            "p_reason": "restored",
        }
        return self.engine.call("release_recoveries", **named | arguments)


class Works:
    """The Work of an empty store: accepted, discovered, and looked at by the superuser."""

    def __init__(self, store: Store, logins: Logins) -> None:
        self.store = store
        self.logins = logins
        self.clock = Clock(store)
        self._accepted = 0
        self._owners = 0

    def engine(self, capability: str) -> Engine:
        engine = self.logins.engine(capability)
        engine.epoch = self.store.epoch
        return engine

    def runtime(self, **options: Any) -> Runtime:
        """A worker that nobody else is."""
        self._owners += 1
        return Runtime(
            self.engine("work_runtime"), owner=self._owners, epoch=self.store.epoch, **options
        )

    def operator(self) -> Operator:
        return Operator(self.engine("work_operator"))

    def purge(self, *, before: datetime, limit: int = 100) -> int:
        """How many items lost their bytes."""
        return self.engine("work_retention").call(
            "purge_work", p_before=before, p_limit=limit, p_actor="ada", p_reason="retention"
        )[0][0]

    def read(self, function: str, **arguments: Any) -> list[Any]:
        return self.engine("reader").call(function, **arguments)

    def accept(self, *, asked: WorkRequest | None = None, **changes: Any) -> Any:
        """Work with identities of its own, unless they are given."""
        self._accepted += 1
        identity = {"command_id": f"c{self._accepted}", "idempotency_key": f"k{self._accepted}"}
        sent = arguments(
            asked or request(**identity | changes),
            store_id=str(self.value("select store_id from onecommit.store_status()")),
            epoch=self.store.epoch,
        )
        [row] = self.engine("work_acceptor").call("accept_work", **sent)
        assert row.outcome == "accepted", row
        return row

    def discover(self, limit: int = 100, contract: tuple[str, str] = CONTRACT) -> list[Any]:
        return self.engine("work_dispatcher").call(
            "discover_work_dispatch",
            p_names=[contract[0]],
            p_versions=[contract[1]],
            p_limit=limit,
        )

    def due(self) -> list[tuple[int, int]]:
        """What discovery shows, as a claim wants it."""
        return [(d.work_id, d.revision) for d in self.discover()]

    def value(self, statement: str, *values: Any) -> Any:
        return self.store.observer.execute(statement, values).fetchone()[0]

    def row(self, work_id: int) -> dict[str, Any]:
        """Work as it stands."""
        return self.value("select to_jsonb(w) from onecommit.work w where work_id = %s", work_id)

    def dispatch(self, work_id: int) -> dict[str, Any]:
        return self.value(
            "select to_jsonb(d) from onecommit.dispatch d where work_id = %s", work_id
        )

    def permits(self, work_id: int) -> list[tuple[int, str, bool]]:
        """Attempt, outcome and whether it was admitted."""
        return self.store.observer.execute(
            "select attempt, outcome, invocation_admitted_at is not null from onecommit.effect_permit"
            " where work_id = %s order by permit_id",
            (work_id,),
        ).fetchall()

    def events(self, work_id: int) -> list[str]:
        rows = self.store.observer.execute(
            "select event from onecommit.work_history where work_id = %s order by history_id",
            (work_id,),
        )
        return [event for (event,) in rows]

    def everything(self) -> str:
        """All rows of Work, to see whether something changed."""
        tables = ("scope", "work", "dispatch", "effect_permit", "work_history", "work_result")
        return json.dumps(
            [
                self.value(f"select jsonb_agg(to_jsonb(t) order by t) from onecommit.{table} t")
                for table in tables
            ]
        )


@pytest.fixture
def works(store: Store, logins: Logins) -> Iterator[Works]:
    """An empty store and the logins of its roles; the clock runs again afterwards."""
    works = Works(store, logins)
    yield works
    works.clock.run()
