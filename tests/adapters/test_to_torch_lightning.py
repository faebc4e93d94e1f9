"""Tests of to_torch() as the data of a Lightning Trainer, directly and in a DataLoader."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from dataset import Dataset

pytestmark = [
    pytest.mark.explore,  # it needs Lightning
    pytest.mark.filterwarnings("ignore:`isinstance:FutureWarning:lightning"),  # deprecated by torch
    # Lightning warns for all iterable datasets with a length; here the length is also correct with workers.
    pytest.mark.filterwarnings("ignore:Your `IterableDataset` has `__len__` defined"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),  # it recommends one worker per core
    pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no `val_dataloader`"),
]
QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@pytest.fixture
def lightning():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules that it imports use deprecated code
        import lightning
    return lightning


@pytest.fixture
def model(lightning):
    """A model that fits a line and records its inputs."""

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.trained, self.validated = [], []

        def training_step(self, batch, _):
            x, y = batch
            self.trained.append(sorted(x.ravel().tolist()))
            return torch.nn.functional.mse_loss(self.layer(x), y)

        def validation_step(self, batch, _):
            self.validated.append(batch[0].ravel().tolist())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Line()


def pairs(count):
    x = np.arange(count, dtype=np.float32).reshape(-1, 1)
    return Dataset.from_tensor_slices((x, 2 * x))


@pytest.mark.parametrize(
    "load",
    [
        lambda tensors: tensors,
        lambda tensors: DataLoader(tensors, batch_size=None),
        lambda tensors: DataLoader(tensors, batch_size=None, num_workers=2, persistent_workers=True),
    ],
    ids=["by itself", "in a loader", "with workers"],
)
def test_a_trainer_fits_and_validates(lightning, model, load, tmp_path):
    trainer = lightning.Trainer(max_epochs=2, default_root_dir=tmp_path, num_sanity_val_steps=0, **QUIET)
    train = load(pairs(16).shuffle(16, seed=1).batch(4).to_torch())
    trainer.fit(model, train, load(pairs(6).batch(3).to_torch()))
    assert (trainer.current_epoch, trainer.global_step, trainer.num_training_batches) == (2, 8, 4)
    epochs = [list(itertools.chain(*model.trained[:4])), list(itertools.chain(*model.trained[4:]))]
    assert [sorted(epoch) for epoch in epochs] == [list(map(float, range(16)))] * 2
    assert epochs[0] != epochs[1]
    assert model.validated == [[0, 1, 2], [3, 4, 5]] * 2


def test_an_endless_dataset_goes_with_a_limit(lightning, model, tmp_path):
    trainer = lightning.Trainer(max_steps=5, default_root_dir=tmp_path, **QUIET)
    trainer.fit(model, pairs(8).repeat().batch(4).to_torch())
    assert len(model.trained) == 5
