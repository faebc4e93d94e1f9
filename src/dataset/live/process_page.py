"""Page of a process: shows its newest iterator, if the environment variable ``DATASET_LIVE`` names a port."""

from __future__ import annotations

import atexit
import logging
import os

from dataset.live.feed import SnapshotFeed
from dataset.live.page_server import LivePage
from dataset.world import register_at_fork, threading

_logger = logging.getLogger("dataset")
_opening = threading.RLock()
_page: tuple[SnapshotFeed, LivePage] | None = None


def shown_by_environment(setting: str) -> SnapshotFeed | None:
    """Return the feed of the page of this process, which is opened by the first call; None if it cannot be opened.

    Args:
        setting: the value of ``DATASET_LIVE``: a port, or 0 for any free one. If another process has taken the port,
            such as another rank on this machine, a free one is chosen; a log message names it.

    Raises:
        ValueError: if it is not a port.
    """
    global _page  # noqa: PLW0603  # one for each process
    if not (setting.isascii() and setting.isdigit() and int(setting) < 1 << 16):
        raise ValueError(f"the environment variable DATASET_LIVE must be a port from 0 to 65535, got {setting!r}")
    with _opening:
        if _page is None:
            feed = SnapshotFeed()
            page = _open(int(setting), feed)
            if page is None:
                return None
            _page = feed, page
            atexit.register(page.stop)
            _logger.warning("live page of process %d: %s", os.getpid(), page.url)
        return _page[0]


def _forget() -> None:
    """In a child process: its page is another one."""
    global _page, _opening
    _page, _opening = None, threading.RLock()


register_at_fork(after_in_child=_forget)


def _open(port: int, feed: SnapshotFeed) -> LivePage | None:
    for chosen in dict.fromkeys((port, 0)):
        try:
            return LivePage(chosen, feed)
        except (OSError, RuntimeError) as error:
            _logger.warning("the live page cannot be opened on port %d: %s", chosen, error)
    return None
