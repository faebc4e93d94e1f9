"""Snapshot feed: the latest figures of the pipelines that a page shows, computed once for all clients."""

from __future__ import annotations

import json
import os
from typing import Any, Protocol

from dataset.amounts import REST_FACTOR
from dataset.world import socket, threading, time

_INTERVAL_SECONDS = 1.0
_ENDED_SECONDS = 15.0  # without news, streams send the last snapshot again, which reveals clients that have vanished


class SnapshotSource(Protocol):
    """A running pipeline."""

    def snapshot(self) -> dict[str, Any]:
        """Return its figures as plain data. Called from any thread, by one at a time."""


class SnapshotFeed:
    """Shows the pipeline that was begun last and still runs, or else the final figures of the one that ended last.

    The latter are also shown while a pipeline has run for less than a second: short epochs would show nothing else than
    how they begin.

    The methods may be called from a finalizer, which may run inside any of them in the same thread. So no other lock is
    taken while the condition is held.

    Attributes:
        closed: whether the feed was closed.
    """

    def __init__(self) -> None:
        self._news = threading.Condition()  # guards the fields but those of the last snapshot
        self._changes = self._repeats = 0
        self._shown = 0
        # With the number of each, and when it was begun; 0 if it is shown at once.
        self._running: dict[SnapshotSource, tuple[int, float]] = {}
        self._final: dict[str, Any] = {"pipeline": 0}
        self._ended: SnapshotSource | None = None  # whose final figures these are
        self.closed = False
        self._computing = threading.Lock()  # guards the following
        self._latest = b""
        self._latest_change = -1
        self._computed = 0.0
        self._interval = _INTERVAL_SECONDS

    def begin(self, source: SnapshotSource) -> None:
        """Show a pipeline until it ends or another begins. Called again if it begins anew."""
        with self._news:
            self._shown += 1
            is_same = self._running.pop(source, None) is not None or source is self._ended
            self._running[source] = self._shown, 0.0 if is_same else time.perf_counter()
            self._change()

    def end(self, source: SnapshotSource, final: dict[str, Any]) -> None:
        """Note that a pipeline has ended; ``final`` is its last snapshot."""
        with self._news:
            if source in self._running:
                self._final = {"pipeline": self._running.pop(source)[0], **final}
                self._ended = source
                self._change()

    def close(self) -> None:
        """End all streams."""
        with self._news:
            self.closed = True
            self._running.clear()
            self._change()

    def repeat(self) -> None:
        """Let all streams send the last figures again, which reveals clients that have left."""
        with self._news:
            self._repeats += 1
            self._news.notify_all()

    def _change(self) -> None:
        self._changes += 1
        self._news.notify_all()

    def next(self, seen: int) -> tuple[int, bytes] | None:
        """Wait until there is news or it is time for new figures; return a number and a snapshot.

        Args:
            seen: the number that the previous call returned, or -1.

        Returns:
            None if the feed was closed.
        """
        with self._news:
            seconds = self._interval if self._running else _ENDED_SECONDS
            self._news.wait_for(lambda: self.closed or self._changes + self._repeats != seen, seconds)
            if self.closed:
                return None
            number = self._changes + self._repeats
        return number, self.encoded()

    def pause(self, seconds: float) -> None:
        """Wait for that time, or until the feed is closed."""
        with self._news:
            self._news.wait_for(lambda: self.closed, seconds)

    def encoded(self) -> bytes:
        """Return the current snapshot as JSON. It may be half an interval old."""
        with self._computing:
            now = time.perf_counter()
            if self._latest_change != self._changes or now - self._computed >= self._interval / 2:
                self._latest_change = self._changes
                self._latest = json.dumps(self.snapshot()).encode()
                self._computed = time.perf_counter()
                self._interval = max(_INTERVAL_SECONDS, REST_FACTOR * (self._computed - now))
            return self._latest

    def snapshot(self) -> dict[str, Any]:
        """Return the current snapshot as plain data."""
        with self._news:
            running, final = list(self._running.items()), self._final
        latest = time.perf_counter() - _INTERVAL_SECONDS
        chosen = [item for item in running if item[1][1] <= latest] or ([] if "stats" in final else running)
        process = {"pid": os.getpid(), "host": socket.gethostname(), "rank": os.environ.get("RANK")}
        if not chosen:
            return {"process": process, **final}
        source, (number, _) = chosen[-1]
        return {"process": process, "pipeline": number, **source.snapshot()}
