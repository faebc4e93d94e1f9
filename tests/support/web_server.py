"""Local web server with files in memory and configurable faults."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import struct
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


@dataclass
class WebFile:
    """A file, and how the server responds to requests for it.

    Each request uses up one of the ``faults``: a status, ("busy", Retry-After of a response with status 429), ("cut",
    bytes sent before the connection is closed), "stall" (send nothing until the server is released), ("stall", bytes
    sent before the stall), "hang up", "more" (send more than requested), "elsewhere" (send another range), or None for
    a correct response.
    """

    content: bytes
    etag: str | None = '"one"'
    modified: str | None = None
    ranges: bool = True
    length: bool = True
    faults: deque = field(default_factory=deque)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.server.requests.append(("HEAD", self.path, None))
        self.plain(405)

    def do_GET(self):
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        wanted = found and (int(found[1]), int(found[2]) + 1)
        self.server.requests.append(("GET", self.path, wanted))
        if self.path in self.server.pages:
            self.plain(200, self.server.pages[self.path])
            return
        file = self.server.find(self.path)
        if file is None:
            self.plain(404)
            return
        fault = file.faults.popleft() if file.faults else None
        if isinstance(fault, int):
            self.plain(fault)
        elif isinstance(fault, tuple) and fault[0] == "busy":
            self.plain(429, retry_after=fault[1])
        elif fault == "hang up":
            self.close_connection = True
            # A linger time of zero closes the connection with a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self.answer(file, wanted, fault)

    def plain(self, status, text="", retry_after=None):
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text.encode())

    def answer(self, file, wanted, fault):
        if fault == "stall":
            self.stall()
        body, size = file.content, len(file.content)
        if wanted and file.ranges:
            start, stop = wanted[0], min(wanted[1], size)
            if start >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                body = b""
            else:
                self.send_response(206)
                shown = start + (fault == "elsewhere")
                self.send_header("Content-Range", f"bytes {shown}-{stop - 1}/{size}")
                body = file.content[start:stop] + b"!" * (fault == "more")
        else:
            self.send_response(200)
        for name, value in (("ETag", file.etag), ("Last-Modified", file.modified)):
            if value:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        if file.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if isinstance(fault, tuple):
            body = body[: fault[1]]
            if fault[0] == "stall":
                self.wfile.write(body)
                self.stall()
                return
        self.wfile.write(body)

    def stall(self):
        self.server.stalled.set()
        self.server.released.wait()


class WebServer(ThreadingHTTPServer):
    """Server whose connections take one request each and have a thread each, which ``close`` waits for."""

    daemon_threads = False
    request_queue_size = 128  # clients open many connections at once

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.pages = {}
        self.requests = []
        self.stalled = threading.Event()
        self.released = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,), name="web server")
        self.thread.start()

    def find(self, path):
        return self.files.get(path)

    def handle_error(self, request, client_address):
        """Ignore the error: clients may close the connection."""

    def put(self, name, content, **about):
        """Store a file; return its URL."""
        about["faults"] = deque(about.get("faults", ()))
        self.files[f"/{name}"] = WebFile(content, **about)
        return f"{self.url}/{name}"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def ranges(self):
        """Return the ranges requested since the last call, as (start, stop)."""
        found = [wanted for _, _, wanted in self.requests]
        self.requests.clear()
        return found

    def close(self):
        self.released.set()
        self.shutdown()
        self.server_close()
        self.thread.join()


class FolderServer(WebServer):
    """Server of a folder; queries configure it: ``ranges=no``, ``length=no``, ``etag=no``, ``faults``, ``stalls``."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.faults = itertools.cycle([None, None, 500, None, None, ("cut", 300), None, None, "hang up"])
        super().__init__()

    def find(self, path):
        parts = urlsplit(path)
        query = parse_qs(parts.query, keep_blank_values=True)
        file = WebFile((self.folder / parts.path.strip("/")).read_bytes())
        file.ranges, file.length = "ranges" not in query, "length" not in query
        if "etag" in query:
            file.etag, file.modified = None, "Mon, 01 Jan 2024 00:00:00 GMT"
        if "faults" in query:
            file.faults.append(next(self.faults))
        if "stalls" in query:
            file.faults.append("stall")
        return file


class WebFolder:
    """A FolderServer in a separate process, so that its threads and connections do not count as those of the tests."""

    def __init__(self, folder):
        self.folder = Path(folder)
        command = [sys.executable, __file__, str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def put(self, name, content, query=""):
        """Store a file; return its URL."""
        (self.folder / name).write_bytes(content)
        return f"{self.url}/{name}" + f"?{query}" * bool(query)

    def close(self):
        self.process.communicate()


if __name__ == "__main__":
    server = FolderServer(sys.argv[1])
    print(server.url, flush=True)  # noqa: T201
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()  # until the other end is closed
    server.close()
