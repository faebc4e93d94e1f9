"""Nodes: immutable, named, and located in the user's file."""

import dataclasses
import inspect
import subprocess
import sys

import numpy as np
import pytest

from dataset import Dataset, Options, TensorSpec, TFRecordDataset, io, vectorized
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.node import holds_user_code, inputs_first, spec_is_static, walk


def here():
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def double(x):
    return x * 2


PIPELINES = [
    Dataset.range(5).enumerate().skip(2).shard(2, 1).repeat(2).shuffle(2, seed=1).batch(2).unbatch().take(2),
    Dataset.from_generator(double).map(double).flat_map(Dataset.range).filter(double).padded_batch(2),
    Dataset.zip((Dataset.range(3), Dataset.from_tensors([1, 2]))).enumerate().cache().prefetch(2),
    TFRecordDataset(["a", "b"], num_parallel_reads=2),
]


@pytest.mark.parametrize("dataset", PIPELINES, ids=repr)
def test_a_node_cannot_be_changed_and_a_copy_reads_from_the_inputs_it_is_given(dataset):
    for node in walk(dataset.plan):
        assert node.origin.filename == __file__
        for field in dataclasses.fields(node):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(node, field.name, None)
        again = node.with_inputs(node.inputs)
        assert (type(again), again.inputs, again.origin) == (type(node), node.inputs, node.origin)
        assert again.label() == node.label()
        assert fingerprint(again) == fingerprint(node)
        others = [Dataset.range(7 + i).batch(2).plan for i in range(len(node.inputs))]
        assert all(a is b for a, b in zip(node.with_inputs(others).inputs, others, strict=True))


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


def test_specs_are_worked_out_once():
    calls = []
    dataset = Dataset.range(10).map(vectorized(lambda x: calls.append(len(x)) or x))
    assert dataset.element_spec == dataset.element_spec == TensorSpec((), np.int64)
    assert dataset.batch(2).element_spec == TensorSpec((None,), np.int64)
    assert calls == [1]
