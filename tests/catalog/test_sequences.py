"""Numbers come one by one, and fences are moved by setval alone."""

import pytest

from tests.catalog.routines import Catalog
from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

FENCES = ("epoch_fence", "head_fence", "tail_fence", "caller_owned_fence")


def test_no_session_keeps_numbers_to_itself(shared_store: Store):
    """A cached range would be drawn out of order, and lost with its session."""
    sequences = shared_store.observer.execute(
        "select sequencename, cache_size, cycle, increment_by from pg_sequences where schemaname = 'onecommit'"
    ).fetchall()
    assert len(sequences) > 190
    assert {row[1:] for row in sequences} == {(1, False, 1)}


def test_lanes_have_sequences_of_their_own(shared_store: Store):
    """Three each, shared with nobody."""
    names = shared_store.observer.execute(
        "select s from onecommit.lane l, unnest(array[l.number_seq, l.generation_seq, l.sleeper_seq]) s"
    ).fetchall()
    assert len(names) == len(set(names)) > 190


def test_fences_are_not_drawn_from(shared_store: Store):
    """A nextval logs ahead, and a crash would jump the fence."""
    for routine in Catalog(shared_store.observer).routines.values():
        for fence in (*FENCES, "generation_seq", "sleeper_seq"):
            assert f'nextval(\'"onecommit".{fence}' not in routine.code, routine.name
            assert f"nextval(v_lane.{fence}" not in routine.code, routine.name


def test_a_fence_survives_the_transaction_that_moved_it(engine: Engine):
    """It is outside MVCC: nobody can see an old one."""
    before = engine.value("select pg_sequence_last_value('onecommit.tail_fence')")
    engine.begin()
    engine.sql("select setval('onecommit.tail_fence', %s)", before + 1)
    engine.rollback()
    assert engine.value("select pg_sequence_last_value('onecommit.tail_fence')") == before + 1
