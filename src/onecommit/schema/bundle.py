"""The packaged SQL files: migrations with their hashes, and routines."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import pairwise

from onecommit.schema.naming import render
from onecommit.version import __version__

AREAS = ("store", "jobs", "work")
"""Folders of routines, in the order of installation."""

_MIGRATION_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_CREATE_ROUTINE = re.compile(
    r'^create or replace (?:function|procedure) "@schema@"\.(\w+)\s*\(', re.MULTILINE
)
_BODY = re.compile(r"\bas\s+(\$\w*\$)(.*?)\1", re.DOTALL)
_CREATE_TABLE = re.compile(r'^create (?:unlogged )?table "@schema@"\.(\w+)', re.MULTILINE)
_WRITER_MIN = re.compile(r"^-- writer_min: (\d+)$", re.MULTILINE)
_DROP_TABLE = re.compile(r'^drop table (?:if exists )?"@schema@"\.(\w+)', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One forward-only change of tables; its hash is that of the unrendered file."""

    version: int
    name: str
    text: str
    sha256: str
    writer_min: int | None = None
    """It breaks packages that know only older schema versions; None: it breaks none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """One function of the protocol, installed again by every run that finds another text."""

    area: str
    name: str
    text: str

    def body_sha256(self, schema: str) -> str:
        """The hash that the installed body (`pg_proc.prosrc`) must have under this schema name."""
        found = _BODY.search(render(self.text, schema), self._create().start())
        if found is None:
            raise ValueError(f"{self.area}/{self.name}.sql: no dollar-quoted body")
        return _sha256(found[2].encode())

    def _create(self) -> re.Match[str]:
        found = _CREATE_ROUTINE.findall(self.text)
        first = _CREATE_ROUTINE.search(self.text)
        if first is None or found != [self.name]:
            raise ValueError(f"{self.area}/{self.name}.sql: must create exactly {self.name}()")
        return first


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Everything that one version of the package installs."""

    package_version: str
    migrations: tuple[Migration, ...]
    routines: tuple[Routine, ...]
    dropped_routines: tuple[str, ...]
    """Signatures that earlier versions installed and this one removes, such as `old_name(bigint)`."""
    routines_sha256: str

    @property
    def version(self) -> int:
        """The schema version after all migrations."""
        return len(self.migrations)

    def tables(self, version: int) -> frozenset[str]:
        """Tables that the migrations up to this version create by a plain statement and keep."""
        names: set[str] = set()
        for migration in self.migrations[:version]:
            names.update(_CREATE_TABLE.findall(migration.text))
            names.difference_update(_DROP_TABLE.findall(migration.text))
        return frozenset(names)


@cache
def packaged_bundle() -> Bundle:
    """The bundle of this installation."""
    return read_bundle(resources.files("onecommit") / "sql")


def read_bundle(directory: Traversable, *, package_version: str | None = None) -> Bundle:
    """Read and check `migrations/` and `routines/` below a directory."""
    routines = _read_routines(directory / "routines")
    dropped = _read_dropped(directory / "routines" / "dropped.txt")
    return Bundle(
        package_version=package_version or __version__,
        migrations=_read_migrations(directory / "migrations"),
        routines=routines,
        dropped_routines=dropped,
        routines_sha256=_routines_sha256(routines, dropped),
    )


def _read_migrations(directory: Traversable) -> tuple[Migration, ...]:
    migrations = [_read_migration(file) for file in _sql_files(directory)]
    if not migrations or migrations[0].version != 1:
        raise ValueError("migrations: the first one must be 0001")
    for before, after in pairwise(migrations):
        if after.version != before.version + 1:
            raise ValueError(f"migrations: {after.version:04} must follow {after.version - 1:04}")
    return tuple(migrations)


def _read_migration(file: Traversable) -> Migration:
    parts = _MIGRATION_FILE.fullmatch(file.name)
    if parts is None:
        raise ValueError(f"migrations: {file.name} is not named like 0001_store.sql")
    content = file.read_bytes()
    text = content.decode()
    declared = _WRITER_MIN.search(text)
    migration = Migration(
        version=int(parts[1]),
        name=parts[2],
        text=text,
        sha256=_sha256(content),
        writer_min=int(declared[1]) if declared else None,
    )
    if migration.writer_min is not None and not 0 < migration.writer_min < migration.version:
        raise ValueError(f"migrations: writer_min of {file.name} must be an earlier version")
    return migration


def _read_routines(directory: Traversable) -> tuple[Routine, ...]:
    folders = {entry.name for entry in directory.iterdir() if entry.is_dir()}
    if unknown := folders.difference(AREAS, {"__pycache__"}):
        raise ValueError(f"routines: unknown folder {min(unknown)}")
    routines = tuple(
        Routine(area=area, name=file.name.removesuffix(".sql"), text=file.read_bytes().decode())
        for area in AREAS
        if area in folders
        for file in _sql_files(directory / area)
    )
    for routine in routines:
        routine.body_sha256("any")  # refuses a file whose body could not be compared later
    return routines


def _read_dropped(file: Traversable) -> tuple[str, ...]:
    if not file.is_file():
        return ()
    lines = (line.strip() for line in file.read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _routines_sha256(routines: tuple[Routine, ...], dropped: tuple[str, ...]) -> str:
    parts = [f"{r.area}/{r.name}\n{_sha256(r.text.encode())}" for r in routines]
    return _sha256("\n".join([*parts, *dropped]).encode())


def _sql_files(directory: Traversable) -> list[Traversable]:
    files = (entry for entry in directory.iterdir() if entry.name.endswith(".sql"))
    return sorted(files, key=lambda file: file.name)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
