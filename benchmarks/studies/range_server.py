"""A web server of ranges with a latency, and with limits of bandwidth for each connection and for all together.

    python benchmarks/studies/range_server.py FOLDER SECONDS BYTES_PER_SECOND_OF_EACH BYTES_PER_SECOND_OF_ALL

It prints its address. ``/count`` returns how many requests it has answered.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

PIECE = 1 << 16


class Limit:
    """A bandwidth. ``reserve`` returns when the next bytes may have arrived."""

    def __init__(self, rate: float):
        self.rate, self.due = rate, 0.0

    def reserve(self, now: float, nbytes: int) -> float:
        self.due = max(self.due, now) + nbytes / self.rate
        return self.due


class Server:
    def __init__(self, folder: str, latency: float, each: float, total: float):
        self.folder, self.latency, self.each, self.total = Path(folder), latency, each, Limit(total)
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = Limit(self.each)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.requests += 1
                await self.answer(head, writer, own)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has left
        finally:
            writer.close()

    async def answer(self, head: str, writer: asyncio.StreamWriter, own: Limit) -> None:
        method, path, _ = head.split(" ", 2)
        if path == "/count":
            send(writer, "200 OK", body=str(self.requests).encode())
            return
        await asyncio.sleep(self.latency)
        content = self.folder / Path(path).name
        if not content.exists():
            send(writer, "404 Not Found")
            return
        size = content.stat().st_size
        found = re.search(r"(?i)^range: bytes=(\d+)-(\d+)", head, re.MULTILINE)
        start, stop = (int(found[1]), min(size, int(found[2]) + 1)) if found else (0, size)
        place = f"Content-Range: bytes {start}-{stop - 1}/{size}\r\n" if found else ""
        send(writer, "206 Partial Content" if found else "200 OK", place + f'ETag: "{size}"\r\n', length=stop - start)
        if method == "GET":
            await self.body(content, start, stop, writer, own)

    async def body(self, content: Path, start: int, stop: int, writer: asyncio.StreamWriter, own: Limit) -> None:
        clock = asyncio.get_running_loop().time
        with content.open("rb") as file:
            file.seek(start)
            while piece := file.read(min(PIECE, stop - start)):
                start += len(piece)
                now = clock()
                due = max(own.reserve(now, len(piece)), self.total.reserve(now, len(piece)))
                writer.write(piece)
                await asyncio.sleep(due - now)
                await writer.drain()


def send(
    writer: asyncio.StreamWriter, status: str, headers: str = "", body: bytes = b"", length: int | None = None
) -> None:
    length = len(body) if length is None else length
    writer.write(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n".encode() + body)


async def main(folder: str, *limits: str) -> None:
    server = await asyncio.start_server(Server(folder, *map(float, limits)).serve, "127.0.0.1", 0, backlog=256)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
