"""Asynchronous iteration: the elements of an iterator, computed in a thread so that the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dataset.runtime.iteration.iterator import DatasetIterator

_END: Any = object()


async def async_elements(iterator: DatasetIterator[Any]) -> AsyncGenerator[Any, None]:
    """Yield the elements of an iterator; close it at the end, after an exception, or if the task is cancelled."""
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(1, "dataset-async")
    call: asyncio.Future[Any] | None = None
    try:
        while True:
            call = loop.run_in_executor(executor, next, iterator, _END)
            if (element := await asyncio.shield(call)) is _END:
                return
            yield element
    finally:
        iterator.close()  # ends a call that still waits
        if call is not None:
            await asyncio.wait([call])
            call.exception()  # known to the caller, or that of the closed iterator
        executor.shutdown(wait=False)
