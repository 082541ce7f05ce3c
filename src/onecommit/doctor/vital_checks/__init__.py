"""Every check of a store at work, in the order of the report."""

from onecommit.doctor.vital_checks import (
    chapters,
    clock_skew,
    connections,
    lanes,
    maintenance,
    needs_operator,
    notices,
    pooler,
    snapshots,
    workers,
)

VITAL_CHECKS = (
    pooler.CHECK,
    notices.CHECK,
    clock_skew.CHECK,
    connections.CHECK,
    snapshots.CHECK,
    maintenance.CHECK,
    workers.CHECK,
    chapters.CHECK,
    lanes.CHECK,
    needs_operator.CHECK,
)
