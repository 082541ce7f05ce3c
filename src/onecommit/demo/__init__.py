"""The product in one minute: invoices settled in one commit each, while workers are stopped and killed."""

from onecommit.demo.ledger import Ledger
from onecommit.demo.stage import Demo
from onecommit.demo.steps import Step
from onecommit.demo.work_ledger import WorkLedger

__all__ = ["Demo", "Ledger", "Step", "WorkLedger"]
