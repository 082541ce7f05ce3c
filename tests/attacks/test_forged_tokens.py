"""Who holds a token may do one thing to one attempt; a token with any field changed, or taken from elsewhere, does nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.attacks.intruders import Target
from tests.engine import HOUR_US, Attempt, Engine
from tests.work_requests import accept, request
from tests.works import Runtime

pytestmark = pytest.mark.pg

BIG = 2**63
SMALL = 2**31
TOKEN = ("job_id", "run_lease", "claim_slot", "receipt_id", "batch_id", "batch_index")
# Refused: the token is of no open attempt, or what was passed is no number of this kind.
STALE = "OC001"
NO_NUMBER = ("22003", "22004", "22023")


class Scene:
    """Jobs that run in two queues, one of a chapter that is gone, callbacks of two attempts, and Work in two scopes."""

    def __init__(self, target: Target) -> None:
        self.target = target
        target.do(
            "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0'"
        )
        worker = target.engine("producer", "executor", "maintenance")
        gone = worker.take(2)
        worker.complete(gone)
        assert [worker.tend()[0] for _ in range(2)] == ["rotate", "reclaim"]
        target.do("update onecommit.ring set chapter_lifetime = '1 day'")
        self.attempt, neighbour, closed, leased, self.waiting, answered = worker.take(6)
        assert Engine(target.admin, epoch=worker.epoch).materialize(leased)
        worker.complete([closed])
        other = Engine(worker.connection, epoch=worker.epoch, queue="other")
        foreign, foreign_waiting = other.take(2)
        self.others: dict[str, Attempt] = {
            "gone": gone[0],
            "neighbour": neighbour,
            "closed": closed,
            "foreign": foreign,
            "leased": leased,
        }
        # Who waits for a callback is a lease from then on.
        self.waiters = {"foreign": foreign_waiting, "answered": answered}
        self.callback, self.foreign_callback = (
            worker.callback(self.waiting),
            worker.callback(foreign_waiting),
        )
        self.used = worker.callback(answered)
        assert target.engine("callback_ingress").resume_external(self.used, 1) == "accepted"
        self.epoch = worker.epoch
        self._work()

    def _work(self) -> None:
        runtime = Runtime(self.target.engine("work_runtime"), owner=7, epoch=self.epoch)
        acceptor = self.target.engine("work_acceptor")
        self.fences = {}
        for name, scope in (
            ("mine", "tenant-1"),
            ("neighbour", "tenant-1"),
            ("foreign", "tenant-2"),
        ):
            made = accept(acceptor, request(scope=scope, command_id=name, idempotency_key=name))
            [claimed] = runtime.claim((made.work_id, made.revision), scope=scope)
            fence = runtime.fence(claimed, p_scope_id=scope)
            assert runtime.engine.call("acquire_permit", **fence)[0].outcome == "granted"
            assert runtime.engine.call("admit_invocation", **fence)[0].outcome == "admitted"
            self.fences[name] = fence | {"p_epoch": self.epoch}
        self.store_id = str(self.target.value("select store_id from onecommit.store_status()"))


@pytest.fixture(scope="module")
def scene(target: Target) -> Scene:
    return Scene(target)


def forgeries(
    true: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field by itself: one off, an end of its range, beyond it, nothing, and what stands there in another's; and theirs whole."""
    for field, value in true.items():
        if isinstance(value, int):
            small = field.removeprefix("p_") in ("claim_slot", "batch_index", "attempt")
            most = (SMALL if small else BIG) - 1
            for wrong in {value + 1, value - 1, -value, 0, most, -most - 1, most + 1} - {value}:
                yield f"{field} {wrong}", dict(true) | {field: wrong}
        yield f"{field} null", dict(true) | {field: None}
        for name, other in others.items():
            if other[field] != value:
                yield f"{field} of {name}", dict(true) | {field: other[field]}
                # All but one field are theirs.
                yield f"{name} with its own {field}", dict(other) | {field: value}
    yield from ((name, dict(other)) for name, other in others.items())


def answers(engine: Engine, function: str, arguments: Mapping[str, Any]) -> Any:
    """Its SQLSTATE or its rows; numbers beyond their type are sent as they are."""
    try:
        return engine.call(function, **arguments)
    except psycopg.Error as error:
        return error.sqlstate


def is_error(said: Any, *codes: str) -> bool:
    return isinstance(said, str) and said in codes


def attempt_forgeries(scene: Scene) -> list[tuple[str, dict[str, Any]]]:
    """Of an attempt that its claim row knows, and of one that runs for long and has become a lease."""
    tokens = {name: other.token for name, other in scene.others.items()} | {
        "true": scene.attempt.token
    }
    # A whole token that is still open is no forgery: it would be completed.
    genuine = [tokens[name] for name in ("true", "neighbour", "foreign", "leased")]
    found = []
    for true in ("true", "leased"):
        others = {name: token for name, token in tokens.items() if name != true}
        found += [(f"{true}: {n}", token) for n, token in forgeries(tokens[true], others)]
    return [(name, token) for name, token in found if token not in genuine]


def test_a_forged_token_completes_nothing(target: Target, scene: Scene):
    """As the finalizer, who can do nothing else."""
    finalizer = target.engine("finalizer")
    before = target.everything()
    forged = attempt_forgeries(scene)
    assert len(forged) > 130
    for name, token in forged:
        said = answers(finalizer, "complete_job", token | {"progress": None})
        assert is_error(said, STALE, *NO_NUMBER), (name, said)
    assert target.everything() == before


def test_a_forged_token_is_told_nothing(target: Target, scene: Scene):
    """As the executor: unknown or closed, never open."""
    executor = target.engine("executor")
    for name, token in attempt_forgeries(scene):
        said = answers(executor, "attempt_status", token)
        if not is_error(said, *NO_NUMBER):
            assert [(row.state, row.holder_pid) for row in said] in (
                [("unknown", None)],
                [("stale", None)],
                [("closed", None)],
            ), (name, said)


def test_a_forged_token_gets_no_callback(target: Target, scene: Scene):
    executor = target.engine("executor")
    before = target.everything()
    for name, token in attempt_forgeries(scene):
        named = {f"p_{field}": value for field, value in token.items()}
        said = answers(
            executor,
            "register_callback",
            named | {"p_callback": None, "p_name": None, "p_timeout_us": HOUR_US},
        )
        assert is_error(said, STALE, *NO_NUMBER), (name, said)
    assert target.everything() == before


def test_a_callback_of_another_attempt_is_not_waited_for(target: Target, scene: Scene):
    """Nor does its answer reach who names it beside a job or lease of its own."""
    executor = target.engine("executor")
    true = {"p_job_id": scene.waiting.job_id, "p_run_lease": scene.waiting.run_lease}
    others = {
        name: {"p_job_id": other.job_id, "p_run_lease": other.run_lease}
        for name, other in scene.waiters.items()
    }
    before = target.everything()
    for callback, own in (
        (scene.callback, None),
        (scene.foreign_callback, "foreign"),
        (scene.used, "answered"),
        (str(uuid4()), None),
    ):
        for name, pair in [*forgeries(true, others), ("true", true)]:
            if pair == (others[own] if own else true if callback == scene.callback else None):
                continue
            said = answers(executor, "begin_wait", pair | {"p_callback": callback})
            assert is_error(said, *NO_NUMBER) or [tuple(row) for row in said] in (
                [(False,)],
                [(None,)],
            ), (
                name,
                said,
            )
            arrays = {
                "p_callbacks": [callback],
                "p_job_ids": [pair["p_job_id"]],
                "p_run_leases": [pair["p_run_lease"]],
            }
            said = answers(executor, "await_callbacks", arrays)
            assert is_error(said, *NO_NUMBER) or {row[1:] for row in said} <= {
                ("foreign", None),
                ("unknown", None),
            }, (name, said)
    assert target.everything() == before


@pytest.mark.parametrize(
    "operation", ["resume_external", "complete_external", "fail_external", "retry_external"]
)
def test_a_guessed_callback_resolves_nothing(target: Target, scene: Scene, operation: str):
    """As the callback ingress: one bit off, none, all, and one that was answered before."""
    ingress = target.engine("callback_ingress")
    rest = {
        "resume_external": {"p_payload": "1"},
        "complete_external": {"p_result": "1"},
        "fail_external": {"p_reason": "no"},
        "retry_external": {"p_delay_us": 0, "p_reason": "busy"},
    }[operation]
    true = UUID(scene.callback).int
    guessed = [str(UUID(int=true ^ (1 << bit))) for bit in range(0, 128, 9)]
    before = target.everything()
    for callback in (*guessed, str(UUID(int=0)), str(UUID(int=2**128 - 1)), None, scene.used):
        said = answers(ingress, operation, {"p_callback": callback} | rest)
        assert said[0][0] == ("already_resolved" if callback == scene.used else "unknown"), (
            callback,
            said,
        )
    for epoch in (scene.epoch - 1, scene.epoch + 1, 0, None, BIG - 1):
        assert (
            answers(ingress, operation, {"p_callback": scene.callback, "p_epoch": epoch} | rest)
            == "OC004"
        )
    assert target.everything() == before


@contextmanager
def held(engine: Engine, scene: Scene, operation: str) -> Iterator[None]:
    """A transaction in which the true fence was locked, where an operation is about what was locked before it."""
    if operation != "handoff_check":
        yield
        return
    engine.begin()
    true = engine.call("handoff_lock", **scene.fences["mine"], p_store_id=scene.store_id)
    assert true[0].outcome == "held"
    yield
    engine.rollback()


FENCED = {
    "acquire_permit": ("work_runtime", {}, {"granted"}),
    "admit_invocation": ("work_runtime", {}, {"admitted"}),
    "suspend_contract": ("work_runtime", {}, {"suspended"}),
    "complete_work": ("work_runtime", {"p_event": "succeeded", "p_code": None, "p_result": b"{}", "p_result_codec": "json"}, {"completed", "duplicate"}),
    "handoff_lock": ("work_acceptor", {"p_store_id": None}, {"held"}),
    "handoff_check": ("work_acceptor", {"p_store_id": None}, {"held"}),
}  # fmt: skip


@pytest.mark.parametrize("operation", FENCED)
def test_a_forged_fence_moves_no_work(target: Target, scene: Scene, operation: str):
    """Of another item, scope, attempt, lease, owner or epoch; a completion that came too late is kept aside, and changes nothing."""
    capability, rest, granted = FENCED[operation]
    if "p_store_id" in rest:
        rest = {"p_store_id": scene.store_id}
    engine = target.engine(capability)
    true, others = scene.fences["mine"], {n: f for n, f in scene.fences.items() if n != "mine"}
    aside = "onecommit.work_history"
    before = [row for row in target.everything() if row[0] != aside]
    forged = [(n, f) for n, f in forgeries(true, others) if f not in scene.fences.values()]
    assert len(forged) > 40
    for name, fence in forged:
        with held(engine, scene, operation):
            said = answers(engine, operation, fence | rest)
        assert isinstance(said, str) or all(row.outcome not in granted for row in said), (
            name,
            said,
        )
        assert not is_error(said, "42501", "XX000"), (name, said)
    assert [row for row in target.everything() if row[0] != aside] == before
    events = "select distinct event from onecommit.work_history where event ~ 'suspend|succeed|complet' and event !~ '^quarantined_'"
    assert target.admin.execute(events).fetchall() == []


def test_a_forged_fence_renews_no_lease(target: Target, scene: Scene):
    runtime = target.engine("work_runtime")
    true, others = scene.fences["mine"], {n: f for n, f in scene.fences.items() if n != "mine"}
    before = target.everything()
    for name, fence in forgeries(true, others):
        if fence in scene.fences.values():
            continue
        arrays = {
            f"{field}s": [fence[field]]
            for field in ("p_work_id", "p_attempt", "p_lease_generation", "p_scope_generation")
        }
        plain = {field: fence[field] for field in ("p_scope_id", "p_owner", "p_epoch")}
        said = answers(runtime, "renew_work", arrays | plain)
        assert isinstance(said, str) or {row.outcome for row in said} == {"stale"}, (name, said)
    assert target.everything() == before


def test_the_true_tokens_still_hold(target: Target, scene: Scene):
    """After all that; the last test of this module."""
    assert (
        target.engine("work_acceptor")
        .call("handoff_lock", **scene.fences["mine"], p_store_id=scene.store_id)[0]
        .outcome
        == "held"
    )
    finalizer = target.engine("finalizer")
    for attempt in (scene.attempt, scene.others["foreign"]):
        assert finalizer.complete_job(attempt).outcome == "completed"
