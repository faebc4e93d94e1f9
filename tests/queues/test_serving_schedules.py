"""Random schedules of processes that use one queue; ``make explore`` runs others."""

import pytest

from support.queue_schedules import run


@pytest.mark.parametrize("number", range(12))
def test_no_schedule_loses_or_repeats_an_element(number):
    run(number)
