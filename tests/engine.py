"""The SQL functions of the store, called as they stand: none of the package's Python lies in between."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import psycopg
from psycopg.rows import namedtuple_row

SCHEMA = "onecommit"
HOUR_US = 3_600_000_000
AUTHORITIES = ("receipt", "lease", "lease alone")

SIGNATURES = """
select p.proname, array_agg(a.name order by a.n), array_agg(format_type(a.type, null) order by a.n)
from pg_proc p
cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes)
    with ordinality a (type, name, mode, n)
where p.pronamespace = %s::regnamespace and coalesce(a.mode, 'i') = 'i'
group by p.oid, p.proname
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One claimed attempt with every field of its token."""

    chapter: int
    lane: int
    seq: int
    job_id: int
    run_lease: int
    claim_slot: int
    batch_id: int
    receipt_id: int
    batch_index: int
    number: int
    max_attempts: int
    kind: str
    args: str
    options: str | None

    @property
    def token(self) -> dict[str, int]:
        """The arguments that complete_job and attempt_status share."""
        fields = ("job_id", "run_lease", "claim_slot", "receipt_id", "batch_id", "batch_index")
        return {field: getattr(self, field) for field in fields}

    @property
    def place(self) -> tuple[int, int]:
        """What names the ready row for ever."""
        return self.lane, self.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The answer of one claim."""

    status: str
    batches: tuple[Any, ...]
    attempts: tuple[Attempt, ...]

    @property
    def job_ids(self) -> list[int]:
        """In the order in which they were handed out."""
        return [attempt.job_id for attempt in self.attempts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """The answer of one enqueue."""

    job_ids: list[int]
    created: list[bool] | None


class Engine:
    """One connection in autocommit mode; `begin` opens a transaction by hand."""

    _signatures: ClassVar[dict[str, dict[str, str]]] = {}

    def __init__(self, connection: psycopg.Connection, *, epoch: int, queue: str = "q") -> None:
        self.connection = connection
        self.epoch = epoch
        self.queue = queue
        self.worker: int | None = None
        self._request = 0
        if not self._signatures:
            rows = connection.execute(SIGNATURES, (SCHEMA,)).fetchall()
            self._signatures.update(
                {name: dict(zip(names, types, strict=True)) for name, names, types in rows}
            )

    # --- the connection ---

    @property
    def pid(self) -> int:
        """The server process."""
        return self.connection.info.backend_pid

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Rows of a statement, unqualified names standing for the store's."""
        cursor = self.connection.cursor(row_factory=namedtuple_row)
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *values: Any) -> Any:
        """The only value of a statement."""
        return self.sql(statement, *values)[0][0]

    def begin(self, isolation: str = "read committed") -> "Engine":
        """Open a transaction."""
        self.connection.execute(f"begin isolation level {isolation}")
        return self

    def commit(self) -> None:
        self.connection.execute("commit")

    def rollback(self) -> None:
        """End the transaction, also a failed one."""
        self.connection.rollback()

    @contextmanager
    def open(self, isolation: str = "read committed") -> Iterator["Engine"]:
        """A transaction that commits at the end of the block unless it was ended inside."""
        self.begin(isolation)
        try:
            yield self
        except BaseException:
            self.rollback()
            raise
        if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self.commit()

    def call(self, function: str, **arguments: Any) -> list[Any]:
        """Rows of `select * from function(…)`, each argument cast to its declared type."""
        types = self._signatures.get(function, {})
        if "p_epoch" in types:
            arguments.setdefault("p_epoch", self.epoch)
        parts = (f"{name} => %({name})s::{types[name]}" for name in arguments)
        cursor = self.connection.cursor(row_factory=namedtuple_row)
        cursor.execute(f"select * from {SCHEMA}.{function}({', '.join(parts)})", arguments)
        return cursor.fetchall()

    # --- producers ---

    def enqueue(
        self,
        count: int = 1,
        *,
        queue: str | None = None,
        kinds: Sequence[str] = ("k",),
        args: Sequence[str] | None = None,
        options: Any = None,
    ) -> Enqueued:
        """Enqueue jobs with one options object for all, or a list of them."""
        row = self.call(
            "enqueue_jobs",
            p_queue=self.queue if queue is None else queue,
            p_kinds=list(kinds),
            p_args=[json.dumps({"n": n}) for n in range(count)] if args is None else list(args),
            p_options=None if options is None else json.dumps(options),
        )[0]
        return Enqueued(job_ids=row.job_ids, created=row.created)

    def enqueue_one(
        self,
        *,
        queue: str | None = None,
        kind: str | None = "k",
        args: str | None = '{"n": 0}',
        **options: Any,
    ) -> int:
        """The id of one new job, by enqueue_job if its options allow."""
        if options.keys() & {"run_at", "delay_us", "unique", "after"}:
            return self.enqueue(queue=queue, kinds=[kind], args=[args], options=options).job_ids[0]
        travelling = {k: v for k, v in options.items() if k not in ("priority", "max_attempts")}
        rows = self.call(
            "enqueue_job",
            p_queue=self.queue if queue is None else queue,
            p_kind=kind,
            p_args=args,
            p_priority=options.get("priority", 2),
            p_max_attempts=options.get("max_attempts", 20),
            p_options=json.dumps(travelling) if travelling else None,
        )
        return rows[0][0]

    # --- workers ---

    def register(
        self, *, queues: Sequence[str] = (), capabilities: Sequence[str] = ("caller_owned_v1",)
    ) -> int:
        """Become a new incarnation."""
        info = {"queues": list(queues) or [self.queue], "capabilities": list(capabilities)}
        self.worker = self.call("register_worker", p_name="w", p_info=json.dumps(info))[0][0]
        self._request = 0
        return self.worker

    def claim(
        self,
        limit: int = 100,
        *,
        request: int | None = None,
        queue: str | None = None,
        lifetime_us: int | None = None,
        sleep: bool | None = None,
        worker: int | None = None,
    ) -> Claimed:
        """Claim under the next request number, or again under an old one."""
        if self.worker is None and worker is None:
            self.register()
        if request is None:
            self._request += 1
            request = self._request
        rows = self.call(
            "claim_jobs",
            p_worker=worker or self.worker,
            p_request=request,
            p_queue=queue or self.queue,
            p_limit=limit,
            p_lifetime_us=lifetime_us,
            p_sleep=sleep,
        )
        *batches, summary = rows
        assert all(batch.status == "claimed" for batch in batches)
        return Claimed(
            status=summary.status,
            batches=tuple(batches),
            attempts=tuple(attempt for batch in batches for attempt in attempts_of(batch)),
        )

    def drain(self, *, queue: str | None = None, limit: int = 100) -> list[Attempt]:
        """Everything that can be claimed, until several claims in a row found nothing."""
        taken: list[Attempt] = []
        nothing = 0
        while nothing < 5:
            claimed = self.claim(limit, queue=queue)
            taken.extend(claimed.attempts)
            nothing = 0 if claimed.attempts else nothing + 1
        return taken

    def take(self, count: int = 1, **options: Any) -> list[Attempt]:
        """Enqueue jobs and claim exactly those."""
        job_ids = self.enqueue(count, options=options or None).job_ids
        claimed = self.claim(count)
        assert claimed.job_ids == job_ids
        return list(claimed.attempts)

    def heartbeat(self, oldest_request: int = 1) -> Any:
        return self.call("heartbeat_worker", p_worker=self.worker, p_oldest_request=oldest_request)[
            0
        ]

    def retire(self, worker: int | None = None) -> None:
        self.call("retire_worker", p_worker=worker or self.worker)

    # --- closing ---

    def complete(
        self,
        attempts: Sequence[Attempt],
        *,
        details: Sequence[str | None] | None = None,
        side: Sequence[int] = (),
    ) -> list[str]:
        """What complete_jobs says of each attempt: closed, or a loser's verdict."""
        losers = self.call(
            "complete_jobs",
            **_places(attempts),
            p_details=list(details) if details is not None else [None] * len(attempts),
            p_side=list(side),
        )
        return _verdicts(attempts, losers)

    def completed(self, attempts: Sequence[Attempt]) -> list[bool]:
        """Which of these attempts of one chapter are completed."""
        [chapter] = {attempt.chapter for attempt in attempts}
        rows = self.call(
            "completed_attempts",
            p_chapter=chapter,
            p_lanes=[attempt.lane for attempt in attempts],
            p_seqs=[attempt.seq for attempt in attempts],
        )
        found = {position for (position,) in rows}
        return [number in found for number, _ in enumerate(attempts, start=1)]

    def finish(
        self,
        attempts: Sequence[Attempt],
        outcome: str,
        *,
        delay_us: int = 0,
        code: str = "handler_error",
        detail: str | None = None,
        lock: bool = False,
    ) -> list[str]:
        """What finish_jobs says of each attempt: closed, or a loser's verdict."""
        count = len(attempts)
        losers = self.call(
            "finish_jobs",
            **_places(attempts),
            p_outcomes=[outcome] * count,
            p_delays_us=[delay_us] * count,
            p_codes=[code] * count,
            p_details=[detail] * count,
            p_lock=lock,
        )
        return _verdicts(attempts, losers)

    def close_with_follow_ups(
        self,
        attempts: Sequence[Attempt],
        outcome: str = "completed",
        *,
        follow_ups: Sequence[tuple[int, dict[str, Any]]] = (),
        side: Sequence[int] = (),
    ) -> list[str]:
        """What close_with_follow_ups says of each attempt; a follow-up is its owner's number and what differs."""
        count = len(attempts)
        jobs = [
            {"queue": "after", "kind": "f", "args": "{}", "options": None} | f
            for _, f in follow_ups
        ]
        losers = self.call(
            "close_with_follow_ups",
            **_places(attempts),
            p_outcomes=[outcome] * count,
            p_delays_us=[0] * count,
            p_codes=[None] * count,
            p_details=[None] * count,
            p_side=list(side),
            p_owners=[owner for owner, _ in follow_ups],
            p_queues=[job["queue"] for job in jobs],
            p_kinds=[job["kind"] for job in jobs],
            p_args=[job["args"] for job in jobs],
            p_options=[job["options"] for job in jobs],
        )
        return _verdicts(attempts, losers)

    def complete_job(self, attempt: Attempt, *, progress: Any = None) -> Any:
        """The receipt of a completion in this connection's transaction."""
        text = None if progress is None else json.dumps(progress)
        return self.call("complete_job", **attempt.token, progress=text)[0]

    def status(self, attempt: Attempt) -> Any:
        return self.call("attempt_status", **attempt.token)[0]

    def set_progress(self, attempts: Sequence[Attempt], data: Any) -> None:
        self.call(
            "set_progress",
            p_job_ids=[a.job_id for a in attempts],
            p_run_leases=[a.run_lease for a in attempts],
            p_data=[json.dumps(data)] * len(attempts),
        )

    # --- callbacks ---

    def callback(
        self, attempt: Attempt, *, name: str | None = None, timeout_us: int = HOUR_US
    ) -> str:
        """The id of a callback that the attempt registers."""
        token = {f"p_{field}": value for field, value in attempt.token.items()}
        return self.call(
            "register_callback", p_callback=None, **token, p_name=name, p_timeout_us=timeout_us
        )[0].callback_id

    def wait_for(self, attempt: Attempt, *callbacks: str) -> list[tuple[str, Any]]:
        """How those that are resolved were, with their payloads."""
        count = len(callbacks)
        rows = self.call(
            "await_callbacks",
            p_callbacks=list(callbacks),
            p_job_ids=[attempt.job_id] * count,
            p_run_leases=[attempt.run_lease] * count,
        )
        return [(r.resolution, r.payload and json.loads(r.payload)) for r in rows]

    def resume_external(self, callback: str, payload: Any = None) -> str:
        text = json.dumps(payload)
        return self.call("resume_external", p_callback=callback, p_payload=text)[0][0]

    def complete_external(self, callback: str, result: Any = None) -> str:
        text = json.dumps(result)
        return self.call("complete_external", p_callback=callback, p_result=text)[0][0]

    def fail_external(self, callback: str) -> str:
        return self.call("fail_external", p_callback=callback, p_reason="declined")[0][0]

    def retry_external(self, callback: str, *, delay_us: int = 0) -> str:
        return self.call(
            "retry_external", p_callback=callback, p_delay_us=delay_us, p_reason="busy"
        )[0][0]

    # --- maintenance ---

    def promote(self, limit: int = 1000) -> Any:
        return self.call("promote_jobs", p_limit=limit)[0]

    def rescue(self, *, window_us: int = HOUR_US, limit: int = 500) -> Any:
        return self.call("rescue_jobs", p_window_us=window_us, p_limit=limit)[0]

    def tend(self) -> tuple[str, int | None]:
        """The one step of ring maintenance that was made."""
        row = self.call("tend_ring")[0]
        return row.action, row.chapter

    def materialize(self, attempt: Attempt) -> bool:
        return self.call(
            "materialize_attempt",
            p_claim_slot=attempt.claim_slot,
            p_batch_id=attempt.batch_id,
            p_batch_index=attempt.batch_index,
        )[0][0]

    def under(self, authority: str, *attempts: Attempt) -> None:
        """Move the authority of attempts to where one of AUTHORITIES says."""
        if authority != "receipt":
            assert all(self.materialize(attempt) for attempt in attempts)
        if authority == "lease alone":  # as when the chapter of their claims was reclaimed
            batches = [attempt.batch_id for attempt in attempts]
            self.sql(f"delete from {SCHEMA}.claim where batch_id = any (%s)", batches)

    # --- operators and readers ---

    def cancel(self, *job_ids: int) -> dict[int, str]:
        rows = self.call("cancel_jobs", p_job_ids=list(job_ids), p_actor="a", p_reason="r")
        return {row.job_id: row.result for row in rows}

    def retry_dead(self, *job_ids: int) -> dict[int, str]:
        rows = self.call("retry_dead_jobs", p_job_ids=list(job_ids), p_actor="a", p_reason="r")
        return {row.job_id: row.result for row in rows}

    def purge_dead(self, *job_ids: int) -> dict[int, str]:
        rows = self.call("purge_dead_jobs", p_job_ids=list(job_ids), p_actor="a", p_reason="r")
        return {row.job_id: row.result for row in rows}

    def pause(self, queue: str | None = None) -> None:
        self.call("pause_queue", p_queue=queue or self.queue, p_actor="a", p_reason="r")

    def resume(self, queue: str | None = None) -> None:
        self.call("resume_queue", p_queue=queue or self.queue, p_actor="a", p_reason="r")

    def job(self, job_id: int) -> Any | None:
        """The job as get_job shows it."""
        return next(iter(self.call("get_job", p_job_id=job_id)), None)

    def state(self, job_id: int) -> str | None:
        job = self.job(job_id)
        return job.state if job else None

    def lane_state(self, lane: int) -> Any:
        """Frontier, holes, label and settled generation as the newest claim left them."""
        return self.call("lane_state", p_lane=lane)[0]


def attempts_of(batch: Any) -> Iterator[Attempt]:
    """The attempts of one claimed batch."""
    for i, job_id in enumerate(batch.job_ids):
        yield Attempt(
            chapter=batch.chapters[i],
            lane=batch.lane,
            seq=batch.seqs[i],
            job_id=job_id,
            run_lease=batch.run_leases[i],
            claim_slot=batch.claim_slot,
            batch_id=batch.batch_id,
            receipt_id=batch.receipt_id,
            batch_index=i + 1,
            number=batch.attempts[i],
            max_attempts=batch.max_attempts[i],
            kind=batch.kinds[i],
            args=batch.args[i],
            options=batch.options[i],
        )


def _places(attempts: Sequence[Attempt]) -> dict[str, list[int]]:
    return {
        "p_chapters": [a.chapter for a in attempts],
        "p_lanes": [a.lane for a in attempts],
        "p_seqs": [a.seq for a in attempts],
        "p_job_ids": [a.job_id for a in attempts],
        "p_run_leases": [a.run_lease for a in attempts],
    }


def _verdicts(attempts: Sequence[Attempt], losers: Sequence[Any]) -> list[str]:
    verdicts = ["closed"] * len(attempts)
    for loser in losers:
        verdicts[loser.item - 1] = loser.verdict
    return verdicts
