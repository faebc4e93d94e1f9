"""Random schedules of processes that use one served queue, some of which are killed, stopped, interrupted or forked.

    python -m tests.support.queue_schedules --seconds 60 --seed 7      as many as the time allows
    python -m tests.support.queue_schedules --count 1 --seed 7         one of them again

Each process writes to a pipe what it is about to do and what has come of it. At the end, each element that entered the
queue was received once, unless its receiver was killed in the call; each that was not certain to enter was received at
most once; and each process received the elements of one producer in order, unless some were put back.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import selectors
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from dataset import queues
from dataset.testing import no_leaks
from support.interrupting import watched
from support.overlap import WAIT
from support.process_helpers import exit_code_of, fork
from support.seeds import SEED, rng

KEY = bytes(range(32))
SECONDS_MAX = 120  # for one schedule; it takes less than one on an idle machine
_VALUES = 1000  # of each process
_PUT_BACK = {"kill", "stop", "interrupt", "restart"}  # what can change the order


class InterruptedCallError(Exception):
    """Raised by the signal handler of a client."""


_ENDINGS = {InterruptedCallError: "interrupted", TimeoutError: "late"}
_ENDINGS |= {queues.CancelledError: "cancelled", queues.OutOfRangeError: "end"}


class Client:
    """What runs in a process: calls of a remote queue, and a report of each."""

    def __init__(self, address: Any, pipe: int, draws: random.Random, first: int) -> None:
        self.pipe, self.draws, self.next, self.last = pipe, draws, first, first + draws.randrange(1, 25)
        self.armed = False
        self.children: list[int] = []
        for signum in (signal.SIGALRM, signal.SIGINT):
            signal.signal(signum, self.interrupt)
        self.remote = self.connected(address)
        self.report("ready")

    def connected(self, address: Any) -> Any:
        while True:
            with contextlib.suppress(OSError):  # the server is being restarted
                return queues.connect(address, KEY)

    def interrupt(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            raise InterruptedCallError

    def report(self, what: str, values: Any = ()) -> None:
        os.write(self.pipe, f"{os.getpid()} {what} {' '.join(map(str, np.atleast_1d(values)))}\n".encode())

    def call(self, function: Any) -> tuple[str, Any]:
        """Call a function, which calls a method. An interrupt is raised in the method, or when its result is kept."""
        kept: list[Any] = []
        how = ""
        try:
            self.armed = True
            try:
                kept.append(function())
            finally:  # no interrupt may be raised in the handler below
                self.armed = False
        except tuple(_ENDINGS) as error:
            how = next(word for kind, word in _ENDINGS.items() if isinstance(error, kind))
        return ("done", kept[0]) if kept else (how, ())

    def run(self, role: str) -> None:
        while getattr(self, role)():
            if self.draws.random() < 0.03 and not self.children:
                self.children.append(fork(lambda: self.run_forked(role)))
        how, size = self.call(self.remote.size)
        assert how != "done" or isinstance(size, int), f"another call's answer: {size}"
        self.remote.disconnect()
        assert [exit_code_of(child) for child in self.children] == [0] * len(self.children)

    def run_forked(self, role: str) -> None:
        self.draws, self.children = random.Random(self.draws.random()), [0]
        self.next += _VALUES // 2
        self.last = self.next + 5
        while getattr(self, role)():
            pass

    def produce(self) -> bool:
        count = min(self.draws.choice([1, 1, 1, 2, 3]), self.last - self.next)
        values = [*range(self.next, self.next + count)]
        if not values:
            return False
        self.next += count
        timeout = self.draws.choice([None, None, 0, 0.002])
        self.report("begin", values)
        one, many = self.remote.enqueue, self.remote.enqueue_many
        how, _ = self.call(lambda: one(*values, timeout=timeout) if count == 1 else many(values, timeout=timeout))
        self.report({"done": "entered", "late": "late" if count == 1 else "unsure"}.get(how, "unsure"), values)
        return True

    def consume(self) -> bool:
        n = self.draws.choice([0, 0, 0, 1, 2, 3])
        timeout = self.draws.choice([None, None, 0, 0.002])
        self.report("ask", max(n, 1))
        many = self.remote.dequeue_many if self.draws.random() < 0.5 else self.remote.dequeue_up_to
        how, values = self.call(lambda: many(n, timeout) if n else self.remote.dequeue(timeout))
        self.report("took", values)
        return how != "end" or n > 1


class Schedule:
    """One schedule: the server, its clients, and what happens to them.

    Args:
        key: determines all draws.
        folder: where the socket of the server may be.
    """

    def __init__(self, key: object, folder: str) -> None:
        draws = self.draws = rng("queue schedule", key)
        self.queue = queues.FIFOQueue(draws.randint(1, 5))
        address = draws.choice([None, os.path.join(folder, "socket")])  # noqa: PTH118
        self.server = queues.serve(self.queue, address, KEY)
        self.roles: dict[int, str] = {}
        self.pipes: dict[int, int] = {}
        self.stopped: set[int] = set()
        self.killed: set[int] = set()
        self.happened: Counter[str] = Counter()
        self.lines: dict[int, bytes] = defaultdict(bytes)
        self.drained: list[int] = []

    def run(self) -> None:
        draws = self.draws
        roles = ["produce"] * draws.randint(1, 3) + ["consume"] * draws.randint(1, 3)
        chances = draws.sample(["kill", "stop", "interrupt", "interrupt", "restart", "nothing"], draws.randint(1, 4))
        with selectors.DefaultSelector() as selector:
            for number, role in enumerate(roles):
                self.start(number, role, selector)
            left = draws.randrange(25)
            while selector.get_map():
                for key, _ in selector.select(draws.random() * 0.004):
                    piece = os.read(key.fd, 1 << 16)
                    self.lines[key.data] += piece
                    if not piece:
                        selector.unregister(key.fd)
                        os.close(key.fd)
                        self.pipes.pop(key.data)
                if left:
                    left -= 1
                    self.act(draws.choice(chances))
                else:
                    self.end()
        for pid in self.roles:
            code = exit_code_of(pid)
            assert code == 0 or (code == -signal.SIGKILL and pid in self.killed), (
                f"exit code {code} of {self.roles[pid]}"
            )
        self.queue.close()
        self.drain(WAIT)
        with contextlib.suppress(queues.OutOfRangeError):
            raise AssertionError(f"not put back: {self.queue.dequeue(WAIT)}")

    def start(self, number: int, role: str, selector: selectors.BaseSelector) -> None:
        source, sink = os.pipe()
        draws = random.Random(self.draws.random())

        def client() -> None:
            os.close(source)
            for other in self.pipes.values():
                os.close(other)
            Client(self.server.address, sink, draws, _VALUES * number).run(role)

        pid = fork(client)
        os.close(sink)
        self.roles[pid], self.pipes[pid] = role, source
        selector.register(source, selectors.EVENT_READ, pid)

    def act(self, what: str) -> None:
        alive = [pid for pid in self.pipes if pid not in self.killed and self.lines[pid]]
        if what == "nothing" or not alive or (what == "restart" and not isinstance(self.server.address, str)):
            return  # another program may take the port of a server that has ended
        self.happened[what] += 1
        pid = self.draws.choice(alive)
        until = time.perf_counter() + self.draws.random() * 0.001
        while time.perf_counter() < until:
            time.sleep(0)
        if what == "restart":
            self.server.close()
            self.server = queues.serve(self.queue, self.server.address, KEY)
        elif what == "kill":
            os.kill(pid, signal.SIGKILL)
            self.killed.add(pid)
        elif what == "interrupt":
            os.kill(pid, self.draws.choice([signal.SIGALRM, signal.SIGINT]))
        elif pid in self.stopped:
            os.kill(pid, signal.SIGCONT)
            self.stopped.remove(pid)
        else:
            os.kill(pid, signal.SIGSTOP)
            self.stopped.add(pid)

    def end(self) -> None:
        """Continue those that are stopped, take the other elements, and close the queue after the last producer."""
        for pid in self.stopped:
            os.kill(pid, signal.SIGCONT)
        self.stopped.clear()
        roles = [self.roles[pid] for pid in self.pipes]
        if "produce" not in roles:
            self.queue.close()
        elif "consume" not in roles:
            self.drain()

    def drain(self, seconds: float = 0) -> None:
        with contextlib.suppress(TimeoutError, queues.OutOfRangeError):
            while True:
                self.drained += [int(self.queue.dequeue(seconds))]

    def check(self) -> None:
        entered, unsure, absent = set(), set(), set()
        received, losable = [list(self.drained)], 0
        for lines in self.lines.values():
            asked: dict[str, int] = {}
            begun: dict[str, list[int]] = {}
            took: dict[str, list[int]] = defaultdict(list)
            for line in lines.decode().splitlines():
                pid, what, *rest = line.split()
                values = [*map(int, rest)]
                if what == "begin":
                    begun[pid] = values
                elif what in {"entered", "unsure", "late"}:
                    {"entered": entered, "unsure": unsure, "late": absent}[what].update(begun.pop(pid))
                elif what == "ask":
                    asked[pid] = values[0]
                elif what == "took":
                    asked.pop(pid)
                    took[pid] += values
            unsure.update(value for values in begun.values() for value in values)
            losable += sum(asked.values())
            received += took.values()
        found = Counter(value for values in received for value in values)
        twice = [value for value, count in found.items() if count > 1]
        assert not twice, f"received twice: {twice}"
        assert found.keys() <= entered | unsure, f"not sent, or refused: {found.keys() - entered - unsure}"
        lost = entered - found.keys()
        assert len(lost) <= losable, f"lost: {lost}, of which {losable} may be"
        if not _PUT_BACK & self.happened.keys():
            for values in received:
                for producer in {value // (_VALUES // 2) for value in values}:
                    mine = [value for value in values if value // (_VALUES // 2) == producer]
                    assert mine == sorted(mine), f"out of order: {mine}"


def run(key: object) -> Counter[str]:
    """Run one schedule; return what happened."""
    with tempfile.TemporaryDirectory() as folder, no_leaks():
        schedule = Schedule(key, folder)
        try:
            schedule.run()
            schedule.check()
        except BaseException as error:
            error.add_note(f"in schedule {key}, with {dict(schedule.happened)}")
            raise
        finally:
            for pid in schedule.pipes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            schedule.server.close()
    return schedule.happened


def main() -> int:
    """Run schedules until the time is over. Return 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    until, happened, number = time.monotonic() + given.seconds, Counter[str](), 0
    while number < given.count and time.monotonic() < until:
        with watched(SECONDS_MAX):
            happened += run(f"{given.seed} {number}")
        number += 1
    sys.stdout.write(f"{number:,} inputs: schedules with {dict(happened)}\n")
    return int(threading.active_count() > 1)


if __name__ == "__main__":
    sys.exit(main())
