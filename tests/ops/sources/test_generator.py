"""from_generator: what a Python generator yields."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SparseTensor, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.pipelines import Record


def test_gives_what_is_yielded():
    check_operator(lambda: Dataset.from_generator(lambda: range(4)), [np.int64(i) for i in range(4)])


@pytest.mark.parametrize(
    "values",
    [
        [(1, "a"), (2, "b")],
        [{"b": 1, "a": [2]}, {"a": [3, 4], "b": 5}],
        [Record(1, [2.0]), Record(3, [4.0, 5.0])],
        [(1, None), (2, None)],
        [(1,), (2,)],
        [b"a\x00", b""],
        [np.float16(1), np.float16(2)],
        [np.uint64(2**63), np.uint64(1)],
        [np.datetime64("2024-01-01"), np.datetime64("2024-01-02")],
        [RaggedTensor.from_rows([[1], [2, 3]]), RaggedTensor.from_rows([[1], [2, 3]])],
        [SparseTensor([[0]], [1], [3]), SparseTensor([[1]], [2], [3])],
        [np.zeros((2, 0)), np.zeros((3, 0))],
    ],
    ids=repr,
)
def test_gives_every_structure_and_kind_as_from_tensors_does(values):
    expected = [element for value in values for element in Dataset.from_tensors(value)]
    check_operator(lambda: Dataset.from_generator(lambda: values), expected)


def test_gives_nothing_for_an_empty_generator():
    check_operator(lambda: Dataset.from_generator(list), [])


def test_passes_python_objects_through():
    things = [{1}, {2, 3}]
    assert list(Dataset.from_generator(lambda: iter(things))) == things


def test_calls_the_function_with_args_anew_for_each_iterator():
    calls = []

    def count(start, stop):
        calls.append((start, stop))
        yield from range(start, stop)

    dataset = Dataset.from_generator(count, args=(2, 4))
    assert not calls
    assert list(dataset) == list(dataset) == [2, 3]
    assert calls == [(2, 4)] * 2


def test_takes_an_object_with_iter():
    class Source:
        def __iter__(self):
            return iter([1, 2])

    assert list(Dataset.from_generator(Source)) == [1, 2]


def test_length_is_unknown():
    assert Dataset.from_generator(lambda: [1]).cardinality() == -2


def test_is_read_no_further_than_asked():
    taken = []

    def count():
        for i in range(20):
            taken.append(i)
            yield i

    iterator = iter(Dataset.from_generator(count))
    assert taken == []
    next(iterator)
    next(iterator)
    assert taken == [0, 1]
    next(iter(Dataset.from_generator(count).batch(7)))
    assert taken == [0, 1, *range(7)]


def test_is_closed_with_its_iterator():
    events = []

    def source():
        try:
            yield 1
            yield 2
        finally:
            events.append("closed")

    iterator = iter(Dataset.from_generator(source))
    next(iterator)
    assert events == []
    iterator.close()
    assert events == ["closed"]


def test_endless_generators_are_fine():
    def forever():
        i = 0
        while True:
            yield i
            i += 1

    check_operator(lambda: Dataset.from_generator(forever).take(3), [np.int64(i) for i in range(3)])


# Errors while iterating


def failing(after):
    def generate():
        yield from range(after)
        raise ValueError("broken")

    return generate


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_exception_comes_after_what_was_yielded_and_ends_it(after):
    expected = [*(np.int64(i) for i in range(after)), ValueError("broken")]
    check_operator(lambda: Dataset.from_generator(failing(after)), expected)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_an_exception_keeps_its_place_where_many_are_asked_for(batch):
    check_operator(lambda: Dataset.from_generator(failing(5)).batch(batch).map(np.sum))
    got = outcomes(iter(Dataset.from_generator(failing(5)).batch(batch)))
    whole = [np.arange(i, i + batch) for i in range(0, 5, batch) if i + batch <= 5]
    assert_elements_equal(got, [*whole, ValueError("broken")])


def test_an_exception_has_a_note_with_op_line_and_element():
    dataset = Dataset.from_generator(failing(2))
    line = test_an_exception_has_a_note_with_op_line_and_element.__code__.co_firstlineno + 1
    error = outcomes(iter(dataset))[2]
    ended, note = error.__notes__
    assert ended == "this exception ended the generator, as in plain Python: no element comes after it"
    assert "from_generator(" in note
    assert f"test_generator.py:{line}" in note
    assert note.endswith("element 2")


def test_a_generator_function_that_raises_at_the_call_gives_one_error():
    def source():
        raise OSError("no such thing")

    assert_elements_equal(outcomes(iter(Dataset.from_generator(source))), [OSError("no such thing")])


def test_a_generator_that_raises_stop_iteration_inside_is_an_error():
    def source():
        yield 1
        next(iter(()))  # raises StopIteration

    got = outcomes(iter(Dataset.from_generator(source)))
    assert got[0] == 1
    assert isinstance(got[1], RuntimeError)
    assert len(got) == 2


def test_something_that_cannot_be_iterated_is_an_error_while_iterating():
    with pytest.raises(TypeError, match="int"):
        list(Dataset.from_generator(lambda: 3))


def test_an_element_of_another_structure_fails_alone():
    got = outcomes(iter(Dataset.from_generator(lambda: [1, (2, 3), 4])))
    assert (got[0], got[2], len(got)) == (1, 4, 3)
    assert isinstance(got[1], SpecError)
    assert "element 1" in got[1].__notes__[0]


@pytest.mark.parametrize("other", [Record(1, 2), (1, 2), {"a": 1}, None], ids=repr)
@pytest.mark.parametrize("batch", [1, 3])
def test_any_structure_behind_a_bare_component_fails(other, batch):
    got = outcomes(iter(Dataset.from_generator(lambda: [0, other, 2]).batch(batch)))
    assert any(isinstance(outcome, SpecError) for outcome in got)


# Signatures


def test_a_signature_is_the_spec_and_needs_no_run():
    def never():
        raise AssertionError("was run")

    signature = {"a": TensorSpec((None,), np.float32), "b": TensorSpec((), bytes)}
    assert Dataset.from_generator(never, output_signature=signature).element_spec == signature


def test_a_signature_turns_ints_into_the_floats_it_declares():
    signature = TensorSpec((), np.float32)
    expected = [np.float32(1), np.float32(2.5)]
    check_operator(lambda: Dataset.from_generator(lambda: [1, 2.5], output_signature=signature), expected)


def test_a_signature_narrows_ints_that_fit():
    check_operator(
        lambda: Dataset.from_generator(lambda: [1, 200], output_signature=TensorSpec((), np.uint8)),
        [np.uint8(1), np.uint8(200)],
    )


@pytest.mark.parametrize(
    ("signature", "value"),
    [
        (TensorSpec((), np.int64), 1.5),
        (TensorSpec((), np.int64), np.float32(1)),
        (TensorSpec((), np.int32), 2.0),
        (TensorSpec((), np.uint8), 256),
        (TensorSpec((), np.uint8), -1),
        (TensorSpec((), np.int64), "1"),
        (TensorSpec((), bytes), 1),
        (TensorSpec((2,), np.int64), [1]),
        (TensorSpec((), np.int64), [1]),
        (TensorSpec((None,), np.int64), [[1]]),
        ((TensorSpec((), np.int64), TensorSpec((), np.int64)), [1, 2]),
        ((TensorSpec((), np.int64), TensorSpec((), np.int64)), (1,)),
        ({"a": TensorSpec((), np.int64)}, {"b": 1}),
        (RaggedTensorSpec((None, None), np.int64), [[1]]),
    ],
)
def test_a_value_that_the_signature_does_not_allow_fails_alone(signature, value):
    (good,) = outcomes(iter(Dataset.from_generator(lambda: [value], output_signature=signature)))
    assert isinstance(good, SpecError | ValueError | TypeError)
    assert "from_generator" in str(good)


def test_a_signature_takes_unknown_dimensions_text_and_ragged():
    signature = (TensorSpec((None,), np.int64), TensorSpec((), str), RaggedTensorSpec((None, None), np.int64))
    ragged = RaggedTensor.from_rows([[1], [2, 3]])
    values = [([], "a", ragged), ([1, 2], b"b\x00", ragged)]
    expected = [(np.array([], np.int64), b"a", ragged), (np.array([1, 2]), b"b\x00", ragged)]
    check_operator(lambda: Dataset.from_generator(lambda: values, output_signature=signature), expected)


@pytest.mark.parametrize(
    ("types", "shapes", "value", "spec"),
    [
        (np.int64, None, 1, TensorSpec(None, np.int64)),
        (np.int64, (), 1, TensorSpec((), np.int64)),
        (np.int64, (None,), [1], TensorSpec((None,), np.int64)),
        ((np.int64, bytes), ((), (1,)), (1, ["a"]), (TensorSpec((), np.int64), TensorSpec((1,), bytes))),
        ((np.int64,), ((2,),), ([1, 2],), (TensorSpec((2,), np.int64),)),
        ({"a": np.int64}, {"a": ()}, {"a": 1}, {"a": TensorSpec((), np.int64)}),
        (
            {"a": np.int64, "b": np.float32},
            {"b": (None,), "a": ()},
            {"a": 1, "b": [1.0]},
            {"a": TensorSpec((), np.int64), "b": TensorSpec((None,), np.float32)},
        ),
    ],
    ids=repr,
)
def test_output_types_and_shapes_are_the_older_form(types, shapes, value, spec):
    dataset = Dataset.from_generator(lambda: [value], output_types=types, output_shapes=shapes)
    assert dataset.element_spec == spec
    assert len(list(dataset)) == 1


def test_both_forms_of_a_signature_are_refused():
    with pytest.raises(TypeError, match="output_signature"):
        Dataset.from_generator(list, output_types=np.int64, output_signature=TensorSpec((), np.int64))
    with pytest.raises(TypeError, match="output_types"):
        Dataset.from_generator(list, output_shapes=())


@pytest.mark.parametrize(
    "generator", [[1, 2], None, 3, (i for i in range(2))], ids=["list", "none", "int", "generator"]
)
def test_something_that_cannot_be_called_is_refused(generator):
    with pytest.raises(TypeError, match=r"from_generator\(\): generator must be a function"):
        Dataset.from_generator(generator)


@pytest.mark.parametrize("signature", [np.int64, "int64", [TensorSpec((), np.int64)], 3], ids=repr)
def test_a_signature_that_holds_no_specs_is_refused(signature):
    with pytest.raises(TypeError, match="TensorSpec"):
        Dataset.from_generator(lambda: [1], output_signature=signature)


def test_without_a_signature_the_first_element_tells_the_spec_and_is_found_once():
    runs = []

    def source():
        runs.append(None)
        yield [1, 2]

    dataset = Dataset.from_generator(source)
    assert dataset.element_spec == dataset.element_spec == TensorSpec((None,), np.int64)
    assert len(runs) == 1


def test_the_spec_of_an_empty_generator_without_signature_is_an_error():
    with pytest.raises(SpecError, match="output_signature"):
        _ = Dataset.from_generator(list).element_spec


# Arrays that the generator keeps


def views(buffer):
    yield buffer
    yield (buffer, 1)
    yield {"a": buffer}
    yield buffer[:2]
    yield buffer.reshape(1, 3)
    yield buffer[None][0]
    yield RaggedTensor(buffer, [0, 1, 3])
    yield SparseTensor([[0], [1], [2]], buffer, [3])


KINDS = ["array", "tuple", "dict", "slice", "reshape", "view of view", "ragged", "sparse"]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
@pytest.mark.parametrize("batch", [None, 3])
def test_a_generator_may_use_its_buffer_again(kind, batch):
    def source():
        buffer = np.zeros(3)
        for i in range(3):
            buffer[:] = i
            yield list(views(buffer))[kind]

    def fresh():
        for i in range(3):
            yield list(views(np.full(3, float(i))))[kind]

    def make(function):
        dataset = Dataset.from_generator(function)
        return list(dataset.batch(batch) if batch else dataset)

    assert_elements_equal(make(source), make(fresh))


def test_a_generator_may_use_a_bytearray_again():
    def source():
        memory = bytearray(2)
        for i in range(3):
            memory[:] = bytes([i, i])
            yield np.frombuffer(memory, np.uint8)

    assert [row.tolist() for row in Dataset.from_generator(source)] == [[0, 0], [1, 1], [2, 2]]


def test_what_a_consumer_writes_does_not_reach_the_generator():
    seen = []

    def source():
        buffer = np.zeros(2)
        for _ in range(2):
            yield buffer
            seen.append(buffer.copy())

    for row in Dataset.from_generator(source):
        row[:] = 9
    assert not np.any(seen)


def test_a_state_can_be_taken_while_the_exception_of_the_generator_waits_for_its_turn():
    def bad(x):
        raise KeyError("bad")

    def make():
        return Dataset.from_generator(failing(1)).map(bad).shuffle(2, seed=1)  # asks for two, gets one and an exception

    check_operator(make, [KeyError("bad"), ValueError("broken")])


def test_an_iterator_that_goes_on_behind_its_exception_is_asked_for_more():
    class Source:
        def __init__(self):
            self.number = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.number += 1
            if self.number in {1, 4}:
                raise ValueError(f"bad {self.number}")
            if self.number > 5:
                raise StopIteration
            return self.number

    expected = [ValueError("bad 1"), np.int64(2), np.int64(3), ValueError("bad 4"), np.int64(5)]
    check_operator(lambda: Dataset.from_generator(Source), expected)
    check_operator(lambda: Dataset.from_generator(Source, output_signature=TensorSpec((), np.int64)), expected)


def test_arguments_reach_the_function_as_components():
    seen = []

    def source(*args):
        seen.extend(args)
        yield 1

    nested = {"a": [1]}
    given = (3, "ü", [1, 2], (1.5, 2.5), ["a", b"b\x00"], np.float32(1), nested, None)
    list(Dataset.from_generator(source, args=given))
    expected = [np.int64(3), "ü".encode(), np.array([1, 2]), np.array([1.5, 2.5]), np.array([b"a", b"b\x00"], object)]
    assert_elements_equal(seen[:6], [*expected, np.float32(1)])
    assert seen[6] is nested
    assert seen[7] is None
    with pytest.raises(ValueError, match="read-only"):
        seen[2][0] = 9


def test_an_array_given_as_argument_stays_writeable_for_its_owner():
    buffer = np.arange(3)
    assert [int(x) for x in Dataset.from_generator(iter, args=(buffer,))] == [0, 1, 2]
    assert buffer.flags.writeable


@pytest.mark.parametrize("args", [3, np.arange(2), {"a": 1}], ids=repr)
def test_args_that_are_no_tuple_are_refused(args):
    with pytest.raises(TypeError, match=r"from_generator\(\): args must be a tuple"):
        Dataset.from_generator(iter, args=args)


def test_a_signature_takes_tuples_as_data_and_bools_as_numbers():
    vector, expected = TensorSpec((2,), np.int64), [np.array([1, 2])] * 2
    check_operator(lambda: Dataset.from_generator(lambda: [(1, 2), [1, 2]], output_signature=vector), expected)
    pair = (TensorSpec((), np.float32), TensorSpec((), np.int64))
    expected = [(np.float32(1), np.int64(0))]
    check_operator(lambda: Dataset.from_generator(lambda: [(True, False)], output_signature=pair), expected)


@pytest.mark.parametrize("signature", [(), {}, (None,), {"a": ()}], ids=repr)
def test_a_signature_without_components_is_refused(signature):
    with pytest.raises(ValueError, match="must have at least one component"):
        Dataset.from_generator(lambda: [1], output_signature=signature)


def test_shapes_of_another_structure_than_the_types_are_refused():
    for types, shapes in [((np.int64, np.int64), ((),)), ({"a": np.int64}, {"b": ()}), ((np.int64,), [()])]:
        with pytest.raises(ValueError, match="output_shapes must have the structure of output_types"):
            Dataset.from_generator(lambda: [1], output_types=types, output_shapes=shapes)


@pytest.mark.parametrize("types", ["no such type", [np.int64, np.int64], 3.5], ids=repr)
def test_types_that_are_none_are_refused(types):
    with pytest.raises(TypeError, match=r"from_generator\(\): invalid shape"):
        Dataset.from_generator(lambda: [1], output_types=types)
