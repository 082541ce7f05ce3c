"""Which role may do what: GRANT statements from the manifest, for a review and for a run, again and again."""

from collections.abc import Iterable, Iterator, Mapping

from onecommit.calls.manifest import all_capabilities, manifest, routine_entries
from onecommit.errors import InvalidArgument
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name

_SEQUENCES = frozenset({"epoch_fence"})


def grants(
    roles: Mapping[str, Iterable[str]],
    *,
    schema: str = DEFAULT_SCHEMA,
) -> str:
    """SQL that gives each role of the database exactly what its capabilities need.

    The capabilities are those of the manifest: producer, work_runtime, reader and so on. Nothing is revoked; a
    routine is named by its exact signature.
    """
    checked_schema_name(schema)
    tables = manifest()["tables"]
    known = capabilities()
    statements = []
    for role, wanted in sorted(roles.items()):
        chosen = _checked(role, wanted, known)
        routines = sorted(
            (name, entry["arguments"])
            for name, entry in routine_entries().items()
            if chosen & set(entry["grants"])
        )
        statements += [f"grant usage on schema {_quoted(schema)} to {_quoted(role)};"]
        statements += (
            f"grant execute on function {_signature(name, arguments, schema)} to {_quoted(role)};"
            for name, arguments in routines
        )
        for capability in sorted(chosen & tables.keys()):
            statements += _relations(tables[capability], role, schema)
    return "\n".join([*statements, ""])


def capabilities() -> set[str]:
    """The capabilities that a role can have."""
    return set(all_capabilities())


def _relations(tables: Mapping[str, list[str]], role: str, schema: str) -> Iterator[str]:
    for table, privileges in tables.items():
        kind = "sequence" if table in _SEQUENCES else "table"
        yield (
            f"grant {', '.join(privileges)} on {kind} {_quoted(schema)}.{table} to {_quoted(role)};"
        )


def _signature(name: str, arguments: str, schema: str) -> str:
    """The routine and no other: its argument types are part of its name."""
    return f"{_quoted(schema)}.{name}({arguments.replace('@schema@', _quoted(schema))})"


def _checked(role: str, wanted: Iterable[str], known: set[str]) -> set[str]:
    chosen = set(wanted)
    if unknown := chosen - known:
        raise InvalidArgument(
            f"roles: {role} asks for {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}",
            field="roles",
        )
    return chosen


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
