"""Tests of to_keras() with the real Keras, on the backend that KERAS_BACKEND names.

The same tests run with the adapter for Keras 3.7 and later, and with the one for older versions.
"""

import functools
import gc
import os
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor
from support.pipelines import Record

ROWS, BATCH, STEPS = 20, 4, 5
RNG = np.random.default_rng(0)
X = RNG.random((ROWS, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)
CLASSES = np.arange(ROWS) % 3
WEIGHTS = RNG.random(ROWS).astype(np.float32)


@pytest.fixture(scope="module")
def keras():
    import keras

    return keras


@pytest.fixture(params=["adapter", "py_dataset"])
def way(request, monkeypatch):
    """Both adapters; the second one is used if Keras' internals are not as expected."""
    if request.param == "py_dataset":
        monkeypatch.setitem(sys.modules, "keras.src.trainers.data_adapters.data_adapter", None)
        monkeypatch.delitem(sys.modules, "dataset.adapters.keras.data_adapter", raising=False)
    return request.param


@pytest.fixture
def backend(keras):
    return keras.backend.backend()


def jit(keras):
    """Whether to compile models, which takes seconds per model on some backends."""
    return False if keras.backend.backend() == "tensorflow" else "auto"


def linear(keras, outputs=1, loss="mse", **compiled):
    """Return a model with the same weights each time."""
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(outputs, kernel_initializer=keras.initializers.Constant(0.1))]
    )
    model.compile("sgd", loss, jit_compile=jit(keras), **compiled)
    return model


def classifier(keras):
    return linear(keras, 3, keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def batches(*columns):
    return Dataset.from_tensor_slices(columns).batch(BATCH)


def losses(model, *data, **arguments):
    arguments = {"epochs": 2, "verbose": 0, "shuffle": False} | arguments
    return model.fit(*data, **arguments).history["loss"]


def in_memory(model, *data, **arguments):
    return losses(model, *data, batch_size=BATCH, **arguments)


class Seen:
    """Recorder of the rows that the pipeline computed, in order."""

    def __init__(self):
        self.rows = []

    def __call__(self, number):
        self.rows.append(int(number))
        return X[number], Y[number]


def trained(keras, way):
    """Return a model that Keras can build without a batch."""
    model = linear(keras)
    model.fit(batches(X, Y).to_keras(), verbose=0)
    return model


# What it trains on


@functools.cache
def expected_losses(keras, kind):
    """Return the losses of a training on arrays in memory: unweighted, weighted, or of a form of class numbers."""
    if kind in FORMS_OF_CLASSES:
        make, targets = FORMS_OF_CLASSES[kind]
        return in_memory(make(keras), X, targets, class_weight=CLASS_WEIGHTS)
    return in_memory(linear(keras), X, Y, sample_weight=WEIGHTS if kind == "weighted" else None)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("unweighted", lambda: batches(X, Y)),
        ("weighted", lambda: batches(X, Y, WEIGHTS)),
        ("unweighted", lambda: batches(X, Y).map(lambda x, y: (x, y, None))),
    ],
)
def test_training_equals_training_on_arrays_in_memory(keras, way, kind, make):
    np.testing.assert_allclose(losses(linear(keras), make().to_keras()), expected_losses(keras, kind), rtol=1e-5)


def test_numbers_of_every_dtype_arrive_as_they_do_from_arrays(keras):
    model = linear(keras)
    for dtype in ["float64", "float16", "bfloat16", "uint8", "int64", "uint16", "bool", ">f4"]:
        x = (X * 10).astype(dtype)
        expected = model.predict(x.astype(np.float32), verbose=0)
        found = model.predict(batches(x).to_keras(), verbose=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=dtype)


@pytest.mark.parametrize("floatx", ["float32", "float64"])
def test_floats_have_the_precision_of_keras_and_other_numbers_their_own(keras, backend, floatx):
    before = keras.config.floatx()
    keras.config.set_floatx(floatx)
    try:
        adapter = batches(X.astype(np.float64), X, CLASSES.astype(np.uint8)).to_keras()
        dtypes = [array.dtype.name for array in next(iter(adapter.get_numpy_iterator()))]
    finally:
        keras.config.set_floatx(before)
    assert dtypes == [floatx, floatx, "uint8"]


def two_by_two(keras, names):
    """Return a model with two inputs and two outputs."""
    inputs = [keras.Input((3,), name="left"), keras.Input((3,), name="right")]
    constant = keras.initializers.Constant(0.1)
    outputs = [
        keras.layers.Dense(1, name="sum", kernel_initializer=constant)(inputs[0]),
        keras.layers.Dense(1, name="both", kernel_initializer=constant)(keras.layers.Concatenate()(inputs)),
    ]
    loss = ["mse", "mae"]
    if names:
        inputs, outputs = ({part.name: part for part in inputs}, dict(zip(["sum", "both"], outputs, strict=True)))
        loss = dict(zip(outputs, loss, strict=True))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", loss, jit_compile=jit(keras))
    return model


@pytest.mark.parametrize(("way", "names"), [("adapter", False), ("py_dataset", True)], indirect=["way"])
def test_inputs_and_outputs_may_be_tuples_or_dicts(keras, way, names):
    x, y = (X, X[::-1].copy()), (Y * 2, Y)
    arrays = ([*x], [*y])
    if names:
        x, y = arrays = {"left": x[0], "right": x[1]}, {"both": y[1], "sum": y[0]}
    expected = in_memory(two_by_two(keras, names), *arrays, epochs=1)
    ours = losses(two_by_two(keras, names), batches(x, y).to_keras(), epochs=1)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_evaluate_and_predict_give_what_they_give_for_arrays(keras, way):
    model = linear(keras, metrics=["mae"])
    data = batches(X, Y)
    expected = model.evaluate(X, Y, batch_size=BATCH, verbose=0)
    np.testing.assert_allclose(model.evaluate(data.to_keras(), verbose=0), expected, rtol=1e-5)
    by_hand = model.predict(X, verbose=0)
    forms = [data, batches(X).map(lambda x: x), data.map(lambda x, y: x)]  # (x, y), (x,) and x
    forms += [batches(X).map(lambda x: (x, None, None)), Dataset.from_tensor_slices((X, Y)).batch(8)]
    for several in forms:
        np.testing.assert_allclose(model.predict(several.to_keras(), verbose=0), by_hand, rtol=1e-5)
    np.testing.assert_allclose(model.predict(data.to_keras(), steps=2, verbose=0), by_hand[: 2 * BATCH], rtol=1e-5)
    of_unknown_size = Dataset.from_tensor_slices((X, Y)).batch(8).map(lambda x, y: (np.flip(x, 1), y))
    expected = model.predict(X[:, ::-1].copy(), verbose=0)
    np.testing.assert_allclose(model.predict(of_unknown_size.to_keras(), verbose=0), expected, rtol=1e-5)


# Class weights


CLASS_WEIGHTS = {0: 5.0, 2: 0.1}
FORMS_OF_CLASSES = {
    "numbers": (classifier, CLASSES),
    "columns of floats": (classifier, CLASSES[:, None].astype(np.float32)),
    "one-hot": (lambda keras: linear(keras, 3), np.eye(3, dtype=np.float32)[CLASSES]),
}


@pytest.mark.parametrize("form", FORMS_OF_CLASSES)
def test_class_weights_equal_those_of_fit(keras, way, form):
    make, targets = FORMS_OF_CLASSES[form]
    ours = losses(make(keras), batches(X, targets).to_keras(class_weight=CLASS_WEIGHTS))
    np.testing.assert_allclose(ours, expected_losses(keras, form), rtol=1e-5)


def test_class_weights_of_pixels_weigh_pixels(keras):
    y = np.array([[[0], [1]], [[1], [2]]])
    adapter = Dataset.from_tensors((y, y)).to_keras(class_weight={1: 4.0})
    assert next(iter(adapter.get_numpy_iterator()))[2].tolist() == [[1, 4], [4, 1]]


def test_a_py_dataset_also_takes_the_class_weights_of_fit(keras, way):
    data = batches(X, CLASSES).to_keras()
    if way == "adapter":
        words = r"would ignore class_weight because the input is a dataset: call to_keras"
        with pytest.raises(ValueError, match=words):
            classifier(keras).fit(data, class_weight=CLASS_WEIGHTS, verbose=0)
    else:
        ours = losses(classifier(keras), data, class_weight=CLASS_WEIGHTS)
        np.testing.assert_allclose(ours, expected_losses(keras, "numbers"), rtol=1e-5)


def test_arguments_that_keras_would_ignore_are_refused(keras, way):
    data, model = batches(X, Y).to_keras(), linear(keras)
    for argument in ("y", "sample_weight"):
        for method in (model.fit, model.evaluate):
            with pytest.raises(ValueError, match=f"{argument}.*dataset|{argument}.*should not be passed"):
                method(data, **{argument: Y}, verbose=0)
    with pytest.raises(ValueError, match="validation_split"):
        model.fit(data, validation_split=0.5, verbose=0)


# Steps and passes


def step_counter(keras, stop_after=None):
    """Callback that records how many steps each epoch was ``told`` to have and has ``taken``, and may stop early."""

    class StepCounter(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.told, self.taken = [], []

        def on_epoch_begin(self, epoch, logs=None):
            self.told.append(self.params["steps"])
            self.taken.append(0)

        def on_train_batch_end(self, batch, logs=None):
            self.taken[-1] += 1
            if self.taken[-1] == stop_after:
                self.model.stop_training = True

    return StepCounter()


def test_the_number_of_steps_is_known_from_the_first_epoch(keras, way, capsys):
    steps = step_counter(keras)
    linear(keras).fit(batches(X, Y).to_keras(), epochs=2, callbacks=[steps], verbose=1)
    assert steps.told == [STEPS, STEPS]
    assert steps.taken == [STEPS, STEPS]
    first_bar = capsys.readouterr().out.split("Epoch 2/2")[0]
    assert f"1/{STEPS}" in first_bar.replace("\x1b[1m", "").replace("\x1b[0m", "")


@pytest.mark.filterwarnings("ignore:Your input ran out of data")  # Keras warns for all data of unknown length
def test_a_number_of_steps_that_is_unknown_shows_at_the_end(keras):
    steps = step_counter(keras)
    data = Dataset.from_tensor_slices((X, Y)).filter(lambda x, y: True).batch(BATCH)
    linear(keras).fit(data.to_keras(), epochs=2, callbacks=[steps], verbose=0)
    assert steps.told == [None, None]
    assert steps.taken == [STEPS, STEPS]


def test_each_epoch_is_a_pass_of_its_own_in_a_new_order(keras, way):
    model, seen = trained(keras, way), Seen()
    data = Dataset.range(ROWS).shuffle(ROWS, seed=1).map(seen).batch(BATCH)
    spec = data.element_spec  # runs the function, for TensorFlow
    assert spec is not None
    seen.rows.clear()
    model.fit(data.to_keras(), epochs=3, verbose=0)
    epochs = np.array(seen.rows[-3 * ROWS :]).reshape(3, ROWS)
    assert all(sorted(epoch) == list(range(ROWS)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")  # Keras warns for all infinite PyDatasets
def test_an_infinite_dataset_goes_on_from_epoch_to_epoch(keras, way):
    model, seen = trained(keras, way), Seen()
    steps = step_counter(keras)
    numbers = Dataset.range(ROWS - 1).repeat()
    data = numbers.map(seen).batch(BATCH).to_keras()
    model.fit(data, steps_per_epoch=3, epochs=3, callbacks=[steps], verbose=0)
    assert steps.told == [3, 3, 3]
    assert_trained_on(seen.rows, [int(number) for number in numbers.take(3 * 3 * BATCH)], keras)


def assert_trained_on(rows, expected, keras):
    """TensorFlow also reads an element or two batches for its spec, and may have prefetched a batch."""
    if keras.backend.backend() == "tensorflow":
        assert str(expected)[1:-1] in str(rows)
    else:
        assert rows == expected


def test_epochs_shorter_than_the_dataset_go_on_where_the_last_one_stopped(keras, way):
    model, seen = trained(keras, way), Seen()
    data = Dataset.range(ROWS).map(seen).batch(BATCH).to_keras()
    with pytest.warns(UserWarning, match="ran out of data"):  # two and two and one of five, as for arrays
        model.fit(data, steps_per_epoch=2, epochs=3, verbose=0)
    assert_trained_on(seen.rows, list(range(ROWS)), keras)


# What runs when


def test_no_batch_is_computed_ahead_but_one_for_tensorflow(keras, backend):
    model, seen = trained(keras, "adapter"), Seen()
    data = Dataset.range(ROWS).map(seen).batch(BATCH)
    tensors = data.to_keras()
    assert seen.rows == []
    assert data.element_spec is not None  # TensorFlow needs it
    seen.rows.clear()
    made = []
    after_each = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: made.append(len(seen.rows)))
    model.fit(tensors, callbacks=[after_each], verbose=0)
    needed = [BATCH * (step + 1) for step in range(STEPS)]
    ahead = BATCH if backend == "tensorflow" else 0
    assert all(count <= rows <= count + ahead for rows, count in zip(made, needed, strict=True))


@contextmanager
def no_threads_left():
    """Wait for the library's threads to end, or fail. TensorFlow's threads stay."""
    before = set(threading.enumerate())
    yield
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("dataset-"):
            thread.join(30)
            assert not thread.is_alive()


def test_threads_end_with_training(keras, way):
    model = trained(keras, way)
    data = batches(X, Y).prefetch(2)
    if way == "adapter":
        with no_threads_left():
            model.evaluate(data.repeat().to_keras(), steps=2, verbose=0)
            model.predict(data.to_keras(), steps=2, verbose=0)
    with no_threads_left():
        model.fit(data.to_keras(), validation_data=data.to_keras(), epochs=2, verbose=0)


def test_threads_end_with_a_training_that_stops_early(keras, way):
    if way == "py_dataset" and keras.backend.backend() == "tensorflow":
        pytest.skip("TensorFlow never lets go of a PyDataset")
    model = trained(keras, way)
    steps = step_counter(keras, stop_after=2)
    with no_threads_left():
        model.fit(batches(X, Y).prefetch(2).to_keras(), epochs=3, callbacks=[steps], verbose=0)
    assert steps.taken == [2]


def broken(number):
    if number == 6:
        raise LookupError("no such row")
    return X[number], Y[number]


def test_fit_raises_an_error_with_its_traceback_and_note(keras, backend, way):
    model = trained(keras, way)
    data = Dataset.range(ROWS).map(broken).batch(BATCH).prefetch(1).to_keras()
    with no_threads_left():
        with pytest.raises(Exception, match="no such row") as caught:
            model.fit(data, verbose=0)
        assert backend == "tensorflow" or caught.type is LookupError  # TensorFlow raises its own error with the text
        text = "".join(traceback.format_exception(caught.value))
        parts = ("LookupError", "in broken", "in map(broken) from test_to_keras.py", "element 6")
        assert all(part in text for part in parts)
        del caught


# What it rejects


BAD = {
    "scalars": (lambda: Dataset.range(3), "is a single value.*call batch"),
    "rows": (lambda: Dataset.from_tensor_slices((X, CLASSES)), r"component 1 is a single value.*call batch"),
    "uneven": (lambda: Dataset.from_tensors((X[:3], Y[:2])), r"has 3 rows and component 1 has 2.*call batch"),
    "many": (lambda: batches(X, X, X, X), "tuples of 4.*rearrange them in map"),
    "times": (lambda: Dataset.from_tensor_slices(np.arange(3).astype("M8[s]")).batch(2), "datetime64.*convert"),
    "ragged": (
        lambda: Dataset.from_tensors(RaggedTensor.from_rows([[1.0], [2.0, 3.0]])),
        r"use padded_batch\(\), or to_tensor\(\) in map\(\)",
    ),
    "sparse": (
        lambda: Dataset.from_tensors({"x": SparseTensor([[0, 0]], [1.0], [2, 2])}),
        r"component 'x' is a SparseTensor, but Keras accepts arrays; call to_dense\(\)",
    ),
    "datasets": (lambda: Dataset.range(4).window(2), "is a Dataset, but Keras accepts arrays"),
    "dataclasses": (lambda: Dataset.from_tensors(Record(X, Y)), "hold a Record, but Keras accepts tuples and dicts"),
    "empty": (lambda: batches(X, Y).take(0), "no batches.*drop_remainder"),
    "too few": (lambda: Dataset.from_tensor_slices(X).batch(64, drop_remainder=True), "no batches.*drop_remainder"),
}
BAD_AT_RUN_TIME = {
    "objects": (lambda _: np.array([object()], object), "holds Python objects.*convert them in"),
    "none": (lambda _: (None, X), "x is None"),
}


@pytest.mark.parametrize("name", BAD)
def test_batches_that_keras_does_not_accept_are_refused_at_once(keras, name):
    make, words = BAD[name]
    with pytest.raises(ValueError, match=rf"(?s)to_keras\(\).*test_to_keras.py:.*{words}"):
        make().to_keras()


@pytest.mark.parametrize("name", BAD_AT_RUN_TIME)
def test_batches_of_an_unknown_spec_are_refused_when_they_come(keras, way, name):
    make, words = BAD_AT_RUN_TIME[name]
    with pytest.raises(Exception, match=rf"(?s)to_keras\(\).*test_to_keras.py:.*{words}"):
        linear(keras).predict(Dataset.range(1).map(make).to_keras(), verbose=0)


def test_a_dataset_that_turns_out_to_be_empty_is_refused(keras):
    data = Dataset.from_tensor_slices(X).filter(lambda x: False).batch(2)
    with pytest.raises(Exception, match=r"(?s)to_keras\(\).*no batches"):
        linear(keras).predict(data.to_keras(), verbose=0)


def test_text_is_for_tensorflow(keras, backend):
    words = Dataset.from_tensor_slices(np.array(["a", "b", "a"], object)).batch(2)
    if backend != "tensorflow":
        with pytest.raises(ValueError, match=f"is text, which the {backend} backend does not support; convert it to"):
            words.to_keras()
        return
    lookup = keras.layers.StringLookup(vocabulary=["a", "b"])
    model = keras.Sequential([keras.Input((), dtype="string"), lookup])
    assert model.predict(words.to_keras(), verbose=0).tolist() == [1, 2, 1]


def test_class_weights_need_a_dict_one_output_and_no_other_weights(keras):
    for value in ([1.0], {"a": 1.0}, {0: "1"}, 3):
        with pytest.raises(TypeError, match="class_weight must be a dict from class numbers to weights, got"):
            batches(X, CLASSES).to_keras(class_weight=value)
    for data, words in (
        (batches(X), "needs targets"),
        (batches(X, CLASSES, WEIGHTS), "cannot be combined with sample weights"),
        (batches(X, {"a": CLASSES, "b": CLASSES}), "supports one output"),
    ):
        with pytest.raises(ValueError, match=words):
            data.to_keras(class_weight={0: 1.0})


def test_a_py_dataset_must_know_its_length(keras, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras.src.trainers.data_adapters.data_adapter", None)
    monkeypatch.delitem(sys.modules, "dataset.adapters.keras.data_adapter", raising=False)
    with pytest.raises(ValueError, match=r"which is unknown; call repeat\(\) and pass steps_per_epoch to fit\(\)"):
        Dataset.from_tensor_slices(X).filter(lambda x: True).batch(2).to_keras()


# Torch


@pytest.fixture
def torch(backend):
    if backend != "torch":
        pytest.skip("of the torch backend")
    import torch

    return torch


def test_writing_to_tensors_reaches_neither_sources_nor_caches(torch):
    sliced = Dataset.from_tensor_slices(X).batch(BATCH)
    cached = sliced.map(lambda x: x + 1).cache()
    before = X.copy()
    for data in (sliced, sliced.prefetch(2), Dataset.from_tensors(X), cached):
        for _ in range(2):
            for tensor in data.to_keras().get_torch_dataloader():
                tensor.zero_()
    np.testing.assert_array_equal(X, before)
    assert all((batch != 0).all() for batch in cached)


# Separate processes


TRAINING = """
import sys
import numpy as np
import keras
from dataset import Dataset

devices = keras.distribution.list_devices() if "spread" in sys.argv else []
if devices:
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
x = np.random.random((16, 2)).astype("float32")
train = Dataset.from_tensor_slices((x, x.sum(1))).shuffle(16).batch(8)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=bool(devices))
model.fit(train.to_keras(class_weight={0: 1.0}), validation_data=train.to_keras(), epochs=2, verbose=0)
print(len(devices), model.evaluate(train.to_keras(), verbose=0) >= 0, model.predict(train.to_keras(), verbose=0).shape)
print([name for name in ("torch", "jax", "tensorflow") if name in sys.modules])
"""


def test_tensorflow_is_not_imported_for_other_backends_and_jax_spreads_data_over_devices(backend):
    if backend == "tensorflow":
        pytest.skip("of the other backends")
    spread = ["spread"] if backend == "jax" else []
    environment = os.environ | {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    command = [sys.executable, "-c", TRAINING, *spread]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    results, loaded = done.stdout.splitlines()
    assert results == f"{4 if spread else 0} True (16, 1)"
    assert backend in loaded
    assert "tensorflow" not in loaded


def test_without_keras_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(ImportError, match=r'pip install "dataset-combinators\[keras\]"'):
        Dataset.range(3).batch(2).to_keras()
