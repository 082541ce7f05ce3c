"""On a hundred thousand jobs every hot function looks rows up; what it reads depends on the batch, not on the ring.

Each runs on a session that made its plans while the store was empty, and on a new one; with statistics and without,
each of these for itself, whichever tests are chosen and whatever autovacuum would do meanwhile.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.catalog.plans import Plans, watched
from tests.clusters import Cluster
from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

JOBS = 100_000
BATCH = 100
# A batch may read each of its rows a few times in each of six chapters.
BATCH_ROWS = 30 * BATCH


CLAIM = 10_000
OPEN = 700
FILL = "select from onecommit.enqueue_jobs('q', '{k}', array_fill('{}'::text, array[%s]), null, %s)"
CLAIM_ALL = "select count(*) from onecommit.claim_jobs(%s, %s, 'q', %s, null, null, %s)"
CLOSE = f"""
select onecommit.complete_jobs(%s, chapters[{OPEN + 1}:], array_fill(lane, array[n]), seqs[{OPEN + 1}:], job_ids[{OPEN + 1}:],
                               run_leases[{OPEN + 1}:]::bigint[], array_fill(null::text, array[n]), '{{}}')
from onecommit.claim, lateral (select cardinality(seqs) - {OPEN} as n) rest where n > 0
"""
STILL_OPEN = f"""
select c.chapters[i] as chapter, c.lane, c.seqs[i] as seq, c.job_ids[i] as job_id, c.run_leases[i] as run_lease,
       c.slot as claim_slot, c.batch_id, c.receipt_id, i as batch_index, 1 as number, 20 as max_attempts, 'k' as kind,
       '{{}}' as args, null as options
from onecommit.claim c, generate_series(1, {OPEN}) i where cardinality(c.seqs) > {OPEN} order by c.batch_id, i
"""

KNOWN = """
select exists (select from pg_statistic where starelid = 'onecommit.ready_1'::regclass)
    or (select reltuples >= 0 from pg_class where oid = 'onecommit.ready_1'::regclass)
"""
UNATTENDED = """
do $$
declare
    v_child regclass;
begin
    for v_child in
        select inhrelid from pg_inherits
        where inhparent in ('onecommit.ready'::regclass, 'onecommit.claim'::regclass, 'onecommit.completion'::regclass)
    loop
        execute format('alter table %s set (autovacuum_enabled = off)', v_child);
    end loop;
end $$
"""


class Ring:
    """A lane with 100,000 jobs, of which few are open, and the sessions to try things with."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.warm = store.engine()
        self.warm.register()
        for operation in OPERATIONS.values():
            operation.run(self, self.warm, self.warm.take(BATCH))
            self.warm.drain()
        self.fill()
        self.open = iter(self.attempts)

    def fill(self) -> None:
        """Close all but a few thousand, spread over the lane; the arrays stay in the server."""
        for _ in range(JOBS // CLAIM):
            self.warm.sql(FILL, CLAIM, self.store.epoch)
        for request in range(JOBS // CLAIM):
            self.warm.sql(CLAIM_ALL, self.warm.worker, 10_000 + request, CLAIM, self.store.epoch)
        self.warm.sql(CLOSE, self.store.epoch)
        self.attempts = [Attempt(**row._asdict()) for row in self.warm.sql(STILL_OPEN)]

    def analyze(self) -> None:
        """Let the planner know, for the rest of the tests."""
        self.store.observer.execute(
            "analyze onecommit.ready, onecommit.claim, onecommit.completion, onecommit.lane"
        )

    @property
    def is_analyzed(self) -> bool:
        """Whether the planner knows anything of the jobs."""
        [(known,)] = self.store.observer.execute(KNOWN).fetchall()
        return known

    def take(self, count: int) -> list[Attempt]:
        return [next(self.open) for _ in range(count)]


class Operation:
    """A call, and how many rows its largest step may touch."""

    def __init__(
        self, run: Callable[[Ring, Engine, list[Attempt]], object], *, rows: int = BATCH_ROWS
    ) -> None:
        self.run = run
        self.rows = rows


def adopt(ring: Ring, engine: Engine, attempts: list[Attempt]) -> None:
    engine.enqueue(BATCH)
    claimed = engine.claim(BATCH)
    assert engine.claim(BATCH, request=engine._request).batches == claimed.batches


def rescue(ring: Ring, engine: Engine, attempts: list[Attempt]) -> None:
    """Of a worker that claimed one small batch."""
    lost = ring.store.engine()
    lost.register()
    engine.enqueue(BATCH)
    lost.claim(BATCH)
    lost.retire()
    engine.heartbeat(engine._request + 1)
    assert engine.rescue(limit=BATCH).rescued >= 1


OPERATIONS = {
    "enqueue one": Operation(lambda _, e, __: e.enqueue_one(), rows=10),
    "enqueue many": Operation(lambda _, e, __: e.enqueue(BATCH)),
    "claim": Operation(lambda _, e, __: (e.enqueue(BATCH), e.claim(BATCH))),
    "claim nothing": Operation(lambda _, e, __: e.drain(), rows=2 * BATCH_ROWS),
    "adopt": Operation(adopt),
    "complete": Operation(lambda _, e, a: e.complete(a)),
    "complete again": Operation(lambda _, e, a: (e.complete(a), e.complete(a))),
    "retry": Operation(lambda _, e, a: e.finish(a, "retried")),
    "retry with locks": Operation(lambda _, e, a: e.finish(a, "retried", lock=True)),
    "fail": Operation(lambda _, e, a: (e.finish(a, "failed"), e.finish(a, "discarded"))),
    "complete_job": Operation(lambda _, e, a: [e.complete_job(x) for x in a[:3]], rows=200),
    "attempt_status": Operation(lambda _, e, a: [e.status(x) for x in a[:3]], rows=200),
    "completed_attempts": Operation(lambda _, e, a: e.completed(a), rows=2 * BATCH_ROWS),
    "promote": Operation(lambda _, e, a: (e.finish(a, "snoozed"), e.promote(BATCH))),
    "rescue": Operation(rescue),
    "heartbeat": Operation(lambda _, e, __: e.heartbeat(), rows=200),
}


@pytest.fixture(scope="module")
def ring(postgres: Cluster) -> Iterator[Ring]:
    """In a database of its own, where nothing vacuums or analyzes the jobs, however long the tests take."""
    with postgres.database(template=postgres.template) as database:
        store = Store.of(database)
        store.observer.execute(UNATTENDED)
        # It is small and changes often, so in life autovacuum comes to it before the jobs.
        store.observer.execute("analyze onecommit.lane")
        yield Ring(store)
        store.close()


@pytest.fixture(scope="module", params=["old plans", "new plans", "new plans with statistics"])
def knowledge(ring: Ring, request: pytest.FixtureRequest) -> str:
    """What plans are made from; of the module, so that all tests without statistics come before the others."""
    if request.param.endswith("with statistics"):
        ring.analyze()
    assert ring.is_analyzed == request.param.endswith("with statistics")
    return request.param


@pytest.fixture
def session(ring: Ring, knowledge: str) -> Iterator[Engine]:
    """A worker's connection with plans of one age."""
    if knowledge == "old plans":
        yield ring.warm
        return
    engine = Engine(ring.store.database.connect(), epoch=ring.store.epoch)
    engine.register()
    yield engine
    engine.connection.close()


def run(ring: Ring, session: Engine, name: str) -> Plans:
    attempts = ring.take(BATCH)
    with watched(session) as plans:
        OPERATIONS[name].run(ring, session, attempts)
    return plans


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_read_depends_on_the_batch(ring: Ring, session: Engine, name: str):
    """No step of any statement goes through the ring, and none is compiled."""
    plans = run(ring, session, name)
    assert plans.largest.rows <= OPERATIONS[name].rows, plans.largest
    assert plans.jit == 0


def test_the_look_of_a_claim_reads_the_lane_in_order(ring: Ring, session: Engine):
    """From the primary key, without a sort."""
    look = run(ring, session, "claim").on("array_agg(r.seq) as numbers")
    assert {node.index for node in look if node.relation.startswith("ready")} == {
        f"ready_{n}_pkey" for n in range(6)
    }
    assert "Sort" not in {node.kind for node in look}


def test_a_claim_looks_no_further_than_it_must(ring: Ring, session: Engine):
    """Not at all when every number was seen; by its key, in one child, when one job is new."""
    session.drain()
    with watched(session) as idle:
        assert session.claim().status == "empty"
    job = session.enqueue_one()
    with watched(session) as one:
        assert session.claim().job_ids == [job]
    assert read_of_ready(idle) == set()
    assert read_of_ready(one) == {"ready_1"}


def read_of_ready(plans: Plans) -> set[str]:
    return {node.relation for node in plans.nodes if node.relation.startswith("ready")}


def test_complete_job_reads_the_claim_item_alone(ring: Ring, session: Engine):
    """By its batch; neither the ready row nor the completion that it has written."""
    plans = run(ring, session, "complete_job")
    used = {
        node.index
        for node in plans.nodes
        if node.relation.startswith(("ready", "claim", "completion"))
    }
    # PostgreSQL 18 may skip through the few lanes of the other index, which ends in the batch too.
    assert used - {""} <= {"claim_1_pkey", "claim_1_lane_batch_id_idx"}
    assert used - {""}


def summarize(ring: Ring) -> None:
    """As autovacuum does after a while."""
    for slot in range(6):
        ring.store.observer.execute(
            f"select brin_summarize_new_values('onecommit.ready_{slot}_first')"
        )


@pytest.mark.parametrize(
    ("state", "rows"),
    [(None, JOBS / 5), ("ready", JOBS / 5), ("completed", JOBS / 5), ("running", 2 * JOBS)],
)
def test_the_newest_jobs_are_listed_without_reading_the_ring(
    ring: Ring, session: Engine, state: str | None, rows: float
):
    """From the blocks of the newest ids; what runs, from the claims since a worker's oldest open one: here from all."""
    session.enqueue(10)
    if state != "ready":
        session.complete(session.claim(10).attempts)
    summarize(ring)
    with watched(session) as plans:
        listed = session.call(
            "list_jobs", p_state=state, p_queue=None, p_kind=None, p_limit=5, p_before=None
        )
    assert len(listed) == 5
    assert plans.largest.rows <= rows, plans.largest
    session.drain()


def test_jobs_are_told_by_their_tags_before_they_are_looked_up(ring: Ring, session: Engine):
    """Each look-up reads blocks of the ring: a tag that no job has is answered without any."""
    session.enqueue(10, options={"tags": ["import"]})
    summarize(ring)
    with watched(session) as plans:
        found = session.call(
            "unfinished_jobs", p_states=["ready"], p_queue=None, p_kind=None, p_tags=["other"], p_limit=5, p_before=None,
        )  # fmt: skip
    assert found == []
    assert plans.on("jobs_between") != []
    assert plans.on("job_views") == []
    session.drain()


def test_unfinished_jobs_are_found_without_reading_the_ring(ring: Ring, session: Engine):
    """As the newest ready ones are, whatever other states are asked for as well."""
    session.enqueue(10)
    summarize(ring)
    with watched(session) as plans:
        found = session.call(
            "unfinished_jobs", p_states=None, p_queue=session.queue, p_kind=None, p_tags=None, p_limit=5, p_before=None,
        )  # fmt: skip
    assert len(found) == 5
    assert plans.largest.rows <= 2 * JOBS, plans.largest
    session.drain()


@pytest.mark.parametrize("again", [False, True], ids=["first attempt", "later attempt"])
def test_a_job_is_found_without_reading_the_ring(ring: Ring, session: Engine, again: bool):
    """First attempts by BRIN, which narrows to a few blocks; later ones by their own index."""
    summarize(ring)
    attempts = ring.take(3)
    if again:
        session.finish(attempts, "snoozed")
        session.promote(JOBS)
    jobs = [attempt.job_id for attempt in attempts]
    with watched(session) as plans:
        assert {session.state(job) for job in jobs} == {"ready" if again else "running"}
        assert set(session.cancel(*jobs).values()) == {"cancelled"}
    assert plans.largest.rows <= JOBS / 10, plans.largest
    used = {node.index for node in plans.nodes}
    assert any(index.endswith("_first") for index in used)
    assert any(index.endswith("_again") for index in used)


def test_reclaim_reads_a_chapter_a_few_times(ring: Ring):
    """Counting is linear; joining rows with completions is not, when the plan is old."""
    tender = ring.warm
    tender.sql(
        "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0', evacuate_after = '0'"
    )
    with watched(tender) as plans:
        steps = [tender.tend()[0] for _ in range(3)]
    assert steps[0] == "rotate"
    assert plans.largest.rows <= 2 * JOBS, plans.largest
