"""Tests of the size of tasks, and of who runs them, as a pure function of measurements."""

import pytest

from dataset.runtime.parallel.task_sizer import CHEAP_SECONDS, SIZE_MAX, TASK_SECONDS, Learned, TaskSizer

FEW = 20
CHEAP = CHEAP_SECONDS / SIZE_MAX


class JudgedSizer(TaskSizer):
    """A task sizer that says what it thinks of inline work."""

    @property
    def is_settled(self):
        """Whether the last measurement left no doubt that the consumer should do the work."""
        return self.inline and not self._trying and bool(self._pulls) and self._pulls[-1].each <= self._bound


class Simulation:
    """A task sizer and a clock."""

    def __init__(self, **keywords):
        self.sizer = JudgedSizer(**keywords)
        self.now = self.process = 0.0

    def run(self, per_element, tasks=FEW, *, inputs=0.0, cpu=0.0, size_max=SIZE_MAX, elapsed=0.0, process=0.0):
        """Simulate tasks of workers; ``elapsed`` seconds pass for each of their elements, which need some CPU time.

        The process uses ``process`` cores.
        """
        sizer = self.sizer
        for _ in range(tasks):
            if not sizer.inline:
                self.now += elapsed * sizer.size
                seconds = (each * sizer.size for each in (per_element, inputs, cpu))
                self.process += process * elapsed * sizer.size
                sizer.add(sizer.size, *seconds, size_max, self.now, self.process)
        return sizer

    def run_inline(self, per_element, times=10, *, count=100, used=0.0):
        """Simulate that the consumer computes some elements at a time, and uses each for ``used`` seconds."""
        for _ in range(times):
            if self.sizer.inline:
                self.now += per_element * count
                self.sizer.add_inline(count, count * per_element, SIZE_MAX, self.now)
                self.now += used * count
        return self.sizer

    def windows(self, alone, waited, together=None, count=3, *, inputs=0.0, cpu=0.0, used=0.0, process=0.0):
        """Simulate some windows in which the consumer waited this long for each element, and used it for some time.

        A call takes ``together`` seconds while other workers run, and ``alone`` seconds when they are idle. Computing
        its input takes ``inputs`` seconds; both take ``cpu`` seconds of CPU time. The process uses ``process`` cores.
        """
        for number in range(int(count * 200)):
            if not self.sizer.inline:
                self.sizer.waited(waited * self.sizer.size)
                call = alone if number % 20 == 0 or together is None else together
                self.run(call, tasks=1, inputs=inputs, cpu=cpu, elapsed=waited + used, process=process)
        return self.sizer

    def contended(self, count=3, used=0.0):
        """Simulate four workers that give not one element sooner than one does."""
        return self.windows(1e-4, 1e-4, 4e-4, count, used=used)

    def follow(self, learned):
        """Begin the next epoch."""
        self.sizer = JudgedSizer()
        self.sizer.warm_start(learned)


def run(per_element, tasks=FEW, **keywords):
    return Simulation().run(per_element, tasks, **keywords)


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
    simulation = Simulation(may_inline=False)
    assert simulation.run(per_element, tasks, size_max=size_max).size in sizes
    assert not simulation.sizer.inline
    assert simulation.run(TASK_SECONDS).size == 1


def test_cheap_work_is_done_by_the_consumer_until_it_is_expensive():
    simulation = Simulation()
    assert simulation.run(1e-7).inline
    assert simulation.run_inline(1e-7, count=1).is_settled
    assert simulation.run_inline(1e-7, count=1).inline
    assert not simulation.run_inline(1e-3, count=1).inline
    assert not run(1e-7, inputs=1e-3).inline  # its inputs take long to read


def starting(*per_element, count=1):
    """Simulate that the consumer computes the first elements."""
    simulation = Simulation(starts_inline=True)
    for seconds in per_element:
        simulation.run_inline(seconds, times=1, count=count)
    return simulation


def test_cheap_work_begins_inline_and_stays_there():
    """The first pull is slow because the code of the library runs for the first time."""
    simulation = starting(9e-4, 5e-4, 1e-6, 1e-6)
    for _ in range(40):
        assert simulation.sizer.is_starting
        assert not simulation.sizer.is_settled
        assert simulation.sizer.learned is None
        simulation.run_inline(1e-6, times=1, count=32)
    assert simulation.run_inline(1e-6, times=20, count=32).is_settled
    assert not simulation.sizer.is_starting
    assert simulation.sizer.learned.bound
    assert not simulation.run_inline(1e-3, count=1).inline


@pytest.mark.parametrize(("per_element", "calls"), [(10e-3, 1), (1.1e-3, 1), (0.9e-3, 4), (1e-4, 21), (CHEAP * 2, 130)])
def test_expensive_work_is_left_to_the_workers_after_one_call_or_two_milliseconds(per_element, calls):
    simulation, count = starting(), 0
    while simulation.sizer.inline:
        simulation.run_inline(per_element, times=1, count=1)
        count += 1
    assert count == pytest.approx(calls, abs=2)
    assert not simulation.sizer.is_starting
    assert simulation.sizer.learned.bound is None
    assert simulation.contended().inline  # as without this beginning


def test_threads_that_gain_nothing_are_tried_against_the_consumer_alone():
    simulation = Simulation()
    assert simulation.contended().inline
    assert not simulation.sizer.is_settled
    assert simulation.run_inline(0.9e-4, times=20).is_settled


def test_a_consumer_that_the_workers_slow_down_counts():
    """With workers, each element takes 1e-4 seconds of waiting and as much of a consumer that waits for the lock."""
    for used, inline in ((0.2e-4, True), (1e-4, False)):
        simulation = Simulation()
        assert simulation.contended(used=1e-4).inline
        simulation.run_inline(1.5e-4, times=5, used=used)
        assert simulation.run_inline(1.5e-4, times=15, used=used).inline == inline


def test_the_workers_come_back_when_the_consumer_is_slower_and_after_a_while():
    simulation = Simulation()
    simulation.contended()
    assert not simulation.run_inline(3e-4).inline
    assert not simulation.contended(count=0.1).inline  # not again so soon
    simulation = Simulation()
    simulation.contended()
    assert not simulation.run_inline(0.9e-4, times=100).inline


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
    task_sizer = Simulation().windows(alone, waited, count=count, inputs=inputs)
    assert task_sizer.inline == inline
    assert not (inline and task_sizer.is_settled)


@pytest.mark.parametrize(
    ("alone", "cpu", "inline"),
    [(2e-4, 0.3e-4, False), (2e-4, 0.9e-4, True), (2e-4, 1.2e-4, True), (2e-4, 1.8e-4, False), (8e-4, 0.9e-4, False)],
)
def test_threads_that_use_about_one_core_are_tried_against_the_consumer(alone, cpu, inline):
    """If two workers always wait for the interpreter lock, no call shows how long it takes alone.

    But sixteen that wait for a device use one core, too, and the consumer alone would be much slower.
    """
    assert Simulation().windows(alone, 1e-4, cpu=cpu, count=20).inline == inline


@pytest.mark.parametrize(
    ("process", "cpu", "inline"),
    [
        (1.0, 0.4e-4, True),
        (1.2, 0.3e-4, True),
        (1.4, 0.3e-4, True),
        (1.0, 0.1e-4, False),
        (1.5, 0.4e-4, False),
        (0.5, 0.4e-4, False),
    ],
)
def test_threads_of_a_process_that_uses_one_core_are_tried_against_the_consumer(process, cpu, inline):
    """Unless they wait for a device, or the consumer does: they all wait for one lock, whoever holds it."""
    assert Simulation().windows(0.5e-4, 1e-7, used=1e-4, cpu=cpu, process=process, count=20).inline == inline


def test_the_next_epoch_begins_inline_if_a_trial_has_succeeded_and_leaves_if_it_becomes_expensive():
    simulation = Simulation()
    assert simulation.contended().learned.bound is None  # not yet
    learned = simulation.run_inline(0.9e-4, times=20).learned
    assert learned.usual == pytest.approx(0.9e-4)
    for per_element, inline in ((0.9e-4, True), (2e-4, True), (1e-3, False)):  # the first elements take longer
        simulation.follow(learned)
        assert simulation.run_inline(per_element, times=10).inline == inline


def test_work_that_was_cheap_begins_inline_and_leaves_when_it_is_expensive():
    learned = run(1e-7).learned
    simulation = Simulation()
    for per_element, inline in ((1e-7, True), (1e-3, False)):
        simulation.follow(learned)
        assert simulation.sizer.inline
        assert simulation.run_inline(per_element).inline == inline
    never = TaskSizer(may_inline=False)
    never.warm_start(learned)
    assert not never.inline


def test_the_chances_of_the_workers_become_rarer_in_many_short_epochs_too():
    """Each epoch opens a new operator, with a new task sizer."""
    simulation, trials, epochs = Simulation(), 0, 1000
    learned = simulation.sizer.learned
    for _ in range(epochs):
        simulation.follow(learned)
        for _ in range(20):
            if not simulation.sizer.inline:
                trials += 1
                simulation.contended()
            simulation.run_inline(0.9e-4, times=2)
        learned = simulation.sizer.learned
    assert 3 <= trials <= 20
    assert learned.again_seconds > 8


@pytest.mark.parametrize(("process", "alone", "patience"), [(0.0, 0.2e-4, 8), (1.0, 0.2e-4, 4), (1.0, 0.7e-4, 8)])
def test_failed_trials_become_rarer_and_more_slowly_if_one_core_is_nearly_as_fast(process, alone, patience):
    simulation = Simulation()
    for _ in range(2):
        while not simulation.sizer.inline:
            simulation.windows(0.2e-4, 1e-7, used=1e-4, cpu=0.2e-4, process=process, count=1)
        simulation.run_inline(alone, 100, used=1e-4)
    assert simulation.sizer.learned.patience == patience


def test_windows_of_short_epochs_are_counted_together():
    """Otherwise, inline work would never be tried again in short epochs after a few failed trials."""
    simulation, inline = Simulation(), []
    simulation.follow(Learned(patience=8))
    for _ in range(2):
        inline.append(simulation.contended(0.3).inline)
        simulation.follow(simulation.sizer.learned)
    assert inline == [False, True]
