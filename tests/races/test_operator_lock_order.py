"""Schema, scope, command, Work, dispatch, permit, history: the same order of locks at every command of an operator.

The command's own lock stands between the scope's and the first row: the same command twice is one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from onecommit.domain.work import Safety

from tests.engine import Engine
from tests.races.work_locks import (
    COMMAND,
    HOLD,
    answer_after_a_rotation,
    before,
    held_at,
    locked_rows,
    reached,
)
from tests.works import Operator, Works

pytestmark = pytest.mark.pg

ROWS = ("work", "dispatch", "permit")
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What an operator decides about Work that was prepared for it, and what it takes in turn after schema and scope."""

    run: Callable[[Operator, int, int], Any]
    """Gets the operator, the Work's id and its revision."""
    prepare: Callable[[Works], int]
    """Returns the Work's id."""
    takes: tuple[str, ...] = ("command", *ROWS)


def live(works: Works, safety: Safety = Safety.PROVIDER_KEYED) -> int:
    """An admitted attempt that holds its lease."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept(safety=safety))
    runtime.invoke(claimed)
    return claimed.work_id


def unknown(works: Works, safety: Safety) -> int:
    """Its provider call ended in the dark."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept(safety=safety))
    runtime.invoke(claimed)
    assert runtime.complete(claimed, "ambiguous").code == "ASDUR106"
    return claimed.work_id


def begun(works: Works) -> int:
    work_id = unknown(works, Safety.RECONCILE_BEFORE_RETRY)
    assert works.operator().begin(work_id, p_command_id=COMMAND).outcome == "started"
    return work_id


def stranded(works: Works) -> int:
    """An older epoch left it behind with its permit, as a claim found."""
    work_id = live(works)
    works.clock.pass_(DAY)
    for table in ("work", "effect_permit"):
        works.store.observer.execute(f"update onecommit.{table} set epoch = epoch - 1")
    assert works.runtime().claim(*works.due())[0].code == "runtime_epoch_mismatch"
    return work_id


def finish(operator: Operator, work_id: int, revision: int) -> Any:
    return operator.finish(work_id, COMMAND, revision, "applied", result=b"1")


def release_all(operator: Operator, work_id: int, revision: int) -> Any:
    [row] = operator.release_all(preview=False, command=COMMAND)
    return row


COMMANDS = {
    "cancel": Command(
        run=lambda o, work_id, _: o.cancel(work_id, p_command_id=COMMAND), prepare=live
    ),
    "disable": Command(
        run=lambda o, *_: o.disable(p_command_id=COMMAND),
        prepare=live,
        takes=("command", "scope row", *ROWS),
    ),
    "reconcile_begin": Command(
        run=lambda o, work_id, _: o.begin(work_id, p_command_id=COMMAND),
        prepare=lambda works: unknown(works, Safety.RECONCILE_BEFORE_RETRY),
    ),
    "reconcile_finish": Command(run=finish, prepare=begun),
    "resolve": Command(
        run=lambda o, work_id, revision: o.resolve(
            work_id, revision, "applied", result=b"1", p_command_id=COMMAND
        ),
        prepare=lambda works: unknown(works, Safety.MANUAL_RESOLUTION),
    ),
    "retry_safe": Command(
        run=lambda o, work_id, revision: o.retry_safe(work_id, revision, p_command_id=COMMAND),
        prepare=lambda works: unknown(works, Safety.IDEMPOTENT),
    ),
    "release_recovery": Command(
        run=lambda o, work_id, revision: o.release(work_id, revision, p_command_id=COMMAND),
        prepare=stranded,
    ),
    "release_recoveries": Command(run=release_all, prepare=stranded),
}
EVERY = [pytest.param(command, id=name) for name, command in COMMANDS.items()]
STOPS = [
    pytest.param(command, lock, id=f"{name}-at-{lock}")
    for name, command in COMMANDS.items()
    for lock in ("schema", "scope", *command.takes)
]


def prepared(works: Works, command: Command) -> tuple[Engine, Callable[[], Any]]:
    """The operator's session, and the command at its door."""
    works.clock.stop()
    work_id = command.prepare(works)
    operator, revision = works.operator(), works.row(work_id)["revision"]
    return operator.engine, lambda: command.run(operator, work_id, revision)


@pytest.mark.parametrize(("command", "lock"), STOPS)
def test_each_lock_is_waited_for_with_exactly_the_earlier_ones_held(
    works: Works, command: Command, lock: str
):
    """Nothing later has been touched, and no history is written."""
    engine, call = prepared(works, command)
    assert held_at(works, lock, engine, call) == before(lock, ("schema", "scope", *command.takes))


@pytest.mark.parametrize("command", EVERY)
def test_every_command_does_what_it_was_prepared_for_and_lets_go(works: Works, command: Command):
    """Else the waits above would be those of a refusal."""
    engine, call = prepared(works, command)
    assert call().outcome not in {"refused", "duplicate"}
    assert reached(works, engine) == set()
    assert locked_rows(works) == set()


@pytest.mark.parametrize("command", EVERY)
def test_a_command_that_waited_for_a_rotation_is_fenced(works: Works, command: Command):
    """The epoch is read under the schema's lock; nothing of the older one is written."""
    engine, call = prepared(works, command)
    before_it = works.everything()
    answer = answer_after_a_rotation(works.store, engine, call)
    assert (answer.outcome, answer.code) == ("refused", "ASDUR108")
    assert works.everything() == before_it


def finished(works: Works, *scopes: str) -> None:
    """Work of each scope that ended a day ago."""
    works.clock.stop()
    runtime = works.runtime()
    for scope in scopes or ("tenant-1",):
        work = works.accept(scope=scope)
        [claimed] = runtime.claim((work.work_id, work.revision), scope=scope)
        assert runtime.complete(claimed, "failed_terminal", p_scope_id=scope).state == "failed"
    works.clock.pass_(DAY)


def purge(works: Works, engine: Engine) -> int:
    [row] = engine.call(
        "purge_work", p_before=works.clock.now, p_limit=9, p_actor="ada", p_reason="old"
    )
    return row[0]


@pytest.mark.parametrize("lock", ["schema", "scope", "dispatch"])
def test_a_purge_takes_its_locks_in_the_same_order(works: Works, lock: str):
    """It rewrites no permit, and takes the bytes out of history last."""
    finished(works)
    engine = works.engine("work_retention")
    held = held_at(works, lock, engine, lambda: purge(works, engine))
    assert held == before(lock, ("schema", "scope", "work", "dispatch"))


def test_a_purge_of_several_scopes_takes_all_of_them_before_the_first_row(works: Works):
    """Also the scope that comes last; it waits with no row locked, and then takes all."""
    finished(works, "tenant-0", "tenant-1")
    engine = works.engine("work_retention")
    holder = works.store.engine().begin()
    holder.sql(HOLD["scope"])
    with works.store.blocked(engine, purge, works, engine, by=holder) as answer:
        assert locked_rows(works) == set()
        holder.rollback()
    assert answer.result() == 2


def test_a_purge_passes_by_locked_work(works: Works):
    """So it stalls nobody and waits for no caller; it comes back later."""
    finished(works)
    engine = works.engine("work_retention")
    holder = works.store.engine().begin()
    holder.sql(HOLD["work"])
    assert purge(works, engine) == 0
    holder.rollback()
    assert purge(works, engine) == 1


def test_a_purge_that_waited_for_a_rotation_is_fenced(works: Works):
    """It has no code to answer with, so it raises."""
    finished(works)
    engine = works.engine("work_retention")
    with pytest.raises(psycopg.Error) as fenced:
        answer_after_a_rotation(works.store, engine, lambda: purge(works, engine))
    assert fenced.value.sqlstate == "OC004"
    assert works.value("select count(*) from onecommit.work_payload") == 1
