"""A worker starts only where its connections suffice, and the runtime keeps its share of a pool."""

import pytest

from onecommit.domain.connections import ConnectionBudget, ConnectionNeeds, Supply, admit
from onecommit.errors import UsageError

PLENTY = ConnectionBudget(usable=97, free=90)


def needs(**changes) -> ConnectionNeeds:
    usual = {"runtime": 9, "caller_owned": 20, "application": None, "shared_pool": None}
    return ConnectionNeeds(**usual | changes)


def test_an_own_pool_for_the_application_leaves_the_runtime_alone():
    """Whatever the handlers hold, it is not the runtime's."""
    assert admit(needs(), PLENTY) is Supply.ENOUGH


def test_a_shared_pool_without_the_reserve_is_refused_with_the_numbers():
    """20 handlers could hold every connection while the heartbeat waits for one."""
    with pytest.raises(UsageError, match=r"20 .* 9 .* need 29, .* has 28") as caught:
        admit(needs(shared_pool=28), PLENTY)
    assert "concurrency" in caught.value.remedy
    assert admit(needs(shared_pool=29), PLENTY) is Supply.ENOUGH


def test_a_pooler_is_judged_by_its_own_size_where_the_server_is_not_asked():
    with pytest.raises(UsageError, match="need 29"):
        admit(needs(shared_pool=10), None)
    assert admit(needs(application=10_000), None) is Supply.ENOUGH


@pytest.mark.parametrize("pools", [{"application": 89}, {"shared_pool": 98}])
def test_pools_beyond_what_the_server_ever_allows_are_refused(pools):
    with pytest.raises(UsageError, match="may use 98 connections, and the server allows 97"):
        admit(needs(**pools), PLENTY)


def test_pools_beyond_what_is_free_now_are_warned_of():
    """Others may leave; and not every connection is opened."""
    assert admit(needs(application=81), PLENTY) is Supply.ENOUGH
    assert admit(needs(application=82), PLENTY) is Supply.SCARCE


def test_an_unknown_pool_counts_by_its_jobs_and_is_never_refused_for_it():
    crowded = ConnectionBudget(usable=20, free=28)
    assert admit(needs(), crowded) is Supply.SCARCE
    assert admit(needs(), ConnectionBudget(usable=20, free=29)) is Supply.ENOUGH
