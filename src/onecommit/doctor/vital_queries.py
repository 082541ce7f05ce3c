"""The questions to PostgreSQL about what goes on; each parameter is the schema's name. Every role may ask them."""

from typing import LiteralString

CONNECTION: LiteralString = """
select pg_is_in_recovery(), pg_notification_queue_usage(), current_setting('max_connections')::integer, clock_timestamp()
"""

# Of others a role without pg_read_all_stats sees neither state nor transaction, nor what kind of process it is.
SESSIONS: LiteralString = """
select a.pid, a.usename::text as role, a.backend_type is null as is_hidden, a.state,
       clock_timestamp() - a.xact_start as age, coalesce(a.backend_xid, a.backend_xmin) is not null as has_snapshot
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.usesysid is not null
  and coalesce(a.backend_type, 'client backend') in ('client backend', 'walsender') order by a.pid
"""

# Of the sessions of the replication protocol only those without a slot, whose horizon is the slot's.
HOLDERS: LiteralString = """
select 'prepared transaction' as kind, x.gid as name, true as is_active, clock_timestamp() - x.prepared as age,
       age(x.transaction) as transactions
from pg_prepared_xacts x where x.database = current_database()
union all
select 'replication slot', s.slot_name::text, s.active, null, greatest(age(s.xmin), age(s.catalog_xmin))
from pg_replication_slots s
where coalesce(s.xmin, s.catalog_xmin) is not null and coalesce(s.database, current_database()) = current_database()
union all
select 'standby', r.application_name, true, null, age(r.backend_xmin) from pg_stat_replication r where r.backend_xmin is not null
order by 1, 2
"""

LOCKS: LiteralString = """
select l.pid, l.virtualtransaction as transaction, right(c.relname, 1)::integer as slot
from pg_locks l
join pg_class c on c.oid = l.relation
join pg_namespace n on n.oid = c.relnamespace
join pg_database d on d.oid = l.database and d.datname = current_database()
where n.nspname = %(schema)s and c.relname ~ '^(ready|claim|completion)_[0-5]$' and l.granted
  and l.pid is distinct from pg_backend_pid()
group by 1, 2, 3 order by 1, 2, 3
"""

MAY_ASK: LiteralString = """
select has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = %(schema)s and p.proname = %(routine)s and p.pronargs = 0
"""
