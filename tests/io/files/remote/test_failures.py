"""Tests with failing servers: which requests are retried, and that no byte is lost, repeated or of another version."""

from __future__ import annotations

import errno
import random
import socket
import threading

import pytest

from dataset import (
    BrokenConnectionError,
    ClosedError,
    DataLossError,
    Dataset,
    FileChangedError,
    TFRecordDataset,
    io,
)
from dataset.io.files.opening import open_input
from dataset.io.files.remote import http, reading, retrying
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.failures import explained, may_pass
from dataset.testing import check_operator, no_leaks

RECORDS = [random.Random(i).randbytes(i * 10) for i in range(60)]
KINDS = [None, "GZIP"]


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    """Reduce the block size, so that small files take several requests."""
    monkeypatch.setattr(reading, "AHEAD_BYTES_MIN", 500)
    monkeypatch.setattr(reading, "AHEAD_BYTES_MAX", 2000)
    monkeypatch.setattr(retrying, "PROGRESS_BYTES", 100)


@pytest.fixture
def written(tmp_path):
    def write(records=RECORDS, kind=None):
        with io.TFRecordWriter(tmp_path / "local", kind) as writer:
            for record in records:
                writer.write(record)
        return (tmp_path / "local").read_bytes()

    return write


FAULTS = [500, 502, 503, 504, 429, 408, "hang up", ("cut", 0), ("cut", 1), ("cut", 499)]


# Transient failures.


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_that_passes_is_not_seen(web, fault, ranges, kind, written, waits):
    for before in range(3):  # fail the first, the second and the third request
        faults = [*[None] * before, fault, fault]
        path = web.put("a", written(kind=kind), ranges=ranges, faults=faults)
        assert list(TFRecordDataset(path, kind)) == RECORDS
    assert waits


@pytest.mark.parametrize("query", ["faults", "faults&ranges=no"])
def test_failures_change_nothing_whatever_is_interrupted_and_resumed(web_folder, query, written):
    """Every third request fails in one way or another until the file is read."""
    path = web_folder.put("a", written(), query)
    check_operator(lambda: TFRecordDataset(path), RECORDS, positions=3)
    check_operator(lambda: TFRecordDataset([path] * 3, num_parallel_reads=2), positions=1)


def test_reading_goes_on_at_the_very_byte(web, written):
    content = written()
    path = web.put("a", content, faults=[("cut", 300), None, ("cut", 200)])
    with open_input(path) as file:
        assert file.read() == content
    assert web.ranges()[:4] == [(0, 500), (300, 500), (500, 2500), (700, 2500)]


def test_a_server_that_always_hangs_up_is_read_as_long_as_something_comes(web, written):
    content = written()
    path = web.put("a", content, faults=[("cut", 150)] * 1000)
    with open_input(path) as file:
        assert file.read() == content


@pytest.mark.parametrize("fault", [500, "hang up", ("cut", 20)], ids=str)
def test_after_enough_tries_in_vain_the_error_names_path_number_and_cause(web, fault, written, waits):
    path = web.put("a", written(), faults=[fault] * 10)  # aiohttp itself retries if a server closes the connection
    with pytest.raises(BrokenConnectionError) as caught:
        open_input(path)
    assert str(caught.value).startswith(f"{path}: gave up after 5 tries in a row; the last error was ")
    assert (caught.value.path, caught.value.tries) == (path, 5)
    assert caught.value.__cause__ is not None
    cause = caught.value.__cause__
    assert f"{type(cause).__name__}: {cause}" in str(caught.value)
    assert len(web.requests) == (10 if fault == "hang up" else 5)
    assert len(waits) == 4
    assert all(shortest <= wait <= 2 * shortest for wait, shortest in zip(waits, (0.125, 0.25, 0.5, 1), strict=True))


def test_waits_grow_no_longer_than_their_bound(web, written, waits, monkeypatch):
    monkeypatch.setattr(retrying, "TRIES", 20)
    path = web.put("a", written(), faults=[500] * 20)
    with pytest.raises(BrokenConnectionError, match="gave up after 20 tries"):
        open_input(path)
    assert max(waits) <= retrying.LAST_WAIT_SECONDS
    assert len(set(waits)) == 19  # no two readers retry at the same time


def test_a_server_that_is_not_there_is_tried_as_well(waits):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with pytest.raises(BrokenConnectionError, match=f"127.0.0.1:{port}"):
        open_input(f"http://127.0.0.1:{port}/a")
    assert len(waits) == 4


def test_a_file_that_is_given_up_raises_once_and_the_next_is_read(web, written):
    bad = web.put("bad", written(), faults=[None, *[503] * 5])
    good = web.put("good", written())
    iterator = iter(TFRecordDataset([bad, good]))
    found, errors = [], []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            break
        except BrokenConnectionError as error:
            errors.append(error)
    assert len(errors) == 1
    assert "in TFRecordDataset" in errors[0].__notes__[0]
    head = found[: -len(RECORDS)]
    assert head == RECORDS[: len(head)]
    assert found[len(head) :] == RECORDS


@pytest.mark.parametrize("sent", ["stall", ("stall", 0), ("stall", 100)], ids=str)
@pytest.mark.parametrize("ranges", [True, False])
def test_a_server_that_stalls_is_asked_again(web, sent, ranges, written, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 0.2)
    path = web.put("a", written(), ranges=ranges, faults=[None, sent] if ranges else [sent])
    assert list(TFRecordDataset(path)) == RECORDS


def test_a_server_that_stalls_for_ever_is_given_up(web, written, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 0.02)
    with pytest.raises(BrokenConnectionError, match=r"gave up after 5 tries.*TimeoutError"):
        open_input(web.put("a", written(), faults=["stall"] * 5))


# Permanent failures.


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        *((404, FileNotFoundError), (410, FileNotFoundError), (403, PermissionError), (401, PermissionError)),
        *((400, OSError), (501, OSError), ("more", OSError), ("elsewhere", OSError)),
    ],
    ids=str,
)
def test_what_will_not_pass_is_not_tried_again(web, fault, kind, written, waits):
    path = web.put("a", written(), faults=[fault])
    with pytest.raises(kind) as caught:
        open_input(path)
    assert not isinstance(caught.value, BrokenConnectionError)
    assert caught.value.filename == path
    assert path in str(caught.value)
    assert len(web.requests) == 1
    assert waits == []


def test_a_missing_file_reads_like_a_local_one(web):
    with pytest.raises(FileNotFoundError) as caught:
        open_input(f"{web.url}/none")
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{web.url}/none'"


@pytest.mark.parametrize("path", ["http://", "http://127.0.0.1:99999/a", "http://host.invalid:1:2/a"])
def test_an_address_that_cannot_be_is_an_error_at_once(path, waits):
    with pytest.raises(OSError, match="http://"):
        open_input(path)
    assert waits == []


def test_a_bad_certificate_is_not_tried_again(tmp_path, waits):
    import ssl

    certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepted = []

        def serve():
            connection, _ = listening.accept()
            accepted.append(1)
            with connection, pytest.raises(OSError, match=r"(?i)ssl|tls"):
                context.wrap_socket(connection, server_side=True)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(OSError, match=r"(?i)certificate"):
            open_input(f"https://127.0.0.1:{listening.getsockname()[1]}/a")
        thread.join()
    assert waits == []


def self_signed(folder):
    """Return an untrusted certificate with its key."""
    import datetime as dt

    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(days=36500))
    path = folder / "certificate.pem"
    path.write_bytes(
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


class StatusError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status


class EndpointConnectionError(Exception):
    """The decision depends on the base class of the error."""


HTTPClientError = type("HTTPClientError", (Exception,), {})
NoCredentialsError = type("NoCredentialsError", (Exception,), {})


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (ConnectionRefusedError(), True),
        (EOFError(), True),
        (OSError(errno.ETIMEDOUT, "text"), True),
        (OSError(errno.EBUSY, "slow down"), True),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), True),
        (socket.gaierror(socket.EAI_NONAME, "no such host"), False),
        (StatusError(500), True),
        (StatusError(429), True),
        (StatusError(403), False),
        (StatusError(412), False),
        (HTTPClientError(), True),
        (NoCredentialsError(), False),
        (OSError(errno.EACCES, "no"), False),
        (FileNotFoundError(), False),
        (IsADirectoryError(), False),
        (KeyError("a bug"), False),
        (ValueError("text"), False),
    ],
    ids=repr,
)
def test_errors_of_any_library_are_told_apart(error, passes):
    assert may_pass(error) is passes
    wrapped = OSError("text")
    wrapped.__cause__ = error
    assert may_pass(wrapped) is passes


def test_errors_of_any_library_become_those_of_files():
    assert type(explained(StatusError(404), "p")) is FileNotFoundError
    assert type(explained(StatusError(403), "p")) is PermissionError
    assert type(explained(KeyError("x"), "p")) is OSError
    assert str(explained(OSError(errno.ENOSPC, "full"), "p")) == "[Errno 28] full: 'p'"
    assert "KeyError: 'x': 'p'" in str(explained(KeyError("x"), "p"))


# Files that change while they are read.


def changed(web, name, **about):
    """Replace a file by another version, keeping the attributes that are not given."""
    file = web.files[f"/{name}"]
    for key, value in about.items():
        setattr(file, key, value)


@pytest.mark.parametrize(
    "change",
    [
        {"etag": '"two"'},
        {"etag": None, "modified": "Tue, 02 Jan 2024 00:00:00 GMT"},
        {"etag": None, "content": b"shorter" * 900},
        {"etag": None, "content": b"shorter"},
        {"etag": '"two"', "ranges": False},
    ],
    ids=str,
)
def test_a_file_that_was_replaced_is_data_loss(web, change, written):
    path = web.put("a", written(), modified="Mon, 01 Jan 2024 00:00:00 GMT")
    iterator = iter(TFRecordDataset([path, path], buffer_size=100))
    found = [next(iterator)]
    changed(web, "a", **change)
    with pytest.raises(DataLossError, match="changed while it was read") as caught:
        for record in iterator:
            found.append(record)  # noqa: PERF402  # the elements before the error are kept
    assert caught.value.path == path
    assert caught.value.record == len(found)
    assert found == RECORDS[: len(found)]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_file_that_was_replaced_before_a_further_try_is_noticed(web, ranges, written):
    content = written()
    path = web.put("a", content, ranges=ranges, faults=[None, "stall"] if ranges else [("stall", 600)])
    file = None

    def read():
        nonlocal file
        file = open_input(path)
        try:
            file.read()
        except OSError as error:
            return error
        return None

    found = []
    thread = threading.Thread(target=lambda: found.append(read()))
    thread.start()
    assert web.stalled.wait(60)
    changed(web, "a", etag='"two"', content=content[::-1])
    web.released.set()
    thread.join()
    assert isinstance(found[0], FileChangedError)
    assert found[0].path == path
    file.close()


def test_a_file_with_a_weak_etag_is_the_same_with_a_strong_one(web, written):
    path = web.put("a", written(), etag='W/"one"')
    iterator = iter(TFRecordDataset(path, buffer_size=100))
    found = [next(iterator)]
    changed(web, "a", etag='"one"')
    assert found + list(iterator) == RECORDS


def test_a_file_that_vanishes_is_missing_from_there_on_and_the_next_is_read(web, written):
    path, other = web.put("a", written()), web.put("b", written([b"next"]))
    iterator = iter(TFRecordDataset([path, other], buffer_size=100))
    next(iterator)
    del web.files["/a"]
    with pytest.raises(FileNotFoundError, match="/a"):
        for _ in iterator:
            pass
    assert list(iterator) == [b"next"]


def test_a_file_that_grows_is_another_version(web, written):
    path = web.put("a", written(), etag=None)
    with open_input(path) as file:
        web.files["/a"].content += b"more"
        with pytest.raises(FileChangedError, match=r"before: \d+ bytes; now: \d+ bytes"):
            file.read()


# Closing while another thread waits.


def refused(iterator):
    with pytest.raises(ClosedError):
        next(iterator)


def test_closing_ends_the_wait_for_a_server_that_stalls(web, written, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 1e6)
    path = web.put("a", written(), faults=[None, "stall"])
    iterator = iter(TFRecordDataset(path, buffer_size=100).prefetch(1000))
    next(iterator)
    assert web.stalled.wait(60)
    iterator.close()


def test_closing_ends_the_waits_of_parallel_readers(web, written, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 1e6)
    paths = [web.put(f"{i}", written(), faults=["stall"]) for i in range(3)]
    iterator = iter(TFRecordDataset(paths, num_parallel_reads=3).prefetch(1))
    thread = threading.Thread(target=refused, args=(iterator,))
    thread.start()
    assert web.stalled.wait(60)
    iterator.close()
    thread.join()


def test_closing_ends_the_wait_of_the_consumer_itself(web, written, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 1e6)
    iterator = iter(TFRecordDataset(web.put("a", written(), faults=["stall"])))
    found = []

    def consume():
        try:
            next(iterator)
        except ClosedError as error:
            found.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    assert web.stalled.wait(60)
    iterator.close()
    thread.join()
    assert len(found) == 1


def test_closing_ends_the_wait_for_the_next_try(web, written, monkeypatch):
    waiting, wait = threading.Event(), threading.Event.wait

    def really_wait(self, seconds):
        waiting.set()
        return wait(self._set, seconds)

    monkeypatch.setattr(CancellationToken, "wait", really_wait)
    monkeypatch.setattr(retrying, "FIRST_WAIT_SECONDS", 1e6)
    monkeypatch.setattr(retrying, "LAST_WAIT_SECONDS", 1e6)
    iterator = iter(TFRecordDataset(web.put("a", written(), faults=[500])).prefetch(1))
    thread = threading.Thread(target=refused, args=(iterator,))
    thread.start()
    assert waiting.wait(60)
    iterator.close()
    thread.join()


def test_an_iterator_that_is_dropped_while_it_waits_leaves_nothing(web_folder, written, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 1e6)
    good, stalls = web_folder.put("a", written()), web_folder.put("b", written(), "stalls")
    list(TFRecordDataset(good))
    asked, ask = threading.Event(), http.HTTPObject._ask

    async def noted(self, start, stop):
        if self._path == stalls:
            asked.set()
        return await ask(self, start, stop)

    monkeypatch.setattr(http.HTTPObject, "_ask", noted)
    for end in (lambda iterator: iterator.close(), lambda iterator: None):
        asked.clear()
        with no_leaks():
            iterator = iter(TFRecordDataset([good, stalls]).prefetch(1000))
            assert next(iterator) == RECORDS[0]
            assert asked.wait(60)
            end(iterator)
            del iterator


def test_what_was_interrupted_before_it_began_does_not_begin(web, written):
    interruption = CancellationToken()
    interruption.set()
    with interruption.current(), pytest.raises(ClosedError):
        open_input(web.put("a", written()))


def test_errors_of_the_library_that_wait_in_a_state_come_back(web, written):
    """The error is prefetched, saved with the state, and raised at its position."""
    bad = web.put("bad", b"", faults=[500] * 100)
    dataset = Dataset.from_tensor_slices([bad]).interleave(TFRecordDataset, num_parallel_calls=1).prefetch(2)
    with iter(dataset) as iterator:
        with pytest.raises(BrokenConnectionError):
            next(iterator)
        state = iterator.state_dict()
    with iter(dataset) as resumed:
        resumed.load_state_dict(state)
        assert next(resumed, None) is None
