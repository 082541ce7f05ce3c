"""A caller's connection that leads to a standby is told so, whether or not the claim has arrived there."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from onecommit.calls.finalization import complete_job
from onecommit.domain.token import issue_token
from onecommit.drivers.driver import sync_driver_for
from onecommit.embedded import EmbeddedPostgres
from onecommit.errors import UsageError

from tests.clusters import MAJORS, Cluster, binaries
from tests.embedded.conftest import open_directory
from tests.engine import Engine
from tests.strict import StrictDatabase, strict_database

pytestmark = pytest.mark.pg


@pytest.fixture(params=MAJORS, ids=[f"pg{major}" for major in MAJORS])
def server(request) -> Iterator[EmbeddedPostgres]:
    """A server whose data is kept from one start to the next."""
    with (
        open_directory() as directory,
        EmbeddedPostgres(directory / "data", bin_dir=binaries(request.param)) as server,
    ):
        yield server


def test_a_standby_cannot_complete(server: EmbeddedPostgres):
    with strict_database(Cluster(major=0, server=server)) as database:
        _refused_until_promoted(server, database)


def _refused_until_promoted(server: EmbeddedPostgres, database: StrictDatabase) -> None:
    dsn = database.login("caller")
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        engine = Engine(connection, epoch=database.identity["epoch"])
        [arrived] = engine.take()
    signal = Path(server.server.directory.cluster) / "standby.signal"
    server.stop()
    signal.touch()
    server.start()
    with psycopg.connect(dsn) as caller:
        missing = arrived.token | {"receipt_id": arrived.receipt_id + 1}
        for token in (arrived.token, missing):
            with pytest.raises(UsageError, match="read-only") as refused:
                sync_driver_for(caller, schema="onecommit").run(
                    complete_job(issue_token(**token), progress=None)
                )
            assert "replica" in refused.value.remedy
            caller.rollback()
    server.stop()
    signal.unlink()
    server.start()
    with psycopg.connect(dsn, autocommit=True) as connection:
        engine = Engine(connection, epoch=engine.epoch)
        assert engine.complete_job(arrived).outcome == "completed"
