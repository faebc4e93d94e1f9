"""Tests of the disk cache of remote files: what is fetched again, by whom, and that no wrong byte is ever used."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dataset import ClosedError, Dataset, FilesOptions, Options, TFRecordDataset
from dataset.amounts import PEEK_BYTES
from dataset.io.files.opening import open_input, read_file
from dataset.io.files.remote import backoff, cached_object, ranges_ahead, retrying
from dataset.io.files.remote import disk_cache as cache
from dataset.io.files.remote.cancellation import CancellationToken
from support.tfrecord_files import frames

pytestmark = pytest.mark.usefixtures("small_ranges")

RECORDS = [random.Random(i).randbytes(i * 10) for i in range(60)]
CONTENT = frames(RECORDS)
BLOCK = 100
LIMIT_MIN = 16 * 4 * 2 * PEEK_BYTES


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (cache, cached_object):
        monkeypatch.setattr(module, "CACHED_BYTES", BLOCK)


@pytest.fixture
def full_blocks(monkeypatch):
    for module in (cache, cached_object):
        monkeypatch.setattr(module, "CACHED_BYTES", 1 << 17)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The user's own folder in the cache, once it exists."""
    monkeypatch.setenv("DATASET_CACHE", str(tmp_path))
    return tmp_path / f"dataset-cache-{os.geteuid()}"


def blocks(folder):
    """Return the files that hold blocks."""
    return sorted(path for path in folder.glob("?/*") if path.name != "pages")


def requested(web):
    """Return how often each byte was requested since the last call, without the requests for a version."""
    counts = [0] * len(CONTENT)
    for found in web.ranges():
        if found not in {None, (0, 1)}:
            for at in range(found[0], min(found[1], len(CONTENT))):
                counts[at] += 1
    return set(counts)


# Hits.


@pytest.mark.parametrize("ranges", [True, False])
def test_the_second_epoch_asks_for_the_version_only(web, folder, ranges):
    urls = [web.put(name, CONTENT, ranges=ranges) for name in "ab"]
    assert list(TFRecordDataset(urls)) == RECORDS * 2
    assert len(web.ranges()) >= 2
    for _ in range(2):
        assert list(TFRecordDataset(urls)) == RECORDS * 2
        assert web.ranges() == [(0, 1)] * 2
    assert read_file(urls[0]) == CONTENT
    assert web.ranges() == [(0, 1)]


def test_the_first_epoch_sends_the_requests_that_it_sends_without_a_cache(web, tmp_path, monkeypatch):
    url = web.put("a", CONTENT)
    read_file(url)
    without = sorted(web.ranges())
    ranges_ahead._paces.clear()
    monkeypatch.setenv("DATASET_CACHE", str(tmp_path))
    read_file(url)
    assert sorted(web.ranges()) == without


def test_random_records_share_the_blocks_of_one_another(web, folder):
    url = web.put("a", CONTENT)
    dataset = TFRecordDataset(url, index=True).shuffle(None, seed=1)
    assert sorted(dataset) == sorted(RECORDS)
    web.ranges()
    assert sorted(dataset) == sorted(RECORDS)
    assert requested(web) == {0}


def test_any_read_returns_the_same_bytes_with_a_cache_in_any_state(web, folder):
    url, drawn = web.put("a", CONTENT), random.Random(5)
    for _ in range(30):
        for path in blocks(folder):
            if drawn.random() < 0.3:
                path.unlink()
        with open_input(url) as file:
            for _ in range(10):
                start, size = drawn.randrange(len(CONTENT) + 600), drawn.choice([0, 1, 499, 500, 501, 3000])
                if drawn.random() < 0.3:
                    stop = start + size
                    file.expect([(start, min(stop, len(CONTENT))), (max(0, start - 700), max(0, start - 100))])
                file.seek(start)
                assert file.read(size) == CONTENT[start : start + size]


def test_the_options_name_the_folder_and_take_precedence(web, tmp_path, monkeypatch):
    url = web.put("a", CONTENT)
    options = Options()
    options.files.cache = str(tmp_path / "new" / "place")
    options.files.cache_bytes = LIMIT_MIN
    indexed = TFRecordDataset(url, index=True)
    monkeypatch.setenv("DATASET_CACHE", str(tmp_path / "old"))
    for dataset in (TFRecordDataset(url), indexed.shuffle(None)):
        cached = dataset.with_options(options)
        assert sorted(cached) == sorted(RECORDS)
        web.ranges()
        assert sorted(cached) == sorted(RECORDS)
        assert requested(web) == {0}
    assert list((tmp_path / "new" / "place").iterdir())
    options.files.cache = ""
    list(TFRecordDataset(url).with_options(options))
    assert requested(web) == {1}
    assert not (tmp_path / "old").exists()


def test_a_state_is_resumed_without_the_cache(web, tmp_path):
    options = Options()
    options.files.cache = str(tmp_path)
    dataset = TFRecordDataset(web.put("a", CONTENT))
    state = iter(dataset.with_options(options)).state_dict()
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    assert list(iterator) == RECORDS


@pytest.mark.parametrize("about", [{"etag": None}, {"etag": None, "length": False, "ranges": False}], ids=str)
def test_a_file_of_unknown_version_is_not_cached(web, folder, about):
    url = web.put("a", CONTENT, **about)
    for _ in range(2):
        assert read_file(url) == CONTENT
        assert len(web.ranges()) > (1 if "ranges" in about else 2) - 1
    assert not blocks(folder)


def test_an_empty_file_is_read(web, folder):
    url = web.put("a", b"")
    assert [read_file(url) for _ in range(2)] == [b"", b""]


# Versions.


@pytest.mark.parametrize("about", [{"etag": '"two"'}, {"etag": None, "modified": "Tue, 02 Jan 2024 00:00:00 GMT"}])
def test_a_changed_object_is_fetched_again(web, folder, about):
    url = web.put("a", CONTENT)
    assert read_file(url) == CONTENT
    web.put("a", CONTENT[::-1], **about)
    for _ in range(2):
        assert read_file(url) == CONTENT[::-1]
    web.ranges()
    read_file(url)
    assert requested(web) == {0}


def test_a_change_between_two_blocks_is_noticed(web, folder):
    url = web.put("a", CONTENT)
    read_file(url)
    for path in blocks(folder)[1:]:
        path.unlink()
    web.put("a", CONTENT[::-1], etag='"two"')
    with open_input(url) as file:
        assert file.read() == CONTENT[::-1]


# Damage.


def damaged(content):
    """Yield damaged contents of a file of the cache, which differ in what is used."""
    used = [at for at, byte in enumerate(content) if byte and at % 3]
    for at in used:
        yield content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
    yield from (b"", content[:20], content[:-1], content[:PEEK_BYTES], bytes(len(content)))
    yield bytes(24) + content[24:]
    yield content[24:48] + content[:24] + content[48:]


def test_damaged_blocks_are_fetched_again(web, folder):
    url = web.put("a", CONTENT[:250])
    read_file(url)
    (path,) = blocks(folder)
    content = path.read_bytes()
    for bad in damaged(content):
        path.write_bytes(bad)
        assert read_file(url) == CONTENT[:250]
        assert path.read_bytes() == content
    for harmless in (content + b"!", content * 2):
        path.write_bytes(harmless)
        assert read_file(url) == CONTENT[:250]


def test_files_under_the_names_of_others_are_not_used(web, folder):
    url = web.put("a", CONTENT)
    read_file(url)
    found = blocks(folder)
    contents = [path.read_bytes() for path in found]
    assert len(found) > 5
    for path, content in zip(found, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert read_file(url) == CONTENT


WRITE = """
import itertools, sys
from dataset.io.files.remote import disk_cache as cache
found = cache.DiskCache(sys.argv[1], None)
for number in itertools.count():
    version = number.to_bytes(16, "little")
    found.store(bytes(16), number % 3, version, memoryview(version * 16000))
    if number == 3:
        print(flush=True)
"""


@pytest.mark.usefixtures("full_blocks")
def test_no_kill_leaves_a_wrong_block(tmp_path):
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path)], stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            writer.kill()
        found, folder = opened(tmp_path, None)
        (path,) = blocks(folder)
        headers = path.read_bytes()[:PEEK_BYTES]
        sound = 0
        for number in range(6):
            version = headers[number * 24 : number * 24 + 16]
            data = found.load(bytes(16), number, version)
            sound += data is not None
            assert data in {None, version * (cache.CACHED_BYTES // 16), version * (16000 - cache.CACHED_BYTES // 16)}
        assert sound


@pytest.mark.parametrize("kind", ["link", "pipe", "link to a folder"])
def test_what_is_not_a_block_is_neither_read_nor_followed(web, folder, tmp_path, kind):
    url = web.put("a", CONTENT[:80])
    read_file(url)
    (path,) = blocks(folder)
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    path.unlink()
    os.mkfifo(path) if kind == "pipe" else path.symlink_to(other if kind == "link" else tmp_path)
    assert read_file(url) == CONTENT[:80]
    assert path.is_file()
    assert not path.is_symlink()
    assert other.exists()


@pytest.mark.parametrize(
    "faults", [[None, ("cut", 130)] * 20, [("cut", 130)] * 200, [None, 500, "hang up"] * 5], ids=str
)
def test_failing_servers_fill_the_cache_correctly(web, folder, faults):
    url = web.put("a", CONTENT, faults=faults)
    assert read_file(url) == CONTENT
    web.files["/a"].faults.clear()
    assert read_file(url) == CONTENT


# The folder.


def test_the_folder_and_all_files_in_it_are_private(web, folder):
    before = os.umask(0)
    try:
        read_file(web.put("a", CONTENT))
    finally:
        os.umask(before)
    assert all(not path.stat().st_mode & 0o077 for path in [folder, *folder.rglob("*")])


def test_names_tell_nothing(web, folder):
    read_file(web.put("a?password=secret", CONTENT))
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert all("secret" not in path.name and b"secret" not in path.read_bytes() for path in found)
    names = {path.name for path in blocks(folder)}
    (folder / "key").unlink()
    cache._caches.clear()
    read_file(f"{web.url}/a?password=secret")
    assert not {path.name for path in blocks(folder)} <= names  # no one without the key can compute them


@pytest.mark.parametrize("where", ["", "3"])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path, other: (path.mkdir(), path.chmod(0o755)), "other users may enter this folder.*chmod 700"),
        (lambda path, other: path.symlink_to(other), "must be a folder, not a link"),
        (lambda path, other: path.write_text("text"), "must be a folder"),
    ],
    ids=["open", "link", "file"],
)
def test_an_unsafe_folder_is_an_error(web, folder, tmp_path, where, spoil, words):
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    if where:
        folder.mkdir(mode=0o700)
    spoil(folder / where if where else folder, other)
    with pytest.raises(OSError, match=words):
        read_file(web.put("a", CONTENT))
    assert not list(other.iterdir())
    assert not web.requests


def test_the_folder_of_another_user_is_an_error(web, folder, monkeypatch):
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    folder.with_name(f"dataset-cache-{owner + 1}").mkdir(mode=0o700)
    with pytest.raises(PermissionError, match="belongs to another user"):
        next(iter(TFRecordDataset(web.put("a", CONTENT))))


@pytest.mark.parametrize(("words", "message"), [("many", "must be a number of bytes"), ("1000", "must be at least")])
def test_a_bad_limit_is_an_error(web, folder, monkeypatch, words, message):
    monkeypatch.setenv("DATASET_CACHE_BYTES", words)
    with pytest.raises(ValueError, match=message):
        read_file(web.put("a", CONTENT))


def failing(call, number):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("call", ["write", "ftruncate", "open", "mkdir", "scandir", "link"])
@pytest.mark.parametrize("number", [28, 30, 5])  # a full disk, a read-only one, a damaged one
def test_a_disk_that_fails_ends_the_cache_with_one_warning(web, folder, monkeypatch, caplog, call, number):
    url = web.put("a", CONTENT)
    if call in {"ftruncate", "scandir"}:
        monkeypatch.setenv("DATASET_CACHE_BYTES", str(LIMIT_MIN))
        cache.cache_of(None)
        for shard in folder.glob("?"):
            (shard / "pages").write_bytes(bytes(100))
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "dataset"):
        patch.setattr(cache.os, call, failing(call, number))
        for _ in range(3):
            assert read_file(url) == CONTENT
    assert len(caplog.records) == 1
    assert not list(folder.rglob("*.tmp"))


def test_a_disk_that_takes_a_part_of_a_block_ends_the_cache(web, folder, monkeypatch, caplog):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def seek(self, offset):
            pass

        def write(self, data):
            return len(data) // 2

    monkeypatch.setattr(cache, "_opened_for_writing", lambda path: Full())
    with caplog.at_level(logging.WARNING, "dataset"):
        assert read_file(web.put("a", CONTENT)) == CONTENT
    assert len(caplog.records) == 1
    assert "No space left" in caplog.text


def test_a_cache_that_is_removed_while_it_is_used_is_missed_silently(web, folder, caplog):
    url = web.put("a", CONTENT)
    with open_input(url) as file:
        assert file.read(2000) == CONTENT[:2000]
        shutil.rmtree(folder)
        assert file.read() == CONTENT[2000:]
    assert read_file(url) == CONTENT
    assert not caplog.records


# The limit.


def held(folder):
    return sum(path.stat().st_blocks * 512 for path in blocks(folder))


def opened(tmp_path, limit=LIMIT_MIN):
    return cache.DiskCache(str(tmp_path), limit), tmp_path / f"dataset-cache-{os.geteuid()}"


def test_the_limit_holds_whatever_is_stored_concurrently(tmp_path):
    found, folder = opened(tmp_path)

    def store(seed):
        mine = cache.DiskCache(str(tmp_path), LIMIT_MIN)  # as in another process
        for _ in range(300):
            mine.store(random.Random(seed).randbytes(16), seed % 16, b"v" * 16, memoryview(b"data"))
            seed += 1000

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(store, range(4)))
    assert LIMIT_MIN / 4 < held(folder) <= LIMIT_MIN
    assert found.stores


def test_what_was_used_last_stays(tmp_path):
    found, folder = opened(tmp_path)
    names = [bytes([0, *divmod(number, 256)]) + bytes(13) for number in range(100)]  # of one shard, of 4 files
    for number, name in enumerate(names):
        found.store(name, 0, b"v" * 16, memoryview(b"data"))
        os.utime(folder / "0" / name.hex(), ns=(number, number))
        assert found.load(names[0], 0, b"v" * 16) == b"data"
    assert found.load(names[-1], 0, b"v" * 16) == b"data"
    assert 3 <= len(blocks(folder)) <= 4


def test_pages_that_a_killed_writer_has_entered_are_forgotten(tmp_path):
    found, folder = opened(tmp_path)
    (folder / "0" / "pages").write_bytes(bytes(100))
    found.store(bytes(16), 0, b"v" * 16, memoryview(b"data"))
    assert found.load(bytes(16), 0, b"v" * 16) == b"data"
    assert (folder / "0" / "pages").stat().st_size == 2


def test_a_link_in_the_place_of_the_ledger_is_not_followed(web, folder, tmp_path, caplog):
    url = web.put("a", CONTENT)
    cache.cache_of(None)
    other = tmp_path / "other"
    other.write_bytes(b"text")
    for shard in folder.glob("?"):
        (shard / "pages").symlink_to(other)
    assert read_file(url) == CONTENT
    assert other.read_bytes() == b"text"
    assert len(caplog.records) == 1


# Several readers.

READ = """
import sys
from dataset.io.files.remote import cached_object
from dataset.io.files.remote import disk_cache as cache
cache.CACHED_BYTES = cached_object.CACHED_BYTES = 100
from dataset.io.files.opening import read_file
print(len(read_file(sys.argv[1])), flush=True)
"""


def child(url):
    return subprocess.Popen([sys.executable, "-c", READ, url], stdout=subprocess.PIPE, text=True)


def test_other_processes_find_the_blocks(web, folder):
    url = web.put("a", CONTENT)
    with child(url) as other:
        assert other.stdout.read() == f"{len(CONTENT)}\n"
    web.ranges()
    assert read_file(url) == CONTENT
    assert requested(web) == {0}


@contextlib.contextmanager
def waiting_for_claims(monkeypatch):
    """Set the event that is yielded when a reader waits for the claim of another."""
    found, wait = threading.Event(), cached_object._wait_for

    def noted(name, interruption):
        found.set()
        wait(name, interruption)

    monkeypatch.setattr(cached_object, "_wait_for", noted)
    yield found


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="claims need abstract sockets")


@linux_only
def test_readers_at_the_same_block_fetch_it_once(web, folder, monkeypatch):
    url = web.put("a", CONTENT, faults=["stall"])
    with waiting_for_claims(monkeypatch) as waits, ThreadPoolExecutor(4) as pool:
        first = pool.submit(read_file, url)
        assert web.stalled.wait(60)
        others = [pool.submit(read_file, url) for _ in range(3)]
        assert waits.wait(60)
        web.released.set()
        assert [one.result(60) for one in (first, *others)] == [CONTENT] * 4
    assert requested(web) == {1}


@linux_only
def test_the_claim_of_a_killed_process_ends(web, folder, monkeypatch):
    url = web.put("a", CONTENT, faults=["stall"])
    with child(url) as other, waiting_for_claims(monkeypatch) as waits, ThreadPoolExecutor(1) as pool:
        assert web.stalled.wait(60)
        reading = pool.submit(read_file, url)
        assert waits.wait(60)
        assert not reading.done()
        other.send_signal(signal.SIGKILL)
        assert reading.result(60) == CONTENT


@linux_only
def test_closing_ends_the_wait_for_a_claim(web, folder, monkeypatch):
    url = web.put("a", CONTENT, faults=["stall"])
    with child(url) as other, waiting_for_claims(monkeypatch) as waits, ThreadPoolExecutor(1) as pool:
        assert web.stalled.wait(60)
        iterator = iter(TFRecordDataset(url).prefetch(1))
        consumer = pool.submit(next, iterator)
        assert waits.wait(60)
        iterator.close()
        with pytest.raises(ClosedError):
            consumer.result(60)
        other.kill()


def test_a_consumer_that_pauses_stops_no_other(web, folder):
    """What was requested ahead is stored when it arrives, not when it is taken."""
    url = web.put("a", CONTENT)
    with open_input(url) as paused:
        paused.read(4000)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(read_file, url).result(60) == CONTENT
        assert paused.read() == CONTENT[4000:]


# Overloaded servers.


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("7", 7, 7),
        ("0", 0, 0.25),
        ("100000", 120, 120),
        (time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 1000)), 120, 120),
        ("soon", 0, 0.25),
        ("9" * 400, 0, 0.25),
        ("Mon, 01 Jan 99999 00:00:00 GMT", 0, 0.25),
    ],
    ids=["seconds", "none", "too many", "date", "words", "digits", "year"],
)
def test_a_server_decides_how_long_readers_wait(web, waits, asked, least, most):
    assert read_file(web.put("a", CONTENT[:100], faults=[("busy", asked)])) == CONTENT[:100]
    assert least <= waits[0] <= most


def test_all_readers_of_a_host_wait(web, folder, waits):
    web.put("a", CONTENT[:100], faults=[("busy", "50")])
    for name in "ab":
        read_file(web.put(name, CONTENT[:100], faults=[("busy", "50")] if name == "a" else []))
    assert waits[0] == 50
    assert len(waits) == 3  # the try, its next request, and the other file
    assert 49 < waits[2] < 76
    assert len(list(folder.glob("*.host"))) == 1


def test_other_processes_wait_too(web, folder, waits):
    read_file(web.put("a", CONTENT[:100], faults=[("busy", "50")]))
    waits.clear()
    backoff._until.clear()  # as in another process
    read_file(web.put("b", CONTENT[:100]))
    assert len(waits) == 1
    os.utime(next(folder.glob("*.host")), (1e12, 1e12))  # a clock that was wrong
    waits.clear()
    read_file(web.put("c", CONTENT[:100]))
    assert waits[0] <= 1.5 * backoff.RETRY_AFTER_SECONDS_MAX


def test_a_server_that_allows_few_requests_fails_no_reader(web, monkeypatch):
    """Eight readers at a server that rejects all requests but three in 20 ms."""
    monkeypatch.setattr(CancellationToken, "wait", lambda self, seconds: self._set.wait(seconds))
    monkeypatch.setattr(retrying, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(retrying, "LAST_WAIT_SECONDS", 0.3)
    lock, times, find, rejected = threading.Lock(), [], web.find, []

    def limited(path):
        file = find(path)
        with lock:
            now = time.monotonic()
            times[:] = [at for at in times if now - at < 0.02]
            if len(times) >= 3:
                file.faults.append(429)
                rejected.append(path)
            else:
                times.append(now)
        return file

    monkeypatch.setattr(web, "find", limited)
    urls = [web.put(f"{number}", CONTENT) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read_file, urls)) == [CONTENT] * 8
    assert rejected


def test_the_mode_of_the_ledger_is_that_of_a_file(web, folder):
    read_file(web.put("a", CONTENT))
    assert all(stat.S_ISREG(path.stat().st_mode) for path in folder.glob("?/pages"))


def test_the_options_are_checked():
    options = FilesOptions()
    with pytest.raises(TypeError, match="cache must be text"):
        options.cache = Path("a")
    with pytest.raises(ValueError, match="cache_bytes must be at least 0"):
        options.cache_bytes = -1
    assert Dataset.range(1).with_options(Options()).options().files == FilesOptions()
