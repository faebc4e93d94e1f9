"""World: what the library uses of the system besides files. No other package imports these modules directly.

    time                                           clocks and sleeps
    threading, queue, futures                      threads, locks, conditions, queues
    interrupts, signal                             signals, and waits that a signal ends
    forking                                        what becomes of locks and descriptors at a fork
    subprocess, multiprocessing, mmap              processes, pipes, shared memory
    socket, select, selectors                      sockets

The modules are named after those of the standard library whose names they pass on, so a call costs what it costs there.
Other packages write ``from dataset.world import time`` and ``time.perf_counter()``. The name is looked up at each call,
so a test in virtual time can replace it here for the whole library.

The package comes early in the order of imports, because ``lazy_imports`` and the codecs use it, too.
"""

from __future__ import annotations

import os

register_at_fork = getattr(os, "register_at_fork", lambda **_: None)
"""``os.register_at_fork``; without effect on Windows, which has no fork."""
