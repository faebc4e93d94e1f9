"""Reading files that are not here: from a server with a latency, and limits for each connection and all together.

TFRecord files are read through by this library, by eight plain downloads of parts of them at a time, which shows what
the link gives, and by fsspec's own readers, 256 KiB at a time. An indexed file is read in random order by this library
only, by record and by clumps of records. Ways take turns. Times are medians; the first epoch of this library, which
learns how many requests are useful, or fills the cache, is shown apart.

    python benchmarks/studies/files_remote.py [--latency 0.02] [--each 25] [--all 200] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec

from dataset import Dataset, Options, TFRecordDataset
from dataset.io import TFRecordWriter

FILES, RECORDS, RECORD_BYTES = 4, 3200, 10_000
SMALL, SMALL_BYTES = 10_000, 1000
PIECE, PART = 1 << 18, 1 << 23
CACHE = tempfile.TemporaryDirectory()
SERVER = Path(__file__).with_name("range_server.py")


def write(path, count, nbytes):
    with TFRecordWriter(path) as writer:
        for _ in range(count):
            writer.write(os.urandom(nbytes))


def dataset(urls, options=None):
    records = TFRecordDataset(urls).with_options(options or Options())
    assert sum(len(batch) for batch in records.batch(100)) == FILES * RECORDS


def dataset_with_cache(urls):
    options = Options()
    options.files.cache = CACHE.name
    dataset(urls, options)


def eight_plain(urls):
    def download(part):
        url, start = part
        request = urllib.request.Request(url, headers={"Range": f"bytes={start}-{start + PART - 1}"})  # noqa: S310
        with urllib.request.urlopen(request) as response:  # noqa: S310  # it is this machine
            while response.read(PIECE):
                pass

    size = RECORDS * (RECORD_BYTES + 16)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(download, [(url, start) for url in urls for start in range(0, size, PART)]))


def fsspec_with(cache, **options):
    def read(urls):
        for url in urls:
            system, name = fsspec.core.url_to_fs(url)
            with system.open(name, "rb", cache_type=cache, **options) as file:
                while file.read(PIECE):
                    pass

    return read


WAYS = {
    "eight plain downloads at a time": eight_plain,
    "dataset": dataset,
    "dataset, with a cache on the disk": dataset_with_cache,
    "fsspec, readahead of 5 MiB (its default)": fsspec_with("readahead"),
    "fsspec, background, 4 MiB": fsspec_with("background", block_size=1 << 22),
    "fsspec, blockcache, 4 MiB": fsspec_with("blockcache", block_size=1 << 22),
}


def sequential(url, rounds):
    urls = [f"{url}/{number}.tfrecord" for number in range(FILES)]
    list(Dataset.from_tensor_slices([1]))  # imports
    times, requests = {way: [] for way in WAYS}, {}
    for _ in range(rounds + 1):
        for way, read in WAYS.items():
            before, began = count(url), time.perf_counter()
            read(urls)
            times[way].append(time.perf_counter() - began)
            requests[way] = count(url) - before - 1
    megabytes = FILES * RECORDS * (RECORD_BYTES + 16) / 1e6
    print(f"{megabytes:.0f} MB in {FILES} files")
    for way, (first, *later) in times.items():
        rate = megabytes / statistics.median(later)
        print(f"  {way:42} {rate:6.1f} MB/s, first {megabytes / first:6.1f} MB/s, {requests[way]} requests")


ORDERS = {
    "shuffle(None)": {"buffer_size": None},
    "shuffle(2000, clump=8)": {"buffer_size": 2000, "clump": 8},
    'shuffle(2000, clump="auto")': {"buffer_size": 2000, "clump": "auto"},
    "shuffle(2000, clump=128)": {"buffer_size": 2000, "clump": 128},
}


def at_random(url, rounds):
    records = TFRecordDataset([f"{url}/small.tfrecord"], index=True)
    times, requests = {order: [] for order in ORDERS}, {}
    for seed in range(rounds):
        for order, options in ORDERS.items():
            before, began = count(url), time.perf_counter()
            assert sum(map(len, records.shuffle(seed=seed, **options).batch(100))) == SMALL
            times[order].append(time.perf_counter() - began)
            requests[order] = count(url) - before - 1
    print(f"{SMALL} records of {SMALL_BYTES} bytes in random order")
    for order, found in times.items():
        print(f"  {order:42} {statistics.median(found):6.2f} s, {requests[order]} requests")


def count(url):
    with urllib.request.urlopen(f"{url}/count") as response:  # noqa: S310  # as above
        return int(response.read())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.02, help="seconds")
    parser.add_argument("--each", type=float, default=25.0, help="MB/s of a connection")
    parser.add_argument("--all", type=float, default=200.0, help="MB/s of all connections")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(FILES):
            write(f"{folder}/{number}.tfrecord", RECORDS, RECORD_BYTES)
        write(f"{folder}/small.tfrecord", SMALL, SMALL_BYTES)
        limits = [str(given.latency), str(given.each * 1e6), str(given.all * 1e6)]
        command = [sys.executable, str(SERVER), folder, *limits]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                address = server.stdout.readline().strip()
                sequential(address, given.rounds)
                at_random(address, given.rounds)
            finally:
                server.kill()
