"""Fixtures: servers, and a clock that does not wait."""

from __future__ import annotations

import gc
import sys

import fsspec
import fsspec.asyn
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from dataset.io.files.remote import backoff, ranges_ahead, reading, retrying
from dataset.io.files.remote import disk_cache as cache
from dataset.io.files.remote.cancellation import CancellationToken
from support.web_server import WebFolder, WebServer


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Return the list of delays between retries; they are recorded instead of waited for."""
    found = []

    def wait(self, seconds):
        found.append(seconds)
        return self.is_set()

    monkeypatch.setattr(CancellationToken, "wait", wait)
    return found


@pytest.fixture(autouse=True)
def _as_in_a_new_process():
    """Nothing is learned before a test, and no request is in progress after it."""
    ranges_ahead._paces.clear()
    backoff._until.clear()
    cache._caches.clear()
    yield
    gc.collect()
    assert not ranges_ahead._requested


@pytest.fixture(autouse=True)
def _allowed(monkeypatch):
    """What the tests chain."""
    monkeypatch.setenv("DATASET_ALLOW_PROTOCOLS", "simplecache,filecache,zip")


@pytest.fixture
def web():
    """A web server. fsspec's thread is started first, so that leak checks do not count its files."""
    fsspec.asyn.get_loop()
    server = WebServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def web_folder(tmp_path_factory):
    """A web server in another process."""
    fsspec.asyn.get_loop()
    server = WebFolder(tmp_path_factory.mktemp("web"))
    yield server
    server.close()


@pytest.fixture(scope="session", autouse=True)
def _sessions():
    """Close the sessions of fsspec while a warning about an unclosed session still fails a test."""
    yield
    for library, name in (("fsspec.implementations.http", "HTTPFileSystem"), ("s3fs", "S3FileSystem")):
        if library in sys.modules:
            getattr(sys.modules[library], name).clear_instance_cache()
    gc.collect()


@pytest.fixture
def memory():
    """The in-memory file system, empty before and after the test."""
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield fsspec.filesystem("memory")
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def small_ranges(monkeypatch):
    """Reduce the block size, so that small files take several requests."""
    monkeypatch.setattr(reading, "AHEAD_BYTES_MIN", 500)
    monkeypatch.setattr(reading, "AHEAD_BYTES_MAX", 2000)
    monkeypatch.setattr(ranges_ahead, "RANGE_BYTES", 700)
    monkeypatch.setattr(retrying, "PROGRESS_BYTES", 100)


@pytest.fixture(scope="session")
def s3_server():
    """The address of an S3 server with one bucket, ``bucket``."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    gc.collect()
    gc.freeze()  # exclude a hundred thousand permanent objects; see tests/conftest.py
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_server, monkeypatch):
    """s3fs, which reads all s3:// paths, with an empty bucket."""
    settings = {
        "key": "key",
        "secret": "secret",
        "endpoint_url": s3_server,
        "client_kwargs": {"region_name": "us-east-1"},
    }
    monkeypatch.setitem(fsspec.config.conf, "s3", settings)
    system = fsspec.filesystem("s3")
    system.call_s3("create_bucket", Bucket="bucket")
    yield system
    system.invalidate_cache()
    for name in system.find("bucket"):
        system.rm_file(name)
