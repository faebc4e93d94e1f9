"""Performance model: predicts the throughput of a pipeline from the costs of its parts. Pure arithmetic.

The pipeline is divided into *sections* at its buffers. Each section runs independently in its own threads, so the
slowest one determines the rate of all. The rate is also limited by the cores, and by the interpreter lock, which all
sections share. These limits are the operational laws of queueing networks (Denning and Buzen 1978; Plumber, Kuchnik et
al. 2022).

Measured times already contain what sections lose by waiting for a core or for the lock, so the model does not add it.
Times count as constant: a buffer of a single element is enough to hide the shorter of two times. A consumer that takes
32 elements at a time still has to wait if the buffer holds only 16.

All times are in seconds, per element of the whole pipeline.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

CORES = "cores"
INTERPRETER_LOCK = "interpreter lock"


@dataclass(eq=False)
class Section:
    """Section of a pipeline that runs independently: the ops between two buffers.

    Attributes:
        name: identifies the section in ``Prediction.binding`` if it is the bottleneck.
        elements: its elements per element of the pipeline, such as 32 upstream of a batch of 32.
        seconds: the time that all workers together spend on these elements.
        serial_seconds: the further time of work that one worker at a time does, such as reading the inputs of a
            parallel map.
        cpu_seconds: the part of both in which a core is busy.
        lock_seconds: the part of it in which the interpreter lock is held.
        workers: the number of concurrent workers, each working on one element.
        buffer: the number of finished elements above which no further element is started, not counting the one that the
            consumer is using; less than 1 if the section waits for its consumer.
        inputs: the sections from which it takes elements.

    Example:
        >>> decode = Section("decode", elements=32, seconds=0.128, cpu_seconds=0.128, workers=4, buffer=36)
        >>> predict(Section("train", seconds=0.05, inputs=[decode]), cores=2)
        Prediction(seconds=0.064, binding='cores')
    """

    name: Hashable
    elements: float = 1.0
    seconds: float = 0.0
    serial_seconds: float = 0.0
    cpu_seconds: float = 0.0
    lock_seconds: float = 0.0
    workers: int = 1
    buffer: float = 0.0
    inputs: list[Section] = field(default_factory=list)

    def __iter__(self) -> Iterator[Section]:
        """Yield the section and everything upstream of it."""
        yield self
        for section in self.inputs:
            yield from section

    def period(self) -> float:
        """Return the time per element of the pipeline in which the section does its work, and waits for its inputs."""
        waits = 0.0
        for source in self.inputs:
            held = source.buffer * min(1.0, self.elements / source.elements) if source.elements else 1.0
            if held < 1:  # the share of a group of elements that is ready when it is taken
                waits += (1 - held) * source.period()
        return waits + max(self.serial_seconds, (self.serial_seconds + self.seconds) / self.workers)


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

        >>> load = Section("load", seconds=0.01, buffer=1)
        >>> predict(Section("train", seconds=0.02, inputs=[load]), cores=2)
        Prediction(seconds=0.02, binding='train')
    """
    bounds: dict[Hashable, float] = {section.name: section.period() for section in root}
    bounds[CORES] = sum(section.cpu_seconds for section in root) / cores
    bounds[INTERPRETER_LOCK] = sum(section.lock_seconds for section in root)
    binding = max(bounds, key=lambda name: bounds[name])
    return Prediction(bounds[binding], binding)
