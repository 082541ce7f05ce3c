"""Lanes run out and can be added."""

import psycopg
import pytest

from onecommit import schema
from onecommit.errors import InvalidArgument

from tests.clusters import Database

_FILL = """
    select onecommit.adopt_lane('queue ' || number, 2)
    from generate_series(1, (select count(*) from onecommit.lane where queue is null and lane > 0)) number
"""


def test_an_exhausted_pool_names_the_command_that_extends_it(database: Database) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as conn:
        conn.execute(_FILL)
        with pytest.raises(psycopg.Error) as refused:
            conn.execute("select onecommit.adopt_lane('one more', 2)")
        assert refused.value.sqlstate == "OC007"
        assert refused.value.diag.message_hint == "Run: onecommit lanes add"
        assert schema.add_lanes(database.dsn, 2) == 2
        conn.execute("select onecommit.adopt_lane('one more', 2)")


def test_the_pool_never_exceeds_what_a_lane_number_can_say(database: Database) -> None:
    with pytest.raises(InvalidArgument, match="1,024"):
        schema.add_lanes(database.dsn, 1000)
