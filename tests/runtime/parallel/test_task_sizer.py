"""How large tasks are, and who does them: numbers in, numbers out."""

import pytest

from dataset.runtime.parallel.task_sizer import SIZE_MAX, TASK_SECONDS, TaskSizer

FEW = 20


def run(pace, per_element, tasks=FEW, *, inputs=0.0, size_max=SIZE_MAX):
    for _ in range(tasks):
        if pace.inline:
            return
        pace.add(pace.size, per_element * pace.size, inputs * pace.size, size_max)


def test_begins_with_one_element():
    assert TaskSizer().size == 1


def test_an_element_that_takes_long_is_a_task():
    pace = TaskSizer()
    run(pace, 10e-3)
    assert pace.size == 1


def test_tasks_grow_to_what_is_worth_handing_over():
    pace = TaskSizer()
    run(pace, TASK_SECONDS / 10)
    assert 5 <= pace.size <= 10


def test_tasks_do_not_grow_on_the_word_of_one():
    pace = TaskSizer()
    pace.add(1, 1e-5, 0.0, SIZE_MAX)
    assert pace.size == 1


def test_tasks_shrink_when_elements_get_dearer():
    pace = TaskSizer()
    run(pace, TASK_SECONDS / 10)
    run(pace, TASK_SECONDS)
    assert pace.size == 1


def test_some_slow_elements_change_nothing():
    pace = TaskSizer()
    run(pace, TASK_SECONDS / 10)
    size = pace.size
    for number in range(100):
        pace.add(size, TASK_SECONDS * (20 if number % 5 == 0 else 1), 0.0, SIZE_MAX)
    assert pace.size == size


def test_tasks_are_no_larger_than_they_may_be():
    pace = TaskSizer(may_inline=False)
    run(pace, 1e-7, size_max=6)
    assert pace.size == 6


def test_cheap_work_is_done_by_the_consumer_until_it_is_dear():
    pace = TaskSizer()
    run(pace, 1e-7)
    assert pace.inline
    for _ in range(10):
        pace.add_inline(1, 1e-7)
    assert pace.inline
    assert pace.is_settled
    for _ in range(10):
        pace.add_inline(1, 1e-3)
    assert not pace.inline


def test_cheap_work_on_inputs_that_take_long_to_read_is_left_to_the_workers():
    pace = TaskSizer()
    run(pace, 1e-7, inputs=1e-3)
    assert not pace.inline


def test_never_inline_where_it_may_not():
    pace = TaskSizer(may_inline=False)
    run(pace, 1e-7)
    assert not pace.inline


def windows(pace, alone, waited, together=None, count=3, *, inputs=0.0):
    """Some windows in which the consumer waited so long for each element.

    That takes a worker ``together`` while others work, and ``alone`` now and then, when they rest. Its input takes
    ``inputs`` before.
    """
    for number in range(int(count * 200)):
        if pace.inline:
            return
        pace.waited(waited * pace.size)
        run(pace, alone if number % 20 == 0 or together is None else together, tasks=1, inputs=inputs)


def test_threads_that_gain_nothing_are_tried_against_the_consumer_alone():
    pace = TaskSizer()
    windows(pace, 1e-4, 1e-4, 4e-4)  # four workers, and not one element sooner than from one
    assert pace.inline
    assert not pace.is_settled
    for _ in range(10):
        pace.add_inline(100, 100 * 0.9e-4)
    assert pace.is_settled


def test_the_workers_come_back_when_the_consumer_is_slower():
    pace = TaskSizer()
    windows(pace, 1e-4, 1e-4, 4e-4)
    for _ in range(10):
        if pace.inline:
            pace.add_inline(100, 100 * 3e-4)
    assert not pace.inline
    windows(pace, 1e-4, 1e-4, 4e-4, count=0.5)
    assert not pace.inline  # not again so soon


def test_after_a_while_the_workers_get_another_chance():
    pace = TaskSizer()
    windows(pace, 1e-4, 1e-4, 4e-4)
    for _ in range(100):
        if pace.inline:
            pace.add_inline(100, 1e-2)
    assert not pace.inline


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_threads_that_share_the_work_go_on(share):
    pace = TaskSizer()
    windows(pace, 1e-4, 1e-4 * share, count=20)
    assert not pace.inline


def test_workers_that_read_and_work_at_the_same_time_go_on():
    pace = TaskSizer()
    windows(pace, 1e-3, 1e-3, count=20, inputs=1e-3)
    assert not pace.inline


def test_workers_whose_inputs_take_most_of_the_time_are_tried_against_the_consumer_alone():
    pace = TaskSizer()
    windows(pace, 1e-4, 1e-3, inputs=0.9e-3)
    assert pace.inline
    assert not pace.is_settled


def test_the_chances_of_the_workers_become_rarer():
    pace, seconds = TaskSizer(), []
    for _ in range(3):
        windows(pace, 1e-4, 1e-4, 4e-4)
        assert pace.inline
        seconds.append(0.0)
        while pace.inline:
            pace.add_inline(100, 0.9e-2)
            seconds[-1] += 1e-2
    assert seconds[1] > 1.9 * seconds[0]
    assert seconds[2] > 1.9 * seconds[1]


def test_what_was_learned_is_tried_again_before_it_is_believed():
    pace = TaskSizer()
    windows(pace, 1e-4, 1e-4, 4e-4)
    assert pace.learned[0] is None  # not yet
    for _ in range(10):
        pace.add_inline(100, 100 * 0.9e-4)
    assert pace.learned[0] == pytest.approx(1e-4)
    for per_element, inline in ((0.9e-4, True), (1.2e-4, False)):
        following = TaskSizer()
        following.begin_with(pace.learned)
        for _ in range(10):
            if following.inline:
                following.add_inline(100, 100 * per_element)
        assert following.inline == inline
