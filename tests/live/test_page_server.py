"""Tests of the server of the live page: what it answers, whom it refuses, and how its threads end."""

import contextlib
import http.client
import itertools
import json
import os
import re
import socket
import threading
import types
import urllib.request

import pytest

from dataset import AUTOTUNE, Dataset
from dataset.errors import ClosedError
from dataset.live import feed as feeds
from dataset.live import page_server
from dataset.live.feed import SnapshotFeed
from dataset.live.page_server import LivePage
from dataset.runtime.metrics.tuning_log import Decision
from support.process_helpers import run_code

NAMES = {"dataset-live", "dataset-live-client"}


def threads():
    return [thread for thread in threading.enumerate() if thread.name in NAMES]


@pytest.fixture(autouse=True)
def _no_thread_is_left_behind():
    yield
    for thread in threads():
        thread.join(20)
    assert not threads()


def answer(page, path="/snapshot", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def snapshot(page):
    return json.loads(answer(page)[2])


def stream_of(page):
    return urllib.request.urlopen(f"{page.url}events", timeout=20)  # noqa: S310  # it is this machine


def events(page):
    """Yield the snapshots of the stream."""
    with stream_of(page) as stream:
        while line := stream.readline():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


EVENTS = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"


def slow_client(page, request=EVENTS):
    """Return the connection of a client that has sent this much, and reads nothing."""
    connection = socket.create_connection(("127.0.0.1", page.port), timeout=60)
    connection.sendall(request)
    return connection


def squares(count=1000):
    return Dataset.range(count).map(lambda x: x * x, name="squares").batch(10).prefetch(AUTOTUNE)


def test_the_figures_are_those_of_stats_while_it_runs_and_after_the_end():
    with iter(squares()) as iterator:
        page = iterator.serve()
        next(iterator)
        running = snapshot(page)
        assert running["stats"]["elements"] == 1
        assert not running["stats"]["ended"]
        assert [one["name"] for one in running["stats"]["operators"]] == [
            one.name for one in iterator.stats().operators
        ]
        assert len(list(iterator)) == 99
        final = snapshot(page)
        assert final["stats"] == iterator.stats().to_dict()
        assert final["stats"]["ended"]
        assert final["decisions"] == iterator.tuning_log().to_dicts()
        assert final["process"]["pid"] == os.getpid()


def test_a_snapshot_has_the_last_decisions_and_the_number_of_all():
    with iter(squares()) as iterator:
        log = iterator._observer._log
        for number in range(1000):
            log.add(Decision(float(number), "squares", "settle", "", None, None, "nothing more is worth trying"))
        found = snapshot(iterator.serve())
        assert found["decisions"] == iterator.tuning_log().to_dicts()[-100:]
        assert found["decisions"][-1]["seconds"] == 999
        assert found["decision_count"] == 1000


def test_a_stream_hears_of_the_end_at_once_and_ends_with_the_page(monkeypatch):
    monkeypatch.setattr(feeds, "_INTERVAL_SECONDS", 1000.0)
    iterator = iter(squares())
    with iterator.serve() as page:
        stream = events(page)
        assert not next(stream)["stats"]["ended"]
        list(iterator)
        assert next(stream)["stats"] == iterator.stats().to_dict()
        page.close()
        assert list(stream) == []


def test_a_stream_sends_new_figures_regularly(monkeypatch):
    monkeypatch.setattr(feeds, "_INTERVAL_SECONDS", 0.01)
    with iter(squares()) as iterator:
        stream = events(iterator.serve())
        assert next(stream)["stats"]["elements"] == 0
        next(iterator)
        assert 1 in (sent["stats"]["elements"] for sent in stream)


def test_the_page_ends_with_its_iterator_and_the_port_is_free_at_once():
    iterator = iter(squares())
    port = iterator.serve().port
    for _ in range(3):
        iterator = iter(squares())  # drops the former one
        assert iterator.serve(port).port == port
        assert snapshot(iterator.serve())["stats"]["elements"] == 0
    page = iterator.serve()
    server = page._server._thread
    iterator.close()
    assert page.closed
    assert not server.is_alive()  # the threads of the dropped iterators end by themselves


def test_a_page_that_was_closed_can_be_opened_again():
    with iter(squares()) as iterator:
        first = iterator.serve()
        assert iterator.serve() is first
        first.close()
        first.close()
        list(iterator)
        assert snapshot(iterator.serve())["stats"] == iterator.stats().to_dict()
        assert "closed" in repr(first)
        assert iterator.serve().url in repr(iterator.serve())


def test_an_iterator_that_goes_to_a_state_is_still_shown():
    with iter(squares()) as iterator:
        next(iterator)
        state = iterator.state_dict()
        page = iterator.serve()
        list(iterator)
        iterator.load_state_dict(state)
        assert not snapshot(page)["stats"]["ended"]
        assert len(list(iterator)) == 99
        assert snapshot(page)["stats"]["elements"] == 99


def test_a_closed_iterator_and_a_wrong_port_are_errors():
    iterator = iter(squares())
    with pytest.raises(ValueError, match="port"):
        iterator.serve(-1)
    taken = socket.create_server(("127.0.0.1", 0))
    with taken, pytest.raises(OSError, match="in use"):
        iterator.serve(taken.getsockname()[1])
    iterator.close()
    with pytest.raises(ClosedError, match="closed"):
        iterator.serve()


# Whom it answers


def test_only_get_is_answered():
    with LivePage(0, SnapshotFeed()) as page:
        for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FETCH"):
            status, headers, body = answer(page, "/", method)
            assert (status, headers["Allow"]) == (405, "GET")
            assert method == "HEAD" or b"GET" in body


@pytest.mark.parametrize("path", ["/other", "/page.html", "/../feed.py", "/snapshot/"])
def test_other_paths_do_not_exist(path):
    with LivePage(0, SnapshotFeed()) as page:
        assert answer(page, path)[0] == 404


@pytest.mark.parametrize("path", ["/", "/snapshot", "/events", "/metrics"])
def test_a_name_that_was_made_to_point_to_this_machine_is_refused(path):
    with LivePage(0, SnapshotFeed()) as page:
        for host in ("evil.example", f"evil.example:{page.port}", "", "localhost.evil.example", "127.0.0.1.nip.io",
                     "[", "evil.example@localhost:x:", "192.168.0.1"):  # fmt: skip
            assert answer(page, path, Host=host)[0] == 403, host
        if path != "/events":
            for host in ("localhost", "LOCALHOST:80", "127.0.0.1:9999", "[::1]:8080"):
                assert answer(page, path, Host=host)[0] == 200, host


def test_only_this_machine_can_connect_and_no_other_origin_may_read():
    with LivePage(0, SnapshotFeed()) as page:
        assert page._server.socket.getsockname()[0] == "127.0.0.1"
        for path in ("/", "/snapshot", "/metrics", "/other"):
            _, headers, _ = answer(page, path, Origin="http://evil.example")
            assert not [name for name in headers if name.lower().startswith("access-control")]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "unsafe" not in headers["Content-Security-Policy"]


def test_the_page_loads_nothing_from_elsewhere():
    with LivePage(0, SnapshotFeed()) as page:
        _, headers, body = answer(page, "/")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert len(body.splitlines()) <= 400
    addresses = set(re.findall(rb"(?:https?:)?//[\w.]+", body))
    assert addresses == {b"http://www.w3.org"}  # the name space of SVG
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(| src=", body)


# Several iterations


class Fixed:
    """A pipeline whose figures are a name."""

    def __init__(self, name):
        self.name = name

    def snapshot(self):
        return {"stats": self.name}


def test_short_epochs_show_the_figures_of_the_last_whole_one(monkeypatch):
    feed = SnapshotFeed()
    shown = lambda: [feed.snapshot()[key] for key in ("stats", "pipeline")]
    first, second = Fixed("begun"), Fixed("begun again")
    feed.begin(first)
    assert shown() == ["begun", 1]  # there is nothing else
    feed.end(first, {"stats": "the whole epoch"})
    feed.begin(second)
    assert shown() == ["the whole epoch", 1]
    monkeypatch.setattr(feeds, "_INTERVAL_SECONDS", 0.0)  # as if it had run for long
    assert shown() == ["begun again", 2]


# Clients that leave, or do not read


BIG = Fixed("x" * (1 << 23))


def test_clients_that_do_not_read_or_ask_end_after_a_while(monkeypatch):
    monkeypatch.setattr(page_server._RequestHandler, "timeout", 0.05)
    monkeypatch.setattr(feeds, "_INTERVAL_SECONDS", 0.0)
    feed = SnapshotFeed()
    feed.begin(BIG)
    with LivePage(0, feed) as page:
        with slow_client(page, b"") as connection:
            assert connection.recv(1) == b""  # nothing was requested
        monkeypatch.setattr(page_server._RequestHandler, "timeout", 1.0)  # enough to send a request
        with slow_client(page) as connection:
            assert connection.recv(1) == b"H"
            for client in list(page._server._clients):
                client.join(60)
            assert not page._server._clients


@pytest.fixture
def reading(monkeypatch):
    """A page with much to tell, and the connection of a client that has begun to read and reads no further."""
    monkeypatch.setattr(feeds, "_INTERVAL_SECONDS", 0.01)
    feed = SnapshotFeed()
    feed.begin(BIG)
    with LivePage(0, feed) as page, slow_client(page) as connection:
        connection.recv(100)  # the answer has begun, and cannot have ended
        yield page, connection


def test_a_client_that_has_left_ends_its_thread(reading):
    page, connection = reading
    [client] = page._server._clients
    connection.close()
    client.join(20)
    assert not client.is_alive()


def test_closing_does_not_wait_for_a_client_that_does_not_read(reading):
    page, _ = reading
    page.close()
    assert not threads()


def test_a_stream_that_sends_while_all_are_told_to_repeat_does_not_wait_next():
    feed = SnapshotFeed()
    sent = feed.next(-1)
    feed.repeat()
    assert feed.next(sent[0]) != sent  # the same after a quarter of a minute


@pytest.mark.parametrize("start", [0, 3, 22, None])
def test_a_new_client_is_answered_however_many_others_keep_a_thread(start, monkeypatch):
    monkeypatch.setattr(page_server._RequestHandler, "timeout", 60.0)
    monkeypatch.setattr(page_server, "_PATIENCE_SECONDS", 60.0)  # a loaded machine may need longer to end a thread
    with LivePage(0, SnapshotFeed()) as page, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(slow_client(page, EVENTS[:start])) for _ in range(page_server._CLIENTS_MAX + 5)]
        assert answer(page)[0] == 200
        assert len(page._server._clients) <= page_server._CLIENTS_MAX
        while slow[0].recv(1 << 16):  # the oldest has given way
            pass


def test_the_time_for_a_whole_request_is_limited(monkeypatch):
    monkeypatch.setattr(page_server._RequestHandler, "timeout", 600.0)
    monkeypatch.setattr(page_server, "time", types.SimpleNamespace(monotonic=itertools.count(0, 1000).__next__))
    with LivePage(0, SnapshotFeed()) as page, slow_client(page, b"GET") as connection:
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.0 404"),
        (b"GET http://localhost/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.0 200"),
        (b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.0 405"),
        (b"GET /snapshot HTTP/1.0\r\n\r\n", b"HTTP/1.0 403"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"HTTP/1.0 414"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"HTTP/1.0 431"),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 1_000_000, b""),
        (b"GET / HTTP/1.\xb2\r\n\r\n", b"<!DOCTYPE"),
        (b"\x16\x03\x01\x02\x00\x01" + b"\xff" * 300 + b"\n\n", b"<!DOCTYPE"),
        (b"GET / HTTP/1.1\r\nHost: localhost", b"HTTP/1.0 200"),
    ],
)
def test_a_strange_request_is_answered_or_dropped_and_not_logged(request_, status, caplog):
    with LivePage(0, SnapshotFeed()) as page, socket.create_connection(("127.0.0.1", page.port), 60) as connection:
        found = b""
        with contextlib.suppress(OSError):  # bytes that were not read reset the connection, which then is not connected
            connection.sendall(request_)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                found += part
    assert found.startswith(status)
    assert not request_.startswith(b"HEAD") or found.endswith(b"\r\n\r\n")
    assert not caplog.records


# Other endings


def test_the_interpreter_exits_while_a_stream_is_open():
    code = """
import urllib.request
from dataset import Dataset
iterator = iter(Dataset.range(10))
stream = urllib.request.urlopen(iterator.serve().url + "events")
print(len(stream.readline()) > 10)
"""
    done = run_code(code)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_after_a_fork_the_parent_serves_and_the_child_holds_no_socket():
    code = """
import contextlib, os, stat, urllib.request
from dataset import Dataset
iterator = iter(Dataset.range(10))
page = iterator.serve()
child = os.fork()
if not child:
    sockets = []
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            sockets += [number] * stat.S_ISSOCK(os.fstat(number).st_mode)
    os._exit(len(sockets) + 10 * (not page.closed))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(urllib.request.urlopen(page.url + "snapshot").status)
"""
    assert run_code(code).stdout.split() == ["0", "200"]


LOOK = """
import json, re, sys, urllib.request, logging
lines = []
logging.getLogger("dataset").addHandler(handler := logging.Handler())
handler.emit = lambda record: lines.append(record.getMessage())
def shown():
    url = re.search("http://[^ ]*/", "\\n".join(lines))[0]
    return json.load(urllib.request.urlopen(url + "snapshot"))
from dataset import Dataset
"""


def test_the_environment_opens_a_page_that_shows_the_newest_iterator():
    code = f"""{LOOK}
from dataset.live import feed
feed._INTERVAL_SECONDS = 0
first = iter(Dataset.range(100, name="train"))
next(first)
print(shown()["stats"]["operators"][0]["name"], shown()["pipeline"])
for _ in Dataset.range(7, name="valid"):
    pass
print(shown()["stats"]["operators"][0]["name"], shown()["stats"]["elements"])
second = iter(Dataset.range(50, name="later"))
print(shown()["stats"]["operators"][0]["name"])
del second, first
final = shown()
print(final["stats"]["ended"], final["pipeline"], len(lines))
"""
    assert run_code(code, DATASET_LIVE="0").stdout.split() == ["train", "1", "train", "1", "later", "True", "1", "1"]


def test_a_process_that_finds_its_port_taken_takes_another():
    code = f"{LOOK}\niterator = iter(Dataset.range(3))\nprint(shown()['pipeline'], *lines, sep='\\n')"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        out = run_code(code, DATASET_LIVE=port).stdout.splitlines()
    assert out[0] == "1"
    assert f"port {port}" in out[1]
    assert len(out) == 3


def test_a_wrong_value_of_the_environment_says_what_is_right():
    code = (
        "from dataset import Dataset\ntry:\n    iter(Dataset.range(3))\nexcept ValueError as error:\n    print(error)"
    )
    for value in ("yes", "-1", "65536"):
        assert "DATASET_LIVE must be a port from 0 to 65535" in run_code(code, DATASET_LIVE=value).stdout


def test_without_a_page_no_server_is_loaded():
    code = "import sys\nfrom dataset import Dataset\nlist(Dataset.range(3))\nprint('http.server' in sys.modules)"
    assert run_code(code).stdout == "False\n"
