"""Queues for other processes: serve() offers a queue at an address, connect() calls it from elsewhere.

One thread of the server reads and writes all connections, and waits for nothing else. At the other end, a connection
belongs to one call at a time, of one process: a forked child closes its copies and connects on its own.

A message is a frame: its length (8 bytes), a number (8 bytes), and the content. Both sides first prove that they know
the key. Until then, a peer costs the server one socket and 80 bytes, for a limited time.

    server    number 0: a nonce (32 bytes)
    client    number 0: a nonce (32 bytes), and the HMAC-SHA256 of "client" and both nonces with the key
    server    number 0: the HMAC-SHA256 of "server" and both nonces with the key; empty if the client's was wrong

Then the client numbers its requests:

    client    a pickle: method, arguments, options
    server    a pickle: whether it is an exception, whether elements were taken, and the result
    client    empty, if elements were taken: they have arrived
    server    empty: they belong to the client

Elements are lent until the client acknowledges them. If the connection ends before, they go back to the front of the
queue, and the client does not return them. If a call fails in any other way than by an answer, such as by Ctrl-C, the
client ends the connection. So no answer is left for a later call, and a request that had not begun never does.

Requests and answers are pickles: a process that knows the key can run code in the other one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import itertools
import math
import pickle
import secrets
import struct
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from dataset.amounts import PIECE_BYTES
from dataset.closing import Closing
from dataset.errors import CancelledError
from dataset.queues.element_queue import ElementQueue, FailedElement, WaitingCall
from dataset.world import socket, threading
from dataset.world.forking import at_fork, whole
from dataset.world.interrupts import Finalizer, check, handing_over, install, interruptible, uninstall
from dataset.world.multiprocessing import AuthenticationError, connection

PATIENCE_SECONDS = 60.0
"""How long each side waits for the other one where only its slowness can delay it."""

_METHODS = frozenset(
    {"close", "dequeue", "dequeue_many", "dequeue_up_to", "enqueue", "enqueue_many", "is_closed", "size"}
)
_HEAD = struct.Struct(">QQ")
_NONCE_BYTES = 32
_PROOF_BYTES = 64  # a nonce and a digest
_BYTES_PER_SECOND_MIN = 1 << 20  # of a connection that is not broken
_LATER = object()  # in the place of a result
_STRANGERS_MAX = 256  # connections that have not proved that they know the key

Address = str | tuple[str, int]


def serve(queue: ElementQueue, address: Address | None = None, authkey: bytes = b"") -> QueueServer:
    """Offer a queue to other processes, in a background thread of this one.

    No element is lost unless the process that has received it ends, and none is received twice. If a process is killed
    in a call, or its connection ends, then each element that it was sending enters the queue or does not, and those
    that it had not acknowledged go back to the front of the queue. A call acknowledges its elements when all their
    bytes have arrived, and returns them when the server has confirmed that.

    Args:
        queue: the queue. This process may use it, too.
        address: ``(host, port)``, with port 0 for a free one, or the path of a Unix socket; default: a free port of the
            loopback interface.
        authkey: a secret of at least 16 bytes, such as ``secrets.token_bytes(32)``, which ``connect`` must be given.
            A process that knows it can run code in this process.

    Returns:
        The server, with ``address`` and ``close()``; also a context manager.

    Raises:
        OSError: if the address cannot be used.
        TypeError: if ``queue`` is not a queue of dataset.queues.
        ValueError: if ``authkey`` is too short.

    Examples:
        >>> import secrets
        >>> from dataset import queues
        >>> key = secrets.token_bytes(32)
        >>> with queues.serve(queues.FIFOQueue(10), authkey=key) as server:
        ...     with queues.connect(server.address, key) as remote:  # usually in another process
        ...         remote.enqueue((1, "one"))
        ...         remote.dequeue()
        (np.int64(1), b'one')
    """
    if not isinstance(queue, ElementQueue):
        raise TypeError(f"serve(): queue must be one of dataset.queues, got a {type(queue).__name__}")
    return QueueServer(queue, ("127.0.0.1", 0) if address is None else address, _require_key("serve", authkey))


def connect(address: Address, authkey: bytes) -> RemoteQueue:
    """Return a queue that another process serves.

    Args:
        address: the ``address`` of the server.
        authkey: its key. A server that knows it can run code in this process.

    Raises:
        multiprocessing.AuthenticationError: if the keys differ.
        OSError: if the server cannot be reached, or does not answer for a minute.
        ValueError: if ``authkey`` is too short.
    """
    return RemoteQueue(address, _require_key("connect", authkey))


def _require_key(op: str, authkey: Any) -> bytes:
    if not isinstance(authkey, bytes) or len(authkey) < _KEY_MIN:
        raise ValueError(f"{op}(): authkey must be at least {_KEY_MIN} secret bytes, such as secrets.token_bytes(32)")
    return authkey


_KEY_MIN = 16


class QueueServer(Closing):
    """The server of one queue: a thread for all its connections.

    Attributes:
        address: where it listens.
    """

    def __init__(self, queue: ElementQueue, address: Address, authkey: bytes) -> None:
        self.queue = queue
        self.authkey = authkey
        self.peers: dict[_Peer, None] = {}  # in the order in which they came
        try:
            with whole:
                self._listener = connection.Listener(address, backlog=socket.SOMAXCONN)
                self._socket = _Listening(fileno=self._listener._listener._socket.detach())  # type: ignore[attr-defined]  # noqa: SLF001
                _open.add(self._socket)
        except OSError as error:
            raise OSError(error.errno, f"serve(): {address!r} cannot be used: {error.strerror}") from None
        self.address: Address = self._listener.address
        self.loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="dataset-queue-server", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._release()
            raise

    def close(self) -> None:
        """Stop listening, end all connections, and wait for the thread. The queue stays as it is."""
        with contextlib.suppress(RuntimeError):  # it is closed
            self.loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self._release()

    async def _serve(self) -> None:
        await self.loop.create_server(partial(_Peer, self), sock=self._socket, backlog=socket.SOMAXCONN)
        await self._closing.wait()
        self.loop.remove_reader(self._socket)  # close() of asyncio's server loses connections that are being accepted
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        for peer in list(self.peers):
            peer.end()
        await asyncio.sleep(0)  # until their sockets are closed

    def _release(self) -> None:
        with contextlib.suppress(OSError):  # the file of the socket is gone
            self._listener.close()
        self._socket.close()
        self.loop.close()


class _Listening(socket.socket):
    """A socket that listens. A process that is forked while it accepts a connection closes its copy."""

    def accept(self) -> tuple[socket.socket, Any]:
        with whole:
            end, address = super().accept()
            _open.add(end)
        return end, address


class _Peer(asyncio.Protocol):
    """A connection of the server. All methods except ``on_done`` run in its thread.

    Attributes:
        call: the call that waits, or whose elements are lent.
        nonce: what the peer must sign; empty when it has proved that it knows the key.
    """

    is_closed = False
    call: WaitingCall | None = None

    def __init__(self, server: QueueServer) -> None:
        self._server = server
        self._received = bytearray()
        self.nonce = secrets.token_bytes(_NONCE_BYTES)
        self._number = 0
        self._is_lent = False
        self._timer = server.loop.call_later(PATIENCE_SECONDS, self.end)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        strangers = [peer for peer in self._server.peers if peer.nonce]
        if len(strangers) >= _STRANGERS_MAX:
            strangers[0].end()
        self._server.peers[self] = None
        self._send(self.nonce, PATIENCE_SECONDS)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self.nonce and len(self._received) > _HEAD.size + _PROOF_BYTES:
            self.end()
        else:  # later, when the connection is known to have ended, if it has
            self._server.loop.call_later(0, self._read)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.end()

    def end(self) -> None:
        """End the connection, and put back what is lent."""
        self._timer.cancel()
        self._transport.abort()
        self._server.peers.pop(self, None)
        self._withdraw()

    def _withdraw(self) -> None:
        if self.call is not None:
            self._server.queue.withdraw(self.call)
            self.call, self._is_lent = None, False

    def _send(self, content: bytes, seconds: float = math.inf) -> None:
        """Send a frame. The peer has this many seconds for its next one."""
        self._wait(seconds, self.end)
        self._transport.write(_HEAD.pack(len(content), self._number) + content)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._timer.cancel()
        self._timer = self._server.loop.call_later(seconds, then)

    def _read(self) -> None:
        """Act on what has been received, if it is a frame."""
        if len(self._received) < _HEAD.size or self._transport.is_closing():
            return
        length, number = _HEAD.unpack_from(self._received)
        if len(self._received) != _HEAD.size + length:
            return
        content, self._received = memoryview(self._received)[_HEAD.size :], bytearray()
        if self.nonce:
            self._admit(bytes(content))
        elif content and self.call is None:
            self._number = number
            self._answer(self._begin, content)
        elif not content and self._is_lent and number == self._number and self.call is not None:
            self.call.rows.clear()  # they belong to the peer
            self._withdraw()
            self._send(b"")
        else:
            self.end()

    def _admit(self, content: bytes) -> None:
        theirs, proof = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
        if hmac.compare_digest(proof, _proof(self._server.authkey, b"client", self.nonce, theirs)):
            self._send(_proof(self._server.authkey, b"server", self.nonce, theirs))
            self.nonce = b""
        else:
            self._send(b"", PATIENCE_SECONDS)
            self._transport.close()

    def _begin(self, request: memoryview) -> Any:
        method, arguments, options = pickle.loads(request)  # noqa: S301  # the peer knows the key
        if method not in _METHODS:
            raise AttributeError(f"a queue has no method {method!r}")
        with self._server.queue.calling_as(self):
            result = getattr(self._server.queue, method)(*arguments, **options)
        if self.call is None:
            return result
        if self.call.timeout is not None:
            self._wait(self.call.timeout, partial(self._finish, self.call))
        return _LATER

    def on_done(self, call: WaitingCall) -> None:
        self._server.loop.call_soon_threadsafe(self._finish, call)

    def _finish(self, call: WaitingCall) -> None:
        """Answer a call that is done, or whose time is over."""
        if call is self.call and not self._is_lent:
            self._answer(self._server.queue.outcome, call)

    def _answer(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Send what a function returns or raises."""
        try:
            result = function(argument)
            if result is _LATER:
                return
            is_error = isinstance(result, FailedElement)
            result = result.error if is_error else result
            self._is_lent = self.call is not None and bool(self.call.rows)
        except BaseException as error:  # noqa: BLE001  # raised by the peer
            is_error, result = True, error.with_traceback(None)
        try:
            answer = pickle.dumps((is_error, self._is_lent, result))
        except Exception as reason:  # noqa: BLE001  # pickling may raise anything
            self._is_lent = False
            text = f"{type(result).__name__} cannot be sent to another process; elements stay in the queue: {reason}"
            answer = pickle.dumps((True, False, TypeError(f"{type(self._server.queue).__name__}: a {text}")))
        if not self._is_lent:
            self._withdraw()
        self._send(answer, PATIENCE_SECONDS + len(answer) / _BYTES_PER_SECOND_MIN if self._is_lent else math.inf)


class RemoteQueue:
    """A queue of another process, with the methods of FIFOQueue. ``connect`` returns one.

    Threads may share it: each call that runs at the same time has a connection of its own. A forked child may use it,
    too. ``Dataset.from_generator`` with ``dequeue`` reads it.

    A call whose connection ends raises CancelledError. If the server is silent for a minute more than the ``timeout``
    of the call, the call raises TimeoutError. In both cases, and if a call is interrupted, it has taken no element, and
    those that it was sending may have entered the queue. Without a ``timeout``, ``enqueue`` and ``dequeue`` wait for
    as long as it takes.
    """

    def __init__(self, address: Address, authkey: bytes) -> None:
        self.address = address
        self._authkey = authkey
        self._numbers = itertools.count(1)
        self._idle: list[socket.socket] = []
        self._busy: set[socket.socket] = set()
        self._is_disconnected = False
        self._finalizer = Finalizer(self, partial(_close_all, self._idle))
        self._idle.append(self._connected())

    def disconnect(self) -> None:
        """End the connections, and the calls that wait. The queue stays open; ``close()`` closes it for all."""
        self._is_disconnected = True
        for end in list(self._busy):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # the call that owns it closes it
        _close_all(self._idle)
        self._finalizer.detach()
        uninstall()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    @handing_over
    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        install()
        number, request = next(self._numbers), pickle.dumps((method, arguments, options))
        timeout = options.get("timeout", 0)
        end: Any = None
        try:
            if self._is_disconnected:
                raise ConnectionError  # noqa: TRY301
            end = self._connection()
            self._busy.add(end)
            end.settimeout(None if timeout is None else max(timeout, 0.0) + PATIENCE_SECONDS)
            is_error, is_lent, result = _asked(end, number, request)
            end.settimeout(PATIENCE_SECONDS)
            if is_lent:
                _send(end, number, b"")
                _receive(end, number)
            self._idle.append(end)
        except BaseException as error:
            if end is not None:
                end.close()
            if not isinstance(error, OSError):
                raise
            reason = "disconnect() was called" if self._is_disconnected else f"it has ended or is stopped: {error}"
            raise (TimeoutError if isinstance(error, TimeoutError) else CancelledError)(
                f"{method}(): no answer from the server of the queue at {self.address!r}: {reason}; elements that the "
                "call was sending may have entered the queue, and it has taken none"
            ) from error
        finally:
            self._busy.discard(end)
            if self._is_disconnected:
                _close_all(self._idle)
        if is_error:
            raise result
        return result

    def _connection(self) -> socket.socket:
        """Return a connection that no call uses, and that the server has not ended."""
        with contextlib.suppress(IndexError):
            while True:
                end = self._idle.pop()
                if end.fileno() >= 0 and not connection.wait([end], 0):
                    return end
                end.close()
        return self._connected()

    def _connected(self) -> socket.socket:
        with whole:
            end = socket.socket(socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET)
            _open.add(end)
        try:
            end.settimeout(PATIENCE_SECONDS)
            _introduce(end, self.address, self._authkey)
        except BaseException as error:
            end.close()
            if not isinstance(error, OSError):
                raise
            text = f"connect(): the server of a queue at {self.address!r} cannot be reached: {error}"
            raise OSError(error.errno or errno.ETIMEDOUT, text) from None
        return end

    def enqueue(self, element: Any, timeout: float | None = None) -> None:
        """As ``FIFOQueue.enqueue``."""
        self._call("enqueue", element, timeout=timeout)

    def enqueue_many(self, elements: Any, timeout: float | None = None) -> None:
        """As ``FIFOQueue.enqueue_many``."""
        self._call("enqueue_many", elements, timeout=timeout)

    def dequeue(self, timeout: float | None = None) -> Any:
        """As ``FIFOQueue.dequeue``."""
        return self._call("dequeue", timeout=timeout)

    def dequeue_many(self, n: int, timeout: float | None = None) -> Any:
        """As ``FIFOQueue.dequeue_many``."""
        return self._call("dequeue_many", n, timeout=timeout)

    def dequeue_up_to(self, n: int, timeout: float | None = None) -> Any:
        """As ``FIFOQueue.dequeue_up_to``."""
        return self._call("dequeue_up_to", n, timeout=timeout)

    def size(self) -> int:
        """As ``FIFOQueue.size``."""
        return int(self._call("size"))

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """As ``FIFOQueue.close``: closes the queue for all processes."""
        self._call("close", cancel_pending_enqueues)

    def is_closed(self) -> bool:
        """As ``FIFOQueue.is_closed``."""
        return bool(self._call("is_closed"))


def _introduce(end: socket.socket, address: Address, authkey: bytes) -> None:
    """Connect a socket, and prove to the server that the key is known, as it must."""
    end.connect(address)
    if end.getsockname() == end.getpeername():  # where nothing listens, TCP may connect a socket to itself
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nothing listens there")
    theirs, ours = _receive(end, 0), secrets.token_bytes(_NONCE_BYTES)
    _send(end, 0, ours + _proof(authkey, b"client", theirs, ours))
    if not hmac.compare_digest(_receive(end, 0), _proof(authkey, b"server", theirs, ours)):
        raise AuthenticationError(f"connect(): the server of a queue at {address!r} has another authkey")


@interruptible
def _asked(end: socket.socket, number: int, request: bytes) -> tuple[bool, bool, Any]:
    """Return the answer to a request."""
    check()
    _send(end, number, request)
    answer: tuple[bool, bool, Any] = pickle.loads(_receive(end, number))  # noqa: S301  # the server knows the key
    return answer


def _proof(authkey: bytes, role: bytes, *nonces: bytes) -> bytes:
    return hmac.digest(authkey, b"".join((role, *nonces)), "sha256")


def _send(end: socket.socket, number: int, content: bytes) -> None:
    end.sendall(_HEAD.pack(len(content), number) + content)


def _receive(end: socket.socket, number: int) -> bytes:
    length, found = _HEAD.unpack(_read(end, _HEAD.size))
    if found != number or (not number and length > _PROOF_BYTES):
        raise ConnectionError(errno.EPROTO, "it is another program, or uses another protocol")
    return _read(end, length)


def _read(end: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = end.recv(min(size - len(data), PIECE_BYTES))
        if not piece:
            raise ConnectionResetError(errno.ECONNRESET, "it has ended the connection")
        data += piece
    return bytes(data)


def _close_all(ends: Any) -> None:
    with contextlib.suppress(LookupError):
        while ends:
            ends.pop().close()


_open: weakref.WeakSet[socket.socket] = weakref.WeakSet()
"""The sockets of this process. A forked child closes its copies: each side must see the end of the other's process."""

at_fork(in_child=partial(_close_all, _open))
