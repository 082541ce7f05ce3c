"""The SQL text of each step of a migration, the same for `apply` and for the script."""

from collections.abc import Sequence
from dataclasses import dataclass

from onecommit.schema.bundle import Bundle, Migration
from onecommit.schema.naming import render


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """SQL for one transaction; it refuses to run from any other version than the one it expects."""

    title: str
    version: int
    """The schema version that the step expects and, if it is a migration, the one before it."""
    text: str


def migration_step(bundle: Bundle, migration: Migration, *, schema: str) -> Step:
    """Apply one migration and record it."""
    before = migration.version - 1
    parts = [
        _expect_history(bundle.migrations[:before]) if before else _CREATE_SCHEMA,
        *([] if migration.writer_min is None else [_expect_fence(migration, migration.writer_min)]),
        migration.text.strip(),
        _record_migration(migration),
        _REVOKE_PUBLIC,
    ]
    title = f"migration {migration.version:04} ({migration.name})"
    return Step(title=title, version=before, text=_join(parts, schema))


def routines_step(bundle: Bundle, *, schema: str, repeat: bool) -> Step:
    """Install every routine again; grants on a routine outlive its replacement."""
    parts = [
        _expect_history(bundle.migrations),
        *([] if repeat else [_refuse_repetition(bundle)]),
        "set local check_function_bodies = off;",
        *(f'drop routine if exists "@schema@".{name};' for name in bundle.dropped_routines),
        *(routine.text.strip() for routine in bundle.routines),
        _REVOKE_PUBLIC,
        _record_routines(bundle),
    ]
    title = f"routines of {bundle.package_version}"
    return Step(title=title, version=bundle.version, text=_join(parts, schema))


def pending_steps(
    bundle: Bundle, installed_version: int, *, schema: str, repeat_routines: bool
) -> list[Step]:
    """The steps from an installed version (0: none) to the bundle's.

    Unless they may be repeated, the routines are refused where the same ones are installed.
    """
    pending = bundle.migrations[installed_version:]
    migrations = [migration_step(bundle, migration, schema=schema) for migration in pending]
    return [*migrations, routines_step(bundle, schema=schema, repeat=repeat_routines)]


# The owner of a schema that exists need not have CREATE on the database, so `if not exists` would not do.
_CREATE_SCHEMA = """\
do $guard$
begin
    if to_regnamespace('"@schema@"') is null then
        create schema "@schema@";
    elsif exists (select from pg_depend
                  where refclassid = 'pg_namespace'::regclass and refobjid = '"@schema@"'::regnamespace
                    and classid <> 'pg_default_acl'::regclass) then
        raise exception 'the schema is not empty' using errcode = 'OC010';
    end if;
end $guard$;"""

# PostgreSQL gives PUBLIC routines and types by itself, and what an administrator's default privileges say.
_REVOKE_PUBLIC = """\
revoke all on all routines in schema "@schema@" from public;
do $revoke$
declare
    v_object text;
begin
    for v_object in
        select format('%s %I.%I', case c.relkind when 'S' then 'sequence' else 'table' end, '@schema@', c.relname)
        from pg_class c
        where c.relnamespace = '"@schema@"'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
          and exists (select from aclexplode(c.relacl) a where a.grantee = 0)
        union all
        select format('type %I.%I', '@schema@', t.typname) from pg_type t
        where t.typnamespace = '"@schema@"'::regnamespace and t.typtype in ('c', 'd', 'e')
          and exists (select from aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a where a.grantee = 0)
    loop
        execute 'revoke all on ' || v_object || ' from public';
    end loop;
end $revoke$;"""


def _expect_history(migrations: Sequence[Migration]) -> str:
    expected = ",".join(f"{migration.version}:{migration.sha256}" for migration in migrations)
    return f"""\
do $guard$
begin
    if (select string_agg(version || ':' || sha256, ',' order by version) from "@schema@".schema_migration)
        is distinct from '{expected}' then
        raise exception 'the migration history is not the expected one' using errcode = 'OC010';
    end if;
end $guard$;"""  # noqa: S608  hashes and numbers


def _expect_fence(migration: Migration, writer_min: int) -> str:
    """Nobody has ever written to a store without an epoch, so there it needs no fence."""
    return f"""\
do $guard$
begin
    if pg_sequence_last_value('"@schema@".epoch_fence'::regclass) = 0 then
        update "@schema@".store_metadata set writer_min = greatest(writer_min, {writer_min});
    elsif (select writer_min from "@schema@".store_metadata) < {writer_min} then
        raise exception 'migration {migration.version:04} breaks packages that the store still accepts' using errcode = 'OC010',
            hint = 'onecommit fence --writer-min {writer_min}';
    end if;
end $guard$;"""  # noqa: S608  numbers


def _refuse_repetition(bundle: Bundle) -> str:
    return f"""\
do $guard$
begin
    if exists (select from "@schema@".routine_install where routines_sha256 = '{bundle.routines_sha256}') then
        raise exception 'the routines are installed already, so this is not the first run' using errcode = 'OC010';
    end if;
end $guard$;"""


def _record_migration(migration: Migration) -> str:
    needs = migration.writer_min
    column, value = ("", "") if needs is None else (", writer_min", f", {needs}")
    return f"""\
insert into "@schema@".schema_migration (version, name, sha256{column})
values ({migration.version}, '{migration.name}', '{migration.sha256}'{value});"""  # noqa: S608  from our files


def _record_routines(bundle: Bundle) -> str:
    return f"""\
insert into "@schema@".routine_install (package_version, routines_sha256)
values ('{bundle.package_version}', '{bundle.routines_sha256}')
on conflict (singleton) do update set
    package_version = excluded.package_version, routines_sha256 = excluded.routines_sha256,
    installed_at = clock_timestamp();"""  # noqa: S608  our own version and hash


def _join(parts: Sequence[str], schema: str) -> str:
    return render("\n\n".join(parts), schema) + "\n"
