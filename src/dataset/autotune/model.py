"""Performance model: predicts the throughput of a pipeline from the costs of its parts. Pure arithmetic.

The pipeline is divided into *sections* at its buffers. Each section runs independently in its own threads, and two
adjacent sections slow each other down only if the buffer between them is empty or full. How often that happens depends
on their times and on the size of the buffer.

The model is that of tf.data's autotuner (Murray et al., "tf.data: A Machine Learning Data Processing Framework",
VLDB 2021, section 4.3). There, a section's time per element is its own time divided by its workers, plus the wait for
its inputs, which is that of an M/M/1/K queue. The model is extended as follows:

- *Both directions.* A section that waits for room produces less, which in turn slows down its inputs. Both waits are
  iterated until all sections run at the same rate (Dallery and Gershwin, "Manufacturing flow line systems: a review of
  models and analytical results", Queueing Systems 1992).
- *Variation.* M/M/1/K queues assume exponentially distributed times. Here, times are means of many elements and count
  as constant: a buffer of a single element is enough to hide the shorter time.
- *Groups.* A consumer that takes 32 elements at a time still has to wait if the buffer holds only 16.
- *Shared cores and the interpreter lock.* Concurrent computation takes longer, as in mean value analysis (Reiser and
  Lavenberg 1980, Schweitzer 1979). The time is at least the total computing time divided by the cores, and at least the
  total time under the lock (the operational laws; Plumber, Kuchnik et al. 2022, uses only these).

All times are in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from dataset.autotune.queues import wait_seconds

CORES = "cores"
INTERPRETER_LOCK = "interpreter lock"

_ROUNDS = 100
_SHARING_ROUNDS = 25  # each call continues from the result of the previous one
_CLOSE = 1e-4  # the relative change below which rates count as equal
_CLOSE_COUNT = 1e-3  # the change below which numbers of threads count as equal
_DAMPING = 0.5
_STATES_MAX = 81  # for four sections with several workers; for further ones, the mean is used


@dataclass(frozen=True)
class Section:
    """Section of a pipeline that runs independently: the ops between two buffers.

    Times are per element of the section, without contention: ``predict`` adds the waits for inputs, room, cores and the
    interpreter lock.

    Attributes:
        name: identifies the section in ``Prediction.binding`` if it is the bottleneck.
        ratio: its elements per element of the whole pipeline, such as 32 upstream of a batch of 32.
        wall_seconds: the time of one worker per element.
        cpu_seconds: the part of ``wall_seconds`` and ``serial_seconds`` in which a core is busy.
        lock_seconds: the part of ``cpu_seconds`` in which the interpreter lock is held.
        serial_seconds: the time per element, in addition to ``wall_seconds``, of work done by one worker at a time,
            such as reading the inputs of a parallel map.
        workers: the number of concurrent workers, each working on one element.
        buffer: the number of finished elements above which no further element is started, not counting the one that the
            consumer is using. 0 if the section runs in its consumer's thread, and for the root.
        inputs: the sections from which it takes elements.

    Example:
        >>> decode = Section("decode", ratio=32, wall_seconds=4e-3, cpu_seconds=4e-3, workers=4, buffer=36)
        >>> train = Section("train", wall_seconds=50e-3, inputs=(decode,))
        >>> predict(train, cores=2)
        Prediction(seconds=0.064..., binding='cores')
    """

    name: Hashable
    ratio: float = 1.0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    lock_seconds: float = 0.0
    serial_seconds: float = 0.0
    workers: int = 1
    buffer: float = 0.0
    inputs: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        """Limit each part to the whole, because measured times may be slightly inconsistent."""
        object.__setattr__(self, "cpu_seconds", min(self.cpu_seconds, self.wall_seconds + self.serial_seconds))
        object.__setattr__(self, "lock_seconds", min(self.lock_seconds, self.cpu_seconds))

    def __iter__(self) -> Iterator[Section]:
        """Yield the section and everything upstream of it."""
        yield self
        for section in self.inputs:
            yield from section


@dataclass(frozen=True)
class Prediction:
    """Prediction of a pipeline's performance.

    Attributes:
        seconds: the time per element of the pipeline, including the consumer's own time.
        binding: the bottleneck: "cores", "interpreter lock", or the name of a section.
    """

    seconds: float
    binding: Hashable


def predict(root: Section, cores: float) -> Prediction:
    """Return the predicted time of a pipeline per element, and its bottleneck.

    Args:
        root: the consumer, with the ops in its thread. The other sections are its inputs.
        cores: the number of cores that the process may use.

    Example:
        A prefetch hides the shorter of two times.

        >>> load = Section("load", wall_seconds=10e-3, buffer=1)
        >>> predict(Section("train", wall_seconds=10e-3, inputs=(load,)), cores=2).seconds
        0.01
    """
    bounds = lower_bounds(root, cores)
    binding = max(bounds, key=lambda name: bounds[name])
    return Prediction(_Line(root).settle(cores, bounds[binding]), binding)


def lower_bounds(root: Section, cores: float) -> dict[Hashable, float]:
    """Return lower bounds of the seconds per element of the pipeline, by what bounds it. Cheap to compute.

    Example:
        >>> decode = Section("decode", ratio=32, wall_seconds=4e-3, cpu_seconds=4e-3, workers=4, buffer=36)
        >>> lower_bounds(Section("train", wall_seconds=50e-3, inputs=(decode,)), cores=2)
        {'train': 0.05, 'decode': 0.032, 'cores': 0.064, 'interpreter lock': 0.0}
    """
    bounds: dict[Hashable, float] = {section.name: 0.0 for section in root}
    _bound_of(root, bounds)
    bounds[CORES] = sum(section.ratio * section.cpu_seconds for section in root) / cores
    bounds[INTERPRETER_LOCK] = sum(section.ratio * section.lock_seconds for section in root)
    return bounds


def _bound_of(section: Section, bounds: dict[Hashable, float]) -> float:
    """Return the bound of a section, including the sections that run in its threads, and add it to ``bounds``."""
    below = [(_bound_of(source, bounds), source.buffer) for source in section.inputs]
    seconds = section.ratio * _own_seconds(section.wall_seconds, section.serial_seconds, section.workers)
    seconds += sum(bound for bound, buffer in below if not buffer)
    bounds[section.name] = max(bounds[section.name], seconds)
    return seconds


def _own_seconds(wall: float, serial: float, workers: int) -> float:
    """Return the time per element if inputs and room are always available."""
    return max(serial, (serial + wall) / workers)


@dataclass(eq=False)
class _Station:
    """State of a section while the rates are computed. Its times are per element of the pipeline.

    Attributes:
        seconds: its own time with all its workers, including slowdown by sections that share the cores and the lock.
        making: its time if there is always room.
        taking: the time of its consumer without waiting for it.
        starving: how long its consumer waits for it.
        blocked: how long it waits for room.
        hungry: how long it waits for its inputs, if there is always room.
        awake: the share of the time in which it does not wait for room.
        held: how long a worker holds the lock for an element, on shared cores.
        computing: how many of its workers compute without the lock, on average.
        holding: how many of its workers hold the lock and compute, on average.
        queueing: how many of its workers hold the lock or wait for it, on average.
    """

    section: Section
    inputs: list[_Station]
    seconds: float = 0.0
    making: float = 0.0
    taking: float = 0.0
    starving: float = 0.0
    blocked: float = 0.0
    hungry: float = 0.0
    awake: float = 1.0
    held: float = 0.0
    computing: float = 0.0
    holding: float = 0.0
    queueing: float = 0.0


@dataclass(eq=False)
class _Line:
    """All stations of a pipeline, the consumer last."""

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
        """Return the shortest period per element that the line can sustain, given the load that this period causes.

        The shorter the period, the busier the cores and the slower each element. So there is a unique fixed point,
        which is found by regula falsi (the Illinois algorithm), starting at ``least``.
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
        """Return the time per element with the load on the cores and the lock of one element per ``period``."""
        for _ in range(_SHARING_ROUNDS):
            if self._share(cores, period) <= _CLOSE_COUNT:
                break
        for _ in range(_ROUNDS):
            self._make()
            if self._take() <= _CLOSE / 10 * self.stations[-1].making:
                break
        return self.stations[-1].making

    def _make(self) -> None:
        """Update the times if there is always room, from the sources to the consumer."""
        for station in self.stations:
            station.hungry = sum(source.starving for source in station.inputs)
            station.making = station.seconds + station.hungry

    def _take(self) -> float:
        """Update the times if there are always inputs, from the consumer to the sources, and return the change."""
        change = 0.0
        for station in reversed(self.stations):
            for source in station.inputs:
                others = sum(other.starving for other in station.inputs if other is not source)
                source.taking = station.seconds + others + station.blocked
                wait = _wait_between(source, station)
                source.starving += _DAMPING * (wait - source.starving)
                change = max(change, abs(wait - source.starving))
                source.blocked = max(0.0, source.taking + source.starving - source.making)
        return change

    def _share(self, cores: float, period: float) -> float:
        """Update the times of all stations, which share the cores and the lock, and return the change."""
        crowd = _Crowd(self.stations, cores)
        return max(_slow_down(station, crowd, period) for station in self.stations)


def _slow_down(station: _Station, crowd: _Crowd, period: float) -> float:
    """Update a station's times and its numbers of computing workers under the load of the others; return the change."""
    section = station.section
    free, held, locked = crowd.times(station)
    station.held = held
    total = section.wall_seconds + section.serial_seconds
    stretched = total - section.cpu_seconds + free + locked
    stretch = stretched / total if total else 1.0
    own = _own_seconds(section.wall_seconds, section.serial_seconds, section.workers)
    station.seconds = stretch * section.ratio * own
    station.awake = min(1.0, (station.seconds + station.hungry) / period) if period else 1.0
    rate = section.ratio / period if period else 0.0
    station.computing, a = _toward(station.computing, rate * free, section.workers)
    station.holding, b = _toward(station.holding, rate * held, 1)
    station.queueing, c = _toward(station.queueing, rate * locked, section.workers)
    return max(a, b, c)


def _toward(value: float, wanted: float, most: float) -> tuple[float, float]:
    """Return the value moved towards ``wanted``, and its previous distance."""
    step = min(wanted, most) - value
    return value + _DAMPING * step, abs(step)


class _Crowd:
    """Load of all stations on the cores and the lock. Workers of a station wait for room, and resume, together."""

    def __init__(self, stations: list[_Station], cores: float) -> None:
        self.stations = stations
        self.cores = cores
        self.queue = sum(station.queueing for station in stations)
        self.cpu_seconds = sum(s.section.ratio * s.section.cpu_seconds for s in stations)
        self.held_seconds = sum(s.section.ratio * s.held for s in stations)

    def times(self, station: _Station) -> tuple[float, float, float]:
        """Return a worker's times per element: computing without the lock, with it, and with it including the wait.

        A worker's wait for a core or for the lock is at most the time that all others use it, for as many elements of
        the pipeline as are produced while the worker produces one element.
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
        """Return the slowdown of a worker of ``station`` compared with a dedicated core."""
        states = [(1.0, 1.0)]  # probability, and the number of computing workers including this one
        for other in self.stations:
            computing = other.computing + (other.holding if with_lock else 0.0)
            workers = other.section.workers
            awake = other.awake
            if other is station:  # its other workers, which are awake whenever it is
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
    """Return how much of the work of two stations can overlap, which the buffer limits if they are adjacent."""
    for source, taker in ((one, other), (other, one)):
        if source in taker.inputs:
            return min(1.0, source.section.buffer * _events(source, taker) / max(source.section.ratio, 1e-12))
    return 1.0


def _events(source: _Station, taker: _Station) -> float:
    """Return how often ``taker`` takes elements, possibly several at once, per element of the pipeline."""
    return min(source.section.ratio, taker.section.ratio)


def _states(computing: float, workers: int, awake: float) -> list[tuple[float, float]]:
    """Return the distribution of the number of computing workers, as a few states with probabilities."""
    if workers == 1:
        computing = min(computing, 1.0)
        return [(1 - computing, 0.0), (computing, 1.0)]
    awake = max(awake, computing / workers)
    if not awake:
        return [(1.0, 0.0)]
    each = computing / workers / awake
    deviation = math.sqrt(workers * each * (1 - each)) if each < 1 else 0.0
    deviation = min(deviation, workers * each)
    states = [(awake / 2, workers * each - deviation), (awake / 2, workers * each + deviation)]
    return [*states, (1 - awake, 0.0)] if awake < 1 else states


def _combined(states: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(share * more, count + extra) for share, count in states for more, extra in others]


def _wait_between(source: _Station, taker: _Station) -> float:
    """Return how long ``taker`` waits for ``source``, per element of the pipeline."""
    section = source.section
    if not section.buffer:
        return source.making
    events = _events(source, taker)
    if not events:
        return 0.0
    n = section.buffer * events / section.ratio
    return events * wait_seconds(source.taking / events, source.making / events, n, variation=0.0)
