"""The operations of Work in one scope, each through the login that may call it, with every argument in the open."""

from dataclasses import asdict
from typing import Any

from onecommit.domain.work_request import WorkRequest

from tests.sql.work.model_item import Fence
from tests.work_requests import arguments
from tests.works import MICROSECOND, Works

PURGE_BEFORE = "2100-01-01"


class Calls:
    """One connection for each role; the epoch that they pass is the store's active one."""

    def __init__(self, works: Works) -> None:
        self.works = works
        self.scope = ""
        self.contract = ("", "1")
        self.acceptor = works.engine("work_acceptor")
        self.dispatcher = works.engine("work_dispatcher")
        self.runtime = works.engine("work_runtime")
        self.operators = works.engine("work_operator")
        self.retention = works.engine("work_retention")
        self.reader = works.engine("reader")
        self.store_id = str(works.value("select store_id from onecommit.store_status()"))
        for engine in (self.acceptor, self.runtime, self.operators, self.retention):
            engine.sql("set synchronous_commit = off")
        works.store.observer.execute("set synchronous_commit = off")
        works.store.observer.execute("set enable_seqscan = off")
        # Debian's 15 compiles what it deems dear, at each step.
        works.store.observer.execute("set jit = off")

    @property
    def epoch(self) -> int:
        return self.works.store.epoch

    def enter(self, scope: str) -> None:
        """From now on all calls are about this scope, which has a contract of its own."""
        self.scope, self.contract = scope, (f"billing.{scope}", "1")
        self.purge()

    def rotate(self) -> None:
        """The next epoch is the active one."""
        self.works.value(
            "select onecommit.rotate_epoch(%s, %s, %s, 'ada', 'restored')",
            self.store_id,
            self.epoch,
            self.epoch + 1,
        )
        self.works.store.epoch += 1

    def accept(self, request: WorkRequest) -> Any:
        sent = arguments(request, store_id=self.store_id, epoch=self.epoch)
        return self.acceptor.call("accept_work", **sent)[0]

    def discover(self) -> list[tuple[int, int]]:
        shown = self.dispatcher.call(
            "discover_work_dispatch",
            p_names=[self.contract[0]],
            p_versions=[self.contract[1]],
            p_limit=100,
        )
        return [(row.work_id, row.revision) for row in shown]

    def claim(self, items: list[tuple[int, int]], owner: int, number: int) -> list[Any]:
        return self.runtime.call(
            "claim_work",
            p_scope_id=self.scope,
            p_work_ids=[work_id for work_id, _ in items],
            p_revisions=[revision for _, revision in items],
            p_owner=owner,
            p_request=number,
            p_epoch=self.epoch,
        )

    def by_fence(self, function: str, fence: Fence, **more: Any) -> Any:
        """A step of the attempt that the fence names."""
        engine = self.acceptor if function.startswith("handoff") else self.runtime
        named = {f"p_{name}": value for name, value in asdict(fence).items()}
        return engine.call(function, p_scope_id=self.scope, **named, **more)[0]

    def renew(self, fence: Fence) -> Any:
        return self.runtime.call(
            "renew_work",
            p_scope_id=self.scope,
            p_work_ids=[fence.work_id],
            p_attempts=[fence.attempt],
            p_lease_generations=[fence.lease_generation],
            p_scope_generations=[fence.scope_generation],
            p_owner=fence.owner,
            p_epoch=fence.epoch,
        )[0]

    def complete(self, fence: Fence, event: str, code: str | None, result: bytes | None) -> Any:
        codec = None if result is None else "json"
        return self.by_fence(
            "complete_work",
            fence,
            p_event=event,
            p_code=code,
            p_result=result,
            p_result_codec=codec,
        )

    def command(self, function: str, command_id: str, **arguments: Any) -> list[Any]:
        """The rows of an operator's command."""
        named = {f"p_{name}": value for name, value in arguments.items()}
        if "result" in arguments:
            named["p_result_codec"] = None if arguments["result"] is None else "json"
        if "lease" in arguments:
            named["p_lease_us"] = named.pop("p_lease") // MICROSECOND
            named["p_owner"] = "host-1"
        if function == "resolve_work":
            named["p_proof_sha256"] = None
        if function != "reconcile_finish":
            named |= {"p_actor": "ada"}
        return self.operators.call(
            function,
            p_scope_id=self.scope,
            p_command_id=command_id,
            p_epoch=self.epoch,
            **named,
        )

    def action(self, work_id: int) -> str | None:
        """What the store says that an operator can do about it."""
        return self.reader.call("get_work", p_work_id=work_id)[0].action

    def purge(self) -> int:
        return self.retention.call(
            "purge_work",
            p_before=PURGE_BEFORE,
            p_limit=10_000,
            p_actor="ada",
            p_reason="retention",
            p_epoch=self.epoch,
        )[0][0]
