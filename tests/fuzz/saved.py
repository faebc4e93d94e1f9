"""Targets that read files saved by the library: states, containers, indexes, metadata, records of elements."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import struct
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from chains.names import build
from dataset import Dataset, TensorSpec, TFRecordDataset, checkpoint
from dataset.checkpoint import container
from dataset.errors import DataLossError, SpecError, StateError
from dataset.io.checksum import masked_crc
from dataset.io.elements.codec import encode
from dataset.io.elements.decoding import DamagedRecordError, decode
from dataset.io.elements.element_log import ElementLog
from dataset.io.indexed.index_file import NotAnIndexError
from dataset.io.tfrecord.frames import framed
from dataset.io.tfrecord.index import TFRecordIndex
from dataset.plan.plain import digest, from_json, state_to_json
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.queues import FIFOQueue
from dataset.runtime.state.saved_chunks import load_pending
from dataset.testing import outcomes
from support.resume_cases import CASES
from support.resume_files import write_files
from support.tfrecord_files import write_records

from .mutate import INTEGERS, mutated, mutated_tree
from .target import Target

_LEFT_OUT = ("from_pandas", "from_polars", "shard_by_process", "random: without", "TFRecordDataset: a file is missing")
_FORBIDDEN = frozenset({"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect"})
_FORBIDDEN |= {"pickle.find_class", "os.remove", "os.rename"}


class _Watch:
    """Recorder of forbidden actions of the process: opened files in other folders, started programs, connections."""

    def __init__(self, *folders: Path) -> None:
        self._folders = tuple(map(str, folders))
        self._is_on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def __enter__(self) -> None:
        self.seen.clear()
        self._is_on = True

    def __exit__(self, *_: object) -> None:
        self._is_on = False

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        if event in {"open", "os.remove", "os.rename", "os.listdir", "os.scandir"}:
            path = arguments[0]
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            is_elsewhere = isinstance(path, str) and not path.startswith(self._folders)
            if is_elsewhere and not path.endswith((".py", ".pyc", ".so")):
                self.seen.append(f"{event} {path!r:.200}")
        elif event in _FORBIDDEN:
            self.seen.append(f"{event} {arguments!r:.200}")


def _states_of(dataset: Dataset[Any]) -> list[Any]:
    """Return states at several places."""
    found = []
    with iter(dataset) as iterator:
        for wanted in (0, 1, 3, 3, 4):
            for _ in range(wanted):
                with contextlib.suppress(ValueError, FileNotFoundError):
                    next(iterator, None)
            found.append(iterator.state_dict())
    return found


class States(Target):
    """Saved states with a correct digest: loading one may raise only StateError, and opens no other files."""

    name = "states"
    allowed = (StateError,)

    def make_samples(self) -> list[Any]:
        warnings.simplefilter("ignore")
        folder = self.folder / "files"
        folder.mkdir()
        write_files(folder)
        self.datasets: dict[str, Dataset[Any]] = {}
        self.watch = _Watch(self.folder, Path(sys.prefix), Path("/proc"), Path("/sys"), Path("/dev"))
        samples = []
        for number, (name, chain) in enumerate(CASES.items()):
            if name.startswith(_LEFT_OUT):
                continue
            scratch = self.folder / f"scratch-{number}"
            scratch.mkdir()
            self.datasets[name] = build(str(chain), folder, scratch)
            samples += [(name, state) for state in _states_of(self.datasets[name])]
        return samples

    def make_input(self, rng: random.Random) -> tuple[str, Any]:
        name, state = rng.choice(self.samples)
        others = [other for _, other in rng.sample(self.samples, 2)]
        if rng.random() < 0.1:
            state = mutated_tree(rng, state, others)
        else:
            state = {**state, "operator": mutated_tree(rng, state["operator"], [one["operator"] for one in others])}
        if rng.random() < 0.1 and isinstance(state, dict):
            state = {**state, "elements": rng.choice(INTEGERS), "orders": mutated_tree(rng, state.get("orders"), [[]])}
        return name, _sealed(state)

    def check(self, data: Any) -> None:
        name, state = data
        with iter(self.datasets[name]) as iterator:
            with self.watch:
                iterator.load_state_dict(state)
                for _ in range(3):
                    self._next(iterator)
            assert not self.watch.seen, self.watch.seen

    @staticmethod
    def _next(iterator: Any) -> None:
        """Read the elements. An element may raise the error that was saved, or not fit the pipeline."""
        try:
            next(iterator, None)
        except AssertionError:
            raise
        except Exception as error:
            if type(error).__name__ == "_ArrayMemoryError":
                raise


def _sealed(state: Any) -> Any:
    """Return the state with a correct digest, if it can have one."""
    if not isinstance(state, dict) or "digest" not in state:
        return state
    try:
        return {**state, "digest": digest({key: value for key, value in state.items() if key != "digest"})}
    except (StateError, TypeError):
        return state


def _plain_states() -> list[Any]:
    """States with all kinds of values in them."""
    ragged = Dataset.from_tensor_slices(RaggedTensor.from_rows([[1, 2], [3], [], [4, 5, 6]])).repeat()
    texts = Dataset.from_tensor_slices(np.array([b"ab", b"", b"cde"] * 5, object))
    datasets = [
        Dataset.range(100).filter(lambda x: x >= 0).shuffle(10, seed=1).batch(3),
        ragged.filter(lambda row: len(row) > 0).shuffle(5, seed=1),
        texts.filter(lambda text: text != b"x").shuffle(5, seed=2),
        Dataset.range(10).scan(np.float32(0), lambda total, x: (total + np.float32(x), total)),
    ]
    return [state for dataset in datasets for state in _states_of(dataset)[1:3]]


class Containers(Target):
    """Files of states, mutated anywhere, sometimes with correct lengths and digests."""

    name = "containers"
    allowed = (StateError,)
    tokens = (b'{"$array":[0,8],"dtype":"<i8","shape":[1]}', b"$bytes", b"$pairs", b"$int", b"$tuple", b"[" * 3000)
    tokens += (b"1e999",)
    tokens += (b"999999999999", b'"shape":[4611686018427387904]', b'"dtype":"|O"', b"NaN", b"<U9999999", b"|S99999999")

    def make_samples(self) -> list[bytes]:
        return [self._dated(b"".join(container.pack(state))) for state in _plain_states()]

    @staticmethod
    def _dated(sample: bytes) -> bytes:
        """Return samples that are the same in every process, with a fixed time in the header."""
        start = sample.index(b'"saved":') + 8
        end = sample.index(b",", start)
        return _contained(sample[:start] + b"1".ljust(end - start, b"0") + sample[end:])

    def make_input(self, rng: random.Random) -> bytes:
        data = super().make_input(rng)
        return _contained(data, rng) if rng.random() < 0.85 else data

    def check(self, data: bytes) -> None:
        path = self.folder / "a.state"
        path.write_bytes(data)
        container.read(str(path))


def _contained(data: bytes, rng: random.Random | None = None) -> bytes:
    """Return a container with a correct length and digest and, depending on ``rng``, a correct digest of its header."""
    if len(data) < 64:
        return data
    header = data[24:32]
    if rng is not None and rng.random() < 0.5:
        end = data.rfind(b"}", 0, -32)
        header = struct.pack("<Q", max(0, end + 1 - 32))
    body = data[:16] + struct.pack("<Q", len(data)) + header + data[32:-32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


class JsonStates(Target):
    """States as JSON, with correct digests if possible."""

    name = "json_states"
    allowed = (StateError,)

    def make_samples(self) -> list[Any]:
        return [state_to_json(state) for state in _plain_states()]

    def make_input(self, rng: random.Random) -> Any:
        form = rng.choice(self.samples)
        form = {**form, "state": mutated_tree(rng, form["state"], [other["state"] for other in self.samples])}
        if rng.random() < 0.05:
            form = mutated_tree(rng, form, self.samples)
        try:
            return {**form, "digest": digest(from_json(form["state"]))}
        except Exception:  # the state cannot have a digest
            return form

    def check(self, data: Any) -> None:
        checkpoint.from_json(data)


class Indexes(Target):
    """Indexes beside a TFRecord file."""

    name = "index"
    allowed = (NotAnIndexError, DataLossError)
    tokens = (b"TFRINDEX", struct.pack("<II", 1, 8), struct.pack("<II", 1, 4))

    def make_samples(self) -> list[bytes]:
        warnings.simplefilter("ignore")
        self.path = self.folder / "a.tfrecord"
        write_records(self.path, [b"x" * size for size in (3, 0, 20, 100, 5)])
        os.utime(self.path, ns=(10**18, 10**18))
        self.index = Path(f"{self.path}.index")
        TFRecordIndex.open(str(self.path))
        return [self.index.read_bytes()]

    def make_input(self, rng: random.Random) -> bytes:
        data = super().make_input(rng)
        return data[:-4] + struct.pack("<I", masked_crc(data[:-4])) if rng.random() < 0.8 else data

    def check(self, data: bytes) -> None:
        self.index.write_bytes(data)
        with TFRecordIndex.open(str(self.path)) as index:
            assert index.offsets[-1] == self.path.stat().st_size
            for number in range(min(len(index), 8)):
                with contextlib.suppress(DataLossError):
                    index.record(number)
        (lengths,), stamp = TFRecordIndex.unpack(data)
        assert int(lengths.min(initial=0)) >= 0
        assert int(lengths.sum()) + 16 * len(lengths) == stamp.size


class Metadatas(Target):
    """metadata.json of saved datasets, snapshots and caches, mostly with correct digests."""

    name = "metadata"
    allowed = (DataLossError, SpecError, ValueError, OSError)

    def make_samples(self) -> list[Any]:
        self.places: dict[str, tuple[Path, Any]] = {}
        rows = Dataset.range(6).map(lambda x: {"x": x, "row": np.full(int(x), x), "text": b"t"})
        rows.save(str(self.folder / "saved"))
        self.places["load"] = self.folder / "saved" / "metadata.json", lambda: Dataset.load(str(self.folder / "saved"))
        kept = Dataset.range(6).map(lambda x: (x, x + 1)).snapshot(str(self.folder / "snapshot"))
        cached = Dataset.range(6).filter(lambda x: x >= 0).cache(str(self.folder / "cache"))
        for name, dataset in (("snapshot", kept), ("cache", cached)):
            list(dataset)
            (path,) = self.folder.glob(f"{name}*/**/metadata.json")
            self.places[name] = path, lambda dataset=dataset: dataset
        return [(name, json.loads(path.read_bytes())) for name, (path, _) in self.places.items()]

    def make_input(self, rng: random.Random) -> tuple[str, bytes]:
        name, plain = rng.choice(self.samples)
        if rng.random() < 0.1:
            data = json.dumps(plain).encode()
            return name, mutated(rng, data, [data])
        plain = mutated_tree(rng, {k: v for k, v in plain.items() if k != "digest"}, [one for _, one in self.samples])
        try:
            content = json.dumps(plain, sort_keys=True).encode()
            plain = {**plain, "digest": hashlib.blake2b(content, digest_size=16).hexdigest()}
            return name, json.dumps(plain).encode()
        except (TypeError, ValueError):
            return name, b'{"format": "dataset elements", "version": 1}'  # the value cannot be represented as JSON

    def check(self, data: Any) -> None:
        name, content = data
        path, make = self.places[name]
        path.write_bytes(json.dumps(content).encode() if isinstance(content, dict) else content)
        self.read(make())


def _described(record: bytes, end: bytes) -> bytes:
    """Correct the length of the description in a record, which is at its beginning."""
    return struct.pack("<I", max(0, record.rfind(end) + 2 - 4)) + record[4:]


class Elements(Target):
    """Records of elements, as save() writes them."""

    name = "elements"
    allowed = (DamagedRecordError,)
    tokens = (b'"array"', b'"arrays"', b'"ragged"', b'"sparse"', b'"each"', b"[4611686018427387904]", b"-1", b'"bytes"')
    tokens += (b"[" * 2000,)

    def make_samples(self) -> list[bytes]:
        ragged = [RaggedTensor.from_rows(rows, "i8") for rows in ([[1, 2], [3]], [[4]], [[]])]
        sparse = [SparseTensor([[0, 1]], [5], [2, 2])] * 3
        columns: list[Any] = [
            *(np.arange(3), np.array([b"a", b"", b"cde"], object), [np.arange(2), np.arange(5), np.arange(0)]),
            *(ragged, sparse, [np.arange(2), np.zeros((2, 2), np.int64), np.int64(3)]),
        ]
        return [encode([column], 3) for column in columns]

    def make_input(self, rng: random.Random) -> bytes:
        data = super().make_input(rng)
        return _described(data, b"]}") if rng.random() < 0.7 else data

    def check(self, data: bytes) -> None:
        columns, _, length = decode(data, 1)
        assert [len(column) for column in columns] == [length]


class QueueLogs(Target):
    """Logs of from_queue(): a valid header, then a mutated record with correct checksums."""

    name = "queue logs"
    allowed = (DataLossError,)
    tokens = (*Containers.tokens, b'"error"', b'"SystemExit"', b'"packed"', b'"ragged"', b'"sparse"', b'"dataset"')

    def make_samples(self) -> list[bytes]:
        ragged, sparse = RaggedTensor.from_rows([[1, 2], []], "i8"), SparseTensor([[0, 1]], [5], [2, 2])
        elements = [{"a": np.arange(3), "b": "text"}, (ragged, sparse), np.float32(2), np.array(["x", "yz"])]
        path = self.folder / "samples.log"
        for element in [*elements, ValueError("bad")]:
            queue = FIFOQueue(1)
            queue.enqueue(element)
            queue.close()
            with iter(Dataset.from_queue(queue, log=path)) as iterator:
                outcomes(iterator)
        header, *records = TFRecordDataset(path)
        self.header = b"".join(framed(header))
        return records

    def make_input(self, rng: random.Random) -> bytes:
        record = super().make_input(rng)
        return _described(record, b"}]") if rng.random() < 0.7 else record

    def check(self, data: bytes) -> None:
        path = self.folder / "a.log"
        path.write_bytes(self.header + b"".join(framed(data)))
        with ElementLog(str(path), lambda plain: load_pending(plain, lambda: TensorSpec((), np.int64))) as log:
            while log.read() is not None:
                pass
