"""Tests of the size of tasks, and of who runs them, as a pure function of measurements."""

import pytest

from dataset.runtime.parallel.task_sizer import SIZE_MAX, TASK_SECONDS, TaskSizer

FEW = 20


def run(task_sizer, per_element, tasks=FEW, *, inputs=0.0, size_max=SIZE_MAX):
    for _ in range(tasks):
        if task_sizer.inline:
            return
        task_sizer.add(task_sizer.size, per_element * task_sizer.size, inputs * task_sizer.size, size_max)


def test_begins_with_one_element():
    assert TaskSizer().size == 1


def test_an_element_that_takes_long_is_a_task():
    task_sizer = TaskSizer()
    run(task_sizer, 10e-3)
    assert task_sizer.size == 1


def test_tasks_grow_to_what_is_worth_handing_over():
    task_sizer = TaskSizer()
    run(task_sizer, TASK_SECONDS / 10)
    assert 5 <= task_sizer.size <= 10


def test_tasks_do_not_grow_on_the_word_of_one():
    task_sizer = TaskSizer()
    task_sizer.add(1, 1e-5, 0.0, SIZE_MAX)
    assert task_sizer.size == 1


def test_tasks_shrink_when_elements_get_dearer():
    task_sizer = TaskSizer()
    run(task_sizer, TASK_SECONDS / 10)
    run(task_sizer, TASK_SECONDS)
    assert task_sizer.size == 1


def test_some_slow_elements_change_nothing():
    task_sizer = TaskSizer()
    run(task_sizer, TASK_SECONDS / 10)
    size = task_sizer.size
    for number in range(100):
        task_sizer.add(size, TASK_SECONDS * (20 if number % 5 == 0 else 1), 0.0, SIZE_MAX)
    assert task_sizer.size == size


def test_tasks_are_no_larger_than_they_may_be():
    task_sizer = TaskSizer(may_inline=False)
    run(task_sizer, 1e-7, size_max=6)
    assert task_sizer.size == 6


def test_cheap_work_is_done_by_the_consumer_until_it_is_dear():
    task_sizer = TaskSizer()
    run(task_sizer, 1e-7)
    assert task_sizer.inline
    for _ in range(10):
        task_sizer.add_inline(1, 1e-7)
    assert task_sizer.inline
    assert task_sizer.is_settled
    for _ in range(10):
        task_sizer.add_inline(1, 1e-3)
    assert not task_sizer.inline


def test_cheap_work_on_inputs_that_take_long_to_read_is_left_to_the_workers():
    task_sizer = TaskSizer()
    run(task_sizer, 1e-7, inputs=1e-3)
    assert not task_sizer.inline


def test_never_inline_where_it_may_not():
    task_sizer = TaskSizer(may_inline=False)
    run(task_sizer, 1e-7)
    assert not task_sizer.inline


def windows(task_sizer, alone, waited, together=None, count=3, *, inputs=0.0):
    """Simulate some windows in which the consumer waited this long for each element.

    A call takes ``together`` seconds while other workers run, and ``alone`` seconds when they are idle. Computing its
    input takes ``inputs`` seconds.
    """
    for number in range(int(count * 200)):
        if task_sizer.inline:
            return
        task_sizer.waited(waited * task_sizer.size)
        run(task_sizer, alone if number % 20 == 0 or together is None else together, tasks=1, inputs=inputs)


def test_threads_that_gain_nothing_are_tried_against_the_consumer_alone():
    task_sizer = TaskSizer()
    windows(task_sizer, 1e-4, 1e-4, 4e-4)  # four workers, and not one element sooner than from one
    assert task_sizer.inline
    assert not task_sizer.is_settled
    for _ in range(10):
        task_sizer.add_inline(100, 100 * 0.9e-4)
    assert task_sizer.is_settled


def test_the_workers_come_back_when_the_consumer_is_slower():
    task_sizer = TaskSizer()
    windows(task_sizer, 1e-4, 1e-4, 4e-4)
    for _ in range(10):
        if task_sizer.inline:
            task_sizer.add_inline(100, 100 * 3e-4)
    assert not task_sizer.inline
    windows(task_sizer, 1e-4, 1e-4, 4e-4, count=0.5)
    assert not task_sizer.inline  # not again so soon


def test_after_a_while_the_workers_get_another_chance():
    task_sizer = TaskSizer()
    windows(task_sizer, 1e-4, 1e-4, 4e-4)
    for _ in range(100):
        if task_sizer.inline:
            task_sizer.add_inline(100, 1e-2)
    assert not task_sizer.inline


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_threads_that_share_the_work_go_on(share):
    task_sizer = TaskSizer()
    windows(task_sizer, 1e-4, 1e-4 * share, count=20)
    assert not task_sizer.inline


def test_workers_that_read_and_work_at_the_same_time_go_on():
    task_sizer = TaskSizer()
    windows(task_sizer, 1e-3, 1e-3, count=20, inputs=1e-3)
    assert not task_sizer.inline


def test_workers_whose_inputs_take_most_of_the_time_are_tried_against_the_consumer_alone():
    task_sizer = TaskSizer()
    windows(task_sizer, 1e-4, 1e-3, inputs=0.9e-3)
    assert task_sizer.inline
    assert not task_sizer.is_settled


def test_the_chances_of_the_workers_become_rarer():
    task_sizer, seconds = TaskSizer(), []
    for _ in range(3):
        windows(task_sizer, 1e-4, 1e-4, 4e-4)
        assert task_sizer.inline
        seconds.append(0.0)
        while task_sizer.inline:
            task_sizer.add_inline(100, 0.9e-2)
            seconds[-1] += 1e-2
    assert seconds[1] > 1.9 * seconds[0]
    assert seconds[2] > 1.9 * seconds[1]


def test_what_was_learned_is_tried_again_before_it_is_believed():
    task_sizer = TaskSizer()
    windows(task_sizer, 1e-4, 1e-4, 4e-4)
    assert task_sizer.learned[0] is None  # not yet
    for _ in range(10):
        task_sizer.add_inline(100, 100 * 0.9e-4)
    assert task_sizer.learned[0] == pytest.approx(1e-4)
    for per_element, inline in ((0.9e-4, True), (1.2e-4, False)):
        following = TaskSizer()
        following.warm_start(task_sizer.learned)
        for _ in range(10):
            if following.inline:
                following.add_inline(100, 100 * per_element)
        assert following.inline == inline
