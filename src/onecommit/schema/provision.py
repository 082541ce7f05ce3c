"""SQL that makes the roles of a store, for an operator to review and run, again and again."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from onecommit.errors import InvalidArgument
from onecommit.schema.grants import capabilities, grants
from onecommit.schema.lock import migration_lock
from onecommit.schema.naming import DEFAULT_SCHEMA, MAX_BYTES, checked_schema_name, render

MIGRATOR = "migrator"
EXECUTION = "execution"
_REFUSED_NAMES = ("public", "none", "current_user", "current_role", "session_user")
_REFUSED = re.compile(
    r"[\x00-\x1f\x7f$@\\]"
)  # the name also stands in literals and dollar-quoted bodies


class Profile(StrEnum):
    """How much of the store a stolen login could reach."""

    STRICT = "strict"
    SINGLE = "single"


def provision(
    roles: Mapping[str, str] | None = None,
    *,
    schema: str = DEFAULT_SCHEMA,
    profile: Profile | str = Profile.STRICT,
) -> str:
    """One transaction of SQL that creates the roles, and gives each what its capability needs and nothing else.

    Run it before the first migration and after each one: a second run changes nothing. It waits two seconds for a lock, then
    fails and has changed nothing. It sets no password and lets
    nobody log in. The same arguments give the same text; no connection is needed.

    Args:
        roles: The role's name for a capability of the manifest, for `migrator` (the owner of the schema) or for
            `execution` (as whom the definers run); a name that is not given is `onecommit_` and the capability.
        schema: The schema's name.
        profile: `single` makes the migrator only, and is not strict: who logs in as it may do everything.
    """
    checked_schema_name(schema)
    profile = _checked_profile(profile)
    names = _names(roles or {}, profile)
    head, *parts = _strict(names, schema) if profile is Profile.STRICT else _single(names)
    settled = _SETTLED.replace("@lock@", str(migration_lock(schema).key[0]))
    return render("\n\n".join([head, "begin;", settled, *parts, "commit;"]) + "\n", schema)


def _strict(names: Mapping[str, str], schema: str) -> Iterator[str]:
    groups = {c: name for c, name in sorted(names.items()) if c not in (MIGRATOR, EXECUTION)}
    yield _STRICT_HEAD
    yield from (_CREATE_ROLE.replace("@role@", _literal(name)) for _, name in sorted(names.items()))
    yield _owners(_MEMBERSHIP + _MEMBER_OF_MIGRATOR + _SCHEMA + _DEFAULTS, names)
    text = grants({name: [capability] for capability, name in groups.items()}, schema=schema)
    revokes = "\n".join(_REVOKE.replace("@role@", _quoted(name)) for name in groups.values())
    yield _owners(
        _INSTALLED.replace(
            "@body@", f"{_OWNERSHIP}\n{_DEFINERS}\n{_PRIVILEGES}\n{revokes}\n{text}"
        ),
        names,
    )


def _single(names: Mapping[str, str]) -> Iterator[str]:
    yield _SINGLE_HEAD
    yield _CREATE_ROLE.replace("@role@", _literal(names[MIGRATOR]))
    yield _owners(_MEMBER_OF_MIGRATOR + _SCHEMA, names)
    yield _owners(_INSTALLED.replace("@body@", _OWNERSHIP.replace("'@execution@'", "null")), names)


def _names(roles: Mapping[str, str], profile: Profile) -> dict[str, str]:
    known = {MIGRATOR} if profile is Profile.SINGLE else {MIGRATOR, EXECUTION, *capabilities()}
    if unknown := set(roles) - known:
        raise _refused(f"there is no {min(unknown)}; known are {', '.join(sorted(known))}")
    names = {each: roles.get(each, f"onecommit_{each}") for each in known}
    for capability, name in names.items():
        if not name or len(name.encode()) > MAX_BYTES or _REFUSED.search(name):
            raise _refused(
                f"{capability}: a name has 1 to {MAX_BYTES} bytes, without '$', '@' and backslash"
            )
        if name.lower() in _REFUSED_NAMES or name.lower().startswith("pg_"):
            raise _refused(f"{capability}: choose a role of its own, not one of PostgreSQL's")
    if len(set(names.values())) < len(names):
        raise _refused(
            "each capability needs a role of its own; a login can be a member of several"
        )
    return names


def _checked_profile(profile: Profile | str) -> Profile:
    try:
        return Profile(profile)
    except ValueError:
        raise InvalidArgument("profile: must be strict or single", field="profile") from None


def _refused(why: str) -> InvalidArgument:
    return InvalidArgument(f"roles: {why}", field="roles")


def _owners(text: str, names: Mapping[str, str]) -> str:
    for role in (MIGRATOR, EXECUTION):
        if role in names:
            text = text.replace(f"'@{role}@'", _literal(names[role]))
            text = text.replace(f'"@{role}@"', _quoted(names[role]))
    return text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


# Who waits for a table would hold up everybody behind; a migration that runs is not met half-way.
_SETTLED = """\
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;
set local lock_timeout = '2s';
do $provision$
begin
    perform pg_advisory_xact_lock(@lock@);
end $provision$;"""

_STRICT_HEAD = """\
-- Roles of Onecommit, strict profile, schema "@schema@". Run it over a direct connection as a superuser, or as a role with
-- CREATEROLE that may create schemas here; before the first migration, and again after each one.
-- Every role is a NOLOGIN group: create the logins yourself and make each a member of what it needs."""

_SINGLE_HEAD = """\
-- Role of Onecommit, single profile, schema "@schema@". NOT STRICT: the login that runs jobs owns the store, so whoever
-- has its password may read, change and drop everything. For development; production takes the strict profile."""

_CREATE_ROLE = """\
do $provision$
begin
    if not exists (select from pg_roles where rolname = @role@) then
        execute format('create role %I nologin', @role@);
    elsif exists (select from pg_roles where rolname = @role@
                  and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)) then
        raise exception 'role % has attributes that no role of the store may have', @role@
            using hint = 'Take SUPERUSER, BYPASSRLS, CREATEROLE, CREATEDB and REPLICATION from it, or name another role.';
    end if;
end $provision$;"""

_MEMBER_OF_MIGRATOR = """\
do $provision$
begin
    -- Who is no superuser must be a member to give the schema to the migrator.
    if not (select rolsuper from pg_roles where rolname = current_user) and current_user <> '@migrator@' then
        execute format('grant %I to current_user', '@migrator@');
    end if;
end $provision$;
"""

# The migrator replaces the definers, so it is a member of their owner; nobody else is.
_MEMBERSHIP = """\
do $provision$
begin
    if exists (select from pg_roles where rolname = '@execution@' and rolcanlogin) then
        raise exception 'role % can log in', '@execution@' using hint = 'ALTER ROLE ... NOLOGIN, or name another role.';
    end if;
    if exists (select from pg_namespace where nspowner = (select oid from pg_roles where rolname = '@execution@')) then
        raise exception 'role % owns a schema', '@execution@' using hint = 'Give the schema to another role.';
    end if;
end $provision$;
grant "@execution@" to "@migrator@";
"""

_SCHEMA = """
do $provision$
begin
    if to_regnamespace('"@schema@"') is null then
        create schema "@schema@" authorization "@migrator@";
    elsif (select nspowner <> '"@migrator@"'::regrole from pg_namespace where oid = to_regnamespace('"@schema@"')) then
        alter schema "@schema@" owner to "@migrator@";
    end if;
end $provision$;
revoke all on schema "@schema@" from public;
"""

# What a later migration creates: PUBLIC gets nothing of it, and the definers can use it at once.
_DEFAULTS = """\
alter default privileges for role "@migrator@" revoke all on routines from public;
alter default privileges for role "@migrator@" revoke all on types from public;
alter default privileges for role "@migrator@" in schema "@schema@" revoke all on tables from public;
alter default privileges for role "@migrator@" in schema "@schema@" revoke all on sequences from public;
alter default privileges for role "@migrator@" in schema "@schema@" revoke all on routines from public;
alter default privileges for role "@migrator@" in schema "@schema@" revoke all on types from public;
alter default privileges for role "@migrator@" in schema "@schema@" grant select, insert, update, delete on tables to "@execution@";
alter default privileges for role "@migrator@" in schema "@schema@" grant select, usage, update on sequences to "@execution@";
alter default privileges for role "@migrator@" in schema "@schema@" grant execute on routines to "@execution@";
grant usage on schema "@schema@" to "@execution@";"""

_INSTALLED = """\
do $provision$
declare
    v_statement text;
begin
if to_regclass('"@schema@".routine_install') is null then
    raise warning 'the store is not installed: run onecommit migrate as the migrator, then this again';
    return;
end if;
@body@
end $provision$;"""

_OWNERSHIP = """\
-- Ownership before grants. Indexes, and sequences and row types of tables, follow their table.
for v_statement in
    select format('alter %s %I.%I owner to %I', case c.relkind when 'S' then 'sequence' else 'table' end,
                  '@schema@', c.relname, '@migrator@')
    from pg_class c
    where c.relnamespace = '"@schema@"'::regnamespace and c.relkind in ('r', 'p', 'S')
      and pg_get_userbyid(c.relowner) <> '@migrator@'
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
                      and c.relkind = 'S' and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i'))
    union all
    select format('alter %s %I.%I owner to %I', case t.typtype when 'd' then 'domain' else 'type' end,
                  '@schema@', t.typname, '@migrator@')
    from pg_type t left join pg_class c on c.oid = t.typrelid
    where t.typnamespace = '"@schema@"'::regnamespace
      and (t.typtype in ('d', 'e') or t.typtype = 'c' and c.relkind = 'c')
      and pg_get_userbyid(t.typowner) <> '@migrator@'
    union all
    select format('alter routine %s owner to %I', p.oid::regprocedure, '@migrator@')
    from pg_proc p
    where p.pronamespace = '"@schema@"'::regnamespace and pg_get_userbyid(p.proowner) <> '@migrator@'
      and (not p.prosecdef or pg_get_userbyid(p.proowner) is distinct from '@execution@')
loop
    execute v_statement;
end loop;"""

# Policies that name a single role were made for the owner as whom the definers run.
_DEFINERS = """\
-- An owner needs CREATE in the schema at the moment of the transfer, and not after it.
grant create on schema "@schema@" to "@execution@";
for v_statement in
    select format('alter routine %s owner to %I', p.oid::regprocedure, '@execution@')
    from pg_proc p
    where p.pronamespace = '"@schema@"'::regnamespace and p.prosecdef and pg_get_userbyid(p.proowner) <> '@execution@'
loop
    execute v_statement;
end loop;
revoke create on schema "@schema@" from "@execution@";
for v_statement in
    select format('alter policy %I on %s to %I', p.polname, p.polrelid::regclass, '@execution@')
    from pg_policy p join pg_class c on c.oid = p.polrelid
    where c.relnamespace = '"@schema@"'::regnamespace and p.polroles <> '{0}'
      and p.polroles <> array['"@execution@"'::regrole::oid]
loop
    execute v_statement;
end loop;"""

_PRIVILEGES = """\
-- The definers' owner: rows, and the truncation of a chapter; no DDL, nothing to grant on.
grant execute on all routines in schema "@schema@" to "@execution@";
grant select, insert, update, delete on all tables in schema "@schema@" to "@execution@";
revoke insert, update, delete on "@schema@".schema_migration, "@schema@".routine_install from "@execution@";
for v_statement in
    select format('grant truncate on %I.%I to %I', '@schema@', c.relname, '@execution@')
    from pg_class c
    where c.relnamespace = '"@schema@"'::regnamespace and c.relkind = 'r' and c.relname ~ '^(ready|claim|completion)_[0-9]+$'
loop
    execute v_statement;
end loop;
grant select, usage, update on all sequences in schema "@schema@" to "@execution@";
-- PUBLIC gets nothing back when something is replaced or changes hands.
revoke all on all routines in schema "@schema@" from public;
revoke all on all tables in schema "@schema@" from public;
revoke all on all sequences in schema "@schema@" from public;
-- Each role anew, so that it has what the manifest says and nothing from before."""

_REVOKE = """\
revoke all on all tables in schema "@schema@" from @role@;
revoke all on all sequences in schema "@schema@" from @role@;
revoke all on all routines in schema "@schema@" from @role@;
revoke all on schema "@schema@" from @role@;"""
