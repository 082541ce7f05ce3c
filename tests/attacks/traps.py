"""A hostile session: what it created stands first in its path under every name that the protocol uses, and records each visit."""

import re
from typing import ClassVar

import psycopg
from psycopg import sql

from tests.attacks.intruders import Target
from tests.engine import SCHEMA, Engine

# By name of its own, so that a type that stands in the way is not taken for PostgreSQL's.
SIGNATURES = """
select p.proname, array_agg(a.name order by a.n), array_agg(format('%%I.%%I', n.nspname, t.typname) order by a.n)
from pg_catalog.pg_proc p
cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes)
    with ordinality a (type, name, mode, n)
join pg_catalog.pg_type t on t.oid = a.type join pg_catalog.pg_namespace n on n.oid = t.typnamespace
where p.pronamespace = %s::regnamespace and coalesce(a.mode, 'i') = 'i'
group by p.oid, p.proname
"""
# A sequence keeps what a transaction that fails takes back. Whoever runs a trap as somebody else has got through.
TRAP = """
create function evil.trap() returns boolean language plpgsql as $$
begin
    if pg_catalog.nameeq(current_user, session_user) then
        perform pg_catalog.nextval('evil.sprung'::pg_catalog.regclass);
    else
        perform pg_catalog.nextval('evil.escaped'::pg_catalog.regclass);
    end if;
    return true;
end $$
"""
BASE = """
create sequence evil.sprung minvalue 0 start 0; create sequence evil.escaped minvalue 0 start 0;
grant usage on schema evil to public; grant usage on all sequences in schema evil to public;
"""
TYPES = ("text", "timestamptz", "jsonb", "json", "uuid", "bytea", "regclass", "name", "oid", "xid8", "int8multirange",
         "int8", "int4", "int2", "bool", "numeric", "record")  # fmt: skip
# Same operators for the same types, and some that PostgreSQL has only for others.
OPERATORS = """
select format('create function evil.op_%%s(%%s) returns %%s language plpgsql as ''begin perform evil.trap(); return null; end''', o.oid,
              concat_ws(', ', nullif(o.oprleft, 0)::regtype, o.oprright::regtype), o.oprresult::regtype),
       format('create operator evil.%%s (%%s, function = evil.op_%%s)', o.oprname,
              concat_ws(', ', 'leftarg = ' || nullif(o.oprleft, 0)::regtype, 'rightarg = ' || o.oprright::regtype), o.oid)
from pg_operator o
where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprcode <> 0
  and (o.oprleft = 0 or o.oprleft::regtype::text = any (%(types)s)) and o.oprright::regtype::text = any (%(types)s)
"""
OPERAND_TYPES = ["boolean", "smallint", "integer", "bigint", "text", "timestamp with time zone", "interval", "jsonb", "json", "uuid", "bytea",
                 "oid", "xid", "xid8", "numeric", "double precision", "name", "int8multirange", "int8range", "anyarray", "anyelement",
                 "anycompatiblearray", "anycompatible", "anymultirange", "anyrange", "anyenum", "record", "tid"]  # fmt: skip
EXACT = [(left, name, right) for left, right in (("smallint", "bigint"), ("integer", "bigint"), ("bigint", "integer"), ("bigint[]", "bigint[]"),
         ("text[]", "text[]"), ("smallint[]", "smallint[]"), ("integer[]", "integer[]"), ("regclass", "regclass"), ("xid", "xid"),
         ("text", "name"), ("name", "text")) for name in ("=", "<>", "<", ">")]  # fmt: skip
# Functions by the names that our bodies call, under the very same arguments; aggregates become plain functions.
FUNCTIONS = """
select format('create function evil.%%I(%%s) returns %%s language plpgsql as ''begin perform evil.trap(); return%%s; end''', p.proname,
              pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid), case when p.proretset or p.prorettype = 'void'::regtype then '' else ' null' end)
from pg_proc p
where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any (%(names)s) and p.prorettype <> 'trigger'::regtype
"""
BETTER = ("format(text, text) returns text", "format(text, smallint) returns text", "format(text, text, smallint) returns text",
          "format(text, integer) returns text", "count(bigint) returns bigint", "count(integer) returns bigint",
          "coalesce(bigint, bigint) returns bigint", "unnest(bigint[]) returns setof bigint", "unnest(smallint[]) returns setof smallint",
          "unnest(text[]) returns setof text", "unnest(integer[]) returns setof integer", "array_agg(bigint) returns bigint[]",
          "array_agg(text) returns text[]", "cardinality(bigint[]) returns integer", "cardinality(text[]) returns integer",
          "array_position(bigint[], bigint) returns integer", "array_position(text[], text) returns integer", "to_jsonb(text) returns jsonb",
          "pg_notify(text, bigint) returns void", "setval(regclass, integer) returns bigint", "setval(regclass, integer, boolean) returns bigint",
          "jsonb_build_object(text, text) returns jsonb", "json_build_object(text, text) returns json", "max(bigint) returns bigint",
          "min(bigint) returns bigint", "sum(bigint) returns numeric", "sum(integer) returns bigint", "hashtext(text) returns integer")  # fmt: skip
PATH = "set search_path = pg_temp, evil, pg_catalog, onecommit"
TEMPORARY = ("pg_class", "pg_roles", "pg_namespace", "pg_stat_activity", "pg_database", "pg_locks", "pg_proc", "pg_inherits", "pg_trigger",
             "pg_rewrite")  # fmt: skip


class HostileEngine(Engine):
    """A session under the hostile path, and which operations it called."""

    _signatures: ClassVar[dict[str, dict[str, str]]] = {}

    def __init__(self, connection: psycopg.Connection, *, epoch: int) -> None:
        if not self._signatures:
            rows = connection.execute(SIGNATURES, (SCHEMA,)).fetchall()
            self._signatures.update(
                {name: dict(zip(names, types, strict=True)) for name, names, types in rows}
            )
        self.called: set[str] = set()
        super().__init__(connection, epoch=epoch)

    def call(self, function: str, **arguments):
        self.called.add(function)
        return super().call(function, **arguments)


def hostile(target: Target, *capabilities: str) -> HostileEngine:
    """A login's session with its traps, which it made itself: what it may not make, it has not."""
    name = target.name(*capabilities)
    target.admin.execute(
        sql.SQL("grant create, temporary on database {} to {}").format(
            sql.Identifier(target.store.database.name), name
        )
    )
    engine = target.engine(*capabilities)
    target.do("drop schema if exists evil cascade")
    engine.connection.execute("create schema evil")
    engine.connection.execute(BASE)
    engine.connection.execute(TRAP)
    made = sum(
        _made(engine.connection, statement) for statement in _statements(target, engine.connection)
    )
    assert made > 1000, made
    opened = HostileEngine(engine.connection, epoch=engine.epoch)
    opened.connection.execute(PATH)
    return opened


def visits(target: Target) -> tuple[int, int]:
    """How often a trap was sprung by its own owner, and by somebody else."""
    row = target.admin.execute(
        "select coalesce(pg_sequence_last_value('evil.sprung'), -1) + 1, coalesce(pg_sequence_last_value('evil.escaped'), -1) + 1"
    )
    return row.fetchone()


def _made(connection: psycopg.Connection, statement: str) -> bool:
    try:
        connection.execute(statement)
    except psycopg.Error:
        return False
    return True


def _statements(target: Target, connection: psycopg.Connection) -> list[str]:
    bodies = " ".join(
        text
        for (text,) in target.admin.execute(
            "select prosrc from pg_proc where pronamespace = 'onecommit'::regnamespace"
        )
    )
    names = sorted(
        set(re.findall(r"\b(\w+)\s*\(", bodies))
        | {"now", "hashtext", "pg_notify", "setval", "array_agg", "unnest"}
    )
    statements = [
        text for pair in connection.execute(OPERATORS, {"types": OPERAND_TYPES}) for text in pair
    ]
    for number, (left, operator, right) in enumerate(EXACT):
        statements += [
            f"create function evil.exact_{number}({left}, {right}) returns boolean language plpgsql as 'begin perform evil.trap(); return null; end'",
            f"create operator evil.{operator} (leftarg = {left}, rightarg = {right}, function = evil.exact_{number})",
        ]
    statements += [text for (text,) in connection.execute(FUNCTIONS, {"names": names})]
    statements += [
        f"create function evil.{text} language plpgsql as 'begin perform evil.trap(); return{'' if 'setof' in text or 'void' in text else ' null'}; end'"
        for text in BETTER
    ]
    relations = [
        name
        for (name,) in target.admin.execute(
            "select relname from pg_class where relnamespace = 'onecommit'::regnamespace and relkind in ('r', 'p')"
        )
    ]
    statements += [
        f"create temporary view {name} as select evil.trap() as {name}"
        for name in (*relations, *TEMPORARY)
    ]
    for place in ("pg_temp", "evil"):
        statements += [
            f"create domain {place}.{name} as {'pg_catalog.text' if name == 'record' else 'pg_catalog.' + name} check (evil.trap())"
            for name in TYPES
        ]
    return statements
