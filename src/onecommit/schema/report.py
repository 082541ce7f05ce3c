"""The state of a schema, decided from a bundle and what is installed; no I/O."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never
from uuid import UUID

from onecommit.domain.queue import QueueFinalization
from onecommit.errors import (
    SchemaInconsistent,
    SchemaMissing,
    SchemaTooNew,
    SchemaUpgradeRequired,
)
from onecommit.schema.bundle import Bundle
from onecommit.schema.installed import Installed


class SchemaState(StrEnum):
    """What can be done with a schema."""

    MISSING = "missing"
    UPGRADE_REQUIRED = "upgrade_required"
    COMPATIBLE = "compatible"
    INCONSISTENT = "inconsistent"
    TOO_NEW = "too_new"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReport:
    """What is installed under a schema name, and what this package makes of it."""

    schema: str
    state: SchemaState
    reason: str
    installed_version: int | None
    bundled_version: int
    routines_from: str | None
    """The package version that installed the routines."""
    store_id: UUID | None
    active_epoch: int | None
    writer_min: int | None = None
    """A package that knows only older schema versions is refused; None: the store cannot say."""
    changed_routines: tuple[str, ...] = ()
    """Routines whose installed body is not the one that this package installed."""
    finalization: tuple[QueueFinalization, ...] = ()
    """The queues that accept caller-owned completion, or wait for workers to be upgraded."""
    applied_versions: tuple[int, ...] = ()
    """The migrations that this run applied."""
    routines_installed: bool = False
    """Whether this run installed the routines."""

    def require_compatible(self) -> "SchemaReport":
        """Return the report, or raise the error of its state."""
        message = f'schema "{self.schema}": {self.reason}'
        match self.state:
            case SchemaState.COMPATIBLE:
                return self
            case SchemaState.MISSING:
                raise SchemaMissing(message)
            case SchemaState.UPGRADE_REQUIRED:
                raise SchemaUpgradeRequired(message)
            case SchemaState.TOO_NEW:
                raise SchemaTooNew(message)
            case SchemaState.INCONSISTENT:
                raise SchemaInconsistent(message, remedy=self._inconsistency_remedy())
            case _:
                assert_never(self.state)

    def _inconsistency_remedy(self) -> str | None:
        if not self.changed_routines:
            return None
        return "If the packaged routines are wanted, run `onecommit migrate --reinstall-routines`."


def assess(bundle: Bundle, installed: Installed, *, schema: str) -> SchemaReport:
    """Decide the state; the first finding counts, an inconsistency before everything else."""
    state, reason = next(_findings(bundle, installed))
    changed: tuple[str, ...] = ()
    if state is SchemaState.COMPATIBLE and not routines_are_newer(bundle, installed):
        changed = changed_routines(bundle, installed, schema=schema)
    if changed:
        state, reason = SchemaState.INCONSISTENT, _changed_reason(changed)
    return SchemaReport(
        schema=schema,
        state=state,
        reason=reason,
        installed_version=installed.version,
        bundled_version=bundle.version,
        routines_from=installed.routines.package_version if installed.routines else None,
        store_id=installed.store_id,
        active_epoch=installed.active_epoch,
        writer_min=installed.writer_min,
        changed_routines=changed,
        finalization=installed.finalization,
    )


def routines_are_newer(bundle: Bundle, installed: Installed) -> bool:
    """Whether a newer release installed them, which an older one must not replace."""
    if installed.version is not None and installed.version > bundle.version:
        return True
    if installed.routines is None or installed.routines.sha256 == bundle.routines_sha256:
        return False
    return _release(installed.routines.package_version) > _release(bundle.package_version)


def changed_routines(bundle: Bundle, installed: Installed, *, schema: str) -> tuple[str, ...]:
    """The bundle's routines that are absent, overloaded or have another body in the database."""
    return tuple(
        routine.name
        for routine in bundle.routines
        if installed.bodies.get(routine.name) != (routine.body_sha256(schema),)
    )


def _findings(bundle: Bundle, installed: Installed) -> Iterator[tuple[SchemaState, str]]:
    if not installed.holds_objects:
        yield SchemaState.MISSING, "it does not exist or is empty"
    for reason in _inconsistencies(bundle, installed):
        yield SchemaState.INCONSISTENT, reason
    version = installed.version or 0
    if version > bundle.version:
        yield _newer(bundle, installed)
    if version < bundle.version:
        yield SchemaState.UPGRADE_REQUIRED, f"it is at version {version} of {bundle.version}"
    if routines_are_newer(bundle, installed):
        yield SchemaState.COMPATIBLE, f"version {version}, with routines of a newer release"
    if installed.routines is None or installed.routines.sha256 != bundle.routines_sha256:
        yield SchemaState.UPGRADE_REQUIRED, "its routines are not those of this release"
    yield SchemaState.COMPATIBLE, f"version {version}"


def _newer(bundle: Bundle, installed: Installed) -> tuple[SchemaState, str]:
    what = f"it is at version {installed.version}, this package knows {bundle.version}"
    if installed.writer_min is not None and installed.writer_min <= bundle.version:
        return SchemaState.COMPATIBLE, f"{what} and may still use it"
    return SchemaState.TOO_NEW, what


def _inconsistencies(bundle: Bundle, installed: Installed) -> Iterator[str]:
    if not installed.history:
        yield "it holds objects but no migration history"
    if [applied.version for applied in installed.history] != [
        *range(1, len(installed.history) + 1)
    ]:
        yield "its migration history has gaps"
    for known, applied in zip(bundle.migrations, installed.history, strict=False):
        if known.sha256 != applied.sha256:
            yield f"migration {known.version} ({known.name}) was applied with another text"
    if installed.store_id is None:
        yield "its store_metadata has no row"
    version = len(installed.history)
    if version <= bundle.version and (lost := bundle.tables(version) - installed.tables):
        yield f"it lacks the table{'s' * (len(lost) > 1)} {', '.join(sorted(lost))}"


def _changed_reason(changed: tuple[str, ...]) -> str:
    shown = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")  # noqa: PLR2004
    return f"routines were changed outside the migrations: {shown}"


def _release(version: str) -> tuple[int, ...]:
    """The numbers that a version starts with: 1.10.0rc1 is (1, 10, 0)."""
    return tuple(int(number) for number in re.findall(r"\d+", re.split(r"[^\d.]", version)[0]))
