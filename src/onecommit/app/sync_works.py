# Generated from async_works.py by tools/generate_sync.py: edit that file, then `make sync`.
"""Looking at Work and scopes, and the commands of operators."""

import os
import platform
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from onecommit.app.authorization import Authorization
from onecommit.app.reconciliation import Reconciliation, contract_of, encoded, reconciler_of
from onecommit.app.registration import Registry
from onecommit.app.stores import Stores
from onecommit.calls import work_commands, work_views
from onecommit.domain.work import WorkState
from onecommit.domain.work_command import (
    BegunReconciliation,
    Command,
    CommandResult,
    EncodedEvidence,
    OperatorAction,
    ReleasedWork,
    ScopeDisabling,
)
from onecommit.domain.work_exit import Applied, NotApplied
from onecommit.domain.work_view import PermitView, ScopeView, WorkCount, WorkHistoryEntry, WorkView
from onecommit.errors import WorkNotFound

RECONCILIATION_LEASE = timedelta(minutes=1)
"""How long nobody else can give the same command while a reconciler asks the provider."""


class SyncWorks:
    """The Work of the store.

    A command names itself by `command_id`, its actor and its reason, and is given once: repeated, it is
    answered with what it led to (`CommandOutcome.DUPLICATE`). Each asks the function registered with
    `@app.authorize` first. A refusal is a WorkError, and nothing was changed. Without `scope` it is
    looked up; `revision` is the one that the operator has seen.
    """

    def __init__(self, stores: Stores, registry: Registry, authorization: Authorization) -> None:
        self._stores = stores
        self._registry = registry
        self._authorization = authorization

    def get(self, work_id: int) -> WorkView | None:
        """One item as it stands, or None; no payload, no result."""
        store = self._stores.sync_store()
        return store.run(work_views.get_work(work_id))

    def list(
        self,
        *,
        scope: str | None = None,
        states: Collection[WorkState] | None = None,
        needs_operator: bool = False,
        contract: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> Sequence[WorkView]:
        """Work from the newest to the oldest; pass the last id as `before` for the next page.

        Args:
            scope: Only of this scope.
            states: Only in these states.
            needs_operator: Only what waits for one; quick, however much Work has ended.
            contract: Only of this name, in any version.
            limit: 1 to 1000.
            before: Only ids below this one.
        """
        store = self._stores.sync_store()
        call = work_views.list_work(
            scope=scope,
            states=states,
            needs_operator=needs_operator,
            contract=contract,
            limit=limit,
            before=before,
        )
        return store.run(call)

    def events(self, work_id: int) -> Sequence[WorkHistoryEntry]:
        """What happened to it, from the first to the last, with what was observed too late."""
        store = self._stores.sync_store()
        return store.run(work_views.work_events(work_id))

    def permits(self, work_id: int) -> Sequence[PermitView]:
        """The calls of its provider that were permitted, from the first to the last."""
        store = self._stores.sync_store()
        return store.run(work_views.work_permits(work_id))

    def counts(self) -> Mapping[WorkState, int]:
        """How many unfinished items stand in each state."""
        store = self._stores.sync_store()
        return store.run(work_views.work_counts())

    def counts_by_contract(
        self,
        *,
        scope: str | None = None,
        contract: str | None = None,
        by_scope: bool = False,
        limit: int = 100,
    ) -> Sequence[WorkCount]:
        """How many unfinished items of each contract stand in each state, the largest counts first.

        Args:
            scope: Only of this scope.
            contract: Only of this name, in any version.
            by_scope: Count those of each scope for themselves.
            limit: At most so many counts, 1 to 1000.
        """
        store = self._stores.sync_store()
        call = work_views.count_work(scope=scope, contract=contract, by_scope=by_scope, limit=limit)
        return store.run(call)

    def cancel(
        self, work_id: int, *, command_id: str, actor: str, reason: str, scope: str | None = None
    ) -> CommandResult:
        """Let nothing of it start any more; an effect that may have happened waits for evidence."""
        command = self._command(
            "cancel", work_id, scope=scope, command_id=command_id, actor=actor, reason=reason
        )
        store = self._stores.sync_store()
        return store.run(work_commands.cancel_work(command, work_id, epoch=store.epoch))

    def reconcile(
        self,
        work_id: int,
        *,
        command_id: str,
        actor: str,
        reason: str,
        scope: str | None = None,
        lease: timedelta = RECONCILIATION_LEASE,
    ) -> CommandResult:
        """Ask the provider by the registered reconciler, and record what it says.

        Three steps: the command is begun, the reconciler runs while no connection is held, and its
        evidence is recorded. Unknown evidence changes nothing. If the reconciler raises, nothing is
        recorded, and the exact command can be repeated once `lease` has passed; so it can after a crash.

        Raises:
            ContractUnavailable: The contract or its reconciler is not registered here; nothing was begun.
            CommandInProgress: A reconciliation of this Work is going on elsewhere.
            WorkError: What else the protocol answers.
        """
        self._authorize("reconcile", actor, reason, scope=scope, work_id=work_id)
        found = self._find(work_id, scope)
        work = contract_of(self._registry.work, found.contract_name, found.contract_version)
        reconciler_of(work)
        command = Command(scope=found.scope, command_id=command_id, actor=actor, reason=reason)
        store = self._stores.sync_store()
        owner = f"{platform.node()}:{os.getpid()}"
        begun = store.run(
            work_commands.reconcile_begin(
                command, work_id, owner=owner, lease=lease, epoch=store.epoch
            )
        )
        if not isinstance(begun, BegunReconciliation):
            return begun
        asked = Reconciliation(work, begun, scope=found.scope, work_id=work_id)
        evidence = asked.sync_ask()
        return store.run(
            work_commands.reconcile_finish(
                command, work_id, evidence, revision=begun.revision, epoch=store.epoch
            )
        )

    def resolve(
        self,
        work_id: int,
        evidence: Applied[Any] | NotApplied | EncodedEvidence,
        *,
        revision: int,
        command_id: str,
        actor: str,
        reason: str,
        scope: str | None = None,
        proof_sha256: bytes | None = None,
    ) -> CommandResult:
        """Record what an operator found out about the newest call that may have had an effect.

        Args:
            work_id: Work for manual resolution, or canceled Work with an unknown effect.
            evidence: Applied with a result of the contract's type, or NotApplied.
            revision: The Work as the operator has seen it.
            command_id: Names this command.
            actor: Who says it.
            reason: Why; both are kept.
            scope: Looked up if it is not given.
            proof_sha256: Of the document that the operator keeps as proof.
        """
        self._authorize("resolve", actor, reason, scope=scope, work_id=work_id)
        found = self._find(work_id, scope)
        name, version = found.contract_name, found.contract_version
        said = encoded(evidence, lambda: contract_of(self._registry.work, name, version).contract)
        command = Command(scope=found.scope, command_id=command_id, actor=actor, reason=reason)
        store = self._stores.sync_store()
        return store.run(
            work_commands.resolve_work(
                command,
                work_id,
                said,
                revision=revision,
                proof_sha256=proof_sha256,
                epoch=store.epoch,
            )
        )

    def retry_safe(
        self,
        work_id: int,
        *,
        revision: int,
        command_id: str,
        actor: str,
        reason: str,
        scope: str | None = None,
    ) -> CommandResult:
        """Try it once more: ambiguous Work of a safe class, or Work whose contract was unavailable."""
        command = self._command(
            "retry_safe", work_id, scope=scope, command_id=command_id, actor=actor, reason=reason
        )
        store = self._stores.sync_store()
        return store.run(
            work_commands.at_revision(
                work_commands.RETRY_SAFE, command, work_id, revision=revision, epoch=store.epoch
            )
        )

    def release(
        self,
        work_id: int,
        *,
        revision: int,
        command_id: str,
        actor: str,
        reason: str,
        scope: str | None = None,
    ) -> CommandResult:
        """Let Work of an older epoch go on under the active one, or wait for evidence by its class."""
        command = self._command(
            "release", work_id, scope=scope, command_id=command_id, actor=actor, reason=reason
        )
        store = self._stores.sync_store()
        return store.run(
            work_commands.at_revision(
                work_commands.RELEASE_RECOVERY,
                command,
                work_id,
                revision=revision,
                epoch=store.epoch,
            )
        )

    def release_all(
        self,
        scope: str,
        *,
        command_id: str,
        actor: str,
        reason: str,
        contract: str | None = None,
        version: str | None = None,
        limit: int = 100,
        preview: bool = False,
    ) -> Sequence[ReleasedWork]:
        """Release the oldest items of a scope, each by itself; with `preview` only look at them."""
        self._authorize("release_all", actor, reason, scope=scope)
        command = Command(scope=scope, command_id=command_id, actor=actor, reason=reason)
        store = self._stores.sync_store()
        return store.run(
            work_commands.release_recoveries(
                command,
                contract=contract,
                version=version,
                limit=limit,
                preview=preview,
                epoch=store.epoch,
            )
        )

    def purge(self, before: datetime, *, actor: str, reason: str, limit: int = 1000) -> int:
        """Forget payloads, results and observed bytes of Work that ended before; how many items.

        What remains answers a late duplicate. Work with a call that may have had an effect is kept.
        """
        self._authorize("purge", actor, reason)
        store = self._stores.sync_store()
        return store.run(
            work_commands.purge_work(
                before, limit=limit, actor=actor, reason=reason, epoch=store.epoch
            )
        )

    def _command(
        self,
        operation: str,
        work_id: int,
        *,
        scope: str | None,
        command_id: str,
        actor: str,
        reason: str,
    ) -> Command:
        """The command, once the host has allowed it."""
        self._authorize(operation, actor, reason, scope=scope, work_id=work_id)
        found = (self._find(work_id)).scope if scope is None else scope
        return Command(scope=found, command_id=command_id, actor=actor, reason=reason)

    def _authorize(
        self,
        operation: str,
        actor: str,
        reason: str,
        *,
        scope: str | None = None,
        work_id: int | None = None,
    ) -> None:
        self._authorization.sync_check(
            OperatorAction(
                operation=operation, actor=actor, reason=reason, scope=scope, work_id=work_id
            )
        )

    def _find(self, work_id: int, scope: str | None = None) -> WorkView:
        found = self.get(work_id)
        if found is None or scope not in (None, found.scope):
            raise WorkNotFound("there is no such Work")
        return found


class SyncScopes:
    """The scopes of the store."""

    def __init__(self, stores: Stores, authorization: Authorization) -> None:
        self._stores = stores
        self._authorization = authorization

    def get(self, scope: str) -> ScopeView | None:
        """One scope as it stands, or None."""
        store = self._stores.sync_store()
        return store.run(work_views.get_scope(scope))

    def disable(
        self, scope: str, *, generation: int, command_id: str, actor: str, reason: str
    ) -> ScopeDisabling:
        """Accept and run nothing of the scope any more, for good; all its unfinished Work is decided.

        Args:
            scope: Which one.
            generation: As `get` shows it.
            command_id: Names this command.
            actor: Who gives it.
            reason: Why; both are kept.
        """
        self._authorization.sync_check(
            OperatorAction(operation="disable_scope", actor=actor, reason=reason, scope=scope)
        )
        command = Command(scope=scope, command_id=command_id, actor=actor, reason=reason)
        store = self._stores.sync_store()
        return store.run(
            work_commands.disable_scope(command, generation=generation, epoch=store.epoch)
        )
