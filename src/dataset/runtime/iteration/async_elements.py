"""Asynchronous iteration: the elements of an iterator, computed in a thread so that the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Self

from dataset.runtime.iteration.iterator import DatasetIterator
from dataset.world.futures import ThreadPoolExecutor

_END: Any = object()


class AsyncElements(AsyncIterator[Any]):
    """The elements of an iterator for ``async for``.

    After an element that fails, iteration continues with the next one, as it does without ``async``. A cancelled
    ``anext`` loses nothing: its call goes on, and the next ``anext`` returns the outcome. The iterator is closed at the
    end of the data, by ``aclose()``, when this object is dropped, and when the event loop ends.
    """

    def __init__(self, iterator: DatasetIterator[Any]) -> None:
        self._iterator = iterator
        self._calls = _calls(iterator)
        self._call: asyncio.Future[Any] | None = None  # whose outcome was not returned yet
        self._lock = asyncio.Lock()  # an outcome goes to exactly one caller

    def __del__(self) -> None:
        # A call that still waits takes no element of a queue. The event loop closes the iterator later.
        self._iterator._coordinator.stop()  # noqa: SLF001  # only stops: the call may be anywhere in the operators

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            async with self._lock:
                if self._call is None:
                    self._call = await anext(self._calls)
                await asyncio.wait([self._call])
                call, self._call = self._call, None
            element = call.result()
        except BaseException:
            del self  # the exception keeps this frame, and must not keep the iterator open
            raise
        if element is _END:
            await self.aclose()
            raise StopAsyncIteration
        return element

    async def aclose(self) -> None:
        """Close the iterator. A call that still waits ends with ClosedError, and every later one with the end."""
        await self._calls.aclose()
        self._iterator.close()  # if there was no call yet


async def _calls(iterator: DatasetIterator[Any]) -> AsyncGenerator[asyncio.Future[Any], None]:
    """Yield calls of ``next`` that have begun. The event loop closes this generator if it is left."""
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(1, "dataset-async")
    call: asyncio.Future[Any] | None = None
    try:
        while True:
            call = loop.run_in_executor(executor, next, iterator, _END)
            yield call
    finally:
        iterator.close()  # ends a call that still waits
        if call is not None:
            await asyncio.wait([call])
            call.exception()  # known to the caller, or that of the closed iterator
        executor.shutdown(wait=False)
