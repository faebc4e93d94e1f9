"""Tests of asynchronous file systems other than HTTP and S3: few requests, and no bytes of two versions."""

import asyncio
import random

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem

from dataset.errors import FileChangedError
from dataset.io.files.opening import open_input

pytestmark = pytest.mark.usefixtures("small_ranges")

CONTENT = random.Random(1).randbytes(30_000)


class Cloud(AsyncFileSystem):
    """A cloud with one file. The numbers of the ranges that fail, or are empty, are in ``faults``."""

    protocol = "cloud"

    def __init__(self):
        super().__init__()
        self.content, self.faults, self.infos, self.ranges = CONTENT, {}, 0, 0

    async def _info(self, path, **_):
        self.infos += 1
        return {"name": path, "type": "file", "size": len(self.content), "etag": hash(self.content)}

    async def _cat_file(self, path, start=None, end=None, **_):
        self.ranges += 1
        found = self.content[start:end]
        fault = self.faults.get(self.ranges)
        await asyncio.sleep(0.02)
        if isinstance(fault, Exception):
            raise fault
        return found if fault is None else fault


@pytest.fixture
def cloud(monkeypatch):
    fsspec.register_implementation("cloud", Cloud, clobber=True)
    Cloud.clear_instance_cache()
    return fsspec.filesystem("cloud")


@pytest.mark.parametrize("faults", [{}, {9: ConnectionResetError()}, {9: b""}])
def test_the_version_is_queried_once_and_after_a_failure(cloud, faults):
    cloud.faults = faults
    with open_input("cloud://a") as file:
        for place in (20_000, 100, 0):  # dropped ranges have not failed
            file.read(6000)
            file.seek(place)
        assert file.read() == CONTENT
    assert cloud.infos == 1 + len(faults)


@pytest.mark.parametrize("fault", [ConnectionResetError(), b""])
def test_a_failure_of_any_range_of_a_file_that_was_replaced_shows_the_change(cloud, fault):
    with open_input("cloud://a") as file:
        file.read(3000)
        cloud.content = CONTENT[::-1]
        cloud.faults = dict.fromkeys(range(cloud.ranges, cloud.ranges + 9), fault)
        with pytest.raises(FileChangedError, match="changed while it was read"):
            file.read()
