"""Many items of Work at once, as accept_work would have left them."""

from tests.stores import Store

SCOPES = """
insert into onecommit.scope (scope_id, created_at) select 'scope-' || s, now() from generate_series(1, %(scopes)s) s
"""
# A tenth of the items is due, of every contract as many, the others in a day.
WORK = """
insert into onecommit.work (
    scope_id, command_id, idempotency_key, contract_name, contract_version, exit_aware, codec, classification, retention_id,
    payload_sha256, safety, retry_algorithm, max_attempts, max_elapsed_us, initial_delay_us, max_delay_us, lease_us, renewal_us,
    max_lease_us, fingerprint_schema, fingerprint, accepted_at, scope_generation, epoch, eligible_at)
select 'scope-' || s, 'c' || i, 'k' || i, 'contract-' || i %% 10, '1', false, 'json', 'c', 'r', sha256('{}'), 'provider_keyed',
       'exponential-v1', 8, 86400000000, 1000000, 900000000, 120000000, 30000000, 600000000, 1, sha256('f'), now(), 1, %(epoch)s,
       now() + case when i %% 100 < 10 then interval '0' else interval '1 day' end
from generate_series(1, %(scopes)s) s, generate_series(1, %(items)s) i
"""
BESIDE = """
insert into onecommit.work_payload (work_id, scope_id, payload) select work_id, scope_id, '{}' from onecommit.work;
insert into onecommit.dispatch (
    work_id, scope_id, contract_name, contract_version, due_at, discover_at, expected_revision, priority)
select work_id, scope_id, contract_name, contract_version, eligible_at, eligible_at, 1, 0 from onecommit.work;
"""


def fill(store: Store, *, scopes: int, items: int) -> None:
    """So many items in each of so many scopes, in a few statements."""
    values = {"scopes": scopes, "items": items, "epoch": store.epoch}
    store.observer.execute(SCOPES, values)
    store.observer.execute(WORK, values)
    store.observer.execute(
        "set session_replication_role = replica"
    )  # no look at the parent of each row
    store.observer.execute(BESIDE)
    store.observer.execute("reset session_replication_role")
