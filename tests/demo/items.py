"""Items of Work as the demo's ledger reads them."""

from onecommit.demo.work_ledger import WorkItem
from onecommit.domain.work import Safety, WorkState


def item(safety: Safety, number: int, **changes) -> WorkItem:
    defaults = {
        "work_id": number,
        "scope_id": "shop",
        "revision": 5,
        "contract_name": f"contract.{safety.value}",
        "safety": safety,
        "state": WorkState.SUCCEEDED,
        "action": None,
        "key": f"{safety.value}-{number}",
        "result": f'"receipt-{safety.value}-{number}"',
        "admissions": 1,
        "lost": 0,
        "evidence": 0,
        "absences": 0,
    }
    return WorkItem(**defaults | changes)
