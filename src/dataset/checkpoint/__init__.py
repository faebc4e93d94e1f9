"""Checkpoints of iterators: save and restore their state, convert it to JSON, and describe it.

    from dataset import checkpoint

    checkpoint.save("train.state", iterator)         # atomically
    checkpoint.restore("train.state", iterator)      # in the next process
    print(checkpoint.describe("train.state"))
    checkpoint.records(state, dataset, 10)           # which records made the next 10 batches

States are plain data; nothing in them is ever executed. container.py defines the file format, and description.py
describes states in words.
"""

from dataset.checkpoint.description import describe
from dataset.checkpoint.json_form import from_json, to_json
from dataset.checkpoint.keras import keras_callback
from dataset.checkpoint.records import records
from dataset.checkpoint.state_files import restore, save

__all__ = ["describe", "from_json", "keras_callback", "records", "restore", "save", "to_json"]
