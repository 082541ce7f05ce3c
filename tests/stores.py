"""One store for each major, emptied before each test: a fresh database would cost more than most tests do."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from tests import observe
from tests.clusters import Cluster, Database
from tests.engine import Engine

EPOCH = "select active_epoch from onecommit.store_status()"
# Rows of these say what the store is, not what it holds.
KEPT = (
    "store_metadata",
    "schema_migration",
    "routine_install",
    "runtime_epoch_history",
    "lane",
    "queue",
)

EMPTY = f"""
do $$
declare
    v_table regclass;
begin
    for v_table in
        select c.oid from pg_class c
        where c.relnamespace = 'onecommit'::regnamespace and c.relkind = 'r' and c.relname <> all ('{{{",".join(KEPT)}}}')
          and pg_relation_size(c.oid) > 0
        order by exists (select from pg_constraint k where k.conrelid = c.oid and k.contype = 'f') desc
    loop
        execute format('delete from %s', v_table);
    end loop;
    insert into onecommit.ring default values;
    insert into onecommit.chapter (chapter) values (1);
    insert into onecommit.leader default values;
    perform setval('onecommit.head_fence', 1, true), setval('onecommit.tail_fence', 1, true), setval('onecommit.caller_owned_fence', 1, true);
    perform setval(l.number_seq, 1, false), setval(l.generation_seq, 1), setval(l.sleeper_seq, 0)
    from onecommit.lane l where l.queue is not null or l.lane = 0;
    update onecommit.lane set queue = null, priority = null, frontier = 0, old_holes = '{{}}', new_holes = '{{}}', label = 0, settled = 0
    where queue is not null;
    delete from onecommit.queue;
    delete from app.invoice;
end $$
"""


@dataclass(kw_only=True)
class Store:
    """A database with the schema, and the connections of the test at hand."""

    database: Database
    observer: psycopg.Connection
    epoch: int
    _idle: list[psycopg.Connection] = field(default_factory=list)
    _used: list[psycopg.Connection] = field(default_factory=list)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(32))

    @classmethod
    def of(cls, database: Database) -> "Store":
        observer = database.connect()
        observer.execute("create schema if not exists app")
        observer.execute("create table if not exists app.invoice (job_id bigint)")
        return cls(
            database=database, observer=observer, epoch=observer.execute(EPOCH).fetchone()[0]
        )

    def engine(self, queue: str = "q") -> Engine:
        """A connection that is this test's until it ends."""
        connection = self._idle.pop() if self._idle else self.database.connect()
        self._used.append(connection)
        return Engine(connection, epoch=self.epoch, queue=queue)

    def background(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
        """Run a call that may have to wait for another connection."""
        return self._threads.submit(call, *args, **kwargs)

    @contextmanager
    def blocked(
        self,
        engine: Engine,
        call: Callable[..., Any],
        *args: Any,
        by: Engine | None = None,
        **kwargs: Any,
    ) -> Iterator[Future]:
        """A call that was seen to wait, for a lock of `by` if given; the block lets it go on."""
        future = self.background(call, *args, **kwargs)
        self._see_blocked(future, engine.pid, by.pid if by else None)
        yield future
        future.exception(timeout=observe.PATIENCE_SECONDS)

    def _see_blocked(self, future: Future, pid: int, by: int | None) -> None:
        """Like observe.wait_until_blocked, but a call that returned will not wait any more."""
        for _ in range(int(observe.PATIENCE_SECONDS / observe.PAUSE_SECONDS)):
            if self.observer.execute(observe.BLOCKED, {"pid": pid, "by": by}).fetchone()[0]:
                return
            done, _ = wait([future], timeout=observe.PAUSE_SECONDS)
            assert not done, f"the call did not wait: {future.exception() or future.result()}"
        raise AssertionError(f"backend {pid} neither waited nor returned")

    def empty(self) -> None:
        """Forget all jobs, queues, workers and chapters; keep the epoch."""
        self.observer.execute(EMPTY)

    def truncate_ring(self) -> None:
        """Give the chapters' files back too: a chapter counts as empty by its size."""
        self.observer.execute("truncate onecommit.ready, onecommit.claim, onecommit.completion")

    def release(self) -> None:
        """Take the connections back; end those that still wait for something."""
        for connection in self._used:
            if connection.info.transaction_status == TransactionStatus.ACTIVE:
                self.observer.execute(
                    "select pg_terminate_backend(%s)", (connection.info.backend_pid,)
                )
                connection.close()
            elif not connection.closed:
                connection.rollback()
                connection.execute("select pg_advisory_unlock_all()")
                connection.execute("unlisten *")
                connection.execute("reset all")
                self._idle.append(connection)
        self._used.clear()

    def close(self) -> None:
        self._threads.shutdown(wait=False)
        for connection in (*self._idle, *self._used, self.observer):
            connection.close()


@pytest.fixture(scope="session")
def shared_store(postgres: Cluster) -> Iterator[Store]:
    """The store that the tests of one major share."""
    with postgres.database(template=postgres.template) as database:
        store = Store.of(database)
        yield store
        store.close()


@pytest.fixture
def store(shared_store: Store) -> Iterator[Store]:
    """A store without jobs."""
    shared_store.empty()
    yield shared_store
    shared_store.release()


@pytest.fixture
def engine(store: Store) -> Engine:
    """A connection to an empty store."""
    return store.engine()
