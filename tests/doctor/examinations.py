"""A store that a test breaks and looks at inside a transaction that is rolled back: roles and schema are as before."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from onecommit.doctor import DoctorReport
from onecommit.doctor.catalog import read_inside
from onecommit.doctor.examination import judge
from onecommit.schema import packaged_bundle

COMPLETE_JOB = "onecommit.complete_job(bigint, bigint, integer, bigint, bigint, integer, jsonb)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """The transaction."""

    connection: psycopg.Connection

    def do(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def examine(self, *, strict: bool = False) -> DoctorReport:
        return judge(read_inside(self.connection, "onecommit"), packaged_bundle(), strict=strict)


@contextmanager
def patient(connection: psycopg.Connection) -> Iterator[Patient]:
    """The store until the block ends, whatever was done to it."""
    with connection.transaction(force_rollback=True):
        yield Patient(connection=connection)


def told(report: DoctorReport) -> list[str]:
    """The findings as lines."""
    return [f"{name}: {finding.subject} {finding.problem}" for name, finding in report.findings]
