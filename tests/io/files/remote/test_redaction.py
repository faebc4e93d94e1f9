"""Tests that passwords, tokens and signatures in URLs do not appear in errors, plans, logs, states or files."""

import base64
import http.server
import json
import logging
import threading
import traceback

import numpy as np
import pytest

from dataset import Dataset, TextLineDataset, TFRecordDataset, checkpoint
from dataset.errors import BrokenConnectionError, DataLossError
from dataset.io import TFRecordWriter
from dataset.redaction import hidden_errors, redacted, redacted_error, redacted_text, secrets_of

PASSWORD, SIGNATURE, TOKEN = "pa55-w0rd", "5ign%2Bature", "t0k3n-value"
SECRETS = [PASSWORD, SIGNATURE, "5ign+ature", TOKEN, base64.b64encode(f"someuser:{PASSWORD}".encode()).decode()]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.partition("?")[0].strip("/")
        if name in self.server.statuses:
            self.send_error(self.server.statuses[name])
            return
        content = self.server.files[name]
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        start, stop = int(first), min(int(last or len(content)) + 1, len(content))
        if start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            body = b""
        else:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(content)}")
            body = content[start:stop]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Do nothing."""


@pytest.fixture
def server():
    pytest.importorskip("aiohttp")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.files, server.statuses = {}, {}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url(server, name):
    return f"http://someuser:{PASSWORD}@127.0.0.1:{server.server_port}/{name}?sig={SIGNATURE}&token={TOKEN}&id=7"


def assert_shows_none(text):
    assert not [secret for secret in SECRETS if secret in text], text


def everything_of(error):
    """Return what a traceback and a debugger show of an exception and its causes."""
    found = "".join(traceback.format_exception(error))
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            found += f"{one!r} {one.args!r} {vars(one)!r} {getattr(one, 'filename', '')!r}"
            waiting += [one.__cause__, one.__context__]
    return found


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("https://u:p@h/a?sig=1", "https://***@h/a?sig=***"),
        ("https://token@h:80/a#frag", "https://***@h:80/a#***"),
        ("https://h/a b?page=2&x=1;y=2&bare", "https://h/a b?page=2&x=***;y=***&***"),
        ("https://u:p::q@h/a", "https://***@h/a"),
        ("simplecache::https://u:p@h/a", "simplecache::https://***@h/a"),
        ("zip://x::https://h/a.zip?k=v", "zip://x::https://h/a.zip?k=***"),
        ("s3://bucket/a@b#c", "s3://bucket/a@b#c"),
        ("s3://bucket/part-?.csv", "s3://bucket/part-?.csv"),
        ("s3://key:secret@bucket/a?versionId=7", "s3://***@bucket/a?versionId=7"),
        ("/data/token=5/a?b=c", "/data/token=5/a?b=c"),
        ("token=5/a", "token=5/a"),
    ],
)
def test_paths(path, shown):
    assert redacted(path) == shown
    assert redacted(shown) == shown
    assert not [secret for secret in secrets_of(path) if secret in shown]


def test_messages():
    text = "GET https://h/a?sig=abc failed, see '/b?access_token=def&x=1' (AWSAccessKeyId=ghi, X-Amz-Signature=jkl)"
    assert redacted_text(text) == (
        "GET https://h/a?sig=*** failed, see '/b?access_token=***&x=1' (AWSAccessKeyId=ghi, X-Amz-Signature=***)"
    )


def test_exceptions_of_other_libraries():
    path = f"https://u:{PASSWORD}@h/a?sig={SIGNATURE}"

    decoded = "5ign+ature"

    def fail():
        try:
            raise KeyError(path)
        except KeyError as error:
            raise ValueError(f"decoded {decoded}", 3) from error

    with pytest.raises(ValueError, match="decoded") as found:
        fail()
    error = found.value
    error.add_note(path)
    error.url = path
    redacted_error(error, path)
    assert_shows_none(everything_of(error))
    assert error.args[1] == 3
    assert isinstance(error.__cause__, OSError)
    assert "KeyError" in str(error.__cause__)
    plain = ValueError("nothing")
    assert hidden_errors(plain, secrets_of(path)) is plain


@pytest.mark.parametrize("status", [401, 403, 404, 410, 400, 500, 503])
@pytest.mark.parametrize("reads", [None, 2])
def test_answers_that_are_errors(server, status, reads, caplog):
    server.statuses["a"] = status
    with iter(TextLineDataset(url(server, "a"), num_parallel_reads=reads)) as iterator:
        with pytest.raises(OSError, match=r"\*\*\*@127") as found:
            next(iterator)
        state = iterator.state_dict()
    assert_shows_none(everything_of(found.value))
    assert f"127.0.0.1:{server.server_port}/a?sig=***" in str(found.value)
    assert_shows_none(caplog.text)
    assert_shows_none(str(checkpoint.to_json(state)))
    assert isinstance(found.value, BrokenConnectionError) == (status in {500, 503})


def test_servers_that_are_not_there():
    path = f"http://someuser:{PASSWORD}@127.0.0.1:9/a?sig={SIGNATURE}"
    for make in (TextLineDataset, lambda path: TFRecordDataset(path, index=True), Dataset.list_files):
        with pytest.raises(OSError, match=r"\*\*\*") as found:
            list(make(path))
        assert_shows_none(everything_of(found.value))


def test_unknown_schemes_and_chains(monkeypatch):
    for path in (f"nosuchscheme://u:{PASSWORD}@h/a", f"zip://a::http://u:{PASSWORD}@h/a?sig={SIGNATURE}"):
        monkeypatch.delenv("DATASET_ALLOW_PROTOCOLS")
        with pytest.raises(ValueError, match=r"\*\*\*@h") as found:
            next(iter(TextLineDataset(path)))
        assert_shows_none(everything_of(found.value))
        monkeypatch.setenv("DATASET_ALLOW_PROTOCOLS", "")


PIPELINES = {
    "one after the other": TextLineDataset,
    "side by side": lambda paths: TextLineDataset(paths, num_parallel_reads=2),
    "interleave": lambda paths: Dataset.from_tensor_slices(paths).interleave(TextLineDataset, cycle_length=2),
    "shuffled": lambda paths: Dataset.from_tensor_slices(paths).shuffle(2, seed=1).flat_map(TextLineDataset),
    "references": lambda paths: TextLineDataset(paths).shuffle(5, seed=1),
    "references through functions": lambda paths: (
        Dataset.from_tensor_slices(paths).interleave(TextLineDataset, cycle_length=2).shuffle(5, seed=1)
    ),
    "ahead": lambda paths: TextLineDataset(paths).map(bytes.upper, num_parallel_calls=2).batch(2).prefetch(2),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_states_plans_and_files(server, name, tmp_path):
    server.files |= {"a": b"a0\na1\na2\na3\n", "b": b"b0\nb1\nb2\nb3\n"}
    make = PIPELINES[name]
    whole = list(make([url(server, "a"), url(server, "b")]))
    for count in range(len(whole)):
        dataset = make([url(server, "a"), url(server, "b")])
        with iter(dataset) as iterator:
            for _ in range(count):
                next(iterator)
            state = iterator.state_dict()
            checkpoint.save(tmp_path / "s", iterator)
            assert_shows_none(str(iterator.stats()))
        assert_shows_none(json.dumps(checkpoint.to_json(state)) + str(list(bytes_in(state))))
        assert_shows_none((tmp_path / "s").read_bytes().decode("latin-1"))
        assert_shows_none(checkpoint.describe(state) + checkpoint.describe(tmp_path / "s"))
        with iter(make([url(server, "a"), url(server, "b")])) as resumed:
            checkpoint.restore(tmp_path / "s", resumed)
            assert [str(element) for element in resumed] == [str(element) for element in whole[count:]]
    assert_shows_none(f"{dataset!r} {dataset.explain()}")


def bytes_in(state):
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, list):
        for item in state:
            yield from bytes_in(item)
    elif isinstance(state, bytes | np.ndarray):
        yield bytes(state).decode("latin-1")


def test_a_signature_that_was_renewed_is_the_same_file(server):
    server.files["a"] = b"a0\na1\na2\n"
    old = f"http://127.0.0.1:{server.server_port}/a?sig=old-one"
    for make in (TextLineDataset, lambda path: TextLineDataset(path).shuffle(2, seed=1)):
        with iter(make(old)) as iterator:
            next(iterator)
            state, expected = iterator.state_dict(), list(iterator)
        with iter(make(old.replace("old", "new"))) as iterator:
            iterator.load_state_dict(state)
            assert list(iterator) == expected


def test_damaged_records_and_their_log(server, caplog):
    server.files["a"] = b"\0" * 40
    caplog.set_level(logging.DEBUG)
    with iter(TFRecordDataset(url(server, "a"))) as iterator, pytest.raises(DataLossError) as found:
        next(iterator)
    assert_shows_none(everything_of(found.value))
    assert "***" in found.value.path
    assert list(TFRecordDataset(url(server, "a"), on_error="skip")) == []
    assert_shows_none(caplog.text)


def test_indexes(server, tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write_all([b"1", b"2", b"3"])
    server.files["a"] = (tmp_path / "a").read_bytes()
    with pytest.warns(UserWarning, match=r"sig=\*\*\*") as warned:
        dataset = TFRecordDataset(url(server, "a"), index=True)
    assert_shows_none(str([str(warning.message) for warning in warned]))
    assert list(dataset) == [b"1", b"2", b"3"]
    with iter(dataset) as iterator:
        next(iterator)
        assert_shows_none(json.dumps(checkpoint.to_json(iterator.state_dict())))
    assert_shows_none(f"{dataset!r} {dataset.explain()}")
