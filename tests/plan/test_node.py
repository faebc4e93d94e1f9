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
from dataset.plan.origin import function_name


def here():
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def double(x):
    return x * 2


ALL_NODES = [
    lambda: Dataset.range(5),
    lambda: Dataset.from_tensors([1, 2]),
    lambda: Dataset.from_tensor_slices({"a": [1, 2]}),
    lambda: Dataset.from_generator(lambda: iter([1])),
    lambda: Dataset.range(5).map(double),
    lambda: Dataset.range(5).filter(lambda x: x > 1),
    lambda: Dataset.range(5).flat_map(Dataset.range),
    lambda: Dataset.range(5).interleave(Dataset.range),
    lambda: Dataset.zip((Dataset.range(3), Dataset.range(4))),
    lambda: Dataset.range(5).concatenate(Dataset.range(2)),
    lambda: Dataset.range(5).enumerate(),
    lambda: Dataset.range(5).take(2),
    lambda: Dataset.range(5).skip(2),
    lambda: Dataset.range(5).shard(2, 1),
    lambda: Dataset.range(5).repeat(2),
    lambda: Dataset.range(5).shuffle(2, seed=1),
    lambda: Dataset.range(5).batch(2),
    lambda: Dataset.range(5).padded_batch(2),
    lambda: Dataset.range(5).batch(2).unbatch(),
    lambda: Dataset.range(5).cache(),
    lambda: Dataset.range(5).prefetch(2),
    lambda: TFRecordDataset(["a", "b"], num_parallel_reads=2),
]


@pytest.mark.parametrize("make", ALL_NODES)
def test_a_node_cannot_be_changed(make):
    node = make().plan
    for field in dataclasses.fields(node):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(node, field.name, None)


@pytest.mark.parametrize("make", ALL_NODES)
def test_a_node_with_its_own_inputs_is_equal_to_itself_in_all_fields(make):
    node = make().plan
    again = node.with_inputs(node.inputs)
    assert type(again) is type(node)
    assert again.inputs == node.inputs
    assert (again.name, again.origin) == (node.name, node.origin)
    assert again.label() == node.label()
    assert fingerprint(again) == fingerprint(node)


@pytest.mark.parametrize("make", ALL_NODES)
def test_a_node_reads_from_the_inputs_it_is_given(make):
    node = make().plan
    others = [Dataset.range(7 + i).batch(2).plan for i in range(len(node.inputs))]
    moved = node.with_inputs(others)
    assert list(moved.inputs) == others
    assert all(a is b for a, b in zip(moved.inputs, others, strict=True))
    assert {id(part) for part in walk(moved)} >= set(map(id, others))


@pytest.mark.parametrize("make", ALL_NODES)
def test_the_same_code_gives_the_same_fingerprint(make):
    assert fingerprint(make().plan) == fingerprint(make().plan)
    assert len(fingerprint(make().plan)) == 16


def test_walking_gives_the_reader_before_its_inputs():
    plan = Dataset.zip((Dataset.range(3).take(2), Dataset.range(4))).batch(2).plan
    assert [node.label().partition("(")[0] for node in walk(plan)] == ["batch", "zip", "take", "range", "range"]


def test_what_is_read_twice_is_walked_twice_but_listed_once():
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


def test_each_node_counts_once():
    asked = []

    class Source(Node):
        op: ClassVar[str] = "source"

        def cardinality(self):
            asked.append(self)
            return 4

    dataset = Dataset(Source()).take(3)
    assert [dataset.cardinality(), dataset.skip(1).cardinality(), dataset.cardinality()] == [3, 2, 3]
    assert len(asked) == 1
    assert Dataset(Source()).cardinality() == 4
    assert len(asked) == 2


def test_a_copy_that_is_given_other_fields_counts_anew():
    taken = Dataset.range(9).take(3).plan
    assert taken.cardinality() == 3
    other = copy.copy(taken)
    object.__setattr__(other, "count", 5)
    assert other.cardinality() == 5
    assert pickle.loads(pickle.dumps(taken)).cardinality() == 3


def test_user_code_is_known_wherever_it_is():
    assert not holds_user_code(Dataset.range(3).shuffle(2).batch(2).plan)
    assert holds_user_code(Dataset.zip((Dataset.range(3), Dataset.range(3).map(double).batch(2))).plan)
    assert holds_user_code(Dataset.from_generator(lambda: iter([1])).prefetch(1).plan)


def test_a_parser_of_the_library_is_no_user_code():
    class Derived(io.ExampleParser):
        def __call__(self, serialized):
            return super().__call__(serialized)

    features = {"x": io.FixedLenFeature((), np.int64)}
    assert not holds_user_code(Dataset.range(3).map(io.ExampleParser(features)).shuffle(2).plan)
    assert holds_user_code(Dataset.range(3).map(Derived(features)).plan)
    assert holds_user_code(Dataset.range(3).map(io.ExampleParser(features).parse_one).plan)
    assert spec_is_static(Dataset.range(3).filter(lambda x: True).plan)
    assert not spec_is_static(Dataset.range(3).map(double).batch(2).plan)


# Where an operation was made.


@pytest.mark.parametrize("make", ALL_NODES)
def test_the_origin_of_every_node_is_in_the_users_file(make):
    for node in walk(make().plan):
        assert node.origin.filename == __file__


def test_the_origin_is_the_line_of_the_call():
    dataset, line = Dataset.range(3), here()
    assert dataset.plan.origin.line == line
    mapped, line = dataset.map(double), here()
    assert mapped.plan.origin.line == line
    assert str(mapped.plan.origin) == f"test_node.py:{line}"


def test_the_origin_through_methods_of_dataset_itself_is_the_users_line(tmp_path):
    (tmp_path / "x").write_text("")
    listed, line = Dataset.list_files(str(tmp_path / "*"), shuffle=True, seed=1), here()
    assert {node.origin.line for node in walk(listed.plan)} == {line}
    records, line = TFRecordDataset(["a", "b"], num_parallel_reads=2), here()
    assert {node.origin.line for node in walk(records.plan)} == {line}
    zipped, line = Dataset.zip(datasets={"a": listed}), here()
    assert zipped.plan.origin.line == line


def test_the_origin_in_a_users_helper_is_the_line_in_the_helper():
    lines = []

    def every_other(dataset):
        lines.append(here() + 1)
        return dataset.shard(2, 0)

    assert Dataset.range(4).apply(every_other).plan.origin.line == lines[0]


def test_the_origin_of_an_inner_dataset_made_in_a_thread_is_in_the_users_file():
    seen = []

    def inner(x):
        dataset = Dataset.range(x)
        seen.append(dataset.plan.origin)
        return dataset

    list(Dataset.range(3).flat_map(inner).prefetch(2))
    assert {origin.filename for origin in seen} == {__file__}


def test_a_users_own_subclass_of_dataset_is_the_users_code():
    class Mine(Dataset):
        def doubled(self):
            self.line = here() + 1
            return self.map(double)

    mine = Mine(Dataset.range(3).plan)
    assert mine.doubled().plan.origin.line == mine.line


def test_a_module_whose_name_begins_like_the_library_is_the_users_code(tmp_path):
    (tmp_path / "dataset_tools.py").write_text("from dataset import Dataset\n\nmade = Dataset.range(3)\n")
    command = [sys.executable, "-c", "import dataset_tools; print(dataset_tools.made.plan.origin)"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "dataset_tools.py:3"


def test_interactive_code_has_an_origin_too():
    namespace = {"__name__": "__main__", "Dataset": Dataset}
    exec(compile("\n\nmade = Dataset.range(3)", "<stdin>", "exec"), namespace)  # as the prompt does
    assert str(namespace["made"].plan.origin) == "<stdin>:3"


def test_errors_name_op_label_and_line():
    dataset, line = Dataset.range(3).map(double, name="twice"), here()
    assert dataset.plan.location() == f"map(double) named 'twice' from test_node.py:{line}"
    assert repr(dataset) == f"<Dataset: map(double) named 'twice' from test_node.py:{line}>"


def test_functions_have_short_names():
    def local(x):
        return x

    class Parser:
        def __call__(self, x):
            return x

        def parse(self, x):
            return x

    import functools

    assert function_name(local) == "local"
    assert function_name(functools.partial(functools.partial(local), 1)) == "local"
    assert function_name(Parser()) == "Parser"
    assert function_name(Parser().parse) == "Parser.parse"
    assert function_name(np.sqrt) == "sqrt"
    assert function_name(lambda x: x) == "<lambda>"


# Fingerprints.

BASE = Dataset.range(10)


def other(x):
    return x


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Dataset.range(5), Dataset.range(6)),
        (Dataset.range(5), Dataset.range(1, 5)),
        (Dataset.range(5), Dataset.range(5, output_type=np.int32)),
        (Dataset.range(np.int64(5)), Dataset.range(np.int64(6))),
        (BASE.take(3), BASE.skip(3)),
        (BASE.take(3), BASE.take(4)),
        (BASE.take(np.int64(3)), BASE.take(np.int64(4))),
        (BASE.skip(np.int64(3)), BASE.skip(np.int64(4))),
        (BASE.shard(np.int64(3), np.int64(0)), BASE.shard(np.int64(3), np.int64(1))),
        (BASE.enumerate(np.int64(3)), BASE.enumerate(np.int64(4))),
        (BASE.take(3).skip(1), BASE.skip(1).take(3)),
        (BASE.map(double), BASE.map(other)),
        (BASE.map(double), BASE.filter(double)),
        (BASE.batch(2), BASE.batch(2, drop_remainder=True)),
        (BASE.batch(2), BASE.padded_batch(2)),
        (BASE.padded_batch(2, padded_shapes=()), BASE.padded_batch(2)),
        (BASE.padded_batch(2, padding_values=1), BASE.padded_batch(2, padding_values=2)),
        (BASE.padded_batch(2, padding_values=np.int64(1)), BASE.padded_batch(2, padding_values=np.int64(2))),
        (BASE.repeat(), BASE.repeat(2)),
        (BASE.shuffle(5), BASE.shuffle(6)),
        (BASE.shuffle(5), BASE.shuffle(5, reshuffle_each_iteration=False)),
        (BASE.interleave(Dataset.range, 2), BASE.interleave(Dataset.range, 3)),
        (BASE.interleave(Dataset.range, np.int64(2)), BASE.interleave(Dataset.range, np.int64(3))),
        (BASE.concatenate(BASE.take(2)), BASE.take(2).concatenate(BASE)),
        (Dataset.zip(BASE, (BASE, BASE)), Dataset.zip((BASE, BASE), BASE)),
        (Dataset.zip({"a": BASE}), Dataset.zip({"b": BASE})),
        (Dataset.zip((BASE, BASE)), Dataset.zip({"a": BASE, "b": BASE})),
        (Dataset.from_tensors(1), Dataset.from_tensors(1.0)),
        (Dataset.from_tensors((1, 2)), Dataset.from_tensors([1, 2])),
        (Dataset.from_tensor_slices({"a": [1]}), Dataset.from_tensor_slices({"b": [1]})),
        (Dataset.from_tensor_slices(np.zeros((3, 2))), Dataset.from_tensor_slices(np.zeros((3, 4)))),
        (
            Dataset.from_generator(double, output_signature=TensorSpec((), np.int64)),
            Dataset.from_generator(double, output_signature=TensorSpec((), np.float32)),
        ),
        (
            Dataset.from_generator(double, output_signature=RaggedTensorSpec((None, None))),
            Dataset.from_generator(double, output_signature=TensorSpec((None, None))),
        ),
        (Dataset.from_generator(double, args=(1,)), Dataset.from_generator(double, args=(2,))),
        (Dataset.from_generator(double, args=(np.int64(1),)), Dataset.from_generator(double, args=(np.int64(2),))),
        (TFRecordDataset(["a"]), TFRecordDataset(["a"], "GZIP")),
        (TFRecordDataset(["a"]), TFRecordDataset(["a", "b"])),
    ],
)
def test_pipelines_that_give_something_else_have_other_fingerprints(a, b):
    assert fingerprint(a.plan) != fingerprint(b.plan)


def test_labels_and_source_lines_do_not_count():
    assert fingerprint(BASE.take(3, name="a").plan) == fingerprint(BASE.take(3).plan)


def test_a_number_is_the_same_from_python_and_from_numpy():
    assert fingerprint(Dataset.range(5).plan) == fingerprint(Dataset.range(np.int64(5)).plan)


def test_the_numbers_in_an_array_do_not_count():
    a, b = (Dataset.from_tensor_slices(np.full(3, i)).shuffle(2, seed=i).plan for i in range(2))
    assert fingerprint(a) == fingerprint(b)


def test_the_fingerprint_is_the_same_in_another_process():
    code = (
        "from dataset import Dataset; from dataset.plan.fingerprints.fingerprint import fingerprint\n"
        "def f(x): return x\n"
        "plan = Dataset.from_tensor_slices({'a': [1, 2], 'b': [b'x', b'y']}).map(f).padded_batch(2).plan\n"
        "print(fingerprint(plan))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == 16


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
