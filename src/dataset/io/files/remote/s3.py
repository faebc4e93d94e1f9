"""Fetching ranges from S3 and its like, in s3fs's session.

s3fs can fetch a range too, but then does not say of which version it is. Here each request but the first demands the
version of the first, and the first tells the size, so there is no other before it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dataset.io.files.remote import retrying
from dataset.io.files.remote.objects import RemoteObject, Version, run

__all__ = ["S3Object"]

_PIECE_BYTES = 1 << 18


class S3Object(RemoteObject):
    """An object in a bucket."""

    def fetch(self, start: int, stop: int, into: bytearray) -> None:
        run(self._system, self._fetch(start, stop, into), self._interruption)

    def close(self) -> None:
        """Nothing is held."""

    async def _fetch(self, start: int, stop: int, into: bytearray) -> None:
        async with asyncio.timeout(2 * retrying.STALL_SECONDS) as stall:  # s3fs tries again itself, in this time
            answer = await self._ask(start, stop)
            if answer is None:
                return
            body = answer["Body"]
            try:
                while piece := await body.read(_PIECE_BYTES):
                    into += piece
                    stall.reschedule(asyncio.get_running_loop().time() + retrying.STALL_SECONDS)
            finally:
                body.close()

    async def _ask(self, start: int, stop: int) -> Any:
        """The answer, which was looked at, and has the body still to come; None where the file ends before."""
        bucket, key, number = self._system.split_path(self._name)
        options = {"Range": f"bytes={start}-{stop - 1}"}
        if number is not None:
            options["VersionId"] = number
        known = self._version
        if known is not None and known.etag and not self._system.local_expiry_check:
            options["IfMatch"] = known.etag
        try:
            answer = await self._system._call_s3("get_object", Bucket=bucket, Key=key, **options)  # noqa: SLF001  # its way for async callers
        except OSError as error:
            code = _code(error)
            if code in {"PreconditionFailed", "412"}:
                raise self._changed("its ETag is another one now") from error
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
