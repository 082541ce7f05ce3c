"""Items of Work as accept_work and a worker leave them, put into the tables by SQL."""

from __future__ import annotations

from psycopg import AsyncConnection

_SCOPES = """
insert into onecommit.scope (scope_id, created_at)
select 'scope-' || s, now() - interval '2 days' from generate_series(0, %(scopes)s - 1) s on conflict do nothing
"""
_WORK = """
with made as (
    insert into onecommit.work (
        scope_id, command_id, idempotency_key, contract_name, contract_version, exit_aware, codec, classification,
        retention_id, payload_sha256, safety, retry_algorithm, max_attempts, max_elapsed_us, initial_delay_us,
        max_delay_us, lease_us, renewal_us, max_lease_us, fingerprint_schema, fingerprint, accepted_at, scope_generation,
        epoch, eligible_at, state, revision, attempt, lease_generation, terminal_at)
    select 'scope-' || i %% %(scopes)s, 'stored-' || i, 'stored-' || i,
           %(contract)s || case when %(contracts)s > 1 then '-' || i %% %(contracts)s else '' end, '1', false, 'json',
           'unclassified', 'default', sha256('{"n":1}'), 'provider_keyed', 'exponential-v1', 8, 86400000000, 1000000,
           900000000, 120000000, 30000000, 600000000, 1, sha256(i::text::bytea), now() - interval '1 day', 1, e.last_value,
           now() + case k.kind when 'done' then interval '-1 day' when 'due' then interval '-1 second' else interval '1 day' end,
           case k.kind when 'done' then 'succeeded' else 'pending' end, case k.kind when 'done' then 4 else 1 end,
           (k.kind = 'done')::integer, (k.kind = 'done')::integer,
           case k.kind when 'done' then now() - interval '1 day' end
    from generate_series(%(first)s::bigint, %(first)s + %(count)s - 1) i, onecommit.epoch_fence e,
         lateral (select hashint8(i)::bigint & 1023) h (share),
         lateral (select case when h.share < %(due)s * 1024 then 'due' when h.share < (%(due)s + %(waiting)s) * 1024
                              then 'waiting' else 'done' end) k (kind)
    returning *
), payload as (
    insert into onecommit.work_payload (work_id, scope_id, payload) select work_id, scope_id, '{"n":1}' from made
), dispatch as (
    insert into onecommit.dispatch (
        work_id, scope_id, contract_name, contract_version, state, due_at, discover_at, expected_revision, priority)
    select work_id, scope_id, contract_name, contract_version,
           case when terminal_at is null then 'available' else 'terminal' end, eligible_at,
           coalesce(terminal_at, eligible_at), revision, 0 from made
), result as (
    insert into onecommit.work_result (work_id, scope_id, codec, sha256, result)
    select work_id, scope_id, 'json', sha256('null'), 'null' from made where terminal_at is not null
), permit as (
    insert into onecommit.effect_permit (
        work_id, scope_id, attempt, lease_generation, scope_generation, epoch, lease_owner, activity_id, outcome, granted_at,
        invocation_admitted_at, closed_at)
    select work_id, scope_id, 1, 1, 1, epoch, 1, activity_id, 'known_succeeded', terminal_at, terminal_at, terminal_at
    from made where terminal_at is not null
)
insert into onecommit.work_history (
    work_id, scope_id, revision, event, from_state, to_state, attempt, lease_generation, scope_generation, epoch, lease_owner,
    command_id, at, observation_sha256)
select work_id, scope_id, e.revision, e.event, e.from_state, e.to_state, least(e.revision - 1, 1), least(e.revision - 1, 1),
       1, epoch, case when e.revision > 1 then 1 end, case when e.revision = 1 then command_id end, accepted_at,
       case when e.revision = 4 then fingerprint end
from made join (values (1, 'accepted', null, 'pending'), (2, 'claimed', null, 'leased'),
                       (3, 'permit_granted', 'leased', 'effect_permitted'),
                       (4, 'succeeded', 'effect_permitted', 'succeeded')) e (revision, event, from_state, to_state)
    on e.revision <= made.revision
"""
_CHUNK = 100_000


async def fill(
    dsn: str,
    *,
    contract: str,
    first: int,
    count: int,
    scopes: int,
    waiting: float,
    due: float = 0.0,
    contracts: int = 1,
) -> None:
    """Store so many items, numbered from `first`; those neither waiting until tomorrow nor due are done.

    With several contracts, `-0`, `-1` and so on are added to the name. The tables are vacuumed and analyzed.
    """
    async with await AsyncConnection.connect(dsn, autocommit=True) as admin:
        # No look at the parent of each row.
        await admin.execute("set session_replication_role = replica")
        await admin.execute("set synchronous_commit = off")
        await admin.execute(_SCOPES, {"scopes": scopes})
        for start in range(first, first + count, _CHUNK):
            values = {
                "contract": contract,
                "contracts": contracts,
                "scopes": scopes,
                "first": start,
                "count": min(_CHUNK, first + count - start),
                "waiting": waiting,
                "due": due,
            }
            await admin.execute(_WORK, values)
        await admin.execute("vacuum (analyze)")
