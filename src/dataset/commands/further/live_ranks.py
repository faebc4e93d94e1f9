"""``live``: watch the live pages of several processes side by side, and mark those that hold the others up."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dataset.commands.command_errors import GOOD, CommandError
from dataset.commands.common_options import Subparsers, add_command
from dataset.commands.display.terminal import number, printable, say, say_json, size
from dataset.plan.drawing.summary import table
from dataset.world import futures, threading

MORE = """\
Shows a line for each process that serves a page: iterator.serve() in it, or
DATASET_LIVE=8080 in its environment. In a training loop over several processes,
each step ends when the slowest process has finished it. A process is marked as a
straggler if its loop waits for data clearly more than those of the others, or if
it gets clearly fewer elements per second.

examples:
  python -m dataset live http://localhost:8080 http://localhost:8081
  python -m dataset live localhost:8080 --once --json

status: 0, or 2 if an address is wrong or, with --once, a page cannot be read
"""

_INTERVAL_SECONDS = 2.0
_TIMEOUT_SECONDS = 5.0
_SNAPSHOT_MAX = 1 << 24  # bytes; a page that sends more is not one of ours
_WAITS_MORE = 0.1  # the share of the time by which a straggler waits more than the median process
_RUNS_SLOWER = 0.9  # the rate of a straggler relative to that of the median process
_HEADER = ("rank", "elements", "rate", "waited", "p95 wait", "memory", "bottleneck", "")


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_command(commands, "live", run, "watch the pipelines of several processes", MORE)
    parser.add_argument("urls", nargs="+", type=_address, metavar="URL", help="the address of a live page")
    parser.add_argument("--once", action="store_true", help="print one table and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON document for each table")


def _address(text: str) -> str:
    url = text if "//" in text else f"http://{text}"
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise argparse.ArgumentTypeError(f"must be an address such as http://localhost:8080, got {text!r}")
    return f"{parts.scheme}://{parts.netloc}/snapshot"


@dataclass
class Rank:
    """The figures of one process.

    Attributes:
        url: the address of its snapshot.
        snapshot: its last snapshot; None if the page could not be read.
        problem: why it could not be read, or "".
        rate: elements per second since the previous snapshot.
        waited: the share of the time since then that its consumer waited.
        is_running: whether its iteration has begun and not ended.
        cells: its row in the table, but for the mark.
    """

    url: str
    snapshot: dict[str, Any] | None = None
    problem: str = ""
    rate: float = 0.0
    waited: float = 0.0
    is_running: bool = False
    cells: Sequence[str] = ()

    def update(self) -> None:
        """Read the page."""
        before, self.snapshot, self.problem = self.snapshot, None, ""
        try:
            with _opener.open(self.url, timeout=_TIMEOUT_SECONDS) as answer:
                snapshot = json.loads(answer.read(_SNAPSHOT_MAX))
            self._measure(before, snapshot)
            self.cells = self._cells(snapshot)
            self.snapshot = snapshot
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            self.problem = str(getattr(error, "reason", error)) or type(error).__name__

    def _measure(self, before: dict[str, Any] | None, now: dict[str, Any]) -> None:
        stats = now["stats"]
        is_same = before is not None and before["pipeline"] == now["pipeline"]
        then = before["stats"] if before is not None and is_same and not stats["ended"] else {}
        seconds, elements, wait = (stats[key] - then.get(key, 0) for key in ("seconds", "elements", "wait_seconds"))
        self.is_running = seconds > 0 and not stats["ended"]
        self.rate, self.waited = (elements / seconds, wait / seconds) if seconds > 0 else (0.0, 0.0)

    def _cells(self, snapshot: dict[str, Any]) -> Sequence[str]:
        stats, waits, rank = snapshot["stats"], snapshot["stats"]["step_waits"], snapshot["process"]["rank"]
        return (
            _short(self.url) if rank is None else printable(str(rank)),
            number(int(stats["elements"])),
            f"{self.rate:,.3g}/s",
            f"{self.waited:.0%}",
            "" if waits is None else f"{1000 * waits['p95']:.3g} ms",
            size(float(stats["buffered_bytes"])),
            "" if stats["bottleneck"] is None else printable(str(stats["bottleneck"]["name"])),
        )


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy could not reach this machine


def _short(url: str) -> str:
    return printable(urllib.parse.urlsplit(url).netloc)


def stragglers(ranks: Sequence[Rank]) -> set[str]:
    """Return the addresses of the running processes that hold the others up."""
    known = [rank for rank in ranks if rank.snapshot is not None and rank.is_running]
    if len(known) < 2:
        return set()
    waited = statistics.median(rank.waited for rank in known)
    rate = statistics.median_high(rank.rate for rank in known)
    waits_more = {rank.url for rank in known if rank.waited > waited + _WAITS_MORE}
    return waits_more | {rank.url for rank in known if rank.rate < _RUNS_SLOWER * rate}


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    ranks = [Rank(url) for url in arguments.urls]
    pause = threading.Event()  # never set: only its timeout is used
    with futures.ThreadPoolExecutor(len(ranks)) as pool:
        while True:
            list(pool.map(Rank.update, ranks))
            _show(ranks, as_json=arguments.json, replaces=not arguments.once and sys.stdout.isatty())
            if arguments.once:
                break
            sys.stdout.flush()
            pause.wait(_INTERVAL_SECONDS)
    if unread := [rank for rank in ranks if rank.snapshot is None]:
        raise CommandError(f"{unread[0].url}: {unread[0].problem}")
    return GOOD


def _show(ranks: Sequence[Rank], *, as_json: bool, replaces: bool) -> None:
    slow = stragglers(ranks)
    if as_json:
        say_json({"ranks": [_fields(rank, is_straggler=rank.url in slow) for rank in ranks]})
        return
    if replaces:
        sys.stdout.write("\x1b[H\x1b[2J")
    say(*table([_HEADER, *(_row(rank, is_straggler=rank.url in slow) for rank in ranks)], right=range(1, 6)))


def _row(rank: Rank, *, is_straggler: bool) -> Sequence[str]:
    if rank.snapshot is None:
        return (_short(rank.url), *[""] * (len(_HEADER) - 2), printable(rank.problem))
    mark = "STRAGGLER" if is_straggler else "ended" if rank.snapshot["stats"]["ended"] else ""
    return (*rank.cells, mark)


def _fields(rank: Rank, *, is_straggler: bool) -> dict[str, Any]:
    return {
        "url": rank.url,
        "problem": rank.problem or None,
        "rate": rank.rate,
        "waited": rank.waited,
        "is_straggler": is_straggler,
        "snapshot": rank.snapshot,
    }
