"""Work at full size: which plan discovery has, and how long contention lasts. Gates, not promises of speed.

That concurrent owners of migrations serialize, that a cancelled waiter leaks no lock and that a terminated session can
try again stands in tests/schema/test_locks.py.
"""

import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.catalog.plans import SETTINGS, Node, Plans, nodes_of
from tests.logins import PASSWORD
from tests.works import Runtime, Works

pytestmark = [pytest.mark.pg, pytest.mark.timeout(400)]

SECONDS = 30
CLAIMERS = 32
CONNECTIONS = 8
INDEX = "ix_work_contract_dispatch_lookup"
CONTRACTS = [f"contract-{n}" for n in range(10)]
LIMIT = 50
DISCOVER = "select * from onecommit.discover_work_dispatch(%s, %s, %s)"


# --- discovery ---


def nested_plan(gate: Works) -> list[Node]:
    """The steps of the statement in the function, as auto_explain saw it run for the dispatcher's login."""
    observer, role = gate.store.observer, gate.logins.role("work_dispatcher")
    observer.execute(f"alter role {role} set session_preload_libraries = 'auto_explain'")
    for name, value in SETTINGS.items():
        observer.execute(f"alter role {role} set auto_explain.{name} = '{value}'")
    plans = Plans()
    try:
        dsn = make_conninfo(gate.store.database.dsn, user=role, password=PASSWORD)
        with psycopg.connect(dsn, autocommit=True) as dispatcher:
            dispatcher.add_notice_handler(plans.add)
            for _ in range(7):  # the sixth time the plan may become a generic one
                found = dispatcher.execute(DISCOVER, (CONTRACTS, ["1"] * 10, LIMIT)).fetchall()
    finally:
        observer.execute(f"alter role {role} reset all")
    assert len(found) == LIMIT
    return plans.on("dispatch")


def body_plan(gate: Works) -> list[Node]:
    """Where the server has no auto_explain: the statement from the function's body, explained as its owner, generic."""
    body = gate.value("select prosrc from pg_proc where proname = 'discover_work_dispatch'")
    statement = re.search(r"return query\s+(select.*?);\s*end", body, re.DOTALL)[1]
    for number, name in enumerate(("p_names", "p_versions", "p_limit", "v_now"), start=1):
        statement = re.sub(rf"\b{name}\b", f"${number}", statement)
    owner = make_conninfo(
        gate.store.database.dsn, user=f"owner_{gate.store.database.name}", password=PASSWORD
    )
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"prepare look (text[], text[], integer, timestamptz) as {statement}")
        connection.execute("set plan_cache_mode = force_generic_plan")
        [[plan]] = connection.execute(
            psycopg.sql.SQL(
                "explain (analyze, timing off, format json) execute look ({}, {}, {}, now())"
            ).format(CONTRACTS, ["1"] * 10, LIMIT)
        ).fetchall()
    return list(nodes_of(plan[0]["Plan"], "dispatch"))


def has_auto_explain(gate: Works) -> bool:
    try:
        gate.store.observer.execute("load 'auto_explain'")
    except psycopg.Error:
        return False
    return True


@pytest.mark.parametrize("analyzed", [False, True], ids=["without statistics", "with statistics"])
def test_discovery_looks_up_each_contract_in_its_index(gate: Works, analyzed: bool):
    """Among 100,000 rows it reads no more than it may show of each contract, and sorts nothing else."""
    if analyzed:
        gate.store.observer.execute("analyze onecommit.dispatch")
    nodes = nested_plan(gate) if has_auto_explain(gate) else body_plan(gate)
    looks = [node for node in nodes if node.relation == "dispatch"]
    assert looks
    assert {node.index for node in looks} == {INDEX}
    assert max(node.rows for node in nodes) <= len(CONTRACTS) * LIMIT


# --- contention ---


def together(gate: Works, call: Callable[[Runtime, int], Any]) -> list[Any]:
    """The call for each of 32 claimers that start at once and share 8 connections."""
    engines: SimpleQueue[Any] = SimpleQueue()
    for _ in range(CONNECTIONS):
        engines.put(gate.engine("work_runtime"))
    start = threading.Barrier(CLAIMERS)

    def claimer(number: int) -> Any:
        start.wait()
        engine = engines.get()
        try:
            runtime = Runtime(engine, owner=number, epoch=gate.store.epoch)
            return call(runtime, number)
        finally:
            engines.put(engine)

    with ThreadPoolExecutor(CLAIMERS) as pool:
        answers = list(pool.map(claimer, range(1, CLAIMERS + 1)))
    gate.logins.release()
    return answers


def items(gate: Works, scope: str, count: int) -> list[tuple[int, int]]:
    rows = gate.store.observer.execute(
        "select work_id, revision from onecommit.work where scope_id = %s and eligible_at <= now() and state = 'pending'"
        " order by work_id limit %s",
        (scope, count),
    )
    return rows.fetchall()


@pytest.mark.parametrize("count", [1, 50])
def test_of_32_claimers_one_owns_the_lease(gate: Works, count: int):
    """Of one item and of each of many, asked for in both orders."""
    scope = f"scope-{count}"
    wanted = items(gate, scope, count)
    assert len(wanted) == count

    def claim(runtime: Runtime, number: int) -> list[Any]:
        order = wanted if number % 2 else wanted[::-1]
        return runtime.claim(*order, scope=scope)

    began = time.monotonic()
    answers = together(gate, claim)
    assert time.monotonic() - began <= SECONDS
    winners: dict[int, list[int]] = {work_id: [] for work_id, _ in wanted}
    for owner, rows in enumerate(answers, start=1):
        for row in rows:
            assert row.outcome in {"claimed", "lost"}
            if row.outcome == "claimed":
                winners[row.work_id].append(owner)
    stored = dict(
        gate.store.observer.execute(
            "select work_id, lease_owner from onecommit.work where work_id = any (%s)",
            ([work_id for work_id, _ in wanted],),
        ).fetchall()
    )
    assert {work_id: [owner] for work_id, owner in stored.items()} == winners


PROJECTED = """
select count(*), count(*) filter (where w.state = 'canceled_before_effect' and d.state = 'terminal'
                                  and d.expected_revision = w.revision and h.to_state = w.state and h.revision = w.revision)
from onecommit.work w join onecommit.dispatch d using (work_id)
left join onecommit.work_history h on h.work_id = w.work_id and h.event = 'disable'
where w.scope_id = 'many'
"""


def test_a_scope_with_10_000_items_is_disabled_while_32_claimers_run(gate: Works):
    """Every row and every history is projected, and no claim after it finds anything."""
    fill_one(gate)
    everything = items(gate, "many", 10_000)
    assert len(everything) == 10_000
    stop = threading.Event()
    operator = gate.engine("work_operator")

    def claim_until_disabled(runtime: Runtime, number: int) -> str:
        for start in range(number, 10_000, 20):
            [row, *_] = runtime.claim(*everything[start : start + 5], scope="many")
            if row.code == "ASDUR107":
                return row.code
            if number == 1 and start > 100:
                stop.set()
        return "done"

    def disable() -> Any:
        stop.wait(SECONDS)
        began = time.monotonic()
        [row] = operator.call(
            "disable_scope",
            p_scope_id="many",
            p_command_id="stop",
            p_generation=1,
            p_actor="a",
            p_reason="r",
        )
        return row, time.monotonic() - began

    with ThreadPoolExecutor(1) as pool:
        disabling = pool.submit(disable)
        codes = together(gate, claim_until_disabled)
    row, seconds = disabling.result()
    print(f"disabled in {seconds:.1f} s; claimers ended with {json.dumps(sorted(codes))}")
    assert (row.outcome, row.projected) == ("disabled", 10_000)
    assert seconds <= SECONDS
    assert "ASDUR107" in codes
    assert gate.store.observer.execute(PROJECTED).fetchone() == (10_000, 10_000)


def fill_one(gate: Works) -> None:
    """10,000 due items in one scope, made from the first contract's shape."""
    gate.store.observer.execute(
        "insert into onecommit.scope (scope_id, created_at) values ('many', now())"
    )
    columns = (
        "contract_name, contract_version, exit_aware, codec, classification, retention_id, payload_sha256, safety,"
        " retry_algorithm, max_attempts, max_elapsed_us, initial_delay_us, max_delay_us, lease_us, renewal_us, max_lease_us,"
        " fingerprint_schema, fingerprint, accepted_at, scope_generation, epoch"
    )
    gate.store.observer.execute(
        f"insert into onecommit.work (scope_id, command_id, idempotency_key, {columns}, eligible_at)"
        f" select 'many', 'c' || i, 'k' || i, {columns}, now() from generate_series(1, 10000) i,"
        " (select * from onecommit.work where scope_id = 'scope-100' limit 1) w"
    )
    gate.store.observer.execute(
        "insert into onecommit.work_payload (work_id, scope_id, payload)"
        " select work_id, scope_id, '{}' from onecommit.work where scope_id = 'many';"
        "insert into onecommit.dispatch (work_id, scope_id, contract_name, contract_version, due_at, discover_at,"
        " expected_revision, priority) select work_id, scope_id, contract_name, contract_version, eligible_at, eligible_at, 1, 0"
        " from onecommit.work where scope_id = 'many'"
    )
