"""Tests of serve and connect: queues between processes."""

import multiprocessing
import os
import signal
import socket
import threading

import numpy as np
import pytest

from dataset import Dataset, SpecError, TensorSpec, queues
from support.overlap import nothing_left
from support.process_helpers import WAIT, in_thread

SPAWN = multiprocessing.get_context("spawn")
KEY = bytes(range(32))


def _produce(address, key, first, count):
    with queues.connect(address, key) as remote:
        for number in range(first, first + count):
            remote.enqueue(number)


def _produce_for_ever(address, key, started):
    with queues.connect(address, key) as remote:
        remote.enqueue(-1)
        started.set()
        while True:
            remote.enqueue(-1)


def test_every_method_works_from_elsewhere():
    with nothing_left():
        queue = queues.FIFOQueue(9)
        with queues.serve(queue, authkey=KEY) as server, queues.connect(server.address, KEY) as remote:
            remote.enqueue({"a": np.arange(3), "b": "x"})
            remote.enqueue_many({"a": np.arange(12).reshape(4, 3), "b": list("abcd")})
            assert remote.size() == 5
            assert remote.dequeue()["b"] == b"x"
            assert remote.dequeue_many(2)["b"].tolist() == [b"a", b"b"]
            assert not remote.is_closed()
            with pytest.raises(SpecError, match="FIFOQueue received"):
                remote.enqueue(1)
            with pytest.raises(TimeoutError, match="2 of 3"):
                remote.dequeue_many(3, timeout=0)
            remote.close()
            assert queue.is_closed()
            assert remote.dequeue_up_to(5)["b"].tolist() == [b"c", b"d"]
            with pytest.raises(queues.OutOfRangeError, match="closed"):
                remote.dequeue()
            with pytest.raises(queues.CancelledError, match="closed"):
                remote.enqueue({"a": np.arange(3), "b": "x"})


def test_several_processes_fill_one_queue():
    queue = queues.FIFOQueue(4, TensorSpec((), np.int64))
    with queues.serve(queue, authkey=KEY) as server:
        producers = [
            SPAWN.Process(target=_produce, args=(server.address, KEY, first, 20), daemon=True) for first in (0, 100)
        ]
        for producer in producers:
            producer.start()
        found = [int(value) for value in Dataset.from_queue(queue).take(40)]
        for producer in producers:
            producer.join(WAIT)
            assert producer.exitcode == 0
    assert sorted(found) == [*range(20), *range(100, 120)]
    for first in (0, 100):
        mine = [value for value in found if first <= value < first + 20]
        assert mine == sorted(mine)


def test_a_killed_producer_does_not_stop_the_others():
    queue = queues.FIFOQueue(2, TensorSpec((), np.int64))
    started = SPAWN.Event()
    with nothing_left(), queues.serve(queue, authkey=KEY) as server:
        victim = SPAWN.Process(target=_produce_for_ever, args=(server.address, KEY, started), daemon=True)
        victim.start()
        assert started.wait(WAIT)
        other = threading.Thread(target=_produce, args=(server.address, KEY, 0, 20))
        other.start()
        os.kill(victim.pid, signal.SIGKILL)
        victim.join(WAIT)
        found = []
        while len(found) < 20:
            value = int(queue.dequeue(timeout=WAIT))
            found += [value] * (value >= 0)
        other.join(WAIT)
        victim.close()
    assert found == list(range(20))


def test_closing_the_server_ends_waiting_calls():
    with nothing_left():
        queue = queues.FIFOQueue(1)
        server = queues.serve(queue, authkey=KEY)
        remote = queues.connect(server.address, KEY)
        waiting = in_thread(remote.dequeue)
        server.close()
        server.close()
        assert isinstance(waiting.result(), queues.CancelledError)
        with pytest.raises((queues.CancelledError, OSError)):
            remote.size()
        remote.disconnect()
        assert not queue.is_closed()
        with pytest.raises(OSError):
            queues.connect(server.address, KEY)


def test_a_silent_peer_stops_neither_others_nor_the_end():
    with nothing_left():
        server = queues.serve(queues.FIFOQueue(1), authkey=KEY)
        with socket.create_connection(server.address):
            with queues.connect(server.address, KEY) as remote:
                assert remote.size() == 0
            server.close()


def test_the_key_is_required():
    with nothing_left(), queues.serve(queues.FIFOQueue(1), authkey=KEY) as server:
        with pytest.raises(multiprocessing.AuthenticationError):
            queues.connect(server.address, KEY[::-1])
        with socket.create_connection(server.address) as peer:
            peer.sendall(b"\0\0\0\1x" * 100)
        with queues.connect(server.address, KEY) as remote:
            assert remote.size() == 0


@pytest.mark.parametrize("key", [b"", b"short", "a" * 32, None])
def test_a_short_key_is_refused(key):
    with pytest.raises(ValueError, match=r"serve\(\): authkey must be at least 16"):
        queues.serve(queues.FIFOQueue(1), authkey=key)
    with pytest.raises(ValueError, match=r"connect\(\): authkey"):
        queues.connect(("127.0.0.1", 1), key)


def test_only_methods_of_queues_can_be_called():
    server = queues.serve(queues.FIFOQueue(1), authkey=KEY)
    with server, queues.connect(server.address, KEY) as remote, pytest.raises(AttributeError, match="no method 'name'"):
        remote._call("name")


def test_a_queue_itself_cannot_be_sent():
    with pytest.raises(TypeError, match=r"dataset.queues.serve\(\)"):
        SPAWN.Process(target=print, args=(queues.FIFOQueue(1),)).start()


def test_other_queues_are_refused():
    with pytest.raises(TypeError, match=r"serve\(\)"):
        queues.serve([], authkey=KEY)
