"""The one order of the locks of Work, and which of them an operation holds while it waits for one.

Schema, scope and command are advisory locks and stand in pg_locks. A row's lock does not: rows are tried with NOWAIT.
History is inserted last: as soon as an operation has begun to, its lock on the table is there.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from tests.engine import Engine
from tests.stores import Store
from tests.works import Works

ROWS = {
    "scope row": "scope",
    "work": "work",
    "dispatch": "dispatch",
    "permit": "effect_permit",
}
ORDER = ("schema", "scope", "command", "request", *ROWS, "history")
COMMAND = "decide"
"""The id of the command whose lock `HOLD` names."""
HOLD = {
    "schema": "select pg_advisory_xact_lock(onecommit.schema_lock_class(), 0)",
    "scope": "select pg_advisory_xact_lock(onecommit.lock_class('onecommit.scope'), onecommit.scope_key('tenant-1'))",
    "command": "select pg_advisory_xact_lock(onecommit.lock_class('onecommit.operator_command'),"
    f" onecommit.scope_key('tenant-1/{COMMAND}'))",
    # The second one of the first worker.
    "request": "select pg_advisory_xact_lock(onecommit.lock_class('onecommit.work'), onecommit.scope_key('1/2'))",
} | {name: f"select 1 from onecommit.{table} for update nowait" for name, table in ROWS.items()}
REACHED = """
select coalesce(array_agg(distinct case l.locktype
    when 'relation' then 'history'
    else case l.classid::regclass when 'onecommit.store_metadata'::regclass then 'schema'
                                  when 'onecommit.operator_command'::regclass then 'command'
                                  when 'onecommit.work'::regclass then 'request' else 'scope' end end), '{}')
from pg_locks l
where l.pid = %s and l.granted and (l.locktype = 'advisory'
    or l.relation = 'onecommit.work_history'::regclass and l.mode = 'RowExclusiveLock')
"""


def held_at(works: Works, lock: str, engine: Engine, call: Callable[[], Any]) -> set[str]:
    """What the call holds while it was seen to wait for somebody who holds this lock; then it goes on to its end."""
    holder = works.store.engine().begin()
    holder.sql(HOLD[lock])
    with works.store.blocked(engine, call, by=holder) as answer:
        held = reached(works, engine) | locked_rows(works, but=lock)
        holder.rollback()
    answer.result()
    return held


ROTATE = """
select onecommit.rotate_epoch((select store_id from onecommit.store_status()), %s, %s, 'ada', 'restored')
"""


@contextmanager
def rotation(store: Store) -> Iterator[Engine]:
    """Who is about to rotate the epoch, with the schema's lock; it rotates and commits at the end of the block.

    Not before: the new epoch shows at once, also to who has not waited for the commit.
    """
    operator = store.engine().begin()
    operator.sql(HOLD["schema"])
    yield operator
    operator.sql(ROTATE, store.epoch, store.epoch + 1)
    store.epoch += 1  # the store is shared: later tests begin in the new one
    operator.commit()


def answer_after_a_rotation(store: Store, engine: Engine, call: Callable[[], Any]) -> Any:
    """What a call says that was seen to wait for a rotation of the epoch, which then committed."""
    with ExitStack() as waiting, rotation(store) as operator:
        answer = waiting.enter_context(store.blocked(engine, call, by=operator))
    return answer.result()


def before(lock: str, taken: tuple[str, ...]) -> set[str]:
    """Of what an operation takes, what comes before this lock."""
    return set(ORDER[: ORDER.index(lock)]) & set(taken)


def reached(works: Works, engine: Engine) -> set[str]:
    """The advisory locks that a session holds, and whether it has written history."""
    return set(works.value(REACHED, engine.pid))


def locked_rows(works: Works, *, but: str = "") -> set[str]:
    """The rows that somebody has locked."""
    prober = works.store.engine()
    return {row for row in ROWS if row != but and _is_locked(prober, row)}


def _is_locked(prober: Engine, row: str) -> bool:
    try:
        prober.sql(HOLD[row])
    except psycopg.errors.LockNotAvailable:
        return True
    return False
