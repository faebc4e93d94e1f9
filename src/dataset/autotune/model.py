"""How fast a pipeline will be, from what its parts cost: numbers in, numbers out.

The pipeline is cut into *sections* at its buffers. Each works by itself, in threads of its own, and two that are
neighbours slow one another only where the buffer between them is empty or full. How often that is follows from how
long each takes, how much that varies, and how much the buffer holds.

The model is that of tf.data's autotuner (Murray et al., "tf.data: A Machine Learning Data Processing Framework",
VLDB 2021, section 4.3), which takes a section's seconds per element as its own time over its workers plus the wait for
its inputs, and the wait as that in a queue of type M/M/1/K. It is extended in these ways:

- *Both directions.* A section that waits for room makes less; what it takes from is slowed down by that in turn. Both
  waits are iterated until every section runs at the same rate (Dallery and Gershwin, "Manufacturing flow line systems:
  a review of models and analytical results", Queueing Systems 1992).
- *Variation.* Queues of type M/M/1/K are for times that vary exponentially. Where they vary less, a buffer is worth
  more; with constant times, one of a single element already hides the shorter time behind the longer.
- *Groups.* Who takes 32 elements at a time is not served by a buffer of 16 while it works.
- *Shared cores and the interpreter's lock.* Who computes while others do takes longer, as in mean value analysis
  (Reiser and Lavenberg 1980, Schweitzer 1979); nothing is ever faster than all computing over the cores, or than all
  work under the lock (the operational laws; Plumber, Kuchnik et al. 2022, uses them alone).

All times are in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dataset.autotune.queues import tempered, wait_seconds

CORES = "cores"
INTERPRETER_LOCK = "interpreter lock"

_ROUNDS = 100
_SHARING_ROUNDS = 25  # they go on from where those for the period before have come to
_CLOSE = 1e-4  # the relative change below which rates count as equal
_CLOSE_COUNT = 1e-3  # of threads, likewise
_DAMPING = 0.5
_STATES_MAX = 81  # of four sections with several workers; of further ones, the mean has to do
_BURST = 1.3  # more variance by each worker whose elements wait for another's; fitted, for a window of 32 per worker


@dataclass(frozen=True)
class Section:
    """A part of a pipeline that works by itself: the ops between two buffers.

    Times are per element that the section makes, and as they are with nothing else going on: what is waited for
    inputs, room, a core or the lock is left to ``predict``.

    Attributes:
        name: what ``Prediction.binding`` says where the section bounds the pipeline.
        ratio: elements it makes per element of the whole pipeline: 32 before a batch of 32.
        wall_seconds: one worker, per element.
        cpu_seconds: how long a core is busy, of ``wall_seconds`` and ``serial_seconds`` together.
        lock_seconds: how long the interpreter's lock is held, of ``cpu_seconds``: no other thread's Python runs.
        serial_seconds: per element, besides ``wall_seconds``, what one worker at a time does: reading the inputs of a
            parallel map.
        workers: that work at once, each on one element.
        ordered: whether elements that are done wait for those before them, where there are several workers. Then they
            come in bursts, which need more room.
        variation: squared coefficient of variation of ``wall_seconds``: 0 for constant times, 1 for exponential ones.
        buffer: finished elements beside which no more is begun, the one that who takes from the section works on left
            out; 0 where the section works in the thread of who takes from it, or for the consumer.
        inputs: the sections that it takes from.

    Example:
        >>> decode = Section("decode", ratio=32, wall_seconds=4e-3, cpu_seconds=4e-3, workers=4, buffer=36)
        >>> train = Section("train", wall_seconds=50e-3, inputs=(decode,))
        >>> predict(train, cores=2)
        Prediction(seconds=0.064..., binding='cores')
    """

    name: str
    ratio: float = 1.0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    lock_seconds: float = 0.0
    serial_seconds: float = 0.0
    workers: int = 1
    ordered: bool = True
    variation: float = 0.0
    buffer: float = 0.0
    inputs: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        """Measured times may be off by a little; a part is never longer than the whole."""
        object.__setattr__(self, "cpu_seconds", min(self.cpu_seconds, self.wall_seconds + self.serial_seconds))
        object.__setattr__(self, "lock_seconds", min(self.lock_seconds, self.cpu_seconds))

    def __iter__(self) -> Iterator[Section]:
        """Yield the section and all below it."""
        yield self
        for section in self.inputs:
            yield from section


@dataclass(frozen=True)
class Prediction:
    """What is to be expected of a pipeline.

    Attributes:
        seconds: per element of the pipeline, the consumer's own time included.
        binding: what bounds it: "cores", "interpreter lock", or the name of a section.
    """

    seconds: float
    binding: str


def predict(root: Section, cores: float) -> Prediction:
    """Return how long a pipeline takes per element, and what bounds it.

    Args:
        root: the consumer, with the ops in its thread. The others are below it, as inputs.
        cores: that the process may use.

    Example:
        A prefetch hides the shorter of two constant times; where they are exponential, not quite.

        >>> load = Section("load", wall_seconds=10e-3, buffer=1)
        >>> predict(Section("train", wall_seconds=10e-3, inputs=(load,)), cores=2).seconds
        0.01
        >>> load = replace(load, variation=1)
        >>> round(predict(Section("train", wall_seconds=10e-3, variation=1, inputs=(load,)), cores=2).seconds, 4)
        0.015
    """
    bounds = lower_bounds(root, cores)
    binding = max(bounds, key=lambda name: bounds[name])
    return Prediction(_Line(root).settle(cores, bounds[binding]), binding)


def gain(root: Section, changed: Section, cores: float) -> float:
    """By how much the changed pipeline is faster: 0.5 for one and a half times the throughput.

    Example:
        >>> load = Section("load", wall_seconds=30e-3, buffer=2)
        >>> train = Section("train", wall_seconds=20e-3, inputs=(load,))
        >>> gain(train, twice_as_fast(train, "load"), cores=2)
        0.5...
    """
    after = predict(changed, cores).seconds
    before = predict(root, cores).seconds
    if not after:
        return math.inf if before else 0.0
    return before / after - 1


def twice_as_fast(root: Section, name: str) -> Section:
    """Return the pipeline in which the sections of that name take half of each of their times."""
    inputs = tuple(twice_as_fast(section, name) for section in root.inputs)
    factor = 0.5 if root.name == name else 1.0
    return replace(
        root,
        wall_seconds=root.wall_seconds * factor,
        cpu_seconds=root.cpu_seconds * factor,
        lock_seconds=root.lock_seconds * factor,
        serial_seconds=root.serial_seconds * factor,
        inputs=inputs,
    )


def lower_bounds(root: Section, cores: float) -> dict[str, float]:
    """Return the seconds per element of the pipeline below which it never gets, by what bounds it. Quick to tell.

    Example:
        >>> decode = Section("decode", ratio=32, wall_seconds=4e-3, cpu_seconds=4e-3, workers=4, buffer=36)
        >>> lower_bounds(Section("train", wall_seconds=50e-3, inputs=(decode,)), cores=2)
        {'train': 0.05, 'decode': 0.032, 'cores': 0.064, 'interpreter lock': 0.0}
    """
    bounds = {section.name: 0.0 for section in root}
    _bound_of(root, bounds)
    bounds[CORES] = sum(section.ratio * section.cpu_seconds for section in root) / cores
    bounds[INTERPRETER_LOCK] = sum(section.ratio * section.lock_seconds for section in root)
    return bounds


def _bound_of(section: Section, bounds: dict[str, float]) -> float:
    """That of a section, the sections included that work in its threads; put among the others."""
    below = [(_bound_of(source, bounds), source.buffer) for source in section.inputs]
    seconds = section.ratio * _own_seconds(section.wall_seconds, section.serial_seconds, section.workers)
    seconds += sum(bound for bound, buffer in below if not buffer)
    bounds[section.name] = max(bounds[section.name], seconds)
    return seconds


def _own_seconds(wall: float, serial: float, workers: int) -> float:
    """Per element, with inputs at hand and room."""
    return max(serial, (serial + wall) / workers)


@dataclass(eq=False)
class _Station:
    """A section among the others, while the rates are sought. Its times are per element of the pipeline.

    Attributes:
        seconds: its own, with all its workers, as slow as others make it that share the cores and the lock.
        making: what it takes if there is always room, and ``making_spread`` how much that varies.
        taking: what who takes from it does beside waiting for it, and ``taking_spread`` how much that varies.
        starving: what who takes from it waits for it.
        blocked: what it waits for room.
        hungry: what it waits for its inputs, if there is always room.
        awake: the share of the time in which it does not wait for room.
        overtaking: the share of its workers' time in which one may get ahead of another: not at the lock.
        held: how long a worker holds the lock for an element, on cores that others use, too.
        computing: how many of its workers compute, on average, the one with the lock left out.
        holding: how many hold the lock, and compute.
        queueing: how many hold it, or wait for it.
    """

    section: Section
    inputs: list[_Station]
    seconds: float = 0.0
    making: float = 0.0
    making_spread: float = 0.0
    taking: float = 0.0
    taking_spread: float = 0.0
    starving: float = 0.0
    blocked: float = 0.0
    hungry: float = 0.0
    awake: float = 1.0
    overtaking: float = 1.0
    held: float = 0.0
    computing: float = 0.0
    holding: float = 0.0
    queueing: float = 0.0

    @property
    def spread(self) -> float:
        """The variance of the time of what is one element of the pipeline, over the squared mean."""
        return tempered(self.section.variation) / self.section.ratio if self.section.ratio else 0.0

    @property
    def burst(self) -> float:
        """By how much the variance of what comes out in order is larger."""
        return 1 + _BURST * self.overtaking * (self.section.workers - 1) if self.section.ordered else 1.0


@dataclass(eq=False)
class _Line:
    """All stations, the consumer last."""

    root: Section
    stations: list[_Station] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._add(self.root)

    def _add(self, section: Section) -> _Station:
        inputs = [self._add(source) for source in section.inputs]
        station = _Station(section, inputs)
        self.stations.append(station)
        return station

    def settle(self, cores: float, least: float) -> float:
        """The seconds per element at which the line, with the cores and the lock as busy as they then are, keeps up.

        The quicker the elements come, the busier the cores are and the longer everything takes. So there is one such
        time, which is sought by regula falsi (the Illinois way), from ``least`` on.
        """
        low, high = least, self.seconds_at(least, cores)
        too_slow, too_quick = math.log(high / low) if low else 0.0, 0.0
        if too_slow <= _CLOSE:
            return max(low, high)
        too_quick = math.log(self.seconds_at(high, cores) / high)
        for _ in range(_ROUNDS):
            if too_quick >= -_CLOSE or high <= low * (1 + _CLOSE):
                break
            share = too_slow / (too_slow - too_quick)
            middle = low * (high / low) ** share
            excess = math.log(self.seconds_at(middle, cores) / middle)
            if excess > 0:
                low, too_slow, too_quick = middle, excess, too_quick / 2
            else:
                high, too_quick, too_slow = middle, excess, too_slow / 2
        return high

    def seconds_at(self, period: float, cores: float) -> float:
        """Return how long an element takes with the cores and the lock as busy as if one came each ``period``."""
        for _ in range(_SHARING_ROUNDS):
            if self._share(cores, period) <= _CLOSE_COUNT:
                break
        for _ in range(_ROUNDS):
            self._make()
            if self._take() <= _CLOSE / 10 * self.stations[-1].making:
                break
        return self.stations[-1].making

    def _make(self) -> None:
        """From the sources to the consumer: how long each takes if there is always room."""
        for station in self.stations:
            self._make_one(station)

    def _make_one(self, station: _Station) -> None:
        starving = 0.0
        spread = station.seconds * station.spread * station.burst
        for source in station.inputs:
            starving += source.starving
            spread += source.starving * source.making_spread
        station.hungry = starving
        station.making = station.seconds + starving
        station.making_spread = spread / station.making if station.making else 0.0

    def _take(self) -> float:
        """From the consumer to the sources: how long each takes if there are always inputs. Returns the change."""
        change = 0.0
        for station in reversed(self.stations):
            for source in station.inputs:
                others = sum(other.starving for other in station.inputs if other is not source)
                source.taking = station.seconds + others + station.blocked
                spread = station.seconds * station.spread + station.blocked * station.taking_spread
                source.taking_spread = spread / source.taking if source.taking else 0.0
                wait = _wait_between(source, station)
                source.starving += _DAMPING * (wait - source.starving)
                change = max(change, abs(wait - source.starving))
                source.blocked = max(0.0, source.taking + source.starving - source.making)
        return change

    def _share(self, cores: float, period: float) -> float:
        """Return how long each takes with the others on the same cores and behind the same lock. Returns the change."""
        crowd = _Crowd(self.stations, cores)
        return max(_slow_down(station, crowd, period) for station in self.stations)


def _slow_down(station: _Station, crowd: _Crowd, period: float) -> float:
    """Let a station's times, and how many of its workers compute, be what the crowd makes of them."""
    section = station.section
    free, held, locked = crowd.times(station)
    station.held = held
    total = section.wall_seconds + section.serial_seconds
    stretched = total - section.cpu_seconds + free + locked
    stretch = stretched / total if total else 1.0
    own = _own_seconds(section.wall_seconds, section.serial_seconds, section.workers)
    station.seconds = stretch * section.ratio * own
    station.overtaking = 1 - locked / stretched if stretched else 1.0
    station.awake = min(1.0, (station.seconds + station.hungry) / period) if period else 1.0
    rate = section.ratio / period if period else 0.0
    station.computing, a = _toward(station.computing, rate * free, section.workers)
    station.holding, b = _toward(station.holding, rate * held, 1)
    station.queueing, c = _toward(station.queueing, rate * locked, section.workers)
    return max(a, b, c)


def _toward(value: float, wanted: float, most: float) -> tuple[float, float]:
    """Return the value, brought nearer to what is wanted, and how far it was from there."""
    step = min(wanted, most) - value
    return value + _DAMPING * step, abs(step)


class _Crowd:
    """Who computes at the same time. Workers that rest, for want of room, do so together, and go on together."""

    def __init__(self, stations: list[_Station], cores: float) -> None:
        self.stations = stations
        self.cores = cores
        self.queue = sum(station.queueing for station in stations)
        self.cpu_seconds = sum(s.section.ratio * s.section.cpu_seconds for s in stations)
        self.held_seconds = sum(s.section.ratio * s.held for s in stations)

    def times(self, station: _Station) -> tuple[float, float, float]:
        """What a worker's element takes: computing without the lock, with it, and the latter with the wait for it.

        In the time in which a worker makes an element, so many elements of the pipeline are made. It never waits
        longer for a core, or for the lock, than what all others do there for these takes.
        """
        section = station.section
        free, held = section.cpu_seconds - section.lock_seconds, section.lock_seconds
        elements = section.workers / section.ratio if section.ratio else 0.0
        longest = max(0.0, self.cpu_seconds * elements - section.cpu_seconds) / self.cores
        if free:
            free = min(free * self.slower(station, with_lock=True), free + longest)
        if held:
            held = min(held * self.slower(station, with_lock=False), held + longest)
        queue = max(0.0, self.queue - station.queueing / section.workers)
        return free, held, min(held * (1 + queue), max(held, self.held_seconds * elements))

    def slower(self, station: _Station, *, with_lock: bool) -> float:
        """Return how much longer computing takes a worker of ``station`` than with a core of its own."""
        states = [(1.0, 1.0)]  # probability, and how many compute, this worker included
        for other in self.stations:
            computing = other.computing + (other.holding if with_lock else 0.0)
            workers = other.section.workers
            awake = other.awake
            if other is station:  # its fellows, who are awake when it is
                workers -= 1
                computing *= (1 - 1 / other.section.workers) / max(awake, computing / other.section.workers, 1e-9)
                awake = 1.0
            computing *= _overlap(station, other)
            if len(states) > _STATES_MAX:
                states = [(share, count + computing) for share, count in states]
            elif computing > 0 and workers:
                states = _combined(states, _states(computing, workers, awake))
        speed = sum(share * min(1.0, self.cores / count) for share, count in states)
        return 1 / speed


def _overlap(one: _Station, other: _Station) -> float:
    """How much of the work of two neighbours goes on at the same time: what the buffer between them has room for."""
    for source, taker in ((one, other), (other, one)):
        if source in taker.inputs:
            return min(1.0, source.section.buffer * _events(source, taker) / max(source.section.ratio, 1e-12))
    return 1.0


def _events(source: _Station, taker: _Station) -> float:
    """Return how often elements are taken, per element of the pipeline: several at once, or one for several."""
    return min(source.section.ratio, taker.section.ratio)


def _states(computing: float, workers: int, awake: float) -> list[tuple[float, float]]:
    """Return how many workers compute, in a few states and their probabilities: none, fewer, and more."""
    if workers == 1:
        computing = min(computing, 1.0)
        return [(1 - computing, 0.0), (computing, 1.0)]
    awake = max(awake, computing / workers)
    each = computing / workers / awake
    deviation = math.sqrt(workers * each * (1 - each)) if each < 1 else 0.0
    deviation = min(deviation, workers * each)
    states = [(awake / 2, workers * each - deviation), (awake / 2, workers * each + deviation)]
    return [*states, (1 - awake, 0.0)] if awake < 1 else states


def _combined(states: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(share * more, count + extra) for share, count in states for more, extra in others]


def _wait_between(source: _Station, taker: _Station) -> float:
    """Return what ``taker`` waits for ``source``, per element of the pipeline."""
    section = source.section
    if not section.buffer:
        return source.making
    events = _events(source, taker)
    if not events:
        return 0.0
    # Workers that go on together, because there is room again, deliver together.
    making_spread = max(source.making_spread, source.taking_spread * (1 - 1 / section.workers))
    variation = (making_spread + source.taking_spread) / 2 * events
    n = section.buffer * events / section.ratio
    return events * wait_seconds(source.taking / events, source.making / events, n, variation)
