"""Tests of the sources of the rank, and of two real processes that train together."""

import subprocess
import sys
import types
from pathlib import Path

import pytest
from process_outputs import outputs

from dataset import Dataset
from dataset.adapters.ranks import process_rank

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No source has a rank."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for module in ("torch.distributed", "jax", "jax._src.distributed"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return monkeypatch


def torch_distributed(rank, world_size, *, initialized=True):
    return types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: initialized,
        get_rank=lambda: rank,
        get_world_size=lambda: world_size,
    )


def jax(rank, world_size, *, initialized=True):
    return types.SimpleNamespace(
        distributed=types.SimpleNamespace(is_initialized=lambda: initialized),
        process_index=lambda: rank,
        process_count=lambda: world_size,
    )


def test_without_a_source_a_process_is_alone_and_nothing_is_imported():
    assert process_rank("op") == (0, 1)
    assert list(Dataset.range(3).shard_by_process()) == [0, 1, 2]
    assert not {"torch.distributed", "jax"} & set(sys.modules)


def test_the_rank_is_that_of_the_variables_of_torchrun(alone):
    alone.setenv("RANK", "1")
    alone.setenv("WORLD_SIZE", "3")
    assert process_rank("op") == (1, 3)
    assert list(Dataset.range(6).shard_by_process()) == [1, 4]
    alone.setenv("RANK", "3")
    with pytest.raises(ValueError, match="rank must be below world_size, 3, got 3"):
        Dataset.range(6).shard_by_process()


@pytest.mark.parametrize(("rank", "world_size"), [("1", None), (None, "2"), ("one", "2")])
def test_incomplete_variables_are_an_error(alone, rank, world_size):
    for name, value in (("RANK", rank), ("WORLD_SIZE", world_size)):
        if value is not None:
            alone.setenv(name, value)
    with pytest.raises(ValueError, match=r"shard_by_process\(\): the environment must set both RANK and WORLD_SIZE"):
        Dataset.range(6).shard_by_process()
    assert list(Dataset.range(6).shard_by_process(0, 2)) == [0, 2, 4]


def test_initialized_torch_comes_before_jax_and_jax_before_the_variables(alone):
    alone.setenv("RANK", "0")
    alone.setenv("WORLD_SIZE", "9")
    alone.setitem(sys.modules, "jax", jax(3, 4))
    alone.setitem(sys.modules, "torch.distributed", torch_distributed(1, 2))
    assert process_rank("op") == (1, 2)
    alone.setitem(sys.modules, "torch.distributed", torch_distributed(1, 2, initialized=False))
    assert process_rank("op") == (3, 4)
    alone.setitem(sys.modules, "jax", jax(3, 4, initialized=False))
    assert process_rank("op") == (0, 9)


def test_the_rank_of_jax_is_read_without_starting_its_backends(alone):
    asked = jax(3, 4)
    asked.process_index = lambda: pytest.fail("it would start the backends")
    kept = types.SimpleNamespace(global_state=types.SimpleNamespace(process_id=1, num_processes=2))
    alone.setitem(sys.modules, "jax", asked)
    alone.setitem(sys.modules, "jax._src.distributed", kept)
    assert process_rank("op") == (1, 2)


def together(script, *arguments):
    """Run a script in two processes with their ranks and these arguments; return their outputs."""
    commands = [[sys.executable, HERE / script, str(rank), *map(str, arguments)] for rank in range(2)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [output.strip() for output in outputs([subprocess.Popen(command, **pipes) for command in commands])]


def test_two_processes_of_torch_take_equally_many_steps_and_share_the_elements(tmp_path):
    files = [tmp_path / f"{index}.txt" for index in range(3)]
    for index, size in enumerate([3, 4, 1]):
        files[index].write_text("".join(f"{10 * index + line}\n" for line in range(size)))
    one, two = (eval(output) for output in together("two_torch_processes.py", tmp_path / "store", *files))  # noqa: S307
    assert [one["rank"], two["rank"]] == [(0, 2), (1, 2)]
    for case in one["steps"]:
        assert len(one["steps"][case]) == len(two["steps"][case])
    elements = {case: sorted(one["steps"][case] + two["steps"][case]) for case in ("drop", "pad", "repeat")}
    assert elements == {"drop": list(range(10)), "pad": [0, *range(11)], "repeat": [0, *range(11)]}
