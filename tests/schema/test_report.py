"""The state of a schema, decided from facts."""

from dataclasses import replace
from uuid import UUID

import pytest

from onecommit import errors
from onecommit.schema import SchemaState, packaged_bundle
from onecommit.schema.installed import AppliedMigration, Installed, InstalledRoutines
from onecommit.schema.report import assess

BUNDLE = packaged_bundle()
HISTORY = tuple(AppliedMigration(version=m.version, sha256=m.sha256) for m in BUNDLE.migrations)
WHOLE = Installed(
    holds_objects=True,
    tables=BUNDLE.tables(BUNDLE.version),
    history=HISTORY,
    routines=InstalledRoutines(package_version="0.1.0", sha256=BUNDLE.routines_sha256),
    bodies={r.name: (r.body_sha256("onecommit"),) for r in BUNDLE.routines},
    store_id=UUID(int=1),
)
NEXT = AppliedMigration(version=BUNDLE.version + 1, sha256="f" * 64)
OTHER = AppliedMigration(version=1, sha256="f" * 64)


@pytest.mark.parametrize(
    ("installed", "state", "reason"),
    [
        (Installed(), "missing", "does not exist or is empty"),
        (Installed(holds_objects=True), "inconsistent", "no migration history"),
        (WHOLE, "compatible", f"version {BUNDLE.version}"),
        (replace(WHOLE, history=HISTORY[:1]), "upgrade_required", f"version 1 of {BUNDLE.version}"),
        (replace(WHOLE, history=HISTORY[1:]), "inconsistent", "gaps"),
        (replace(WHOLE, history=(OTHER, *HISTORY[1:])), "inconsistent", "migration 1 (store) was"),
        (replace(WHOLE, store_id=None), "inconsistent", "store_metadata has no row"),
        (replace(WHOLE, tables=WHOLE.tables - {"ready"}), "inconsistent", "lacks the table ready"),
        (replace(WHOLE, tables=WHOLE.tables - {"lane", "ready"}), "inconsistent", "tables lane, ready"),
        (replace(WHOLE, routines=None), "upgrade_required", "not those of this release"),
        (replace(WHOLE, routines=InstalledRoutines(package_version="0.0.9", sha256="0")),
         "upgrade_required", "not those of this release"),
        (replace(WHOLE, routines=InstalledRoutines(package_version="0.10.0", sha256="0"), bodies={}),
         "compatible", "routines of a newer release"),
        (replace(WHOLE, bodies=WHOLE.bodies | {"complete_job": ("0",)}), "inconsistent", "complete_job"),
        (replace(WHOLE, bodies=WHOLE.bodies | {"complete_job": (*WHOLE.bodies["complete_job"], "0")}),
         "inconsistent", "complete_job"),
        (replace(WHOLE, bodies={}), "inconsistent", "more"),
        (replace(WHOLE, history=(*HISTORY, NEXT)), "too_new", f"this package knows {BUNDLE.version}"),
        (replace(WHOLE, history=(*HISTORY, NEXT), writer_min=NEXT.version), "too_new", "knows"),
        (replace(WHOLE, history=(*HISTORY, NEXT), writer_min=BUNDLE.version, bodies={}),
         "compatible", "may still use it"),
        (replace(WHOLE, history=(OTHER, *HISTORY[1:], NEXT), writer_min=1), "inconsistent", "migration 1"),
    ],
)  # fmt: skip
def test_each_finding_has_its_state_and_reason(installed, state, reason):
    """An inconsistency is reported before anything else, and the reason names what differs."""
    report = assess(BUNDLE, installed, schema="onecommit")
    assert report.state == state
    assert reason in report.reason


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (SchemaState.MISSING, errors.SchemaMissing),
        (SchemaState.UPGRADE_REQUIRED, errors.SchemaUpgradeRequired),
        (SchemaState.INCONSISTENT, errors.SchemaInconsistent),
        (SchemaState.TOO_NEW, errors.SchemaTooNew),
    ],
)
def test_every_other_state_than_compatible_is_an_error_with_a_remedy(state, error):
    """The error names the schema, the reason and what to do."""
    report = replace(assess(BUNDLE, WHOLE, schema="onecommit"), state=state, reason="it is odd")
    with pytest.raises(error, match='schema "onecommit": it is odd') as raised:
        report.require_compatible()
    assert raised.value.remedy


def test_a_compatible_report_passes():
    """The check returns the report, to be used in a chain."""
    report = assess(BUNDLE, WHOLE, schema="onecommit")
    assert report.require_compatible() is report
