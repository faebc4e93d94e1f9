"""Tests of serve and connect: queues between processes. test_serving_schedules.py has random schedules of them."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import threading
from collections import deque
from unittest.mock import Mock

import numpy as np
import pytest

from dataset import SpecError, queues
from dataset.queues import serving
from dataset.world.interrupts import installed
from support.interrupting import AtMoment, keep
from support.overlap import nothing_left
from support.process_helpers import WAIT, exit_code_of, fork, in_thread
from support.seeds import rng

SPAWN = multiprocessing.get_context("spawn")
KEY = bytes(range(32))


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
            with pytest.raises(queues.OutOfRangeError, match="closed, with fewer than 1 elements left"):
                remote.dequeue()
            with pytest.raises(queues.CancelledError, match="FIFOQueue: it is closed"):
                remote.enqueue({"a": np.arange(3), "b": "x"})


class Announced(deque):
    """Calls that wait, each of which is announced."""

    def __init__(self):
        super().__init__()
        self.entered = threading.Semaphore(0)

    def append(self, call):
        super().append(call)
        self.entered.release()

    def wait(self):
        assert self.entered.acquire(timeout=WAIT)


@pytest.fixture
def queue():
    """A queue whose waiting dequeues are announced."""
    queue = queues.FIFOQueue(9)
    queue._dequeues = Announced()
    return queue


@pytest.fixture
def server(queue):
    with nothing_left(), queues.serve(queue, authkey=KEY) as server:
        yield server


@pytest.fixture
def remote(server):
    with queues.connect(server.address, KEY) as remote:
        yield remote


@contextlib.contextmanager
def silent(server):
    """The server does nothing in the block."""
    busy, opened = threading.Event(), threading.Event()
    server.loop.call_soon_threadsafe(lambda: (busy.set(), opened.wait(WAIT)))
    assert busy.wait(WAIT)
    yield
    opened.set()


class AlarmError(Exception):
    pass


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_an_interrupted_dequeue_loses_nothing(queue, remote, kind):
    one = queue if kind == "local" else remote
    fired = 0
    for number in range(60) if kind == "local" else rng("moments").sample(range(200), 50):
        queue.enqueue(number)
        found, moment = [], AtMoment(number)
        with installed(), contextlib.suppress(KeyboardInterrupt), moment:
            keep(one.dequeue, found)
        assert [*found, *(queue.dequeue(WAIT) for _ in range(not found))] == [number], str(moment)
        fired += moment.fired
    assert fired


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_consumer_that_is_dead_or_stopped_takes_nothing(queue, server, monkeypatch, how):
    child = fork(lambda: queues.connect(server.address, KEY).dequeue())
    queue._dequeues.wait()
    monkeypatch.setattr(serving, "PATIENCE_SECONDS", 0.1)  # that of the server
    os.kill(child, how)
    queue.enqueue(1)
    queue.close()
    assert queue.dequeue(WAIT) == 1
    os.kill(child, signal.SIGCONT)
    assert exit_code_of(child) == (-signal.SIGKILL if how == signal.SIGKILL else 1), "it received nothing"


def test_what_is_not_acknowledged_goes_back_and_delays_the_end(queue, server, remote, monkeypatch):
    queue.enqueue_many([1, 2])
    asked, answered, opened = serving._asked, threading.Event(), threading.Event()

    def lose(*arguments):
        asked(*arguments)
        answered.set()
        opened.wait(WAIT)
        raise AlarmError

    monkeypatch.setattr(serving, "_asked", lose)
    receiver = in_thread(lambda: remote.dequeue_many(2))
    assert answered.wait(WAIT)
    queue.close()
    other = in_thread(queue.dequeue)
    opened.set()
    assert isinstance(receiver.result(), AlarmError)
    assert other.result() == 1
    assert queue.dequeue() == 2
    with pytest.raises(queues.OutOfRangeError):
        queue.dequeue()


def test_an_exception_that_does_not_arrive_goes_back(queue, remote, monkeypatch):
    queue.enqueue(ValueError("bad"))
    with monkeypatch.context() as patch, pytest.raises(AlarmError):
        patch.setattr(serving, "_receive", lambda *_: (_ for _ in ()).throw(AlarmError))
        remote.dequeue()
    for one in (remote, queue):
        queue.enqueue(1)
        with pytest.raises(ValueError, match="bad") if one is remote else contextlib.nullcontext():
            assert one.dequeue(WAIT) == 1


def test_what_cannot_be_sent_stays(queue, remote):
    queue.enqueue(lambda: 1)
    with pytest.raises(TypeError, match="FIFOQueue: a function cannot be sent to another process; elements stay"):
        remote.dequeue()
    assert queue.dequeue()() == 1


def test_a_server_that_is_stopped_is_named_and_a_call_without_an_answer_never_begins(
    queue, server, remote, monkeypatch
):
    monkeypatch.setattr(serving, "PATIENCE_SECONDS", 0.1)
    with silent(server):
        for call in (lambda: remote.enqueue(1, timeout=0), remote.size, lambda: remote.dequeue(timeout=0)):
            with pytest.raises(
                TimeoutError, match=rf"\(\): no answer from the server of .*{server.address[1]}.* stopped"
            ):
                call()
        with pytest.raises(OSError, match=r"connect\(\): the server of a queue at .* cannot be reached"):
            queues.connect(server.address, KEY)
    monkeypatch.setattr(serving, "PATIENCE_SECONDS", WAIT)
    assert remote.size() == 0


def test_disconnecting_ends_a_waiting_call(queue, server):
    remote = queues.connect(server.address, KEY)
    waiting = in_thread(remote.dequeue)
    queue._dequeues.wait()
    remote.disconnect()
    assert isinstance(waiting.result(), queues.CancelledError)
    with pytest.raises(queues.CancelledError, match=r"size\(\).*disconnect\(\) was called"):
        remote.size()
    queue.enqueue(1)
    assert queue.dequeue() == 1


def test_a_server_may_come_back_at_its_address(tmp_path):
    with nothing_left():
        queue, path = queues.FIFOQueue(3), str(tmp_path / "socket")
        with queues.serve(queue, path, KEY), queues.connect(path, KEY) as remote:
            with pytest.raises(OSError, match=r"serve\(\): .* cannot be used: Address already in use"):
                queues.serve(queue, path, KEY)
            (tmp_path / "socket").unlink()  # the server closes without its file
        with queues.serve(queue, path, KEY), queues.connect(path, KEY) as remote:
            remote.enqueue(1)
        with pytest.raises(OSError, match=r"connect\(\): .* cannot be reached: .*No such file"):
            queues.connect(path, KEY)


def test_a_thread_that_cannot_be_started_leaves_nothing_behind(queue, server, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="new thread"), nothing_left():
        patch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        with queues.connect(server.address, KEY) as remote:
            remote.enqueue(1)  # the server starts none
        queues.serve(queue, authkey=KEY)
    assert queue.size() == 1


def test_strangers_hold_no_threads_and_are_disconnected(server, monkeypatch):
    before = threading.active_count()
    monkeypatch.setattr(serving, "PATIENCE_SECONDS", 0.2)
    with contextlib.ExitStack() as ends:
        strangers = [ends.enter_context(socket.create_connection(server.address, WAIT)) for _ in range(20)]
        assert threading.active_count() == before
        for stranger in strangers:
            assert len(stranger.makefile("rb").read()) == 48  # until the end: a nonce
    monkeypatch.setattr(serving, "_STRANGERS_MAX", 3)
    monkeypatch.setattr(serving, "PATIENCE_SECONDS", WAIT)
    with contextlib.ExitStack() as ends:
        strangers = [ends.enter_context(socket.create_connection(server.address, WAIT)) for _ in range(4)]
        assert len(strangers[0].makefile("rb").read()) == 48


def test_another_program_is_not_taken_for_a_server():
    with nothing_left(), socket.create_server(("127.0.0.1", 0)) as listener:

        def run():
            with listener.accept()[0] as end:
                end.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answer = in_thread(run)
        with pytest.raises(OSError, match="it is another program"):
            queues.connect(listener.getsockname(), KEY)
        answer.result()


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


def test_the_key_is_required():
    with nothing_left(), queues.serve(queues.FIFOQueue(1), authkey=KEY) as server:
        with pytest.raises(multiprocessing.AuthenticationError):
            queues.connect(server.address, KEY[::-1])
        with socket.create_connection(server.address) as peer:
            peer.sendall(b"\0\0\0\1x" * 100)
        with queues.connect(server.address, KEY) as remote:
            assert remote.size() == 0


EXECUTED = []


def execute():
    EXECUTED.append(1)


class Code:
    def __reduce__(self):
        return execute, ()


@pytest.mark.parametrize("proof", [b"", bytes(64), bytes(32), "right"])
def test_nothing_is_unpickled_before_the_key_is_proved(server, proof):
    with socket.create_connection(server.address, WAIT) as peer:
        nonce = serving._receive(peer, 0)
        right = bytes(32) + serving._proof(KEY, b"client", nonce, bytes(32))
        serving._send(peer, 0, right if proof == "right" else proof)
        assert len(serving._receive(peer, 0)) == (32 if proof == "right" else 0)
        with contextlib.suppress(OSError):
            serving._send(peer, 1, pickle.dumps(Code()))
            serving._receive(peer, 1)
    assert [1] * (proof == "right") == EXECUTED
    EXECUTED.clear()


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
