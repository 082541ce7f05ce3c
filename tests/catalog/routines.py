"""What pg_proc says of the store's routines, beside what capabilities.toml promises."""

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import psycopg

from onecommit.doctor import bodies

ROUTINES = """
select p.proname, p.prosecdef, p.prosrc, l.lanname, p.proconfig, pg_get_userbyid(p.proowner), p.oid::regprocedure::text,
       has_function_privilege('public', p.oid, 'execute'), replace(oidvectortypes(p.proargtypes), 'onecommit.', '@schema@.'),
       coalesce(p.proargnames[1:p.pronargs], '{}'), p.prorettype = 'trigger'::regtype
from pg_proc p join pg_language l on l.oid = p.prolang
where p.pronamespace = 'onecommit'::regnamespace
"""
ADVISORY = re.compile(
    r'pg_(?:try_)?advisory_\w+\(\s*"onecommit"\.(?:lock_class\(\'"onecommit"\.(\w+)\'\)|(schema_lock_class)\(\))'
)
WRITES = re.compile(
    r"\b(?:insert into|delete from|truncate|merge into|nextval|setval|pg_notify)\b|\bupdate (?:only )?\""
)
CALLABLE = {"public", "coupled", "read_only", "migration"}
ACTORS = {
    "argument": {"p_actor"},
    "worker": {"p_worker", "p_owner"},
    "token": {"receipt_id", "p_callback", "p_callbacks", "p_run_leases", "p_seqs"},
    "command": {"p_command_id"},
}
LOCK_NAMES = {
    "store_metadata": "schema",
    "ring": "tender",
    "caller_owned_queue": "enablement",
    "claim": "request",
    "worker": "worker",
    "lane": "lane",
    "ready": "generation",
    "completion": "attempt",
    "scope": "scope",
    "work": "work_request",
    "operator_command": "command",
}
LOCK_ORDER = list(LOCK_NAMES.values())


@dataclass(kw_only=True)
class Routine:
    """One row of pg_proc."""

    name: str
    is_definer: bool
    body: str
    language: str
    config: list[str]
    owner: str
    signature: str
    is_public: bool
    arguments: str
    argument_names: list[str]
    is_trigger: bool

    @cached_property
    def code(self) -> str:
        """The body without comments."""
        return bodies.without_comments(self.body)

    @property
    def own_locks(self) -> set[str]:
        return {LOCK_NAMES[table or "store_metadata"] for table, _ in ADVISORY.findall(self.code)}

    @property
    def advisory_calls(self) -> int:
        return len(re.findall(r"pg_(?:try_)?advisory_\w+\(", self.code))

    @property
    def writes(self) -> bool:
        """Rows, sequences or notices; not what a transaction-local setting or a lock is."""
        return bool(WRITES.search(re.sub(r"'(?:[^']|'')*'", "''", self.code)))

    @property
    def actor(self) -> str:
        """What in its arguments names who acts."""
        for source, names in ACTORS.items():
            if names & set(self.argument_names):
                return source
        return "login"

    @property
    def is_dynamic(self) -> bool:
        return bodies.is_dynamic(self.body)


class Catalog:
    """All routines by name."""

    def __init__(self, connection: psycopg.Connection) -> None:
        fields = (
            "name",
            "is_definer",
            "body",
            "language",
            "config",
            "owner",
            "signature",
            "is_public",
            "arguments",
            "argument_names",
            "is_trigger",
        )
        rows = [dict(zip(fields, row, strict=True)) for row in connection.execute(ROUTINES)]
        self.routines = {
            row["name"]: Routine(**row | {"config": row["config"] or []}) for row in rows
        }
        self.count = len(rows)
        self.graph = bodies.call_graph(
            {name: routine.body for name, routine in self.routines.items()}, "onecommit"
        )

    def callees(self, name: str) -> set[str]:
        """Every routine that a call may reach, itself included."""
        return set(bodies.reached(name, self.graph))

    def locks(self, name: str) -> list[str]:
        """The advisory locks that a call may take, in the order of the protocol."""
        taken = set().union(*(self.routines[callee].own_locks for callee in self.callees(name)))
        return [lock for lock in LOCK_ORDER if lock in taken]


def capabilities() -> dict[str, dict]:
    """The file's entries by routine."""
    text = resources.files("onecommit").joinpath("sql", "capabilities.toml").read_text()
    areas = tomllib.loads(text)
    del areas["tables"]
    return {name: entry for area in areas.values() for name, entry in area.items()}


def tables() -> dict[str, dict[str, list[str]]]:
    """By capability the privileges on relations beside EXECUTE."""
    text = resources.files("onecommit").joinpath("sql", "capabilities.toml").read_text()
    return tomllib.loads(text)["tables"]
