"""Fixtures for tests of the command line: a runner, and input files."""

import itertools
import json

import numpy as np
import pytest

from dataset import io
from dataset.commands.main import main
from support.sequence_examples import sequence_example


class CommandLine:
    """Runs ``python -m dataset tfrecord ...`` in this process."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *words):
        """Run a command; return its exit status, standard output and standard error."""
        self.capsys.readouterr()
        status = main(["tfrecord", *map(str, words)])
        return (status, *self.capsys.readouterr())

    def json(self, *words, status=0):
        """Return the document that --json prints."""
        found, out, _ = self(*words, "--json")
        assert found == status
        return json.loads(out)

    def error(self, *words, status=2):
        """Return the line on standard error of a command that fails; it must not print anything else."""
        found, out, err = self(*words)
        assert (found, out) == (status, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert err.isprintable() or err[:-1].isprintable()
        return err[len("error: ") : -1]


@pytest.fixture
def run(capsys):
    return CommandLine(capsys)


@pytest.fixture
def write(tmp_path):
    """Writes records, or dicts as Examples, to a new TFRecord file."""
    names = itertools.count()

    def new(records, name=None, compression=None):
        path = tmp_path / (name or f"{next(names)}.tfrecord")
        with io.TFRecordWriter(path, compression) as writer:
            for record in records:
                writer.write(io.encode_example(record) if isinstance(record, dict) else record)
        return path

    return new


@pytest.fixture
def digits(write):
    """Return a file of 20 Examples with 4 pixels and a label, and a note in every second one."""
    return write(
        {
            "pixels": bytes(range(i, i + 4)),
            "label": i % 10,
            "weights": np.array([0.5, i], np.float32),
            **({"note": f"number {i}"} if i % 2 else {}),
        }
        for i in range(20)
    )


@pytest.fixture
def sequences(write):
    """Return a file of 4 SequenceExamples."""
    return write(sequence_example({"id": [i]}, tokens=[[step, step] for step in range(i + 1)]) for i in range(4))
