"""What a purge reads: what it takes, and once what it may never take."""

import pytest

from tests.catalog.plans import watched
from tests.engine import Engine
from tests.gates.filling import fill
from tests.stores import Store

pytestmark = pytest.mark.pg

END = """
update onecommit.work set state = 'succeeded', terminal_at = now() - interval '1 day';
update onecommit.dispatch set state = 'terminal', discover_at = now() - interval '1 day';
insert into onecommit.effect_permit (
    work_id, scope_id, attempt, lease_generation, scope_generation, epoch, lease_owner, activity_id, outcome, granted_at)
select work_id, scope_id, 1, 1, 1, epoch, 1, activity_id, 'ambiguous', now() from onecommit.work where work_id % 2 = 0;
"""


def purge(engine: Engine) -> int:
    """Of what has ended by now, 900 items at most."""
    now = engine.value("select now()")
    [[taken]] = engine.call(
        "purge_work", p_before=now, p_limit=900, p_actor="ada", p_reason="retention"
    )
    return taken


def rows_seen(engine: Engine) -> dict[str, float]:
    """What a purge takes, and how much it reads of the list and of permits."""
    with watched(engine) as plans:
        taken = purge(engine)
    listed = [node for node in plans.on("has_unresolved") if node.relation == "dispatch"]
    assert {node.index for node in listed} == {"ix_work_dispatch_terminal"}
    permits = [node.rows for node in plans.nodes if node.relation == "effect_permit"]
    return {"taken": taken, "listed": sum(n.rows for n in listed), "permits": sum(permits)}


def test_what_is_never_purged_is_read_once(store: Store):
    """However much of it there is, a later purge costs what it takes."""
    fill(store, scopes=2, items=1000)
    observer, engine = store.observer, store.engine()
    observer.execute("set session_replication_role = replica")  # no guard
    observer.execute(END)
    observer.execute("reset session_replication_role")
    observer.execute("analyze onecommit.dispatch, onecommit.effect_permit")
    assert purge(engine) == 900
    assert rows_seen(engine)["taken"] == 100
    assert purge(engine) == 0
    assert rows_seen(engine) == {"taken": 0, "listed": 0, "permits": 0}
    assert engine.value("select count(*) from onecommit.work_payload") == 1000
    assert engine.value("select count(*) from onecommit.work where purged_at is null") == 1000
