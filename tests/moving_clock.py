"""A clock that a session sees move while it waits, and inside of a transaction."""

from datetime import datetime

from tests.stores import Store
from tests.works import CLOCK, NOON, Clock


class MovingClock(Clock):
    """Of a table: a session in the middle of something goes on with the function that it knows, but reads rows anew."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.owner.execute(
            "create table if not exists app.clock (at timestamptz not null); delete from app.clock;"
            " grant usage on schema app to public; grant select on app.clock to public"
        )
        self.owner.execute("insert into app.clock values (%s)", (NOON,))
        self.owner.execute(f"{CLOCK} $$ select at from app.clock $$")

    def stop(self, at: datetime = NOON) -> None:
        self.now = at
        self.owner.execute("update app.clock set at = %s", (at,))

    def run(self) -> None:
        """The table stays: a session that failed may still hold it."""
        super().run()
        self.owner.execute("revoke usage on schema app from public")
