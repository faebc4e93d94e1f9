"""Fetching ranges from S3 and compatible storages, in s3fs's session.

s3fs can fetch a range itself, but does not report its version. Here each request after the first requires the version
of the first one. The first response also states the size, so no request is needed before it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dataset.amounts import BLOCK_BYTES
from dataset.io.files.remote import retrying
from dataset.io.files.remote.objects import RemoteObject, Version, begun, run
from dataset.world.futures import Future


class S3Object(RemoteObject):
    """Remote object in a bucket."""

    def fetch(self, start: int, stop: int, into: bytearray) -> None:
        run(self._system, self._fetch(start, stop, into), self._interruption)

    def begin(self, start: int, stop: int, into: bytearray) -> Future[None] | None:
        return begun(self._system, self._fetch(start, stop, into))

    def learn_version(self) -> None:
        self.fetch(0, 1, bytearray())  # there are no empty ranges

    async def _fetch(self, start: int, stop: int, into: bytearray) -> None:
        async with asyncio.timeout(2 * retrying.STALL_SECONDS) as stall:  # s3fs retries by itself within this time
            answer = await self._ask(start, stop)
            if answer is None:
                return
            body = answer["Body"]
            try:
                while piece := await body.read(BLOCK_BYTES):
                    into += piece
                    stall.reschedule(asyncio.get_running_loop().time() + retrying.STALL_SECONDS)
            finally:
                body.close()

    async def _ask(self, start: int, stop: int) -> Any:
        """Send a request; return the checked response, body unread, or None if the file ends before ``start``."""
        bucket, key, number = self._system.split_path(self._name)
        options = {"Range": f"bytes={start}-{stop - 1}"}
        if number is not None:
            options["VersionId"] = number
        known = self._version
        if known is not None and known.etag and not self._system.local_expiry_check:
            options["IfMatch"] = known.etag
        try:
            answer = await self._system._call_s3("get_object", Bucket=bucket, Key=key, **options)  # noqa: SLF001  # s3fs's interface for async callers
        except OSError as error:
            code = _code(error)
            if code in {"PreconditionFailed", "412"}:
                raise self._changed("its ETag is different now") from error
            if code in {"InvalidRange", "416"}:
                self._note(Version(0) if start == 0 else Version())
                return None
            raise
        size = answer.get("ContentRange", "").rpartition("/")[2]
        self._note(Version(int(size) if size.isdecimal() else answer["ContentLength"], answer.get("ETag")))
        return answer


def _code(error: OSError) -> str:
    response = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))
