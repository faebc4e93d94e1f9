"""Where an iterator stands, kept beside the weights of a model: files, JSON, words.

    from dataset import checkpoint

    checkpoint.save("train.state", iterator)         # atomically
    checkpoint.restore("train.state", iterator)      # in the next process
    print(checkpoint.describe("train.state"))

States are plain data, and nothing in them is ever executed. container.py says how a file looks, words.py what there is
to say of a state.
"""

from dataset.checkpoint.files import restore, save
from dataset.checkpoint.json_form import from_json, to_json
from dataset.checkpoint.keras import keras_callback
from dataset.checkpoint.words import describe

__all__ = ["describe", "from_json", "keras_callback", "restore", "save", "to_json"]
