"""In a caller's transaction a bad argument is refused before anything is sent, so what else the transaction does can commit."""

from functools import partial

import pytest

from tests import bad_calls
from tests.drivers.callers import PythonCaller
from tests.drivers.conftest import Application, write

pytestmark = pytest.mark.pg


async def test_the_transaction_goes_on_after_a_bad_argument(
    application: Application, python_caller: PythonCaller
):
    app, caller = application.app, python_caller
    entry = await write(caller)
    producer = bad_calls.count_job(app).in_tx(caller.connection)
    acceptor = bad_calls.charge_work(app).in_tx(caller.connection)
    faults = [
        *await bad_calls.faults_of(bad_calls.of_producer(producer)),
        *await bad_calls.faults_of(bad_calls.of_acceptor(acceptor)),
        *await bad_calls.faults_of(bad_calls.of_callbacks(app.callbacks.in_tx(caller.connection))),
    ]
    assert not faults, "\n".join(faults)
    enqueued = await bad_calls.answer(partial(producer.enqueue, n=1))
    assert (
        await bad_calls.answer(partial(acceptor.accept, {"a": 1}, **bad_calls.IDENTITY))
    ).work_id
    await caller.commit()
    assert entry in application.entries()
    with application.database.connect() as observer:
        rows = observer.execute(
            "select job_id from onecommit.ready where job_id >= %s", (enqueued.job_id,)
        ).fetchall()
        assert rows == [(enqueued.job_id,)]
