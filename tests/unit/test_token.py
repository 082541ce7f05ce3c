"""Nobody but the library makes a token or a receipt, so holding one means something."""

import copy
import pickle
from datetime import UTC, datetime

import pytest

from onecommit import FinalizationReceipt, FinalizationToken, Outcome, StaleAttempt
from onecommit.calls.finalization import complete_job
from onecommit.domain.token import ReceiptEvidence, issue_receipt, issue_token

EVIDENCE = ReceiptEvidence(
    contract_version=1,
    outcome=Outcome.COMPLETED,
    finished_at=datetime(2026, 1, 1, tzinfo=UTC),
    transaction_id=99,
)


def token(job_id: int = 1, receipt_id: int = 4) -> FinalizationToken:
    return issue_token(
        job_id=job_id,
        run_lease=2,
        claim_slot=3,
        receipt_id=receipt_id,
        batch_id=5,
        batch_index=6,
    )


@pytest.mark.parametrize("opaque", [FinalizationToken, FinalizationReceipt])
def test_a_user_cannot_construct_one(opaque: type):
    with pytest.raises(TypeError, match="cannot be constructed"):
        opaque()
    with pytest.raises(TypeError, match="cannot be constructed"):
        opaque(1, job_id=2)


@pytest.mark.parametrize("opaque", [FinalizationToken, FinalizationReceipt])
def test_a_user_cannot_extend_one(opaque: type):
    with pytest.raises(TypeError, match="cannot extend"):
        type("Mine", (opaque,), {})


@pytest.mark.parametrize("value", [token(), issue_receipt(token(), EVIDENCE)])
def test_none_leaves_its_process(value: object):
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot leave its process"):
            leave(value)


def test_none_changes():
    with pytest.raises(AttributeError):
        token()._portable = None
    with pytest.raises(AttributeError):
        issue_receipt(token(), EVIDENCE).other = 1


def test_equality_is_that_of_the_attempt():
    assert token() == token()
    assert hash(token()) == hash(token())
    assert token() != token(receipt_id=5)
    assert token() != token().portable


def test_a_receipt_belongs_to_its_own_attempt_only():
    receipt = issue_receipt(token(), EVIDENCE)
    assert receipt.belongs_to(token())
    assert not receipt.belongs_to(token(job_id=2))
    assert receipt == issue_receipt(token(), EVIDENCE)
    assert receipt.transaction_id == 99


def test_what_is_printed_gives_no_authority_away():
    assert repr(token(job_id=7, receipt_id=123456)) == "<FinalizationToken of job 7>"
    assert "123456" not in repr(issue_receipt(token(receipt_id=123456), EVIDENCE))


def test_the_portable_form_has_the_names_of_the_sql_parameters():
    assert token().portable._asdict() == {
        "job_id": 1,
        "run_lease": 2,
        "claim_slot": 3,
        "receipt_id": 4,
        "batch_id": 5,
        "batch_index": 6,
    }


def test_a_receipt_that_the_store_wrote_for_another_attempt_is_none():
    """The statement repeats the token, and what it repeats is compared."""
    ours = token()
    answer = [1, *ours.portable, "completed", 0, 7]
    call = complete_job(ours, progress=None)
    assert call.read([answer]).belongs_to(ours)
    for field in range(1, 7):
        other = [*answer]
        other[field] += 1
        with pytest.raises(StaleAttempt, match="another attempt"):
            call.read([other])
