"""Tests with failing servers: which requests are retried, and that no byte is lost, repeated or of another version."""

from __future__ import annotations

import errno
import random
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest

from dataset import (
    BrokenConnectionError,
    ClosedError,
    DataLossError,
    Dataset,
    FileChangedError,
    TFRecordDataset,
)
from dataset.io.files.opening import open_input
from dataset.io.files.remote import http, retrying
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.failures import explained, may_pass
from dataset.testing import check_operator, no_leaks, outcomes
from support.tfrecord_files import COMPRESS, frames

RECORDS = [random.Random(i).randbytes(i * 10) for i in range(60)]
CONTENT = frames(RECORDS)


pytestmark = pytest.mark.usefixtures("small_ranges")


# Transient failures.


@pytest.mark.parametrize("fault", [500, 502, 503, 504, 429, 408, "hang up", ("cut", 0), ("cut", 1), ("cut", 499)])
@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_a_failure_that_passes_is_not_seen(web, fault, ranges, kind, waits):
    for before in range(3):  # fail the first, the second and the third request
        faults = [*[None] * before, fault, fault]
        path = web.put("a", COMPRESS[kind](CONTENT), ranges=ranges, faults=faults)
        assert list(TFRecordDataset(path, kind)) == RECORDS
    assert waits


@pytest.mark.parametrize("query", ["faults", "faults&ranges=no"])
def test_failures_change_nothing_whatever_is_interrupted_and_resumed(web_folder, query):
    """Every third request fails in one way or another until the file is read."""
    path = web_folder.put("a", CONTENT, query)
    check_operator(lambda: TFRecordDataset(path), RECORDS, positions=3)
    check_operator(lambda: TFRecordDataset([path] * 3, num_parallel_reads=2), positions=1)


def test_reading_goes_on_at_the_very_byte_as_long_as_something_comes(web):
    with open_input(web.put("a", CONTENT, faults=[("cut", 300), None, ("cut", 200)])) as file:
        assert file.read() == CONTENT
    assert web.ranges()[:4] == [(0, 500), (300, 500), (500, 2500), (700, 2500)]
    with open_input(web.put("a", CONTENT, faults=[("cut", 150)] * 1000)) as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("fault", [500, "hang up", ("cut", 20)], ids=str)
def test_after_enough_tries_in_vain_the_error_names_path_number_and_cause(web, fault, waits, monkeypatch):
    path = web.put("a", CONTENT, faults=[fault] * 10)  # aiohttp itself retries if a server closes the connection
    with pytest.raises(BrokenConnectionError) as caught:
        open_input(path)
    cause = caught.value.__cause__
    words = f"{path}: gave up after 5 tries in a row; the last error was {type(cause).__name__}: {cause}"
    assert str(caught.value).startswith(words)
    assert (caught.value.path, caught.value.tries) == (path, 5)
    assert len(web.requests) == (10 if fault == "hang up" else 5)
    assert all(shortest <= wait <= 2 * shortest for wait, shortest in zip(waits, (0.125, 0.25, 0.5, 1), strict=True))
    assert len(set(waits)) == 4  # no two readers retry at the same time


def test_a_file_that_is_given_up_raises_once_and_the_next_is_read(web):
    bad = web.put("bad", CONTENT, faults=[None, *[503] * 5])
    found = outcomes(iter(TFRecordDataset([bad, web.put("good", CONTENT)])))
    *head, error = found[: -len(RECORDS)]
    assert isinstance(error, BrokenConnectionError)
    assert "in TFRecordDataset" in error.__notes__[0]
    assert head == RECORDS[: len(head)]
    assert found[-len(RECORDS) :] == RECORDS


@pytest.mark.parametrize("sent", ["stall", ("stall", 0), ("stall", 100)], ids=str)
@pytest.mark.parametrize("ranges", [True, False])
def test_a_server_that_stalls_is_asked_again(web, sent, ranges, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 0.2)
    path = web.put("a", CONTENT, ranges=ranges, faults=[None, sent] if ranges else [sent])
    assert list(TFRecordDataset(path)) == RECORDS


def test_a_server_that_stalls_for_ever_is_given_up(web, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 0.02)
    with pytest.raises(BrokenConnectionError, match=r"gave up after 5 tries.*TimeoutError"):
        open_input(web.put("a", CONTENT, faults=["stall"] * 5))


# Permanent failures.


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        *((404, FileNotFoundError), (410, FileNotFoundError), (403, PermissionError), (401, PermissionError)),
        *((400, OSError), (501, OSError), ("more", OSError), ("elsewhere", OSError)),
    ],
    ids=str,
)
def test_what_will_not_pass_is_not_tried_again(web, fault, kind, waits):
    path = web.put("a", CONTENT, faults=[fault])
    with pytest.raises(kind) as caught:
        open_input(path)
    assert not isinstance(caught.value, BrokenConnectionError)
    assert caught.value.filename == path
    assert path in str(caught.value)
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{path}'" or fault not in {404, 410}
    assert len(web.requests) == 1
    assert waits == []


class StatusError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status


HTTPClientError = type("HTTPClientError", (Exception,), {})
NoCredentialsError = type("NoCredentialsError", (HTTPClientError,), {})
BAD_CERTIFICATE = aiohttp.ClientConnectorCertificateError(None, ssl.SSLCertVerificationError(1, "self-signed"))
PASSING = [TimeoutError(), ConnectionResetError(), ConnectionRefusedError(), EOFError(), StatusError(500)]
PASSING += [OSError(errno.ETIMEDOUT, "text"), OSError(errno.EBUSY, "slow down"), StatusError(429), HTTPClientError()]
PASSING += [socket.gaierror(socket.EAI_AGAIN, "try again")]
LASTING = [socket.gaierror(socket.EAI_NONAME, "no such host"), StatusError(403), StatusError(412), NoCredentialsError()]
LASTING += [OSError(errno.EACCES, "no"), FileNotFoundError(), IsADirectoryError(), KeyError("a bug"), BAD_CERTIFICATE]
LASTING += [ValueError("text")]


@pytest.mark.parametrize("error", PASSING + LASTING, ids=lambda error: type(error).__name__)
def test_errors_of_any_library_are_told_apart(error):
    assert may_pass(error) is (error in PASSING)
    wrapped = OSError("text")
    wrapped.__cause__ = error
    assert may_pass(wrapped) is (error in PASSING)


def test_errors_of_any_library_become_those_of_files():
    assert type(explained(StatusError(404), "p")) is FileNotFoundError
    assert type(explained(StatusError(403), "p")) is PermissionError
    assert type(explained(KeyError("x"), "p")) is OSError
    assert str(explained(OSError(errno.ENOSPC, "full"), "p")) == "[Errno 28] full: 'p'"
    assert "KeyError: 'x': 'p'" in str(explained(KeyError("x"), "p"))


# Files that change while they are read.


def change(web, name, **about):
    """Replace a file by another version, keeping the attributes that are not given."""
    for key, value in about.items():
        setattr(web.files[f"/{name}"], key, value)


@pytest.mark.parametrize(
    "about",
    [
        {"etag": '"two"'},
        {"etag": None, "modified": "Tue, 02 Jan 2024 00:00:00 GMT"},
        {"etag": None, "content": b"shorter" * 900},
        {"etag": None, "content": b"shorter"},
        {"etag": None, "content": CONTENT + b"more"},
        {"etag": '"two"', "ranges": False},
    ],
    ids=lambda about: f"{list(about)}, {len(about.get('content', ''))} bytes",
)
def test_a_file_that_was_replaced_is_data_loss(web, about):
    path = web.put("a", CONTENT, modified="Mon, 01 Jan 2024 00:00:00 GMT")
    iterator = iter(TFRecordDataset([path, path], buffer_size=100))
    found = [next(iterator)]
    change(web, "a", **about)
    versions = r"before: .*\d+ bytes.*; now: .*\d+ bytes" if "content" in about else "before: .*; now: "
    with pytest.raises(DataLossError, match=f"changed while it was read.*{versions}") as caught:
        for record in iterator:
            found.append(record)  # noqa: PERF402  # the elements before the error are kept
    assert caught.value.path == path
    assert caught.value.record == len(found)
    assert found == RECORDS[: len(found)]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_file_that_was_replaced_before_a_further_try_is_noticed(web, ranges):
    path = web.put("a", CONTENT, ranges=ranges, faults=[None, "stall"] if ranges else [("stall", 600)])
    with ThreadPoolExecutor(1) as pool, open_input(path) as file:
        reading = pool.submit(file.read)
        assert web.stalled.wait(60)
        change(web, "a", etag='"two"', content=CONTENT[::-1])
        web.released.set()
        with pytest.raises(FileChangedError) as caught:
            reading.result(60)
    assert caught.value.path == path


def test_a_file_with_a_weak_etag_is_the_same_with_a_strong_one(web):
    iterator = iter(TFRecordDataset(web.put("a", CONTENT, etag='W/"one"'), buffer_size=100))
    found = [next(iterator)]
    change(web, "a", etag='"one"')
    assert found + list(iterator) == RECORDS


# Closing while another thread waits.


@pytest.mark.parametrize(
    "stalled",
    [
        lambda paths: TFRecordDataset(paths[0]),
        lambda paths: TFRecordDataset(paths[0]).prefetch(1000),
        lambda paths: TFRecordDataset(paths, num_parallel_reads=3).prefetch(1),
    ],
    ids=["the consumer itself", "a thread", "parallel readers"],
)
def test_closing_ends_the_wait_for_a_server_that_stalls(web, stalled, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 1e6)
    iterator = iter(stalled([web.put(f"{i}", CONTENT, faults=["stall"]) for i in range(3)]))
    assert_closing_ends(iterator, web.stalled)


def test_closing_ends_the_wait_for_the_next_try(web, monkeypatch):
    waiting, wait = threading.Event(), threading.Event.wait

    def really_wait(self, seconds):
        waiting.set()
        return wait(self._set, seconds)

    monkeypatch.setattr(CancellationToken, "wait", really_wait)
    monkeypatch.setattr(retrying, "FIRST_WAIT_SECONDS", 1e6)
    monkeypatch.setattr(retrying, "LAST_WAIT_SECONDS", 1e6)
    assert_closing_ends(iter(TFRecordDataset(web.put("a", CONTENT, faults=[500])).prefetch(1)), waiting)


def assert_closing_ends(iterator, waiting):
    with ThreadPoolExecutor(1) as pool:
        consumer = pool.submit(next, iterator)
        assert waiting.wait(60)
        iterator.close()
        with pytest.raises(ClosedError):
            consumer.result(60)


def test_an_iterator_that_is_dropped_while_it_waits_leaves_nothing(web_folder, monkeypatch):
    monkeypatch.setattr(retrying, "STALL_SECONDS", 1e6)
    good, stalls = web_folder.put("a", CONTENT), web_folder.put("b", CONTENT, "stalls")
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


def test_errors_of_the_library_that_wait_in_a_state_come_back(web):
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
