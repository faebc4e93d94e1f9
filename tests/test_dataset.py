"""Tests of the Dataset class: its properties, iteration, and apply."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

from dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, ClosedError, Dataset, DatasetIterator, StateError
from dataset.testing import assert_elements_equal, no_leaks, outcomes


def test_nothing_runs_before_somebody_iterates():
    calls = []
    dataset = Dataset.range(5).map(lambda x: calls.append(x) or x).batch(2).shuffle(3).repeat()
    repr(dataset)
    dataset.cardinality()
    dataset.options()
    dataset.explain()
    iter(dataset)
    assert calls == []


def test_iterating_again_runs_it_again_and_iterators_do_not_disturb_each_other():
    dataset = Dataset.range(4).map(lambda x: x + 1)
    one, two = iter(dataset), iter(dataset)
    assert [next(one), next(two), next(one), next(two)] == [1, 1, 2, 2]
    assert list(dataset) == [1, 2, 3, 4]
    assert list(one) == [3, 4]


def test_a_dataset_is_not_changed_by_what_is_made_of_it():
    base = Dataset.range(4)
    base.map(lambda x: -x)
    base.batch(2)
    assert list(base) == [0, 1, 2, 3]
    assert len(base) == 4


def test_as_numpy_iterator_gives_the_elements():
    iterator = Dataset.range(3).as_numpy_iterator()
    assert iter(iterator) is iterator
    assert_elements_equal(list(iterator), [np.int64(i) for i in range(3)])
    assert list(iterator) == []


def test_apply_gives_what_the_function_makes():
    assert list(Dataset.range(6).apply(lambda dataset: dataset.shard(2, 0))) == [0, 2, 4]
    dataset = Dataset.range(3)
    assert dataset.apply(lambda same: same) is dataset


@pytest.mark.parametrize("result", [None, 3, [1], "x"])
def test_apply_refuses_a_function_that_makes_no_dataset(result):
    with pytest.raises(TypeError, match=r"apply\(\).*must return a Dataset"):
        Dataset.range(3).apply(lambda dataset: result)


def test_the_constants_have_the_values_of_tf_data():
    assert (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY) == (-1, -2)


def test_cardinality_is_an_int():
    assert type(Dataset.range(5).batch(2).cardinality()) is int
    assert type(Dataset.from_tensor_slices(np.zeros(3)).repeat(np.int64(2)).cardinality()) is int


def test_len_is_the_cardinality_where_that_is_a_number():
    assert len(Dataset.range(5).batch(2)) == 3
    assert len(Dataset.range(0)) == 0
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(3).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(Dataset.range(3).filter(lambda x: True))


def test_a_dataset_is_true_even_when_it_is_empty_or_endless():
    assert Dataset.range(0)
    assert Dataset.range(3).repeat()
    assert Dataset.range(3).filter(lambda x: False)


def test_repr_names_the_last_op_and_the_users_line():
    dataset = Dataset.range(3).batch(2, name="pairs")
    assert repr(dataset).startswith("<Dataset: batch(2)")
    assert "test_dataset.py:" in repr(dataset)
    assert "pairs" in repr(dataset)


def test_explain_shows_every_op_and_what_was_rewritten():
    text = Dataset.range(10).map(str, name="texts").skip(0).batch(4).explain()
    for part in (
        "batch(4)",
        "map(str)",
        "texts",
        "range(10)",
        "10 elements",
        "3 elements",
        "noop_elimination: skip(0)",
    ):
        assert part in text
    assert "rewritten" not in Dataset.range(10).batch(4).explain()


def test_explain_has_other_formats_and_names_them():
    dataset = Dataset.range(10).batch(4)
    assert dataset.explain() == dataset.explain("text")
    assert dataset.explain(format="svg").startswith("<svg ")
    assert dataset.explain(format="html").startswith("<div ")
    assert dataset.explain(format="dot").startswith("digraph ")
    with pytest.raises(ValueError, match=r'must be "text", "svg", "html" or "dot", got \'png\''):
        dataset.explain("png")


def test_a_notebook_is_offered_text_a_page_and_a_picture():
    dataset = Dataset.range(10).batch(4)
    bundle = dataset._repr_mimebundle_()
    assert bundle == {
        "text/plain": repr(dataset),
        "text/html": dataset.explain("html"),
        "image/svg+xml": dataset.explain("svg"),
    }
    assert dataset._repr_html_() == bundle["text/html"]


@pytest.mark.parametrize(
    ("include", "exclude", "kinds"),
    [
        (None, {"image/svg+xml"}, {"text/plain", "text/html"}),
        (["text/html"], None, {"text/html"}),
        (["text/html", "text/plain"], ["text/html"], {"text/plain"}),
        (["image/png"], (), set()),
        ([], None, set()),
    ],
)
def test_a_notebook_gets_the_forms_that_it_wants(include, exclude, kinds):
    assert set(Dataset.range(10)._repr_mimebundle_(include=include, exclude=exclude)) == kinds


def test_an_unwanted_form_is_not_made(monkeypatch):
    monkeypatch.setattr(Dataset, "explain", lambda *_: pytest.fail("made"))
    assert set(Dataset.range(10)._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.map(str, name="n"),
        lambda d: d.filter(bool, name="n"),
        lambda d: d.flat_map(Dataset.range, name="n"),
        lambda d: d.interleave(Dataset.range, name="n"),
        lambda d: d.concatenate(d, name="n"),
        lambda d: d.enumerate(name="n"),
        lambda d: d.take(1, name="n"),
        lambda d: d.skip(1, name="n"),
        lambda d: d.shard(1, 0, name="n"),
        lambda d: d.repeat(name="n"),
        lambda d: d.shuffle(1, name="n"),
        lambda d: d.batch(1, name="n"),
        lambda d: d.padded_batch(1, name="n"),
        lambda d: d.batch(1).unbatch(name="n"),
        lambda d: d.cache(name="n"),
        lambda d: d.prefetch(1, name="n"),
        lambda d: Dataset.zip(d, name="n"),
        lambda d: Dataset.from_tensors(1, name="n"),
        lambda d: Dataset.from_tensor_slices([1], name="n"),
        lambda d: Dataset.from_generator(list, name="n"),
        lambda d: Dataset.range(1, name="n"),
    ],
)
def test_every_op_takes_a_name_and_shows_it(make):
    assert "'n'" in repr(make(Dataset.range(3)))


def test_arrays_that_were_handed_out_never_change():
    numbers = Dataset.range(40).map(lambda x: np.full(3, x)).shuffle(5, seed=1).batch(4).unbatch().repeat(2)
    kept, copies = [], []
    for element in numbers.prefetch(2):
        kept.append(element)
        copies.append(element.copy())
    assert_elements_equal(kept, copies)


# The iterator


def test_an_iterator_ends_once_and_for_all():
    iterator = iter(Dataset.range(1))
    assert next(iterator) == 0
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_a_closed_iterator_says_so():
    iterator = iter(Dataset.range(3))
    next(iterator)
    iterator.close()
    iterator.close()
    with pytest.raises(ClosedError):
        next(iterator)
    with pytest.raises(ClosedError):
        iterator.state_dict()


def test_a_with_block_closes():
    with iter(Dataset.range(3)) as iterator:
        assert isinstance(iterator, DatasetIterator)
        next(iterator)
    with pytest.raises(ClosedError):
        next(iterator)


def test_threads_may_share_an_iterator_and_each_element_goes_to_one():
    iterator = iter(Dataset.range(2000).map(lambda x: x))
    found = [[] for _ in range(4)]
    threads = [threading.Thread(target=part.extend, args=(iterator,)) for part in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(x) for part in found for x in part) == list(range(2000))


def test_an_iterator_dropped_after_an_error_leaves_nothing_behind():
    def fail(x):
        raise ValueError("bad")

    with no_leaks():
        found = outcomes(iter(Dataset.range(3).map(fail).prefetch(2)))
        assert len(found) == 3
        del found
        gc.collect()


def test_a_state_of_another_pipeline_is_refused_and_the_iterator_stays():
    state = iter(Dataset.range(3).batch(2)).state_dict()
    iterator = iter(Dataset.range(3).batch(1))
    next(iterator)
    for wrong in (state, {}, None, {**state, "version": 99}):
        with pytest.raises(StateError):
            iterator.load_state_dict(wrong)
    assert [batch.tolist() for batch in iterator] == [[1], [2]]


def test_a_state_may_be_loaded_from_anywhere_even_after_the_end():
    dataset = Dataset.range(5).map(lambda x: x * 2)
    iterator = iter(dataset)
    next(iterator)
    state = iterator.state_dict()
    assert list(iterator) == [2, 4, 6, 8]
    iterator.load_state_dict(state)
    assert list(iterator) == [2, 4, 6, 8]
    end = iterator.state_dict()
    iterator.load_state_dict(end)
    assert list(iterator) == []


def test_a_state_does_not_change_while_the_iterator_goes_on():
    iterator = iter(Dataset.range(20).map(lambda x: np.full(2, x)).shuffle(5, seed=1).batch(2))
    next(iterator)
    state = iterator.state_dict()
    before = repr(state)
    for batch in iterator:
        batch[:] = -1
    assert repr(state) == before


def test_a_pipeline_can_be_pickled_and_copied_and_runs_by_itself():
    dataset = Dataset.from_tensor_slices(np.arange(20)).shuffle(5, seed=1).cache().batch(3).prefetch(2)
    fresh = list(Dataset.from_tensor_slices(np.arange(20)).shuffle(5, seed=1).cache().batch(3).prefetch(2))
    list(dataset)  # fills the cache, which is not copied
    for twin in (pickle.loads(pickle.dumps(dataset)), copy.deepcopy(dataset)):
        assert_elements_equal(list(twin), fresh)
