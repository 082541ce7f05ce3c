"""What the database says when the demo is over."""

from dataclasses import dataclass
from typing import Any, Self

import psycopg

_COUNTS = """
select (select count(*) from invoice),
       (select count(*) from invoice where state = 'settled'),
       (select count(*) from settlement),
       (select count(distinct invoice_id) from settlement),
       (select count(*) from onecommit.completion where outcome = 'completed'),
       (select count(*) from onecommit.claim c, unnest(c.seqs)),
       (select count(*) from onecommit.completion where outcome = 'rescued'),
       (select count(*) from refusal),
       (select count(*) from settlement s join refusal r using (job_id, run_lease)),
       (select count(*) from settlement s
        where not exists (select from onecommit.ready_rows(s.job_id) r
                          join onecommit.completion c using (slot, lane, seq)
                          where r.run_lease + 1 = s.run_lease and c.outcome = 'completed'))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The counts, and the invariants that they must keep."""

    invoices: int
    settled: int
    settlements: int
    invoices_with_settlement: int
    jobs_completed: int
    attempts: int
    rescued: int
    stale_refused: int
    stale_committed: int
    unmatched: int

    @classmethod
    def read(cls, conn: psycopg.Connection[Any]) -> Self:
        """Count, in one statement and so at one instant."""
        counts = conn.execute(_COUNTS).fetchone() or ()
        return cls(**dict(zip(cls.__slots__, counts, strict=True)))

    @property
    def violations(self) -> list[str]:
        """What does not hold, in words; empty when every invoice was settled exactly once."""
        checks = {
            "every invoice is settled": self.settled == self.invoices,
            "no invoice is settled twice": self.settlements == self.invoices_with_settlement,
            "every invoice has its settlement": self.invoices_with_settlement == self.invoices,
            "every job is completed": self.jobs_completed == self.invoices,
            "no stale attempt committed": self.stale_committed == 0,
            "each settlement was committed with the completion of its own attempt": self.unmatched
            == 0,
        }
        return [promise for promise, kept in checks.items() if not kept]
