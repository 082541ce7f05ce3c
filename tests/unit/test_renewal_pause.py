"""How soon a lease that could not be renewed is asked for again."""

import pytest

from onecommit.worker.work.renewals import pause_before_asking_again


@pytest.mark.parametrize(
    ("left", "pause"),
    [(60.0, 1.0), (10.0, 1.0), (4.0, 0.4), (0.5, 0.05), (0.01, 0.05), (0.0, 1.0), (-1.0, 1.0)],
)
def test_the_pause_follows_what_is_left_of_the_lease(left: float, pause: float):
    """A tenth of it within bounds; for a lease that has ended there is no hurry."""
    assert pause_before_asking_again(left) == pytest.approx(pause)


def test_a_lease_is_asked_for_many_times_before_it_ends():
    """However short: two seconds hold more than twenty questions."""
    left, asked = 2.0, 0
    while left > 0:
        left -= pause_before_asking_again(left)
        asked += 1
    assert asked > 20
