"""Tests of the size of tasks, and of who runs them, as a pure function of measurements."""

import pytest

from dataset.runtime.parallel.task_sizer import SIZE_MAX, TASK_SECONDS, TaskSizer

FEW = 20


def run(task_sizer, per_element, tasks=FEW, *, inputs=0.0, size_max=SIZE_MAX):
    for _ in range(tasks):
        if not task_sizer.inline:
            task_sizer.add(task_sizer.size, per_element * task_sizer.size, inputs * task_sizer.size, size_max)
    return task_sizer


def run_inline(task_sizer, per_element, times=10):
    """Simulate that the consumer computes 100 elements at a time, while it does so."""
    for _ in range(times):
        if task_sizer.inline:
            task_sizer.add_inline(100, 100 * per_element)
    return task_sizer


@pytest.mark.parametrize(
    ("per_element", "tasks", "size_max", "sizes"),
    [
        (1e-5, 0, SIZE_MAX, {1}),
        (10e-3, FEW, SIZE_MAX, {1}),
        (1e-5, 1, SIZE_MAX, {1}),  # they do not grow on the word of one
        (TASK_SECONDS / 10, FEW, SIZE_MAX, {5, 6, 7, 8, 9, 10}),
        (1e-7, FEW, 6, {6}),
    ],
)
def test_tasks_grow_to_what_is_worth_a_handover_and_shrink_when_elements_become_expensive(
    per_element, tasks, size_max, sizes
):
    task_sizer = TaskSizer(may_inline=False)
    assert run(task_sizer, per_element, tasks, size_max=size_max).size in sizes
    assert not task_sizer.inline
    assert run(task_sizer, TASK_SECONDS).size == 1


def test_some_slow_elements_change_nothing():
    task_sizer = run(TaskSizer(), TASK_SECONDS / 10)
    size = task_sizer.size
    for number in range(100):
        task_sizer.add(size, TASK_SECONDS * (20 if number % 5 == 0 else 1), 0.0, SIZE_MAX)
    assert task_sizer.size == size


def test_cheap_work_is_done_by_the_consumer_until_it_is_expensive():
    task_sizer = run(TaskSizer(), 1e-7)
    assert task_sizer.inline
    for _ in range(10):
        task_sizer.add_inline(1, 1e-7)
    assert task_sizer.inline
    assert task_sizer.is_settled
    for _ in range(10):
        task_sizer.add_inline(1, 1e-3)
    assert not task_sizer.inline
    assert not run(TaskSizer(), 1e-7, inputs=1e-3).inline  # its inputs take long to read


def windows(task_sizer, alone, waited, together=None, count=3, *, inputs=0.0):
    """Simulate some windows in which the consumer waited this long for each element.

    A call takes ``together`` seconds while other workers run, and ``alone`` seconds when they are idle. Computing its
    input takes ``inputs`` seconds.
    """
    for number in range(int(count * 200)):
        if not task_sizer.inline:
            task_sizer.waited(waited * task_sizer.size)
            run(task_sizer, alone if number % 20 == 0 or together is None else together, tasks=1, inputs=inputs)
    return task_sizer


def contended(task_sizer=None, count=3):
    """Simulate four workers that give not one element sooner than one does."""
    return windows(task_sizer or TaskSizer(), 1e-4, 1e-4, 4e-4, count)


def test_threads_that_gain_nothing_are_tried_against_the_consumer_alone():
    task_sizer = contended()
    assert task_sizer.inline
    assert not task_sizer.is_settled
    assert run_inline(task_sizer, 0.9e-4).is_settled


def test_the_workers_come_back_when_the_consumer_is_slower_and_after_a_while():
    task_sizer = run_inline(contended(), 3e-4)
    assert not task_sizer.inline
    assert not contended(task_sizer, count=0.1).inline  # not again so soon
    assert not run_inline(contended(), 1e-4, times=100).inline


@pytest.mark.parametrize(
    ("alone", "waited", "inputs", "count", "inline"),
    [
        (1e-4, 0.25e-4, 0.0, 20, False),
        (1e-4, 0.5e-4, 0.0, 20, False),
        (1e-3, 1e-3, 1e-3, 20, False),  # they read and work at the same time
        (1e-4, 1e-3, 0.9e-3, 3, True),  # their inputs take most of the time
    ],
)
def test_threads_that_share_the_work_go_on_and_others_are_tried_against_the_consumer(
    alone, waited, inputs, count, inline
):
    task_sizer = windows(TaskSizer(), alone, waited, count=count, inputs=inputs)
    assert task_sizer.inline == inline
    assert not (inline and task_sizer.is_settled)


def test_the_chances_of_the_workers_become_rarer():
    task_sizer, seconds = TaskSizer(), []
    for _ in range(3):
        assert contended(task_sizer).inline
        seconds.append(0.0)
        while task_sizer.inline:
            task_sizer.add_inline(100, 0.9e-2)
            seconds[-1] += 1e-2
    assert seconds[1] > 1.9 * seconds[0]
    assert seconds[2] > 1.9 * seconds[1]


def test_what_was_learned_is_tried_again_before_it_is_believed():
    task_sizer = contended()
    assert task_sizer.learned.waited is None  # not yet
    assert run_inline(task_sizer, 0.9e-4).learned.waited == pytest.approx(1e-4)
    for per_element, inline in ((0.9e-4, True), (1.2e-4, False)):
        following = TaskSizer()
        following.warm_start(task_sizer.learned)
        assert run_inline(following, per_element).inline == inline


def test_work_that_was_cheap_begins_inline_and_leaves_when_it_is_expensive():
    learned = run(TaskSizer(), 1e-7).learned
    for per_element, inline in ((1e-7, True), (1e-3, False)):
        following = TaskSizer()
        following.warm_start(learned)
        assert following.inline
        assert run_inline(following, per_element).inline == inline
    never = TaskSizer(may_inline=False)
    never.warm_start(learned)
    assert not never.inline


def test_the_chances_of_the_workers_become_rarer_in_many_short_epochs_too():
    """Each epoch opens a new operator, with a new task sizer."""
    learned, trials, epochs = TaskSizer().learned, 0, 1000
    for _ in range(epochs):
        task_sizer = TaskSizer()
        task_sizer.warm_start(learned)
        for _ in range(20):
            if not task_sizer.inline:
                trials += 1
                contended(task_sizer)
            run_inline(task_sizer, 0.9e-4, times=2)
        learned = task_sizer.learned
    assert 3 <= trials <= 20
    assert learned.again_seconds > 8
