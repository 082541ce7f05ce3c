"""The reconciliation table, written out a second time as data and compared cell by cell."""

import pytest

from onecommit.domain.evidence import (
    Accept,
    AskAgain,
    AttemptState,
    AttemptStatus,
    HandlerExit,
    Settle,
    reconcile,
)
from onecommit.domain.job import Outcome

COMPLETED = AttemptStatus(state=AttemptState.CLOSED, outcome=Outcome.COMPLETED)
IN_FLIGHT = AttemptStatus(state=AttemptState.IN_FLIGHT, holder_pid=42)
OPEN = AttemptStatus(state=AttemptState.OPEN)
UNKNOWN = AttemptStatus(state=AttemptState.UNKNOWN)
SUPERSEDED = [
    AttemptStatus(state=AttemptState.CLOSED, outcome=outcome)
    for outcome in Outcome
    if outcome is not Outcome.COMPLETED
]


@pytest.mark.parametrize("handler_exit", HandlerExit)
def test_a_durable_completion_is_accepted_however_the_handler_ended(handler_exit):
    """Only a handler that returned its own receipt ended as it should; every other end is reported."""
    surprising = handler_exit is not HandlerExit.OWN_RECEIPT
    assert reconcile(handler_exit, COMPLETED) == Accept(surprising=surprising)


@pytest.mark.parametrize("handler_exit", HandlerExit)
def test_a_transaction_that_still_holds_the_attempt_is_waited_for(handler_exit):
    assert reconcile(handler_exit, IN_FLIGHT) == AskAgain(holder_pid=42)


@pytest.mark.parametrize("handler_exit", HandlerExit)
def test_without_an_answer_nothing_is_decided(handler_exit):
    assert reconcile(handler_exit, None) == AskAgain(holder_pid=None)


@pytest.mark.parametrize("handler_exit", HandlerExit)
@pytest.mark.parametrize("status", SUPERSEDED, ids=lambda status: status.outcome)
def test_another_outcome_is_never_touched(handler_exit, status):
    assert reconcile(handler_exit, status) is Settle.STALE


@pytest.mark.parametrize("handler_exit", HandlerExit)
def test_what_cannot_be_known_is_never_touched(handler_exit):
    assert reconcile(handler_exit, UNKNOWN) is Settle.UNKNOWN


@pytest.mark.parametrize(
    ("handler_exit", "action"),
    [
        (HandlerExit.OWN_RECEIPT, Settle.AS_PROTOCOL_ERROR),
        (HandlerExit.NO_RECEIPT, Settle.AS_PROGRAMMING_ERROR),
        (HandlerExit.OUTCOME, Settle.AS_HANDLED),
        (HandlerExit.ERROR, Settle.AS_HANDLED),
        (HandlerExit.CANCELLED, Settle.AS_HANDLED),
        (HandlerExit.TIMEOUT, Settle.AS_HANDLED),
        (HandlerExit.SHUTDOWN, Settle.AS_HANDLED),
    ],
)
def test_an_open_attempt_is_settled_by_how_its_handler_ended(handler_exit, action):
    assert reconcile(handler_exit, OPEN) is action
