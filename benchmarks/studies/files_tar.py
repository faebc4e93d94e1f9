"""Measures the reader of WebDataset shards beside webdataset and a loop over the standard library's tarfile.

    python benchmarks/studies/files_tar.py [--runs 9] [--only TEXT]

A sample has a field of a few bytes and one of 1 or 100 kB. Nothing is decoded.
"""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path

from side_by_side import Runner, Suite

SIZES = {"1 kB": (1_000, 10_000), "100 kB": (100_000, 1_000)}


def make_data(folder: Path) -> None:
    rng = random.Random(1)
    for title, (size, count) in SIZES.items():
        with tarfile.open(folder / f"{title}.tar", "w") as shard:
            for number in range(count):
                for field, data in (("cls", b"%d" % (number % 10)), ("bin", rng.randbytes(size))):
                    info = tarfile.TarInfo(f"{number:06}.{field}")
                    info.size = len(data)
                    shard.addfile(info, io.BytesIO(data))


SUITE = Suite(__doc__, make_data)
workload = SUITE.workload


def run_dataset(title: str, batch: int) -> Runner:
    def run(folder: Path) -> int:
        from dataset import TarDataset

        samples = TarDataset(folder / f"{title}.tar")
        if batch:
            return sum(len(one["cls"]) for one in samples.batch(batch))
        return sum(1 for _ in samples)

    return run


def run_webdataset(title: str) -> Runner:
    def run(folder: Path) -> int:
        import webdataset

        return sum(1 for _ in webdataset.WebDataset(str(folder / f"{title}.tar"), shardshuffle=False))

    return run


def run_tarfile(title: str) -> Runner:
    def run(folder: Path) -> int:
        count = 0
        with tarfile.open(folder / f"{title}.tar", "r|") as shard:
            for info in shard:
                file = shard.extractfile(info)
                count += bool(file and file.read())
        return count // 2

    return run


for _title in SIZES:
    workload(f"samples of {_title}, one by one", "dataset")(run_dataset(_title, 0))
    workload(f"samples of {_title}, one by one", "webdataset")(run_webdataset(_title))
    workload(f"samples of {_title}, one by one", "tarfile")(run_tarfile(_title))
    workload(f"samples of {_title}, batch(128)", "dataset")(run_dataset(_title, 128))
    workload(f"samples of {_title}, batch(128)", "webdataset")(run_webdataset(_title))


if __name__ == "__main__":
    SUITE.main()
