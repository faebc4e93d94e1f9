"""prefetch(AUTOTUNE) in virtual time: its thread overlaps with the consumer, or takes turns with it at the lock."""

import itertools

import pytest

from dataset import AUTOTUNE, Dataset, Options
from dataset.ops import prefetch
from dataset.ops.prefetch import PatientPrefetchOperator, PrefetchOperator
from dataset.runtime.choice import INLINE
from support.seeds import rng

MS = 1e-3
HANDOVER = 0.03 * MS
UNTUNED = Options()
UNTUNED.autotune.enabled = False


class Clock:
    now = cpu = 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return self.cpu

    def work(self, seconds):
        self.now += seconds
        self.cpu += seconds


class VirtualThread:
    """In the place of the thread and of its CPU clock: it works while the consumer does, or delays it (``locked``)."""

    def __init__(self, stage, clock, locked):
        self.stage, self.clock, self.locked = stage, clock, locked
        self.free, self.current = clock.now, None

    def end(self, seconds):
        return seconds

    def begin(self):
        now, cpu = self.clock.now, self.clock.cpu
        chunk = self.stage.source.pull(1)
        seconds = self.clock.now - now
        self.clock.now, self.clock.cpu = now, cpu
        self.stage._in_progress = 1
        self.current = chunk, seconds, self.free + seconds

    def run(self, until):
        stage, clock = self.stage, self.clock
        while self.current or stage.buffered()[0] < stage.knob.value:
            if not self.current:
                self.begin()
            chunk, seconds, ended = self.current
            if ended > until:
                return
            self.free, self.current = ended + HANDOVER, None
            clock.cpu += seconds + HANDOVER
            if self.locked:
                clock.now += seconds + HANDOVER
            stage._deliver(chunk, seconds, self)
        self.free = max(self.free, until)

    def take(self, n):
        self.run(self.clock.now)
        if not self.stage._items:
            ended = self.current[2]
            self.clock.now = self.clock.now if self.locked else max(self.clock.now, ended)
            self.run(ended)
        return self.stage._give(n)


class Run:
    """A loop over ``make`` and ``use``, iterators of seconds, for ``seconds``.

    Attributes:
        ended: when each element had been used.
        starts: when a thread was started.
    """

    def __init__(self, monkeypatch, make, use, seconds, *, locked=False, way=None):
        clock, self.ended, self.starts = Clock(), [], []

        def pull(stage, n):
            if not stage._is_logged:
                self.starts.append(clock.now)
                self.thread = VirtualThread(stage, clock, locked)
                stage._is_logged = True
            return self.thread.take(n)

        def compute(x):
            clock.work(next(make))
            return x

        with monkeypatch.context() as patch:
            patch.setattr(prefetch, "time", clock)
            patch.setattr(PrefetchOperator, "pull", pull)
            patch.setattr(PrefetchOperator, "call_workers", lambda _: None)
            if way is not None:
                patch.setattr(PatientPrefetchOperator, "_look", lambda _: clock.now)
            with iter(Dataset.range(10**9).map(compute).prefetch(AUTOTUNE).with_options(UNTUNED)) as iterator:
                self.stage = iterator._root
                self.stage.knob.maximum = 128
                self.stage.choice.accept(way or INLINE)
                while clock.now < seconds:
                    next(iterator)
                    clock.work(next(use))
                    self.ended.append(clock.now)
                self.inline = self.stage.inline

    def count(self, since=0.0):
        return sum(time >= since for time in self.ended)


def always(milliseconds):
    return lambda _: itertools.repeat(milliseconds * MS)


def exponential(milliseconds):
    return lambda draws: (draws.expovariate(1 / (milliseconds * MS)) for _ in itertools.count())


def bursts(milliseconds, every, others=0.0):
    return lambda _: itertools.cycle([milliseconds * MS, *[others * MS] * (every - 1)])


OVERLAPPING = {  # what producing and using an element take, and how long it takes at most to find out
    "equal": (always(10), always(10), 1),
    "a step": (always(1), always(5), 1),
    "short": (always(0.2), always(0.2), 1),
    "varying": (exponential(10), exponential(10), 3),
    "long blocks": (bursts(100, 100, 0.05), always(2), 3),
}


@pytest.mark.parametrize("case", OVERLAPPING)
def test_a_thread_that_hides_work_is_found_and_kept(monkeypatch, case):
    make, use, since = OVERLAPPING[case]
    runs = {}
    for way in (None, INLINE, prefetch.THREAD):
        runs[way] = Run(monkeypatch, make(rng(case, "make")), use(rng(case, "use")), 5, way=way)
    best = max(runs[INLINE].count(since), runs[prefetch.THREAD].count(since))
    assert runs[None].count(since) > 0.9 * best
    assert runs[None].count() > 0.75 * best
    assert len(runs[None].starts) < 10


LOCKED = {
    "short": (always(0.05), always(0.05)),
    "varying": (exponential(1), exponential(1)),
    "a step": (always(1), always(5)),
}


@pytest.mark.parametrize("case", LOCKED)
def test_work_that_holds_the_lock_is_done_without_a_thread(monkeypatch, case):
    make, use = LOCKED[case]
    run, plain = (
        Run(monkeypatch, make(rng(case, "make")), use(rng(case, "use")), 3, locked=True, way=way)
        for way in (None, INLINE)
    )
    assert run.count() > 0.95 * plain.count()
    assert len(run.starts) < 20


@pytest.mark.parametrize("milliseconds", [0.0, 0.05, 0.3])
def test_beside_a_long_step_no_thread_is_started_that_could_hide_little(monkeypatch, milliseconds):
    run = Run(monkeypatch, itertools.repeat(milliseconds * MS), itertools.repeat(5 * MS), 20)
    assert run.inline
    assert not run.starts


def test_the_buffer_holds_what_the_consumer_takes_during_the_longest_pull(monkeypatch):
    make, use, _ = OVERLAPPING["a step"]
    assert Run(monkeypatch, make(None), use(None), 1).stage.knob.value == 2
    make, use, _ = OVERLAPPING["long blocks"]
    assert 50 <= Run(monkeypatch, make(None), use(None), 2).stage.knob.value <= 52


def test_work_that_changes_is_judged_again(monkeypatch):
    make = itertools.chain(itertools.repeat(0.02 * MS, 10_000), itertools.repeat(10 * MS))
    use = itertools.chain(itertools.repeat(0.02 * MS, 10_000), itertools.repeat(10 * MS))
    run = Run(monkeypatch, make, use, 5)
    assert not run.inline
