"""Targets of files: names and patterns, and files that are cut."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import random
import shutil
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from dataset import DataLossError, Dataset, TarDataset, TextLineDataset
from dataset.io.files.compression import new_compressor

from .target import Target

_PARTS = [
    b"a",
    b"a1",
    b"b.txt",
    b".h",
    b"..x",
    b"[1]",
    b"a[1]",
    b"1",
    b"caf\xe9",
    b"n\nl",
    b"'\"",
    b"*",
    b"?",
    b"e\xcc\x81",
]
_WILD = [b"*", b"**", b"?*", b"*t", b"[a-b]*", b"[!a]*", b"[^.]*", b"[.]h", b".*", b"a[1]*", b"*\xe9", b"*\xcc\x81"]


class Patterns(Target):
    """Patterns over files with odd names: those that the rules of a shell say, and each is read by the listed name."""

    name = "patterns"
    allowed = (FileNotFoundError,)

    def make_samples(self) -> Any:
        return [([b"a", b".h"], b"*")]

    def make_input(self, rng: random.Random) -> tuple[list[bytes], bytes]:
        def path(parts: list[bytes]) -> bytes:
            return b"/".join(rng.choices(parts, k=rng.randrange(1, 4)))

        return [path(_PARTS) for _ in range(rng.randrange(1, 12))], path([*_PARTS, *_WILD, *_WILD])

    def check(self, data: tuple[list[bytes], bytes]) -> None:
        names, pattern = [os.fsdecode(name) for name in data[0]], os.fsdecode(data[1])
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        for name in names:
            with contextlib.suppress(OSError):  # a file of this name, or in the place of its folder, exists
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(name.replace("\n", " "), errors="surrogateescape")
        expected = [path for path in root.rglob("*") if _matches(str(path.relative_to(root)), pattern)]
        if os.path.lexists(root / pattern):
            expected = [root / pattern]
        try:
            listed = list(Dataset.list_files(f"{root}/{pattern}", shuffle=False))
        except FileNotFoundError:
            assert not expected, expected
            raise
        assert listed == sorted(map(os.fsencode, expected))
        files = [path for path in map(os.fsdecode, listed) if Path(path).is_file()]
        texts = [os.fsencode(path.removeprefix(f"{root}/").replace("\n", " ")) for path in files]
        assert list(TextLineDataset(files)) == texts


def _matches(name: str, pattern: str) -> bool:
    parts, patterns = name.split("/"), pattern.replace("[^", "[!").split("/")
    return len(parts) == len(patterns) and all(
        fnmatch.fnmatchcase(part, one) and (one[0] == "." or part[0] != ".")
        for part, one in zip(parts, patterns, strict=True)
    )


def _compressed(kind: str, content: bytes) -> bytes:
    compressor = new_compressor(kind)
    return bytes(compressor.compress(content)) + compressor.flush()


def _arrow(write: Callable[[pa.Table, Any], None]) -> bytes:
    target = BytesIO()
    write(pa.table({"a": range(100)}), target)
    return target.getvalue()


def _stream(table: pa.Table, target: Any) -> None:
    with ipc.new_stream(target, table.schema) as writer:
        writer.write_table(table, max_chunksize=9)


def _tar() -> bytes:
    target = BytesIO()
    with tarfile.open(fileobj=target, mode="w") as shard:
        for number in range(9):
            member = tarfile.TarInfo(f"{number}.a")
            member.size = 100 * number
            shard.addfile(member, BytesIO(b"1" * member.size))
    return target.getvalue()


_TAR = _tar()
_END = len(_TAR.rstrip(b"\0"))
_END += -_END % 512 + 512  # with the first block of zeros
_LINES = b"".join(b"%d\n" % number for number in range(900))
_Read = Callable[[str], Dataset[Any]]
_CUT: dict[str, tuple[_Read, bytes, int]] = {
    **{
        kind: (lambda path, kind=kind: TextLineDataset(path, kind), _compressed(kind, _LINES), 0)
        for kind in ("GZIP", "ZLIB", "ZSTD")
    },
    **{
        f"two of {kind}": (lambda path, kind=kind: TextLineDataset(path, kind), _compressed(kind, _LINES) * 2, 0)
        for kind in ("GZIP", "ZSTD")
    },
    "tar": (lambda path: TarDataset(path, ["a"]), _TAR, _END),
    "indexed tar": (lambda path: TarDataset(path, ["a"], index=True), _TAR, _END),
    "compressed tar": (lambda path: TarDataset(path, ["a"], "GZIP"), _compressed("GZIP", _TAR), 0),
    "Parquet": (Dataset.from_parquet, _arrow(pq.write_table), 0),
    "Arrow stream": (Dataset.from_arrow_ipc, _arrow(_stream), 0),
    "from_arrow": (Dataset.from_arrow, _arrow(_stream), 0),
}


class Cuts(Target):
    """Files that are cut anywhere, in formats whose end can be verified: a prefix of the elements, and one error."""

    name = "cuts"
    allowed = (DataLossError,)

    def make_samples(self) -> Any:
        return [(kind, len(content)) for kind, (_, content, _) in _CUT.items()]

    def make_input(self, rng: random.Random) -> tuple[str, int]:
        kind, size = rng.choice(self.samples)
        return kind, rng.choice(
            [rng.randrange(1, size + 1), size - rng.randrange(20), max(1, rng.randrange(size) // 512 * 512)]
        )

    def check(self, data: tuple[str, int]) -> None:
        kind, cut = data
        read, content, end = _CUT[kind]
        whole, path = (self.folder / name for name in ("whole", "cut"))
        whole.write_bytes(content)
        path.write_bytes(content[:cut])
        expected: list[Any] = list(read(str(whole)))
        found: list[Any] = []
        is_valid = cut >= (end or len(content)) or (kind.startswith("two") and cut == len(content) // 2)
        try:
            found.extend(read(str(path)))
        except DataLossError:
            assert not is_valid, "it is complete"
            sure = found[:-1] if "Z" in kind else found  # the last line may be cut, too
            assert sure == expected[: len(sure)]
            raise
        assert is_valid, "a file that is cut reads as complete"
        assert found == expected[: len(found)]
