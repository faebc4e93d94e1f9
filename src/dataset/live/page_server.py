"""Page server: serves a feed on the loopback interface, in threads that end with it.

Only this machine can connect. A page of another site in the same browser must not read the figures, even if it makes
its own name point to this machine (DNS rebinding), so the Host header must name the loopback interface. No header
permits other origins to read, and the policy of the page permits only its own script and style.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib.resources
import io
import logging
import re
import weakref
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from dataset.closing import Closing
from dataset.live.feed import SnapshotFeed
from dataset.live.prometheus import exposition
from dataset.world import register_at_fork, socket, threading, time

_logger = logging.getLogger("dataset")

_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?", re.IGNORECASE)
_TARGET = re.compile(r"^https?://[^/?]*|\?.*", re.IGNORECASE)  # the parts of a request's target besides the path
_END = re.compile(rb"\n\r?\n")
_CLIENTS_MAX = 32  # each has a thread
_REQUEST_MAX = 1 << 17  # bytes: two lines of the length that http.server accepts
_PATIENCE_SECONDS = 5.0  # for a client that does not send its request, or does not take the answer


class LivePage(Closing):
    """A page in the browser that shows a running pipeline, as returned by ``iterator.serve()``.

    It is closed by ``close()``, at the end of a ``with`` block, with its iterator, or at the exit of the interpreter.

    Attributes:
        url: the address of the page.
        port: its port.
    """

    def __init__(self, port: int, feed: SnapshotFeed) -> None:
        self._server = _PageServer(port, feed)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    @property
    def closed(self) -> bool:
        """Whether the page was closed."""
        return self._server.feed.closed

    def stop(self) -> None:
        """Stop without waiting for the threads."""
        self._server.stop()

    def close(self) -> None:
        """Stop, and wait for the threads. May be called more than once."""
        self._server.stop()
        self._server.join()

    def __repr__(self) -> str:
        return f"<LivePage {self.url}{', closed' * self.closed}>"


_live: weakref.WeakSet[_PageServer] = weakref.WeakSet()


class _PageServer(HTTPServer):
    request_queue_size = 16

    def __init__(self, port: int, feed: SnapshotFeed) -> None:
        self.feed = feed
        self._clients: dict[threading.Thread, socket.socket] = {}
        super().__init__(("127.0.0.1", port), _RequestHandler)
        _live.add(self)
        self._thread = threading.Thread(target=self._run, name="dataset-live", daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        super(HTTPServer, self).server_bind()  # that of HTTPServer looks up the name of this machine
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def _run(self) -> None:
        # Only this thread closes the socket: a descriptor that is closed while it is polled may be another one by then.
        try:
            while not self.feed.closed:
                self.handle_request()
        finally:
            self.server_close()

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            self.feed.pause(1.0)  # too many open files: the connection stays in the queue
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        for oldest, connection in list(self._clients.items())[: len(self._clients) >= _CLIENTS_MAX]:
            with contextlib.suppress(OSError):  # a browser connects again
                connection.shutdown(socket.SHUT_RDWR)
            self.feed.repeat()  # a stream that waits for news ends
            oldest.join(_PATIENCE_SECONDS)
        if len(self._clients) >= _CLIENTS_MAX or self.feed.closed:
            self.shutdown_request(request)
            return
        arguments = (request, client_address)
        thread = threading.Thread(target=self._serve, args=arguments, name="dataset-live-client", daemon=True)
        self._clients[thread] = request
        try:
            thread.start()
        except RuntimeError:  # no more threads
            self._clients.pop(thread)
            raise

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:
            _logger.exception("the live page has failed to answer; please report this")
        finally:
            self.shutdown_request(request)
            self._clients.pop(threading.current_thread(), None)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        _logger.warning("no thread could be started for a request to the live page")

    def stop(self) -> None:
        """End all threads, without waiting for them. May be called from a finalizer in any thread, and repeatedly."""
        self.feed.close()
        try:  # wake the thread that waits for a connection, and free the port
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed already, or the system does not have this for a socket that listens
            if self.socket.fileno() >= 0:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", self.server_address[1]), 1.0).close()
        for request in list(self._clients.values()):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        """Wait until the threads have ended."""
        me = threading.current_thread()
        if self._thread is not me:
            self._thread.join(_PATIENCE_SECONDS)  # first, because it starts the others
        for thread in list(self._clients):
            if thread is not me and thread.is_alive():
                thread.join(_PATIENCE_SECONDS)

    def forget(self) -> None:
        """In a child process: close the copies of the sockets, which the parent still uses."""
        self.server_close()
        for request in self._clients.values():
            request.close()
        self._clients.clear()
        self.feed.__init__()  # type: ignore[misc]  # its locks may have been held by threads that do not exist here
        self.feed.close()


class _RequestHandler(BaseHTTPRequestHandler):
    server: _PageServer
    server_version, sys_version = "dataset", ""
    timeout = _PATIENCE_SECONDS

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the client has left, or is too slow
            self.rfile = io.BytesIO(self._request())
            super().handle()

    def _request(self) -> bytes:
        """Return what the client sends within ``timeout``, up to the end of the headers, or ``_REQUEST_MAX`` bytes."""
        found, part, until = b"", b"\n", time.monotonic() + self.timeout
        while part and len(found) < _REQUEST_MAX and not _END.search(found, len(found) - len(part) - 3):
            self.connection.settimeout(max(until - time.monotonic(), 1e-9))
            found += (part := self.connection.recv(_REQUEST_MAX - len(found)))
        self.connection.settimeout(self.timeout)
        return found

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command != "GET":
            text = b"Only GET is supported.\n" if self.command != "HEAD" else b""
            self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", text)
        return self.command == "GET"

    def do_GET(self) -> None:
        if not _HOST.fullmatch(self.headers.get("Host", "")):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"The Host header does not name this machine.\n")
            return
        path = _TARGET.sub("", self.path)
        if path == "/":
            self._send(HTTPStatus.OK, "text/html", _page(), policy=_policy())
        elif path == "/snapshot":
            self._send(HTTPStatus.OK, "application/json", self.server.feed.encoded())
        elif path == "/metrics":
            text = exposition(self.server.feed.snapshot())
            self._send(HTTPStatus.OK, "text/plain; version=0.0.4", text.encode())
        elif path == "/events":
            self._stream()
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There are /, /snapshot, /events and /metrics.\n")

    def _stream(self) -> None:
        """Send events until the feed is closed, or the client has left or does not read."""
        self._send_head(HTTPStatus.OK, "text/event-stream", _CLOSED_POLICY)
        seen = -1
        while (news := self.server.feed.next(seen)) is not None:
            seen, snapshot = news
            self.wfile.write(b"data: " + snapshot + b"\n\n")

    def _send(self, status: HTTPStatus, kind: str, body: bytes, policy: str = "") -> None:
        self._send_head(status, kind, policy or _CLOSED_POLICY, len(body))
        self.wfile.write(body)

    def _send_head(self, status: HTTPStatus, kind: str, policy: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind if ";" in kind else f"{kind}; charset=utf-8")
        if length is not None:
            self.send_header("Content-Length", str(length))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name in the base class
        _logger.debug("live page: " + format, *args)  # noqa: G003


_CLOSED_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@functools.cache
def _page() -> bytes:
    return importlib.resources.files("dataset.live").joinpath("page.html").read_bytes()


@functools.cache
def _policy() -> str:
    """Return the policy that permits the script and the style of the page by their digests, and no others."""
    digests = {
        kind: base64.b64encode(hashlib.sha256(text).digest()).decode()
        for kind, text in re.findall(rb"<(script|style)>(.*?)</\1>", _page(), re.DOTALL)
    }
    allowed = f"script-src 'sha256-{digests[b'script']}'; style-src 'sha256-{digests[b'style']}'"
    return f"{_CLOSED_POLICY}; {allowed}; connect-src 'self'; img-src data:"


def _forget_all() -> None:
    for server in list(_live):
        server.forget()


register_at_fork(after_in_child=_forget_all)
