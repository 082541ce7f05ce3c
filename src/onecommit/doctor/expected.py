"""What the package installs, found in its own SQL files: the measure for what a database holds."""

import csv
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from onecommit.doctor.rows import DefinitionRow
from onecommit.schema.bundle import Bundle
from onecommit.schema.naming import render

RING = {
    family: tuple(f"{family}_{slot}" for slot in range(6))
    for family in ("ready", "claim", "completion")
}
"""The three partitioned families and their children, one for each slot."""

_FUNCTION = re.compile(r'^create (?:or replace )?function "@schema@"\.(\w+)\s*\(', re.MULTILINE)
_BODY = re.compile(r"\bas\s+(\$\w*\$)(.*?)\1", re.DOTALL)
_RETURNS = re.compile(r"\breturns (.*?)\s+language\b", re.DOTALL)
_LANGUAGE = re.compile(r"\blanguage (\w+)")
_PARENTHESIS = re.compile(r"[()]")
_CREATED = re.compile(
    r'^ *create (?:unlogged )?(table|sequence|type|domain|(?:unique )?index|trigger) (?:"@schema@"\.)?(\w+)',
    re.MULTILINE,
)
_TRIGGER = re.compile(
    r'^(create trigger (\w+) .*? on "@schema@"\.(\w+).*?);', re.MULTILINE | re.DOTALL
)
_DEFAULT = re.compile(r"\s+default [^,)]+")
_SETTING = re.compile(r"\bset (\w+) = ('[^']*'|[\w]+(?:, \w+)*)")
_ATTRIBUTE = re.compile(
    r"\b(immutable|stable|strict|leakproof|parallel safe|parallel restricted)\b"
)


_CHILD = re.compile(r"\b(ready|claim|completion)_[0-5](?=_|\b)")
_LANE = re.compile(r"\blane_\d+_(?=number|generation|sleeper)")

Key = tuple[str, str, str]
"""Kind, relation and part of a definition, under a name that all chapters or lanes share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRoutine:
    """A routine's header and body as the file has them, and what the manifest says of it."""

    name: str
    arguments: str
    """With those that are returned."""
    returns: str | None
    """None where arguments are returned."""
    language: str
    is_definer: bool
    attributes: frozenset[str]
    config: frozenset[str]
    sha256: str
    grants: frozenset[str]
    """Capabilities; owner means nobody else."""
    is_dynamic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Names and definitions under one schema name."""

    version: int
    routines: Mapping[str, ExpectedRoutine]
    relations: Mapping[str, frozenset[str]]
    """By kind (table, sequence, index) the names that migrations create by a plain statement."""
    types: frozenset[str]
    triggers: Mapping[tuple[str, str], str]
    """By table and name the definition, flattened."""
    definitions: Mapping[Key, str]
    """As definitions.csv has them, which was read from a store that the migrations made."""
    tables: Mapping[str, Mapping[str, list[str]]]
    """By capability the privileges on each table or sequence."""


@lru_cache(maxsize=8)
def expected_of(bundle: Bundle, *, schema: str) -> Expected:
    """Read the bundle's files and the manifest."""
    manifest = tomllib.loads(
        resources.files("onecommit").joinpath("sql", "capabilities.toml").read_text("utf-8")
    )
    tables = manifest.pop("tables")
    entries = {name: entry for area in manifest.values() for name, entry in area.items()}
    migrations = "\n".join(migration.text for migration in bundle.migrations)
    routines = "\n".join(routine.text for routine in bundle.routines)
    created = _CREATED.findall(migrations)
    return Expected(
        version=bundle.version,
        # What routines/ replaces stands behind what the migration created.
        routines={r.name: r for r in _routines(migrations + "\n" + routines, entries, schema)},
        relations={
            kind: frozenset(name for word, name in created if word.endswith(kind))
            for kind in ("table", "sequence", "index")
        },
        types=frozenset(name for word, name in created if word in ("type", "domain")),
        triggers=_triggers(migrations, schema),
        definitions=dict(packaged_definitions()),
        tables=tables,
    )


def packaged_definitions() -> Iterator[tuple[Key, str]]:
    """How the migrations make each column, constraint, index, sequence, table and type."""
    text = resources.files("onecommit").joinpath("sql", "definitions.csv").read_text("utf-8")
    for kind, relation, part, definition in csv.reader(text.splitlines()):
        yield (kind, relation, part), definition


def definition_of(row: DefinitionRow, schema: str) -> tuple[Key, str]:
    """A definition that was read, without the schema's name and the numbers of chapters and lanes."""
    key = (row.kind, shared_name(row.relation), shared_name(row.part))
    return key, shared_name(without_schema(row.definition, schema))


def shared_name(text: str) -> str:
    """The text with one name for the children of all chapters, and one for the sequences of all lanes."""
    return _LANE.sub("lane_*_", _CHILD.sub(r"\1_*", text))


def without_schema(text: str, schema: str) -> str:
    """SQL that does not name the schema before what lies in it."""
    return re.sub(rf'(?<![\w."])(?:"{re.escape(schema)}"|{re.escape(schema)})\.', "", text)


def flat(text: str, schema: str) -> str:
    """SQL without the schema's name, in lower case with single spaces, to compare PostgreSQL's text with ours."""
    text = re.sub(r"\s+", " ", without_schema(text, schema)).strip().lower()
    text = re.sub(r"\btimestamptz\b", "timestamp with time zone", text)
    return re.sub(r"\s*([(),=])\s*", r"\1", text)


def _triggers(migrations: str, schema: str) -> dict[tuple[str, str], str]:
    found = _TRIGGER.findall(migrations)
    return {
        (table, name): flat(render(definition, schema), schema) for definition, name, table in found
    }


def _routines(
    text: str, entries: Mapping[str, Mapping[str, Any]], schema: str
) -> Iterator[ExpectedRoutine]:
    for create in _FUNCTION.finditer(text):
        end = _closing(text, create.end())
        body = _BODY.search(text, end)
        if body is None:
            raise ValueError(f"{create[1]} has no dollar-quoted body")
        options = text[end : body.start()]
        returns = _RETURNS.search(options)
        language = _LANGUAGE.search(options)
        entry = entries.get(create[1], {})
        yield ExpectedRoutine(
            name=create[1],
            arguments=flat(_DEFAULT.sub("", render(text[create.end() : end - 1], schema)), schema),
            returns=flat(render(returns[1], schema), schema) if returns else None,
            language=language[1] if language else "",
            is_definer="security definer" in options,
            attributes=frozenset(_ATTRIBUTE.findall(options)),
            config=frozenset(
                f"{name}={value.strip(chr(39))}" for name, value in _SETTING.findall(options)
            ),
            sha256=hashlib.sha256(render(body[2], schema).encode()).hexdigest(),
            grants=frozenset(entry.get("grants", ())),
            is_dynamic=bool(entry.get("dynamic")),
        )


def _closing(text: str, start: int) -> int:
    """The position behind the parenthesis that closes the one before the start."""
    depth = 1
    for found in _PARENTHESIS.finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    raise ValueError("a parenthesis is not closed")
