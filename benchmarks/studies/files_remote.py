"""Reading a 64 MiB file that is not here: over HTTP, and from an S3-compatible server, both on this machine.

Each way reads the same file from its beginning to its end, 256 KiB at a time, as the codecs do. What is counted is the
requests that reach the server, and the time beside that of the first way. ``--latency`` makes the server wait before
each answer, as one far away does: with none, a request costs next to nothing, and all that is seen is the processor.

    python benchmarks/studies/files_remote.py [--latency 0.02] [--rounds 5]
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fsspec

SIZE = 64 << 20
PIECE = 1 << 18


def read_through(file):
    total = 0
    with file:
        while piece := file.read(PIECE):
            total += len(piece)
    assert total == SIZE


def ours(url):
    from dataset.io.files.opening import open_input

    read_through(open_input(url))


def plain(cache, **options):
    def read(url):
        system, name = fsspec.core.url_to_fs(url)
        read_through(system.open(name, "rb", cache_type=cache, **options))

    return read


WAYS = {
    "dataset": ours,
    "fsspec default": lambda url: read_through(fsspec.open(url, "rb").open()),
    "fsspec readahead, 4 MiB": plain("readahead", block_size=1 << 22),
    "fsspec bytes, 4 MiB": plain("bytes", block_size=1 << 22),
    "fsspec blockcache, 4 MiB": plain("blockcache", block_size=1 << 22),
    "fsspec background, 4 MiB": plain("background", block_size=1 << 22),
    "fsspec none": plain("none"),
}


def measure(name, url, count, rounds):
    """Ways in turn, round after round, so that a noisy minute hits all of them."""
    times, requests = {way: [] for way in WAYS}, {}
    for _ in range(rounds):
        for way, read in WAYS.items():
            before = count()
            started = time.perf_counter()
            read(url)
            times[way].append(time.perf_counter() - started)
            requests[way] = count() - before - 1  # that of counting
    base = statistics.median(times["dataset"])
    print(f"{name}: {SIZE >> 20} MiB")
    for way, found in times.items():
        median = statistics.median(found)
        print(f"  {way:28} {requests[way]:4} requests {median:7.3f} s {median / base:6.2f} times dataset's")


SERVER = """
import sys, time
sys.path.insert(0, {folder!r})
import web_server
seen = [0]
class Handler(web_server.Handler):
    def do_HEAD(self):
        seen[0] += 1
        time.sleep({latency})
        self.send_response(200)
        self.send_header("Content-Length", "{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Connection", "close")
        self.end_headers()
    def do_GET(self):
        seen[0] += 1
        if self.path == "/count":
            self.page(str(seen[0]))
        else:
            time.sleep({latency})
            super().do_GET()
web_server.Handler = Handler
server = web_server.WebServer()
server.put("a", open({file!r}, "rb").read())
print(server.url, flush=True)
sys.stdin.read()
server.close()
"""


def http(folder, latency, rounds):
    file = Path(folder, "a")
    file.write_bytes(os.urandom(SIZE))
    tests = str(Path(__file__).parents[2] / "tests" / "io" / "remote")
    code = SERVER.format(folder=tests, latency=latency, size=SIZE, file=str(file))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as process:
        url = process.stdout.readline().strip()
        web = fsspec.filesystem("http")
        measure(f"HTTP, latency {latency} s", f"{url}/a", lambda: int(web.cat_file(f"{url}/count")), rounds)
        process.stdin.close()


def s3(rounds):
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel("ERROR")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    fsspec.config.conf["s3"] = {
        "key": "key",
        "secret": "secret",
        "endpoint_url": f"http://{host}:{port}",
        "client_kwargs": {"region_name": "us-east-1"},
    }
    system = fsspec.filesystem("s3")
    system.call_s3("create_bucket", Bucket="bucket")
    system.pipe_file("bucket/a", os.urandom(SIZE))
    seen, call = [0], system._call_s3  # noqa: SLF001  # every request goes through it

    async def counted(*args, **kwargs):
        seen[0] += 1
        return await call(*args, **kwargs)

    system._call_s3 = counted  # noqa: SLF001

    def count():
        system.invalidate_cache()  # or later readers would not ask for the size
        seen[0] += 1
        return seen[0]

    measure("S3 (moto in this process)", "s3://bucket/a", count, rounds)
    server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.02)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for latency in (0.0, arguments.latency):
            http(folder, latency, arguments.rounds)
    s3(arguments.rounds)
