"""The queues beside those of TensorFlow: the same calls give the same results and errors."""

import ast
import functools
import re
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

    def run(self, call):
        """Make a call, "method argument"; "later" makes one that waits, and "ended" waits for those to end."""
        if call == "ended":
            for thread in self._threads:
                thread.join(WAIT)
                assert not thread.is_alive()
            return
        method, _, argument = call.removeprefix("later ").partition(" ")
        args = (len(self.outcomes), method, [ast.literal_eval(argument)] if argument else [])
        self.outcomes.append("waits")
        if not call.startswith("later "):
            self._run(*args)
            return
        thread = threading.Thread(target=self._run, args=args, daemon=True)
        thread.start()
        thread.join(WAITING)  # neither library tells when a call begins to wait; later calls come after it
        assert thread.is_alive(), (call, self.outcomes)
        self._threads.append(thread)

    def _run(self, place, method, args):
        is_list = method.startswith("enqueue") and isinstance(args[0], list)
        if is_list and not isinstance(self.queue, queues.ElementQueue):
            args = [args]  # TensorFlow takes a list of components here
        try:
            self.outcomes[place] = plain(getattr(self.queue, method)(*args))
        except Exception as error:
            self.outcomes[place] = type(error).__name__


@functools.cache
def warm(lib):
    """Call each operation once: its first call takes long in TensorFlow."""
    script = Script(made(lib, "FIFOQueue", 9))
    for call in ("enqueue 1", "enqueue_many [1, 2, 3, 4]", "dequeue", "dequeue_many 2", "dequeue_up_to 1", "close"):
        script.run(call)


# A queue, and the calls, some with their outcomes; of a random queue, the numbers of elements.
TABLE = """
order and sizes: FIFOQueue 9
    size; enqueue 1; enqueue_many [2, 3, 4, 5]; size; dequeue; dequeue_many 2; dequeue_up_to 2 => [4, 5]; size => 0
    is_closed => False
a closed queue: FIFOQueue 9
    enqueue_many [1, 2, 3]; close; is_closed; enqueue 4 => 'CancelledError'; enqueue_many [4, 5] => 'CancelledError'
    dequeue_many 4 => 'OutOfRangeError'; size; dequeue_up_to 2; dequeue_many 1; dequeue; dequeue_many 1
    dequeue_up_to 1; dequeue_many 0; size
waiting producers are cancelled: FIFOQueue 2
    enqueue_many [1, 2]; later enqueue_many [3, 4] => 'CancelledError'; later enqueue 5 => 'CancelledError'
    close True => None; dequeue_up_to 9 => [1, 2]
consumers wait in order: FIFOQueue 9
    later dequeue_many 3 => [1, 2, 3]; later dequeue => 4; enqueue_many [1, 2]; size; enqueue_many [3, 4, 5]
    ended; size
producers wait in order: FIFOQueue 2
    enqueue_many [1, 2]; later enqueue_many [3, 4]; later enqueue 5; size; dequeue_many 5 => [1, 2, 3, 4, 5]
    ended; size
the end comes to waiting consumers: FIFOQueue 9
    enqueue_many [1, 2]; later dequeue_many 4 => 'OutOfRangeError'; later dequeue_many 2 => [1, 2]
    later dequeue => 'OutOfRangeError'; close; ended; size
a batch above the capacity: FIFOQueue 2
    later enqueue_many [1, 2, 3, 4, 5]; dequeue_many 5 => [1, 2, 3, 4, 5]
    ended; later enqueue_many [6, 7, 8]; dequeue_up_to 3 => [6, 7, 8]
the minimum of a random queue: RandomShuffleQueue 10 3
    enqueue_many [0, 1, 2, 3, 4, 5]; dequeue_many 2 => 2; size; later dequeue_many 3 => 3; size; enqueue 6; size
    close; ended; size; dequeue_up_to 9 => 2; dequeue
the rest of a random queue: RandomShuffleQueue 10 3
    enqueue_many [0, 1, 2, 3]; later dequeue_up_to 6 => 4; close; ended; size
padding: PaddingFIFOQueue 9
    enqueue [1]; enqueue [1, 2, 3]; enqueue [7, 8]; enqueue_many [[4, 5]]; dequeue_many 2 => [[1, 0, 0], [1, 2, 3]]
    dequeue => [7, 8]; dequeue_up_to 1 => [[4, 5]]
priorities: PriorityQueue 9
    enqueue (3, 'c'); enqueue_many ([5, -1], ['e', 'z']); enqueue (1, 'a'); dequeue => (-1, b'z'); dequeue_many 2
    close; dequeue; dequeue
"""
SCRIPTS = dict(script.split(": ", 1) for script in re.split(r"\n(?=\w)", TABLE.strip()))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_calls_have_the_same_outcomes(name):
    queue, *calls = re.split(r"\n +|; ", SCRIPTS[name])
    kind, *sizes = queue.split()

    def outcomes_of(lib):
        if lib.name != "dataset":
            warm(lib)
        script = Script(made(lib, kind, *map(int, sizes)))
        for call in [*calls, "ended"]:
            script.run(call.partition(" => ")[0])
        is_random = kind == "RandomShuffleQueue"
        return [len(one) if is_random and isinstance(one, list) else one for one in script.outcomes]

    ours, expected = in_both(outcomes_of)
    assert ours == expected
    for call, outcome in zip([call for call in calls if call != "ended"], ours, strict=True):
        _, is_known, known = call.partition(" => ")
        assert not is_known or outcome == ast.literal_eval(known), call


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
