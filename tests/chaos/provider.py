"""Work whose provider is a table of its own: what it did stands there, whatever became of who asked."""

import os
import time
from datetime import timedelta
from typing import Any

import psycopg

from onecommit import SyncWorkInvocation
from onecommit.app.app import App
from onecommit.domain.work import Safety, WorkInquiry
from onecommit.domain.work_exit import Applied, NotApplied
from onecommit.domain.work_policy import WorkRetry

app = App()
RETRY = WorkRetry(
    initial_delay=timedelta(milliseconds=100),
    max_delay=timedelta(milliseconds=100),
    lease=timedelta(seconds=2),
    renewal=timedelta(milliseconds=500),
    max_lease=timedelta(minutes=1),
)
PROVIDER = "create table provider (key uuid not null, attempt int not null, pid bigint not null)"


def charge(invocation: SyncWorkInvocation, payload: dict[str, Any]) -> str:
    """The provider does it; the first answer never comes."""
    with psycopg.connect(os.environ["HANDLER_DSN"], autocommit=True) as connection:
        connection.execute(
            "insert into provider values (%s, %s, %s)",
            (invocation.activity_id, invocation.attempt, os.getpid()),
        )
    if invocation.attempt == 1:
        time.sleep(600)
    return "paid"


def look(inquiry: WorkInquiry, payload: dict[str, Any]) -> Any:
    """Whether the provider knows the key."""
    with psycopg.connect(os.environ["HANDLER_DSN"], autocommit=True) as connection:
        known = connection.execute(
            "select from provider where key = %s", (inquiry.activity_id,)
        ).fetchone()
    return NotApplied() if known is None else Applied("paid")


for safety in Safety:
    work = app.work(
        f"charge.{safety.value}",
        version="1",
        payload=dict,
        result=str,
        safety=safety,
        retry=RETRY,
    )
    work.executor(charge)
    work.reconciler(look)
