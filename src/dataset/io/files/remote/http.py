"""Fetching ranges over HTTP, in fsspec's session.

Each range is a separate request, and its response states the version of the file (ETag, Last-Modified, size). So no
extra request for the size is needed. A server without range support responds with the whole file; this response is
kept open and read further as long as reading moves forward.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import re
from typing import Any

from dataset.amounts import BLOCK_BYTES
from dataset.io.files.remote import retrying
from dataset.io.files.remote.objects import RemoteObject, Version, begun, run
from dataset.world.futures import Future

_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


class HTTPObject(RemoteObject):
    """Remote object on a web server."""

    _whole: Any = None  # the response of a server without range support
    _at = 0  # the position in that response

    def fetch(self, start: int, stop: int, into: bytearray) -> None:
        run(self._system, self._fetch(start, stop, into), self._interruption)

    def begin(self, start: int, stop: int, into: bytearray) -> Future[None] | None:
        return None if self._whole is not None else begun(self._system, self._fetch_beside(start, stop, into))

    def learn_version(self) -> None:
        self.fetch(0, 1, bytearray())  # there are no empty ranges

    def close(self) -> None:
        whole, self._whole = self._whole, None
        if whole is not None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended, and the connection with it
                self._system.loop.call_soon_threadsafe(whole.close)

    async def _fetch(self, start: int, stop: int, into: bytearray) -> None:
        async with asyncio.timeout(retrying.STALL_SECONDS) as stall:
            if self._whole is not None and start >= self._at:
                await self._read_on(start, stop, into, stall)
                return
            self._drop()
            answer = await self._ask(start, stop)
            if answer.status == 200:
                self._whole, self._at = answer, 0
                await self._read_on(start, stop, into, stall)
                return
            async with answer:
                if answer.status == 206:
                    await self._read_range(answer, stop - start, into, stall)

    async def _fetch_beside(self, start: int, stop: int, into: bytearray) -> None:
        async with asyncio.timeout(retrying.STALL_SECONDS) as stall, await self._ask(start, stop) as answer:
            if answer.status == 206:
                await self._read_range(answer, stop - start, into, stall)

    async def _ask(self, start: int, stop: int) -> Any:
        """Send a request; return the response, whose headers were checked and whose body was not read."""
        aiohttp = importlib.import_module("aiohttp")
        session = await self._system.set_session()
        options = {**self._system.kwargs, "timeout": aiohttp.ClientTimeout(total=None)}  # asyncio.timeout does it
        headers = {
            **options.pop("headers", {}),
            "Range": f"bytes={start}-{stop - 1}",
            "Accept-Encoding": "identity",  # a range of a compressed response can't be used
        }
        answer = await session.get(self._system.encode_url(self._name), headers=headers, **options)
        try:
            self._look_at(answer, start)
        except BaseException:
            answer.close()
            raise
        return answer

    def _look_at(self, answer: Any, start: int) -> None:
        if answer.status not in {200, 206, 416}:
            answer.raise_for_status()
            raise OSError(f"the server responded with status {answer.status}")
        headers = answer.headers
        etag, modified = headers.get("ETag", "").removeprefix("W/") or None, headers.get("Last-Modified")
        if answer.status == 200:
            length = headers.get("Content-Length") if not _is_encoded(answer) else None
            self._note(Version(None if length is None else int(length), etag, modified))
            return
        found = _RANGE.match(headers.get("Content-Range", ""))
        if answer.status == 206 and (
            found is None or found[1] is None or int(found[1]) != start or _is_encoded(answer)
        ):
            got = headers.get("Content-Range"), headers.get("Content-Encoding")
            raise OSError(
                f"the response is not the requested range from byte {start}: (Content-Range, Content-Encoding) is {got}"
            )
        size = None if found is None or found[2] == "*" else int(found[2])
        self._note(Version(size, etag, modified) if answer.status == 206 else Version(size))

    async def _read_range(self, answer: Any, size: int, into: bytearray, stall: asyncio.Timeout) -> None:
        had = len(into)
        async for piece in answer.content.iter_any():
            into += piece
            _go_on(stall)
            if len(into) - had > size:
                del into[had:]
                raise OSError(f"the server sent more than the {size} requested bytes")

    async def _read_on(self, start: int, stop: int, into: bytearray, stall: asyncio.Timeout) -> None:
        """Read the whole-file response: skip to ``start``, then read to ``stop``."""
        try:
            while self._at < stop:
                goal = start if self._at < start else stop
                piece = await self._whole.content.read(min(BLOCK_BYTES, goal - self._at))
                if not piece:
                    return
                if self._at >= start:
                    into += piece
                self._at += len(piece)
                _go_on(stall)
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        """Close the connection; runs in fsspec's thread."""
        whole, self._whole = self._whole, None
        if whole is not None:
            whole.close()


def _go_on(stall: asyncio.Timeout) -> None:
    """Extend the timeout after data arrived. Not done for each piece: a timer would cost more than the piece."""
    due = asyncio.get_running_loop().time() + retrying.STALL_SECONDS
    if due - (stall.when() or 0.0) > retrying.STALL_SECONDS / 10:
        stall.reschedule(due)


def _is_encoded(answer: Any) -> bool:
    return answer.headers.get("Content-Encoding", "identity") not in {"", "identity"}
