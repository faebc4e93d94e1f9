"""Tests that arrays of every dtype pass through every source, store, state and transport unchanged.

Elements have the native byte order: a source of arrays in the other one gives the elements of native arrays.
"""

import json
import pickle
import queue

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, TensorSpec, checkpoint, vectorized
from dataset.queues import FIFOQueue
from dataset.testing import assert_elements_equal
from support.seeds import numpy_rng

ROWS = 12
DTYPES = ["i2", "u4", "i8", "f2", "f4", "f8", "g", "c8", "c16", "G", "?", "M8[s]", "M8[25us]", "M8[D]", "m8[ns]", "m8"]
RECORD = np.dtype([("a", "i4"), ("b", "f8", 2), ("c", [("d", "M8[us]")])])


def columns_of_every_dtype():
    columns = {dtype: numpy_rng("dtypes").integers(0, 99, (ROWS, 2)).astype(dtype) for dtype in DTYPES}
    columns |= {f"scalars of {dtype}": column[:, 0].copy() for dtype, column in columns.items()}
    columns |= {f"empty {dtype}": np.zeros((ROWS, 0, 2), dtype) for dtype in ("i4", "M8[s]", "g")}
    return columns | {"text": np.array([[f"é{i}", ""] for i in range(ROWS)])}


def with_records(columns):
    """Return the columns and some of a structured dtype, which files cannot hold."""
    rows = np.zeros((ROWS, 2), RECORD)
    rows["a"], rows["c"]["d"] = np.arange(ROWS)[:, None], np.datetime64(5, "us")
    return {**columns, "records": rows, "scalars of records": rows[:, 0].copy()}


def swapped(columns):
    return {name: column.astype(column.dtype.newbyteorder("S")) for name, column in columns.items()}


def rows_of(columns):
    return [{name: column[i] for name, column in columns.items()} for i in range(ROWS)]


def queue_of(columns):
    filled = queue.Queue()
    for row in rows_of(columns):
        filled.put(row)
    return Dataset.from_queue(filled).take(ROWS)


def own_queue_of(columns):
    filled = FIFOQueue(ROWS)
    filled.enqueue_many(columns)
    filled.close()
    return Dataset.from_queue(filled)


def declared(columns):
    signature = {name: TensorSpec(column.shape[1:], column.dtype) for name, column in columns.items()}
    return Dataset.from_generator(lambda: iter(rows_of(columns)), output_signature=signature)


def mapped(columns):
    return Dataset.range(ROWS).map(lambda i: {name: column[i] for name, column in columns.items()})


def mapped_at_once(columns):
    return Dataset.range(ROWS).map(vectorized(lambda i: {name: column[i] for name, column in columns.items()}))


def ragged(columns):
    return Dataset.from_tensors({name: RaggedTensor(column, [0, 1, ROWS]) for name, column in columns.items()})


def sparse(columns):
    cells = {name: column.ravel()[:2] for name, column in columns.items() if column.size}
    return Dataset.from_tensors({name: SparseTensor([[0, 1], [3, 0]], two, [4, 2]) for name, two in cells.items()})


SOURCES = [queue_of, own_queue_of, declared, mapped, mapped_at_once, ragged, sparse]
SOURCES += [Dataset.from_tensor_slices, Dataset.from_tensors, lambda columns: Dataset.from_list(rows_of(columns))]
SOURCES += [lambda columns: Dataset.from_generator(lambda: iter(rows_of(columns)))]
SOURCES += [lambda columns: Dataset.range(3).map(lambda _: columns), lambda columns: mapped(columns).map(dict)]
SOURCES += [lambda columns: Dataset.range(3).scan(columns, lambda state, _: (columns, state))]


@pytest.mark.parametrize("source", SOURCES)
def test_the_byte_order_of_the_elements_of_every_source_is_native(source):
    columns = with_records(columns_of_every_dtype())
    for change in (list, lambda elements: list(elements.ragged_batch(5))):
        assert_elements_equal(change(source(swapped(columns))), change(source(columns)))


def resumed(dataset, save, load):
    held = Dataset.from_generator(lambda: iter(dataset)).shuffle(5, seed=1)  # its state holds elements
    iterator = iter(held)
    rows = [next(iterator) for _ in range(3)]
    saved, iterator = save(iterator), iter(held)
    load(iterator, saved)
    return sorted([*rows, *iterator], key=lambda row: int(row["scalars of i4"]))


def resumed_with(through):
    return lambda dataset, path: resumed(
        dataset, lambda it: through(it.state_dict()), lambda it, saved: it.load_state_dict(saved)
    )


def resumed_from_file(dataset, path):
    return resumed(dataset, lambda it: checkpoint.save(path, it), lambda it, _: checkpoint.restore(path, it))


def stored(dataset, path):
    dataset.save(path)
    return Dataset.load(path)


WAYS = {
    "batches": lambda dataset, path: dataset.batch(5).rebatch(4).unbatch(),
    "chunks": lambda dataset, path: dataset.take(5).filter(lambda x: True).concatenate(dataset.skip(5)),
    "a cache": lambda dataset, path: dataset.cache().repeat(2).skip(ROWS),
    "unique elements": lambda dataset, path: dataset.concatenate(dataset).unique(),
    "threads": lambda dataset, path: dataset.map(dict, num_parallel_calls=2).prefetch(2),
    "processes": lambda dataset, path: dataset.map(dict, num_parallel_calls=2, executor="process"),
    "workers": lambda dataset, path: dataset.distribute(2),
    "a state": resumed_with(dict),
    "a pickled state": resumed_with(lambda state: pickle.loads(pickle.dumps(state))),
}
FILES = {
    "JSON": resumed_with(lambda state: checkpoint.from_json(json.loads(json.dumps(checkpoint.to_json(state))))),
    "a checkpoint": resumed_from_file,
    "save": stored,
    "a cache in files": lambda dataset, path: dataset.cache(path).repeat(2).skip(ROWS),
    "a snapshot": lambda dataset, path: dataset.snapshot(path).repeat(2).skip(ROWS),
}


@pytest.mark.parametrize("way", [*WAYS, *FILES])
def test_elements_of_every_dtype_survive(way, tmp_path):
    columns = columns_of_every_dtype() | {"scalars of i4": np.arange(ROWS, dtype="i4")}
    columns = columns if way in FILES else with_records(columns)
    expected = list(Dataset.from_tensor_slices(columns))
    for change in (swapped, dict):
        found = list({**WAYS, **FILES}[way](Dataset.from_tensor_slices(change(columns)), tmp_path / change.__name__))
        assert_elements_equal(found, expected)
