"""Migrations as a text that an operator reviews and runs, made without a connection."""

from datetime import timedelta

from onecommit.domain.arguments import checked_number
from onecommit.errors import InvalidArgument
from onecommit.schema.bundle import Bundle, packaged_bundle
from onecommit.schema.lock import Patience, migration_lock, milliseconds
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name, render
from onecommit.schema.steps import Step, pending_steps


def script(
    installed_version: int | None = None,
    *,
    schema: str = DEFAULT_SCHEMA,
    bundle: Bundle | None = None,
) -> str:
    """Plain forward-only SQL from the installed version (None: nothing) to this package's.

    The same arguments give the same text. Each transaction first checks what is installed, so a second run, or a run
    from another version, fails and changes nothing.
    """
    checked_schema_name(schema)
    bundle = bundle or packaged_bundle()
    version = 0
    if installed_version is not None:
        version = checked_number(installed_version, field="installed_version")
    if not 0 <= version <= bundle.version:
        raise InvalidArgument(
            f"installed version: this package knows 0 to {bundle.version}",
            field="installed_version",
        )
    steps = pending_steps(bundle, version, schema=schema, repeat_routines=False)
    return "\n".join([_header(bundle, version, schema), *(_transaction(s, schema) for s in steps)])


def _header(bundle: Bundle, version: int, schema: str) -> str:
    return (
        f'-- Onecommit {bundle.package_version}, schema "{schema}": '
        f"from version {version} to {bundle.version}.\n"
        "-- Run it as the owner of the schema, over a direct connection. If a statement fails, generate a new script\n"
        "-- from the version that `onecommit status` prints.\n"
    )


def _transaction(step: Step, schema: str) -> str:
    return "\n".join(
        [
            f"-- {step.title}",
            "begin isolation level read committed read write;",
            "set local search_path = pg_catalog, pg_temp;",
            "set local client_min_messages = warning;",
            _lock_timeout(Patience().attempt),
            f"select pg_advisory_xact_lock({migration_lock(schema).key[0]});",
            *([render(_SCHEMA_LOCK, schema)] if step.version else []),
            _lock_timeout(Patience().table_attempt),
            "",
            step.text,
            "commit;",
            "",
        ]
    )


def _lock_timeout(wait: timedelta) -> str:
    return f"set local lock_timeout = '{milliseconds(wait)}ms';"


_SCHEMA_LOCK = (
    "select pg_advisory_xact_lock("
    "'\"@schema@\".store_metadata'::regclass::oid::bigint::bit(32)::integer, 0);"
)
