"""A process of test_keras_resume.py: trains on one backend, with and without interruptions, and prints JSON results.

All trainings run in one process, because importing Keras takes most of the time. Each training has its own model,
dataset and callback, as in a new process.
"""

import functools
import json
import sys
import tempfile
import warnings
from pathlib import Path

import keras
import numpy as np

from dataset import Dataset, StateError, checkpoint

X = np.random.default_rng(0).random((40, 3)).astype("float32")
Y = X.sum(1, keepdims=True)
EPOCHS = 3


class InterruptedTrainingError(Exception):
    """Simulates the end of the process."""


class Watch(keras.callbacks.Callback):
    """Records the weights after each step, which depend on the batches the model was trained on; may interrupt."""

    def __init__(self, last):
        super().__init__()
        self.last = last
        self.seen = []
        self.epochs = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(float(np.abs(keras.ops.convert_to_numpy(self.model.layers[-1].kernel)).sum()))
        if len(self.seen) == self.last:
            raise InterruptedTrainingError

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append([epoch, len(self.seen)])


def model_of(steps_per_execution):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    # Not Adam: on TensorFlow, it also counts the step without a batch after an epoch of unknown length.
    model.compile(
        keras.optimizers.SGD(0.05, momentum=0.9), "mse", jit_compile=False, steps_per_execution=steps_per_execution
    )
    return model


def data_of(shape):
    dataset = Dataset.from_tensor_slices((X, Y)).shuffle(40)
    if shape == "unknown":
        dataset = dataset.filter(lambda x, y: True)
    if shape == "endless":
        dataset = dataset.repeat()
    return dataset.batch(4).prefetch(2)


def train(dataset, shape, folder=None, save_freq="epoch", last=None, validate=False):
    watch = Watch(last)
    data = dataset.to_keras()
    callbacks = [watch]
    if folder is not None:
        callbacks.insert(0, checkpoint.keras_callback(folder, data, save_freq))
    arguments = {"endless": {"steps_per_epoch": 7}, "part": {"steps_per_epoch": 5}}.get(shape, {})
    model = model_of(2 if shape == "twofold" else 1)
    if validate:
        arguments["validation_data"] = data
    try:
        model.fit(data, epochs=EPOCHS, verbose=0, callbacks=callbacks, **arguments)
    except InterruptedTrainingError:
        return {"seen": watch.seen, "epochs": watch.epochs}
    weights = [float(np.abs(keras.ops.convert_to_numpy(w)).sum()) for w in model.weights]
    return {"seen": watch.seen, "epochs": watch.epochs, "weights": weights}


@functools.cache
def uninterrupted(shape, validate):
    """Return the first state of a pipeline, with its random seed, and the training from there."""
    start = iter(data_of(shape)).state_dict()
    return start, train(data_from(start, shape), shape, validate=validate)


def data_from(start, shape):
    dataset = data_of(shape)
    with iter(dataset) as iterator:
        iterator.load_state_dict(start)
    return dataset


def case(shape, save_freq, lasts, validate=False):
    """Run a training without interruptions, and one that is interrupted after each of these numbers of steps."""
    start, whole = uninterrupted(shape, validate)
    with tempfile.TemporaryDirectory() as folder:
        backup = Path(folder) / "backup"
        parts = []
        for number, last in enumerate([*lasts, None]):
            # Only the first training is given the seed. The others find it in the backup.
            fresh = data_from(start, shape) if number == 0 else data_of(shape)
            parts.append(train(fresh, shape, backup, save_freq, last, validate))
            if last is not None:
                files = list(backup.iterdir()) if backup.exists() else []
                parts[-1]["files"] = len(files)
        left = backup.exists()
    return {"whole": whole, "parts": parts, "left": left}


def refusals():
    """Return the error messages of invalid backups and arguments."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        train(data_of("known"), "known", folder, 4, 9)
        state = Path(folder) / "training.state"
        found["described"] = checkpoint.describe(state)
        for name, dataset in {"other": data_of("endless"), "damaged": data_of("known")}.items():
            if name == "damaged":
                with state.open("r+b") as file:
                    file.seek(50)
                    file.write(b"\0")
            try:
                train(dataset, "known", folder, 4)
            except Exception as error:
                while error is not None and not isinstance(error, StateError) and error.__cause__ is not None:
                    error = error.__cause__
                found[name] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {
        "cases": {name: case(*arguments) for name, arguments in json.loads(sys.argv[1]).items()},
        "refusals": refusals(),
    }
    sys.stdout.write(json.dumps(found))
