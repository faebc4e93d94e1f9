"""Tests of the size of tasks, and of who runs them, as a pure function of measurements."""

import pytest

from dataset.runtime.parallel.task_sizer import CHEAP_SECONDS, LEASE, SIZE_MAX, TASK_SECONDS, Learned, TaskSizer

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


def test_some_slow_elements_change_nothing():
    task_sizer = run(TASK_SECONDS / 10)
    size = task_sizer.size
    for number in range(100):
        task_sizer.add(size, TASK_SECONDS * (20 if number % 5 == 0 else 1), 0.0, 0.0, SIZE_MAX, number, 0.0)
    assert task_sizer.size == size


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


def test_after_an_epoch_that_was_too_short_to_know_the_next_one_begins_with_workers():
    simulation = Simulation(starts_inline=True)
    simulation.sizer.warm_start(starting(1e-6, 1e-6).sizer.learned)
    assert not simulation.sizer.inline


def test_small_pulls_at_the_beginning_do_not_make_the_work_expensive():
    """The consumer computes 2, 4, 8 elements ahead, and so on; each pull takes 40 microseconds more."""
    simulation = Simulation()
    assert simulation.run(1e-6).inline
    for count in (1, 2, 4, 8, 16, 32, *[64] * 10):
        assert simulation.run_inline(4e-5 / count + 1e-6, times=1, count=count).inline
    assert simulation.sizer.is_settled


def test_single_elements_between_large_pulls_do_not_make_the_work_expensive():
    """A batch that is joined from two chunks: the smaller one has the fixed cost of a call, too."""
    simulation = Simulation()
    assert simulation.contended().inline
    assert simulation.run_inline(0.9e-4, times=20).is_settled
    for _ in range(10):
        simulation.run_inline(0.9e-4, times=1, count=127)
        simulation.run_inline(9e-4, times=1, count=1)
    assert simulation.sizer.inline


def test_threads_that_gain_nothing_are_tried_against_the_consumer_alone():
    simulation = Simulation()
    assert simulation.contended().inline
    assert not simulation.sizer.is_settled
    assert simulation.run_inline(0.9e-4, times=20).is_settled


def test_the_first_inline_pull_is_not_compared():
    """It may fill the buffer of a shuffle."""
    simulation = Simulation()
    simulation.contended()
    simulation.run_inline(1.0, times=1)
    assert simulation.run_inline(0.9e-4, times=20).is_settled


def test_tasks_that_end_after_the_decision_do_not_count():
    simulation = Simulation()
    simulation.contended()
    for _ in range(4):
        simulation.sizer.add(100, 1.0, 0.0, 0.0, SIZE_MAX, simulation.now, 0.0)
    simulation.run_inline(1.0, times=1)
    assert not simulation.run_inline(0.9e-4, times=1, count=10).is_settled
    assert simulation.run_inline(0.9e-4, times=20).is_settled


def test_a_consumer_that_the_workers_slow_down_counts():
    """With workers, each element takes 1e-4 seconds of waiting and as much of a consumer that waits for the lock."""
    for used, inline in ((0.2e-4, True), (1e-4, False)):
        simulation = Simulation()
        assert simulation.contended(used=1e-4).inline
        simulation.run_inline(1.5e-4, times=5, used=used)
        assert simulation.run_inline(1.5e-4, times=15, used=used).inline == inline


def test_a_trial_has_as_many_elements_as_a_window_and_ends_early_if_it_is_hopeless():
    """A consumer that uses one batch after another: a short trial might end before it does."""
    simulation = Simulation()
    count = 0
    simulation.contended(used=1e-4)
    while not simulation.sizer.is_settled:
        assert simulation.run_inline(1e-4, times=1, count=10).inline
        count += 10
    assert count > 100
    hopeless = Simulation()
    hopeless.contended()
    assert not hopeless.run_inline(1e-2, times=3, count=1).inline


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


@pytest.mark.parametrize(("alone", "used", "inline"), [(0.2e-4, 1e-4, True), (0.5e-4, 1e-4, False)])
def test_threads_that_do_a_small_part_of_the_work_are_tried_against_the_consumer(alone, used, inline):
    """The consumer hardly waits, but workers that hold the interpreter lock may slow it down."""
    assert Simulation().windows(alone, 1e-7, used=used, count=20).inline == inline


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


@pytest.mark.parametrize(("share", "settles"), [(0.96, True), (1.02, False)])
def test_the_consumer_alone_keeps_the_work_of_such_threads_if_it_is_as_fast(share, settles):
    simulation = Simulation()
    elapsed = 1e-4 + 1e-7
    simulation.windows(0.5e-4, 1e-7, used=1e-4, cpu=0.4e-4, process=1.0, count=20)
    simulation.run_inline(0.5e-4, 50, used=share * elapsed - 0.5e-4)
    assert simulation.sizer.inline == settles


@pytest.mark.parametrize("per_element", [1.5e-3, 8e-3])
def test_a_trial_begins_with_few_elements_and_ends_if_they_take_much_longer(per_element):
    """Two workers need 1 ms for an element."""
    simulation = Simulation()
    simulation.windows(1e-3, 1e-3)
    trial, pulled = simulation.sizer._trial, []
    while simulation.sizer.inline:
        pulled.append(min(100, simulation.sizer.pull_max))
        simulation.run_inline(per_element, times=1, count=pulled[-1])
    assert max(pulled[:4]) * per_element <= 8e-3
    assert sum(pulled) < trial


@pytest.mark.parametrize(("per_element", "count", "pulls"), [(1e-6, 1, LEASE), (0.9e-4, 10, 5), (0.9e-4, 1000, 0)])
def test_pulls_without_measurement_are_bounded_in_number_and_time_and_count_like_others(per_element, count, pulls):
    simulation = Simulation()
    simulation.contended()
    assert simulation.sizer.lease() == 0  # nothing was measured yet
    simulation.run_inline(per_element, times=20, count=count)
    before = simulation.sizer.learned.left_seconds
    assert simulation.sizer.lease() == pulls
    assert before - simulation.sizer.learned.left_seconds == pytest.approx(pulls * per_element * count)
    simulation.run_inline(1e-2, times=1, count=1)
    assert simulation.sizer.lease() == 0


def test_the_chances_of_the_workers_become_rarer():
    simulation, seconds = Simulation(), []
    for _ in range(3):
        assert simulation.contended().inline
        seconds.append(0.0)
        while simulation.sizer.inline:
            simulation.run_inline(0.9e-4, times=1)
            seconds[-1] += 0.9e-2
    assert seconds[1] > 1.9 * seconds[0]
    assert seconds[2] > 1.9 * seconds[1]


def test_the_next_epoch_begins_inline_if_a_trial_has_succeeded_and_leaves_if_it_becomes_expensive():
    simulation = Simulation()
    assert simulation.contended().learned.bound is None  # not yet
    learned = simulation.run_inline(0.9e-4, times=20).learned
    assert learned.usual == pytest.approx(0.9e-4)
    for per_element, inline in ((0.9e-4, True), (2e-4, True), (1e-3, False)):  # the first elements take longer
        simulation.follow(learned)
        assert simulation.run_inline(per_element, times=10).inline == inline


@pytest.mark.parametrize(("used", "inline"), [(0.0, True), (0.3e-4, True), (1e-4, False)])
def test_workers_are_tried_again_if_the_consumer_has_become_slower(used, inline):
    simulation = Simulation()
    simulation.contended()
    for pause in (0.0, used):  # the second time, more than a check of half a second, and less than the next chance
        simulation.sizer._left_seconds = 10.0
        simulation.run_inline(0.9e-4, times=70, used=pause)
    assert simulation.sizer.inline == inline


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
