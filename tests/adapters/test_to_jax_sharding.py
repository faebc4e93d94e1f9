"""Tests of to_jax with several devices and processes. JAX detects both once, so the tests run in separate processes."""

import os
import socket
import subprocess
import sys
import textwrap

from process_outputs import outputs

PRELUDE = """
import os, sys
sys.stdout = os.fdopen(os.dup(1), "w")  # what the test prints
os.dup2(2, 1)  # the library for collective operations prints messages to descriptor 1, at any time
import numpy as np
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
from dataset import Dataset, SpecError

def show_error(function):
    try:
        function()
    except SpecError as error:
        print(error)
"""


def start(code, *arguments, devices=1):
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    command = [sys.executable, "-c", PRELUDE + code, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines_of(processes):
    return [text.splitlines() for text in outputs(processes)]


def on_four_devices(code):
    """Run code in one process and return what it prints."""
    prelude = (
        'mesh = Mesh(jax.devices(), "x")\nrows, everywhere = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())\n'
    )
    (lines,) = lines_of([start(prelude + textwrap.dedent(code), devices=4)])
    return lines


def test_rows_are_spread_over_the_devices_and_components_go_where_a_structure_says():
    lines = on_four_devices("""
        dataset = Dataset.from_tensor_slices({"x": np.arange(32.).reshape(16, 2), "y": np.arange(16)}).batch(8)
        for batch in dataset.to_jax(rows):
            for name, array in batch.items():
                print(name, array.sharding == rows, len(array.devices()), array.addressable_shards[0].data.shape)
            print(float(batch["x"].sum()))
        last = jax.devices()[3]
        dataset = Dataset.from_tensors((np.arange(8), {"a": (np.arange(3), np.arange(4)), "b": np.arange(2)}))
        for sharding in ((rows, {"a": everywhere, "b": last}), (None, {"a": (last, rows), "b": None}), (rows, last)):
            (x, rest), = dataset.to_jax(sharding)
            print(*[[d.id for d in sorted(a.devices(), key=lambda d: d.id)] for a in (x, *rest["a"], rest["b"])],
                  rest["a"][1].addressable_shards[0].data.shape)
    """)
    shards = ["x True 4 (2, 2)", "y True 4 (2,)"]
    assert lines[:6] == [*shards, "120.0", *shards, "376.0"]
    assert lines[6:] == [
        "[0, 1, 2, 3] [0, 1, 2, 3] [0, 1, 2, 3] [3] (4,)",
        "[0] [3] [0, 1, 2, 3] [0] (1,)",
        "[0, 1, 2, 3] [3] [3] [3] (4,)",
    ]


def test_a_batch_that_the_devices_do_not_divide_is_an_error_in_its_place_or_at_once():
    lines = on_four_devices("""
        iterator = iter(Dataset.from_tensor_slices({"x": np.zeros((14, 2))}).batch(8).to_jax(rows))
        print(next(iterator)["x"].shape)
        show_error(lambda: next(iterator))
        print(len(list(iterator)))
        for shape in ((6, 2), ()):
            dataset = Dataset.from_tensors({"x": np.zeros(shape)})
            show_error(lambda: dataset.to_jax(rows))
            show_error(lambda: list(dataset.map(lambda e: e).to_jax(rows)))  # here only the element tells
    """)
    first, error, left, *at_once = lines
    assert (first, left) == ("(8, 2)", "0")
    for words in ("component 'x'", "(6, 2)", "NamedSharding", "drop_remainder=True"):
        assert words in error
    for line, shape in zip(at_once, [(6, 2), (6, 2), (), ()], strict=True):
        assert line.startswith(f"to_jax(): component 'x' of shape {shape} cannot be laid out as NamedSharding")


TWO = """
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]), initialization_timeout=60)
mesh = Mesh(jax.devices(), "x")
rows, everywhere = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
mine = jax.process_index()
"""


def on_two_processes(code, devices=2):
    """Return both outputs. JAX needs a port number, so a free one is chosen; if it is taken by then, another one is."""
    for attempt in range(3):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            address = f"localhost:{free.getsockname()[1]}"
        processes = [start(TWO + textwrap.dedent(code), address, str(rank), devices=devices) for rank in range(2)]
        try:
            return lines_of(processes)
        except AssertionError as error:
            if attempt == 2 or "address already in use" not in str(error).lower():
                raise
    raise AssertionError


def test_the_rows_of_two_processes_become_global_arrays_that_can_be_resumed():
    first, second = on_two_processes("""
        dataset = Dataset.from_tensor_slices((np.arange(48.).reshape(24, 2), np.arange(24)))
        dataset = dataset.shard(2, mine).batch(4, drop_remainder=True)
        sum_of = jax.jit(lambda x, y: (x.sum(), y.sum()), out_shardings=everywhere)
        converted = dataset.to_jax(rows)
        for epoch in range(2):
            total = [0.0, 0]
            for x, y in converted:
                own = sorted(row for shard in y.addressable_shards for row in np.asarray(shard.data).tolist())
                assert all(row % 2 == mine for row in own) and len(own) == 4
                assert not x.is_fully_addressable
                total = [a + float(b) for a, b in zip(total, sum_of(x, y))]
            print(x.shape, y.shape, len(x.addressable_shards), len(converted), *total)
        iterator, resumed = iter(dataset.to_jax(rows)), iter(dataset.to_jax(rows))
        next(iterator)
        resumed.load_state_dict(iterator.state_dict())
        take = lambda it: [np.asarray(s.data).tolist() for _, y in it for s in y.addressable_shards]
        print(take(resumed) == take(iterator))
        show_error(lambda: next(iter(Dataset.range(32).shard(2, mine).batch(3).to_jax(rows))))
        print(*Dataset.range(7).shard_by_process())
    """)
    epoch = f"(8, 2) (8,) 2 3 {sum(range(48))}.0 {sum(range(24))}.0"
    assert (first.pop(), second.pop()) == ("0 2 4", "1 3 5")
    for *lines, error in (first, second):
        assert lines == [epoch, epoch, "True"]
        assert "(3,)" in error
        assert "drop_remainder=True" in error
