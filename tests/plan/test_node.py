"""Nodes: immutable, named, located in the user's file, and fingerprinted by what they compute."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from dataset import Dataset, Options, RaggedTensorSpec, TensorSpec, TFRecordDataset, io, vectorized
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.node import Node, holds_user_code, inputs_first, spec_is_static, walk


def here():
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def double(x):
    return x * 2


ALL_NODES = [
    Dataset.range(5),
    Dataset.from_tensors([1, 2]),
    Dataset.from_tensor_slices({"a": [1, 2]}),
    Dataset.from_generator(double),
    Dataset.range(5).map(double),
    Dataset.range(5).flat_map(Dataset.range),
    Dataset.range(5).interleave(Dataset.range),
    Dataset.zip((Dataset.range(3), Dataset.range(4))),
    Dataset.range(5).concatenate(Dataset.range(2)),
    Dataset.range(5).enumerate().skip(2).shard(2, 1).repeat(2),
    Dataset.range(5).shuffle(2, seed=1).batch(2).unbatch().take(2),
    Dataset.range(5).filter(double).padded_batch(2),
    Dataset.range(5).cache().prefetch(2),
    TFRecordDataset(["a", "b"], num_parallel_reads=2),
]


@pytest.mark.parametrize("dataset", ALL_NODES, ids=repr)
def test_a_node_cannot_be_changed_and_a_copy_reads_from_the_inputs_it_is_given(dataset):
    for node in walk(dataset.plan):
        assert node.origin.filename == __file__
        for field in dataclasses.fields(node):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(node, field.name, None)
        again = node.with_inputs(node.inputs)
        assert (type(again), again.inputs, again.name, again.origin) == (
            type(node), node.inputs, node.name, node.origin,
        )  # fmt: skip
        assert again.label() == node.label()
        assert fingerprint(again) == fingerprint(node)
        others = [Dataset.range(7 + i).batch(2).plan for i in range(len(node.inputs))]
        moved = node.with_inputs(others)
        assert all(a is b for a, b in zip(moved.inputs, others, strict=True))
        assert {id(part) for part in walk(moved)} >= set(map(id, others))


def test_walking_gives_the_reader_before_its_inputs_and_what_is_read_twice_is_listed_once():
    source = Dataset.range(4)
    taken = source.take(3)
    plan = Dataset.zip(source, taken, source).plan
    assert [node.op for node in walk(plan)] == ["zip", "range", "take", "range", "range"]
    assert inputs_first(plan) == [source.plan, taken.plan, plan]
    assert inputs_first(plan, without={taken.plan}) == [source.plan, plan]
    assert inputs_first(plan, without={plan}) == []


def test_a_chain_may_be_longer_than_the_stack():
    dataset = Dataset.range(4)
    for _ in range(3000):
        dataset = dataset.take(3)
    assert len(list(walk(dataset.plan))) == len(inputs_first(dataset.plan)) == 3001
    assert spec_is_static(dataset.plan)
    assert not holds_user_code(dataset.plan)
    assert dataset.options() == Options()


def test_each_node_counts_once_and_a_copy_that_is_given_other_fields_counts_anew():
    calls = []

    class Source(Node):
        op: ClassVar[str] = "source"

        def cardinality(self):
            calls.append(self)
            return 4

    dataset = Dataset(Source()).take(3)
    assert [dataset.cardinality(), dataset.skip(1).cardinality(), dataset.cardinality()] == [3, 2, 3]
    assert len(calls) == 1
    assert Dataset(Source()).cardinality() == 4
    assert len(calls) == 2
    taken = Dataset.range(9).take(3).plan
    assert taken.cardinality() == pickle.loads(pickle.dumps(taken)).cardinality() == 3
    other = copy.copy(taken)
    object.__setattr__(other, "count", 5)
    assert other.cardinality() == 5


def test_user_code_is_known_wherever_it_is_and_a_parser_of_the_library_is_not_user_code():
    class Derived(io.ExampleParser):
        def __call__(self, serialized):
            return super().__call__(serialized)

    numbers, features = Dataset.range(3), {"x": io.FixedLenFeature((), np.int64)}
    for dataset in (numbers.shuffle(2).batch(2), numbers.map(io.ExampleParser(features)).shuffle(2)):
        assert not holds_user_code(dataset.plan)
    for dataset in (
        Dataset.zip((numbers, numbers.map(double).batch(2))),
        Dataset.from_generator(lambda: iter([1])).prefetch(1),
        numbers.map(Derived(features)),
        numbers.map(io.ExampleParser(features).parse_one),
    ):
        assert holds_user_code(dataset.plan)
    assert spec_is_static(numbers.filter(lambda x: True).plan)
    assert not spec_is_static(numbers.map(double).batch(2).plan)


# Where an operation was made.


def test_the_origin_is_the_line_of_the_call_also_through_methods_of_dataset_itself(tmp_path):
    (tmp_path / "x").write_text("")
    mapped, line = Dataset.range(3).map(double, name="twice"), here()
    assert {node.origin.line for node in walk(mapped.plan)} == {line}
    assert str(mapped.plan) == f"map(double) named 'twice' from test_node.py:{line}"
    assert repr(mapped) == f"<Dataset: map(double) named 'twice' from test_node.py:{line}>"
    listed, line = Dataset.list_files(str(tmp_path / "*"), shuffle=True, seed=1), here()
    assert {node.origin.line for node in walk(listed.plan)} == {line}
    records, line = TFRecordDataset(["a", "b"], num_parallel_reads=2), here()
    assert {node.origin.line for node in walk(records.plan)} == {line}
    zipped, line = Dataset.zip(datasets={"a": listed}), here()
    assert zipped.plan.origin.line == line


def test_the_origin_in_a_users_helper_thread_or_subclass_is_the_line_there():
    class Mine(Dataset):
        def doubled(self):
            seen.append((dataset := self.map(double)).plan.origin.line - here())
            return dataset

    def inner(x):
        dataset = Dataset.range(x)
        seen.append(dataset.plan.origin.line - here() + 1)
        return dataset

    seen = []
    list(Dataset.range(3).flat_map(inner).prefetch(2))
    Dataset.range(4).apply(lambda dataset: inner(2).concatenate(dataset))
    Mine(Dataset.range(3).plan).doubled()
    assert seen == [0] * 5


def test_a_module_whose_name_begins_like_the_library_is_the_users_code(tmp_path):
    (tmp_path / "dataset_tools.py").write_text("from dataset import Dataset\n\nmade = Dataset.range(3)\n")
    command = [sys.executable, "-c", "import dataset_tools; print(dataset_tools.made.plan.origin)"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "dataset_tools.py:3"


# Fingerprints.

BASE = Dataset.range(10)


def other(x):
    return x


def generated(signature, *args):
    return Dataset.from_generator(double, args=args, output_signature=signature)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (BASE, Dataset.range(10, output_type=np.int32)),
        (BASE.take(3), BASE.skip(3)),
        (BASE.shard(np.int64(3), np.int64(0)), BASE.shard(np.int64(3), np.int64(1))),
        (BASE.take(3).skip(1), BASE.skip(1).take(3)),
        (BASE.map(double), BASE.map(other)),
        (BASE.batch(2), BASE.batch(2, drop_remainder=True)),
        (BASE.padded_batch(2, padding_values=np.int64(1)), BASE.padded_batch(2, padding_values=np.int64(2))),
        (BASE.repeat(), BASE.repeat(2)),
        (BASE.shuffle(5), BASE.shuffle(5, reshuffle_each_iteration=False)),
        (BASE.interleave(Dataset.range, 2), BASE.interleave(Dataset.range, 3)),
        (BASE.concatenate(BASE.take(2)), BASE.take(2).concatenate(BASE)),
        (Dataset.zip(BASE, (BASE, BASE)), Dataset.zip((BASE, BASE), BASE)),
        (Dataset.zip((BASE, BASE)), Dataset.zip({"a": BASE, "b": BASE})),
        (Dataset.from_tensors((1, 2)), Dataset.from_tensors([1, 2])),
        (Dataset.from_tensor_slices({"a": [1]}), Dataset.from_tensor_slices({"b": [1]})),
        (Dataset.from_tensor_slices(np.zeros((3, 2))), Dataset.from_tensor_slices(np.zeros((3, 4)))),
        (generated(TensorSpec((), np.int64)), generated(TensorSpec((), np.float32))),
        (generated(RaggedTensorSpec((None, None))), generated(TensorSpec((None, None)))),
        (generated(TensorSpec(()), np.int64(1)), generated(TensorSpec(()), np.int64(2))),
        (TFRecordDataset(["a"]), TFRecordDataset(["a"], "GZIP")),
        (TFRecordDataset(["a"]), TFRecordDataset(["a", "b"])),
    ],
)
def test_pipelines_that_give_something_else_have_other_fingerprints(a, b):
    assert fingerprint(a.plan) != fingerprint(b.plan)


def test_labels_source_lines_and_the_numbers_in_an_array_do_not_count():
    assert fingerprint(BASE.take(3, name="a").plan) == fingerprint(BASE.take(3).plan)
    assert fingerprint(Dataset.range(5).plan) == fingerprint(Dataset.range(np.int64(5)).plan)
    a, b = (Dataset.from_tensor_slices(np.full(3, i)).shuffle(2, seed=i).plan for i in range(2))
    assert fingerprint(a) == fingerprint(b)


def test_specs_are_worked_out_once_and_share_nothing_with_iteration():
    calls = []

    @vectorized
    def counted(x):
        calls.append(len(x))
        return x

    dataset = BASE.map(counted)
    assert dataset.element_spec == dataset.element_spec == TensorSpec((), np.int64)
    assert calls == [1]
    assert dataset.batch(2).element_spec == TensorSpec((None,), np.int64)
    assert calls == [1]
