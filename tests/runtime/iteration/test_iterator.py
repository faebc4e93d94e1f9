"""Tests of the iterator: each element once, states, and a permanent end."""

import threading

import pytest

from dataset import ClosedError, Dataset, OutOfRangeError, TFRecordDataset
from dataset.testing import no_leaks
from support.process_helpers import in_thread
from support.states import rest_of
from support.tfrecord_files import write_records


def ints(iterable):
    return [int(x) for x in iterable]


def test_a_closed_iterator_says_so():
    with pytest.raises(KeyError), iter(Dataset.range(3).prefetch(1)) as iterator:
        assert iter(iterator) is iterator
        state = iterator.state_dict()
        raise KeyError
    iterator.close()
    exhausted = iter(Dataset.range(1))
    assert [*exhausted, *exhausted] == [0]
    exhausted.close()
    uses = (lambda: next(iterator), iterator.state_dict, lambda: iterator.load_state_dict(state), iterator.get_next)
    for use in (*uses, lambda: next(exhausted)):
        with pytest.raises(ClosedError, match="closed"):
            use()


def test_at_the_end_of_the_data_files_and_generators_are_closed_while_the_iterator_is_held(tmp_path):
    closed = []

    def generate():
        try:
            yield from range(10)
        finally:
            closed.append(True)

    generated = iter(Dataset.from_generator(generate).take(2))
    assert ints(generated) == [0, 1]
    assert closed == [True]
    path = tmp_path / "a.tfrecord"
    write_records(path, [b"x"] * 3)
    with no_leaks():
        iterator = iter(TFRecordDataset(path).take(1))
        assert list(iterator) == [b"x"]
    assert next(iterator, None) is None  # it was alive until here


def test_states_taken_while_another_thread_reads_are_whole():
    dataset = Dataset.range(300).prefetch(3)
    iterator, states, found = iter(dataset), [], []
    thread = threading.Thread(target=lambda: found.extend(ints(iterator)))
    thread.start()
    while thread.is_alive():
        states.append(iterator.state_dict())
    thread.join()
    assert found == list(range(300))
    for state in states[:: max(1, len(states) // 20)]:
        rest = ints(rest_of(dataset, state))
        assert rest == list(range(300 - len(rest), 300))


def test_closing_while_another_thread_is_inside_a_generator_raises_nothing():
    gate, inside = threading.Event(), threading.Event()

    def generate():
        inside.set()
        gate.wait(60)
        yield 1

    iterator = iter(Dataset.from_generator(generate))
    consumer = in_thread(lambda: next(iterator, None))
    assert inside.wait(60)
    closer = in_thread(iterator.close)
    gate.set()
    assert closer.result() is None
    consumer.result()


def test_get_next_raises_another_error_at_the_end_than_next():
    iterator = iter(Dataset.range(2))
    assert [iterator.get_next(), next(iterator)] == [0, 1]
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="no more elements; iter"):
            iterator.get_next()


def test_optionals_hold_an_element_or_nothing():
    iterator = iter(Dataset.from_list([3]))
    full, empty = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    assert (full.has_value(), full.get_value(), repr(full)) == (True, 3, "Optional(np.int64(3))")
    assert (empty.has_value(), repr(empty)) == (False, "Optional()")
    with pytest.raises(ValueError, match=r"there is no value.*see has_value"):
        empty.get_value()
