"""The queues beside those of TensorFlow: the same calls give the same results and errors."""

import functools
import threading

import numpy as np
import pytest
from compare import Ours, in_both, theirs

from dataset import TensorSpec, queues

WAIT = 60
WAITING = 0.5  # seconds until a call is assumed to wait
NUMBER = TensorSpec((), np.int64)
SPECS = {
    "FIFOQueue": NUMBER,
    "RandomShuffleQueue": NUMBER,
    "PaddingFIFOQueue": TensorSpec((None,), np.int64),
    "PriorityQueue": (NUMBER, TensorSpec((), bytes)),
}


@functools.cache
def warm(lib):
    """Call each operation once: its first call takes long in TensorFlow."""
    queue = made(lib, "FIFOQueue", 9)
    queue.enqueue(1)
    queue.enqueue_many([[1, 2, 3, 4]])
    queue.dequeue()
    queue.dequeue_many(2)
    queue.dequeue_up_to(1)
    queue.close()


def made(lib, kind, *sizes):
    """Return a queue of a library."""
    if lib.name == "dataset":
        return getattr(queues, kind)(*sizes, SPECS[kind])
    tf = lib.tf
    if kind == "PriorityQueue":
        return tf.queue.PriorityQueue(*sizes, [tf.string], shapes=[()])
    shapes = [(None,)] if kind == "PaddingFIFOQueue" else [()]
    return getattr(tf.queue, kind)(*sizes, [tf.int64], shapes=shapes)


def plain(value):
    """Return a result as plain Python data; a single component of TensorFlow may come in a list."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    value = value.numpy() if hasattr(value, "numpy") else value
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


class Script:
    """Runs calls on a queue, in the background if they wait, and records their outcomes in the order of the calls."""

    def __init__(self, queue):
        self.queue = queue
        self.outcomes = []
        self._threads = []

    def __getattr__(self, method):
        def call(*args):
            place = len(self.outcomes)
            self.outcomes.append("waits")
            self._run(place, method, args)

        return call

    def later(self, method, *args):
        """Make a call that waits, in the background. Later calls come after it has begun to wait."""
        place = len(self.outcomes)
        self.outcomes.append("waits")
        thread = threading.Thread(target=self._run, args=(place, method, args), daemon=True)
        thread.start()
        thread.join(WAITING)  # neither library tells when a call begins to wait
        assert thread.is_alive(), (method, self.outcomes)
        self._threads.append(thread)

    def ended(self):
        """Wait for the calls in the background."""
        for thread in self._threads:
            thread.join(WAIT)
            assert not thread.is_alive()

    def _run(self, place, method, args):
        if method == "enqueue_many" and isinstance(args[0], list) and not isinstance(self.queue, queues.ElementQueue):
            args = [args]  # TensorFlow takes a list of components here
        try:
            self.outcomes[place] = plain(getattr(self.queue, method)(*args))
        except Exception as error:
            self.outcomes[place] = type(error).__name__


def is_ordered(kind):
    return kind != "RandomShuffleQueue"


def both(kind, script, *sizes):
    def outcomes_of(lib):
        if lib.name != "dataset":
            warm(lib)
        one = Script(made(lib, kind, *sizes))
        script(one)
        one.ended()
        outcomes = one.outcomes
        if not is_ordered(kind):  # the orders differ, the numbers of elements do not
            outcomes = [len(one) if isinstance(one, list) else type(one).__name__ for one in outcomes]
        return outcomes

    ours, expected = in_both(outcomes_of)
    assert ours == expected
    return ours


def test_order_and_sizes():
    def script(q):
        q.size()
        q.enqueue(1)
        q.enqueue_many([2, 3, 4, 5])
        q.size()
        q.dequeue()
        q.dequeue_many(2)
        q.dequeue_up_to(2)
        q.size()
        q.is_closed()

    assert both("FIFOQueue", script, 9)[-3:] == [[4, 5], 0, False]


def test_what_a_closed_queue_does():
    def script(q):
        q.enqueue_many([1, 2, 3])
        q.close()
        q.is_closed()
        q.enqueue(4)
        q.enqueue_many([4, 5])
        q.dequeue_many(4)
        q.size()
        q.dequeue_up_to(2)
        q.dequeue_many(1)
        q.dequeue()
        q.dequeue_many(1)
        q.dequeue_up_to(1)
        q.dequeue_many(0)
        q.size()

    outcomes = both("FIFOQueue", script, 9)
    assert outcomes[3:6] == ["CancelledError", "CancelledError", "OutOfRangeError"]


def test_waiting_producers_are_cancelled():
    def script(q):
        q.enqueue_many([1, 2])
        q.later("enqueue_many", [3, 4])
        q.later("enqueue", 5)
        q.close(True)
        q.dequeue_up_to(9)
        q.ended()

    assert both("FIFOQueue", script, 2) == [None, "CancelledError", "CancelledError", None, [1, 2]]


def test_consumers_wait_in_order():
    def script(q):
        q.later("dequeue_many", 3)
        q.later("dequeue")
        q.enqueue_many([1, 2])
        q.size()
        q.enqueue_many([3, 4, 5])
        q.ended()
        q.size()

    assert both("FIFOQueue", script, 9)[:2] == [[1, 2, 3], 4]


def test_producers_wait_in_order():
    def script(q):
        q.enqueue_many([1, 2])
        q.later("enqueue_many", [3, 4])
        q.later("enqueue", 5)
        q.size()
        q.dequeue_many(5)
        q.ended()
        q.size()

    assert both("FIFOQueue", script, 2)[4] == [1, 2, 3, 4, 5]


def test_the_end_comes_to_waiting_consumers():
    def script(q):
        q.enqueue_many([1, 2])
        q.later("dequeue_many", 4)
        q.later("dequeue_many", 2)
        q.later("dequeue")
        q.close()
        q.ended()
        q.size()

    assert both("FIFOQueue", script, 9)[1:4] == ["OutOfRangeError", [1, 2], "OutOfRangeError"]


@pytest.mark.parametrize("method", ["dequeue_many", "dequeue_up_to"])
def test_a_batch_above_the_capacity(method):
    def script(q):
        q.later("enqueue_many", [1, 2, 3, 4, 5])
        getattr(q, method)(5)
        q.ended()

    assert both("FIFOQueue", script, 2)[1] == [1, 2, 3, 4, 5]


def test_the_minimum_of_a_random_queue():
    def script(q):
        q.enqueue_many([0, 1, 2, 3, 4, 5])
        q.dequeue_many(2)
        q.size()
        q.later("dequeue_many", 3)
        q.size()
        q.enqueue(6)
        q.size()
        q.close()
        q.ended()
        q.size()
        q.dequeue_up_to(9)
        q.dequeue()

    both("RandomShuffleQueue", script, 10, 3)


def test_the_rest_of_a_random_queue():
    def script(q):
        q.enqueue_many([0, 1, 2, 3])
        q.later("dequeue_up_to", 6)
        q.close()
        q.ended()
        q.size()

    assert both("RandomShuffleQueue", script, 10, 3)[1] == 4


def test_padding():
    def script(q):
        q.enqueue(([1],))
        q.enqueue(([1, 2, 3],))
        q.enqueue(([7, 8],))
        q.enqueue_many(([[4, 5]],))
        q.dequeue_many(2)
        q.dequeue()
        q.dequeue_up_to(1)

    def without_tuples(q):
        class Plain:
            def __getattr__(self, method):
                def call(*args):
                    is_ours = isinstance(q.queue, queues.ElementQueue)
                    getattr(q, method)(*(arg[0] if is_ours and isinstance(arg, tuple) else arg for arg in args))

                return call

        script(Plain())

    assert both("PaddingFIFOQueue", without_tuples, 9)[4:] == [[[1, 0, 0], [1, 2, 3]], [7, 8], [[4, 5]]]


def test_priorities():
    def script(q):
        q.enqueue((3, "c"))
        q.enqueue_many(([5, -1], ["e", "z"]))
        q.enqueue((1, "a"))
        q.dequeue()
        q.dequeue_many(2)
        q.close()
        q.dequeue()
        q.dequeue()

    assert both("PriorityQueue", script, 9)[3] == (-1, b"z")


def test_a_random_queue_needs_room_above_the_minimum():
    with pytest.raises(ValueError, match="min_after_dequeue"):
        made(Ours, "RandomShuffleQueue", 3, 3)

    def check(lib):
        with pytest.raises(lib.tf.errors.InvalidArgumentError):
            made(lib, "RandomShuffleQueue", 3, 3).size()

    theirs(check)


def test_what_differs():
    """A second close raises in TensorFlow, and a close waits for calls that wait for room."""
    queue = made(Ours, "FIFOQueue", 1)
    queue.close()
    queue.close()

    def check(lib):
        queue = made(lib, "FIFOQueue", 1)
        queue.close()
        with pytest.raises(lib.tf.errors.CancelledError):
            queue.close()

    theirs(check)
