"""Targets that read records: Examples, SequenceExamples, TFRecord files, compressed streams."""

from __future__ import annotations

import contextlib
import gzip
import io
import logging
import random
import struct
import tarfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from dataset import io as records
from dataset.commands.display.record_content import read_message
from dataset.errors import DataLossError, ParseError, SpecError
from dataset.io import RaggedFeature as Ragged
from dataset.io.example.features import FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature
from dataset.io.files.compression import DamagedStreamError, open_stream
from dataset.io.tar.members import key_and_field
from dataset.io.tar.reader import TarFile
from dataset.io.tfrecord.damage.damage_log import DamageLog
from dataset.io.tfrecord.damage.salvage import Salvage, Sound
from dataset.io.tfrecord.frames import framed
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.plan.values import RaggedTensor, SparseTensor
from support.block_files import COMPRESS, outcomes_of, read
from support.sequence_examples import sequence_example
from support.tar_files import archive
from support.tfrecord_files import header, model

from .mutate import INTEGERS, mutated, packed_integer
from .target import CONTENTS, Target, drained

_PAIRS = Ragged.UniformRowLength(2)
FEATURES = {
    "i": FixedLenFeature((), np.int64, 7),
    "f": FixedLenFeature((2,), np.float32, (0.0, 0.0)),
    "s": FixedLenFeature((), bytes, b""),
    "v": VarLenFeature(np.int64),
    "b": VarLenFeature(bytes),
    "q": FixedLenSequenceFeature((2,), np.int64, allow_missing=True),
    "g": Ragged(np.float32),
    "rs": Ragged(np.int64, "p", [Ragged.RowSplits("splits")]),
    "rl": Ragged(np.int64, "p", [Ragged.RowLengths("lengths")]),
    "rt": Ragged(np.int64, "p", [Ragged.RowStarts("starts")]),
    "rm": Ragged(np.int64, "p", [Ragged.RowLimits("limits")]),
    "ri": Ragged(np.int64, "p", [Ragged.ValueRowIds("ids")]),
    "sp": SparseFeature("ids", "p", np.int64, 6),
    "rn": Ragged(np.int64, "p", [Ragged.ValueRowIds("outer"), Ragged.RowLengths("lengths"), _PAIRS]),
}
_WHOLE = {"i": [5], "f": [0.5, 1.5], "s": [b"abc"], "v": [1, 300, -1], "b": [b"", b"xyz"], "q": [1, 2, 3, 4]}
_WHOLE |= {"g": [1.0], "p": [1, 2, 3, 4], "splits": [0, 1, 4], "lengths": [2, 2], "starts": [0, 3], "limits": [3, 4]}
_WHOLE |= {"ids": [0, 0, 2, 5], "outer": [0, 3]}
_SETS = [tuple(names.split()) for names in ("i f s v b q g", "v rs", "rl", "rt i", "rm", "ri", "rn", "sp i", "b s")]


def _values(message: Any, key: str, dtype: Any) -> list[Any] | None:
    """Return the values of a feature that the library accepted; None if there is no list."""
    kind = message.features.feature[key].WhichOneof("kind") if key in message.features.feature else None
    assert kind in {None, {"i": "int64_list", "f": "float_list"}.get(np.dtype(dtype).kind, "bytes_list")}
    return kind and list(getattr(message.features.feature[key], kind).value)


def _check_feature(message: Any, name: str, found: Any) -> None:
    """Check the result for a feature: the values are those of protobuf, and its partitions can be read off the rows."""
    feature = FEATURES[name]
    values = _values(message, getattr(feature, "value_key", None) or name, feature.dtype)
    if isinstance(feature, FixedLenFeature):
        values = feature.default_value if values is None else values
        assert np.shape(found) == feature.shape
    elif isinstance(feature, SparseFeature):
        ids = _values(message, "ids", np.int64) or []
        pairs = sorted(zip(ids, values or [], strict=True), key=lambda pair: pair[0])
        assert found.indices[:, 0].tolist() == [index for index, _ in pairs]
        values = [value for _, value in pairs]
    elif isinstance(feature, Ragged):
        for partition, splits in zip(feature.partitions, getattr(found, "nested_row_splits", ()), strict=False):
            given = _values(message, partition.key, np.int64) or []
            assert _READ_OFF[type(partition)](splits).tolist() == given or (not given and len(splits) == 1)
        found = found.flat_values if isinstance(found, RaggedTensor) else found
    found = found.values if isinstance(found, SparseTensor) else found
    flat = [found] if isinstance(found, bytes) else np.ravel(found).tolist()
    assert repr(flat) == repr(list(values or [])), (flat, values)  # NaN equals NaN


_READ_OFF: dict[Any, Callable[[Any], Any]] = {
    Ragged.RowSplits: lambda splits: splits,
    Ragged.RowLengths: np.diff,
    Ragged.RowStarts: lambda splits: splits[:-1],
    Ragged.RowLimits: lambda splits: splits[1:],
    Ragged.ValueRowIds: lambda splits: np.repeat(np.arange(len(splits) - 1), np.diff(splits)),
}


def _plain(value: Any) -> Any:
    """Return a result of the library as nested lists."""
    if isinstance(value, RaggedTensor):
        return value.to_list()
    if isinstance(value, bytes):
        return value
    return (value.values if isinstance(value, SparseTensor) else value).tolist()


class Examples(Target):
    """Examples have the content that protobuf's parser returns, whether parsed alone or in a batch.

    The library may accept a message that protobuf rejects: like TensorFlow, it does not parse features that are not
    requested, and accepts keys that are not UTF-8. In this case, both ways of parsing must agree.
    """

    name = "examples"
    allowed = (ParseError,)
    tokens = (
        *(b"\x0a", b"\x12", b"\x1a", b"\x0a\x01i", b"\x0a\x01p", b"\x0a\x03ids", b"\x08", b"\x0d", b"\x15", b"\x25"),
        *(b"\xff" * 9 + b"\x01", b"\x80" * 9 + b"\x00", b"\x80" * 10 + b"\x01", b"\x13", b"\x14", b"\x0a\x00"),
    )

    def make_samples(self) -> list[bytes]:
        self.parsers = {names: records.ExampleParser({name: FEATURES[name] for name in names}) for names in _SETS}
        # Encoded with the protobuf classes in the order of keys, so that the bytes are the same in every process.
        parts = (_WHOLE, ["p", "ids"], ["i", "s"], ["p", "outer", "lengths"])
        samples = [self._encoded({key: _WHOLE[key] for key in keys}) for keys in parts]
        samples += [self._encoded({key: values[:0] for key, values in _WHOLE.items()}), b""]
        self.companions = {names: self._taken(parser, samples) for names, parser in self.parsers.items()}
        return samples

    @staticmethod
    def _taken(parser: Any, samples: list[bytes]) -> list[bytes]:
        """Return nine samples that a parser accepts."""
        taken = []
        for sample in samples:
            with contextlib.suppress(ParseError):
                parser.parse_one(sample)
                taken.append(sample)
        return (taken * 9)[:9]

    @staticmethod
    def _encoded(values: dict[str, list[Any]]) -> bytes:
        message = records.Example()
        for key, items in values.items():
            kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(_WHOLE[key][0])]
            getattr(message.features.feature[key], kind).value.extend(items)
            getattr(message.features.feature[key], kind).SetInParent()
        return bytes(message.SerializeToString(deterministic=True))

    def make_input(self, rng: random.Random) -> tuple[tuple[str, ...], bytes]:
        names = rng.choice(_SETS)
        if rng.random() < 0.3:  # a valid message with other values
            values = {key: self._other(rng, items) for key, items in _WHOLE.items() if rng.random() < 0.8}
            data = self._encoded(values)
            return names, data if rng.random() < 0.7 else mutated(rng, data, self.samples, self.tokens)
        return names, mutated(rng, rng.choice(self.samples), self.samples, self.tokens)

    @staticmethod
    def _other(rng: random.Random, items: list[Any]) -> list[Any]:
        items = list(items)
        if rng.random() < 0.2:
            items = items * rng.choice((0, 2, 40))
        if items and isinstance(items[0], int) and rng.random() < 0.7:
            number = rng.choice((rng.choice(INTEGERS), rng.randrange(6))) & (1 << 63) - 1
            items[rng.randrange(len(items))] = number if rng.random() < 0.9 else -number
        return items

    def check(self, data: Any) -> None:
        names, record = data if isinstance(data, tuple) else (_SETS[0], data)
        parser = self.parsers[names]
        batch = [*self.companions[names], record]  # in a batch, the vectorized reader locates it
        ways = (parser.parse_one, records.ExampleParser(parser.features), lambda _: self._tenth(parser(batch)))
        alone, again, together = (self._outcome(parse, record) for parse in ways)
        assert self._shown(alone) == self._shown(again), f"twice: {alone} and {again}"
        assert self._shown(alone) == self._shown(together), f"alone {alone}, among others {together}"
        if isinstance(alone, ParseError):
            raise alone
        with contextlib.suppress(DecodeError):
            message = records.Example.FromString(record)
            for name, value in alone.items():
                _check_feature(message, name, value)

    @staticmethod
    def _outcome(parse: Any, record: bytes) -> Any:
        try:
            return parse(record)
        except ParseError as error:
            return error

    @staticmethod
    def _shown(found: Any) -> str:
        return "" if isinstance(found, ParseError) else repr({name: _plain(value) for name, value in found.items()})

    @staticmethod
    def _tenth(columns: dict[str, Any]) -> dict[str, Any]:
        assert {len(column) for column in columns.values()} == {10}
        return {name: column[9] for name, column in columns.items()}


class SequenceExamples(Target):
    """``dataset head`` shows the content that protobuf's parsers return, and parse_sequence_example returns it."""

    name = "sequences"
    allowed = (ValueError,)
    tokens = Examples.tokens

    def make_samples(self) -> list[bytes]:
        message = sequence_example({"id": [3]}, x=[[1, 2], [], [300]], w=[[b"abc"]])
        return [message, b"plain text", Examples._encoded(_WHOLE)]

    def check(self, data: bytes) -> None:
        found = read_message(data)
        message = None
        with contextlib.suppress(DecodeError):
            message = records.SequenceExample.FromString(data)
        if message is not None:
            assert (found.kind == "SequenceExample") == message.HasField("feature_lists")
            assert sorted(found.features) == sorted(message.context.feature)
            lists = {key: message.feature_lists.feature_list[key].feature for key in message.feature_lists.feature_list}
            assert {key: len(steps) for key, steps in found.lists.items()} == {key: len(lists[key]) for key in lists}
            for key, steps in lists.items():
                kinds = [(step.WhichOneof("kind") or "none").removesuffix("_list") for step in steps]
                assert [values.kind for values in found.lists[key]] == kinds
        repr([list(values.values) for values in found.features.values()])
        ragged = {"x": Ragged(np.int64), "w": Ragged(bytes)}
        lists = {}
        with contextlib.suppress(ParseError):
            _, lists, _ = records.parse_sequence_example([data, data], None, ragged)
            _, once = records.parse_single_sequence_example(data, None, ragged)
            assert [value.to_list() for value in once.values()] == [value[1].to_list() for value in lists.values()]
        if message is not None and lists:
            steps = {key: message.feature_lists.feature_list[key].feature for key in ragged}
            assert lists["x"][0].to_list() == [list(step.int64_list.value) for step in steps["x"]]
            assert lists["w"][0].to_list() == [list(step.bytes_list.value) for step in steps["w"]]


class TFRecords(Target):
    """TFRecord files: the strict reader, the lenient one and the salvage agree with a reader of twenty lines."""

    name = "tfrecord"
    allowed = (DataLossError,)
    tokens = (*framed(b""), *framed(b"abc"), struct.pack("<Q", 1 << 60), b"TFRINDEX", b"\x1f\x8b\x08")

    def make_samples(self) -> list[bytes]:
        logging.getLogger("dataset").setLevel(logging.CRITICAL)
        rng = random.Random(1)
        sizes = ([0], [3] * 40, [5, 0, 17, 2000, 1], [11] * 3, [70_000, 3, 3], [])
        return [b"".join(b"".join(framed(rng.randbytes(size))) for size in some) for some in sizes]

    def make_input(self, rng: random.Random) -> bytes:
        data = super().make_input(rng)
        if rng.random() < 0.4:  # insert a length with a correct checksum somewhere
            head = header(int.from_bytes(packed_integer(rng)[:8], "little"))
            at = rng.choice((0, rng.randrange(len(data) + 1)))
            data = data[:at] + head + data[at + (12 if rng.random() < 0.5 else 0) :]
        return data

    def check(self, data: bytes) -> None:
        path = str(self.folder / "a.tfrecord")
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data)
        sound, damages = model(data)
        sound = sound[: damages[0][1]] if damages else sound
        for buffer_size in (None, 30):
            taken, error = read(TFRecordFile(path, buffer_size=buffer_size), 100)
            assert taken == sound, f"{len(taken)} records, expected {len(sound)}"
            assert (error is None) == (not damages), error
        lenient, none = read(TFRecordFile(path, log=DamageLog("fuzz")), 100)
        assert none is None
        assert lenient[: len(sound)] == sound
        salvaged = list(Salvage(open_stream(io.BytesIO(data), ""), 0))
        assert [piece.data for piece in salvaged if isinstance(piece, Sound)][: len(sound)] == sound
        for piece in salvaged:
            if isinstance(piece, Sound):
                end = piece.offset + 16 + len(piece.data)
                assert b"".join(framed(piece.data)) == data[piece.offset : end]
        if error is not None:
            raise error


class Streams(Target):
    """Compressed streams are decompressed as by zlib, up to the damage that zlib finds, in pieces of bounded size."""

    name = "gzip"
    allowed = (DamagedStreamError,)
    tokens = (
        b"\x1f\x8b\x08",
        b"\x1f\x8b\x08\x08",
        b"\x78\x9c",
        b"\x78\x01",
        b"\0" * 20,
        b"\x03\0",
        b"\x01\0\0\xff\xff",
    )

    def make_samples(self) -> list[bytes]:
        samples = [gzip.compress(text, mtime=0) for text in CONTENTS]
        samples += [zlib.compress(text, level) for text, level in zip(CONTENTS, (0, 1, 6, 9, 6), strict=True)]
        return [*samples, samples[1] + samples[2], samples[1] + b"\0" * 100]

    def make_input(self, rng: random.Random) -> bytes:
        data = super().make_input(rng)
        if rng.random() < 0.3 and len(data) > 20:  # a correct checksum, if the compressed data is still valid
            with contextlib.suppress(zlib.error):
                raw = zlib.decompressobj(-15)
                text = raw.decompress(data[10:], 1 << 21)
                end = len(data) - len(raw.unused_data)
                data = data[:end] + struct.pack("<II", zlib.crc32(text), len(text)) + data[end + 8 :]
        return data

    def check(self, data: bytes) -> None:
        kind = "GZIP" if data[:1] == b"\x1f" else "ZLIB"
        expected, whole = _inflated(data, 31 if kind == "GZIP" else 15)
        found, failure = drained(open_stream(io.BytesIO(data), kind), 1 << 16)
        if whole:
            assert failure is None, failure
            assert found == expected
        else:
            assert failure is not None
            # Before damage, zlib returns less data for a large input than byte by byte; the valid part is in both.
            assert found.startswith(expected) or expected.startswith(found), (len(found), len(expected))
        if failure is not None:
            raise failure


class Tars(Target):
    """Tar shards: the same samples in blocks of any size; those of the standard library if there is no damage."""

    name = "tar"
    allowed = (DataLossError, SpecError)
    tokens = (b"ustar\x0000", b"ustar  \0", b"\x80" + b"\0" * 10, b"\0" * 512, b"00000001000\0", b"././@LongLink")
    tokens += (b"L", b"x", b"S")
    tokens += (b"17 path=./../a.b\n", b"12 size=100\n", b"26 GNU.sparse.major=1\n", b".txt", b"g", b"2")

    def make_samples(self) -> list[bytes]:
        members = [
            ("n" * (30 * number) + f"{number}.{field}", bytes(100 * number))
            for number in range(4)
            for field in ("txt", "cls", "d/x.seg.png")
        ]
        return [archive(members, form) for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)]

    def make_input(self, rng: random.Random) -> bytes:
        data = bytearray(super().make_input(rng))
        for place in range(0, len(data) - 511, 512):  # correct checksums, where there are headers
            if data[place + 257 : place + 262] == b"ustar" and rng.random() < 0.8:
                data[place + 148 : place + 156] = b" " * 8
                data[place + 148 : place + 156] = b"%06o\0 " % sum(data[place : place + 512])
        return bytes(data)

    def check(self, data: bytes) -> None:
        path = self.folder / "a.tar"
        path.write_bytes(data)
        found = [_samples(str(path), size, n) for size, n in ((None, 9), (1, 1), (700, 2))]
        assert found[0] == found[1] == found[2], found
        if failures := [failure for failure in found[0] if isinstance(failure, str)]:
            raise SpecError(failures[0])
        expected = []
        with contextlib.suppress(tarfile.TarError, ValueError):
            expected = _by_tarfile(data)  # it ends without an error where it understands a field of a header less
        assert _parts(found[0])[: len(_parts(expected))] == _parts(expected)


def _samples(path: str, buffer_size: int | None, n: int) -> list[Any]:
    """Return the samples, and the file and the byte of each error in its place."""
    with TarFile(path, None, None, buffer_size) as file:
        return [one.partition(": ")[0] if isinstance(one, str) else one for one in outcomes_of(file, n)]


def _parts(samples: list[dict[str, bytes]]) -> list[tuple[str, bytes]]:
    """Return the fields without the keys: the standard library also reads a prefix of names where GNU has times."""
    return [(name, data) for sample in samples for name, data in sample.items() if name != "__key__"]


def _by_tarfile(data: bytes) -> list[dict[str, bytes]]:
    samples: list[dict[str, bytes]] = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", errors="surrogateescape") as shard:
        for info in shard:
            found = key_and_field(info.name) if info.isreg() else None
            if found is None:
                continue
            key = found[0].encode(errors="surrogateescape")
            if not samples or samples[-1]["__key__"] != key:
                samples.append({"__key__": key})
            samples[-1][found[1]] = shard.extractfile(info).read()  # type: ignore[union-attr]  # it is regular
    return samples


class ZstdFrames(Target):
    """Zstandard streams are decompressed up to the damage, in pieces of bounded size; their size does not matter."""

    name = "zstd"
    allowed = (DamagedStreamError,)
    tokens = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18", b"\0" * 8, b"\x03\0\0", b"\xff" * 4, b"\x88", b"\xe0")

    def make_samples(self) -> list[bytes]:
        samples = [COMPRESS["ZSTD"](text) for text in CONTENTS]
        return [*samples, samples[1] + samples[2], samples[3][:-4]]

    def check(self, data: bytes) -> None:
        found = [drained(open_stream(io.BytesIO(data), "ZSTD"), size) for size in (1 << 16, 1 << 18)]
        (content, failure), (other, _) = found
        assert content == other, (len(content), len(other))
        if failure is not None:
            raise failure


def _inflated(data: bytes, bits: int) -> tuple[bytes, bool]:
    """Return the content of the streams in ``data`` by zlib, bytewise near damage, and whether they are complete."""
    pieces: list[bytes] = []
    first = True
    while data or first:
        inflater = zlib.decompressobj(bits)
        before = inflater.copy()
        try:
            pieces.append(inflater.decompress(data))
        except zlib.error:
            with contextlib.suppress(zlib.error):
                for byte in data:
                    pieces.append(before.decompress(bytes((byte,))))  # noqa: PERF401  # the pieces before an error must be kept
            return b"".join(pieces), False
        if not inflater.eof:
            return b"".join(pieces), first and not data
        data = inflater.unused_data.lstrip(b"\0")
        first = False
    return b"".join(pieces), True
