"""Queues for other processes: serve() offers a queue at an address, connect() calls it from elsewhere.

Both sides prove that they know the key, as the connections of multiprocessing do (HMAC of a random challenge), before
anything else is read. Calls and results are pickled: a process that knows the key can run code in the serving process.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from multiprocessing import AuthenticationError, connection
from typing import Any, Self

from dataset.closing import Closing
from dataset.errors import CancelledError
from dataset.queues.element_queue import ElementQueue

_METHODS = frozenset(
    {"close", "dequeue", "dequeue_many", "dequeue_up_to", "enqueue", "enqueue_many", "is_closed", "size"}
)

Address = str | tuple[str, int]


def serve(queue: ElementQueue, address: Address | None = None, authkey: bytes = b"") -> QueueServer:
    """Offer a queue to other processes, in background threads of this one.

    A process that is killed loses its own calls only: an element that it was sending enters the queue as a whole or not
    at all, and one that it had dequeued is lost.

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
        OSError: if the server cannot be reached.
        ValueError: if ``authkey`` is too short.
    """
    return RemoteQueue(address, _require_key("connect", authkey))


def _require_key(op: str, authkey: Any) -> bytes:
    if not isinstance(authkey, bytes) or len(authkey) < _KEY_MIN:
        raise ValueError(f"{op}(): authkey must be at least {_KEY_MIN} secret bytes, such as secrets.token_bytes(32)")
    return authkey


_KEY_MIN = 16


class QueueServer(Closing):
    """The server of one queue: a thread that accepts connections, and one for each connection.

    Attributes:
        address: where it listens.
    """

    def __init__(self, queue: ElementQueue, address: Address, authkey: bytes) -> None:
        self._queue = queue
        self._authkey = authkey
        self._listener = connection.Listener(address)  # unauthenticated peers are refused in their own threads
        self.address: Address = self._listener.address
        self.is_closed = False
        self._lock = threading.Lock()
        self._peers: dict[Any, threading.Thread] = {}
        self._acceptor = threading.Thread(target=self._accept, name="dataset-queue-server", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Stop listening, end all connections, and wait for the threads. The queue stays as it is."""
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
        self._queue.cancel(self)
        with contextlib.suppress(OSError), connection.Client(self.address):  # ends accept(), which nothing else does
            pass
        self._acceptor.join()
        with self._lock:
            threads = list(self._peers.values())
            for peer in self._peers:
                with socket.socket(fileno=os.dup(peer.fileno())) as end, contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)  # ends recv()
        for thread in threads:
            thread.join()

    def _accept(self) -> None:
        with self._listener:
            while not self.is_closed:
                try:
                    peer = self._listener.accept()
                except OSError:  # the peer was gone before
                    continue
                thread = threading.Thread(target=self._talk, args=(peer,), name="dataset-queue-peer", daemon=True)
                with self._lock:
                    self._peers[peer] = thread
                thread.start()

    def _talk(self, peer: Any) -> None:
        try:
            with self._queue.calling_as(self), contextlib.suppress(OSError, EOFError, AuthenticationError):
                connection.deliver_challenge(peer, self._authkey)
                connection.answer_challenge(peer, self._authkey)
                while not self.is_closed:
                    peer.send(self._answer(peer.recv()))
        finally:
            with self._lock:
                del self._peers[peer]
                peer.close()

    def _answer(self, request: Any) -> tuple[bool, Any]:
        method, arguments, options = request
        if method not in _METHODS:
            return False, AttributeError(f"a queue has no method {method!r}")
        try:
            return True, getattr(self._queue, method)(*arguments, **options)
        except Exception as error:  # noqa: BLE001  # raised by the peer
            return False, error.with_traceback(None)


class RemoteQueue:
    """A queue of another process, with the methods of FIFOQueue. ``connect`` returns one.

    Threads that share it wait for each other: let each connect on its own. ``Dataset.from_generator`` with ``dequeue``
    reads it.
    """

    def __init__(self, address: Address, authkey: bytes) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._peer = connection.Client(address)
        try:
            connection.answer_challenge(self._peer, authkey)
            connection.deliver_challenge(self._peer, authkey)
        except BaseException:
            self._peer.close()
            raise

    def disconnect(self) -> None:
        """End the connection. The queue stays open for others; ``close()`` closes it for all."""
        self._peer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            self._peer.send((method, arguments, options))
            try:
                succeeded, result = self._peer.recv()
            except (EOFError, ConnectionError):
                raise CancelledError(f"the server of the queue at {self.address} has ended") from None
        if not succeeded:
            raise result
        return result

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
        found: int = self._call("size")
        return found

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """As ``FIFOQueue.close``: closes the queue for all processes."""
        self._call("close", cancel_pending_enqueues)

    def is_closed(self) -> bool:
        """As ``FIFOQueue.is_closed``."""
        found: bool = self._call("is_closed")
        return found
