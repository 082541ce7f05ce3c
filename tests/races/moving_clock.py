"""A clock that a session sees move while it waits."""

from datetime import datetime

from tests.stores import Store
from tests.works import CLOCK, NOON, Clock


class MovingClock(Clock):
    """Of a table: a session that waits for a row goes on with the function that it knew before, but reads rows anew."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.owner.execute(
            "create table app.clock (at timestamptz not null);"
            " grant usage on schema app to public; grant select on app.clock to public"
        )
        self.owner.execute("insert into app.clock values (%s)", (NOON,))
        self.owner.execute(f"{CLOCK} $$ select at from app.clock $$")

    def stop(self, at: datetime = NOON) -> None:
        self.now = at
        self.owner.execute("update app.clock set at = %s", (at,))

    def run(self) -> None:
        super().run()
        self.owner.execute("drop table app.clock; revoke usage on schema app from public")
