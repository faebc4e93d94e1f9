"""Tests of distribute(engine="ray"), to_ray() and from_ray(), with clusters on this machine."""

import doctest
import os
import sys
import time

import numpy as np
import pytest

from dataset import Dataset, TextLineDataset
from dataset.ops.distribute import actors, engine
from support.distribute_cases import Faulty, check_case, draw_case, outcomes
from support.process_helpers import has_ended
from support.states import rest_of, state_after

ray = pytest.importorskip("ray")
Cluster = pytest.importorskip("ray.cluster_utils").Cluster

pytestmark = [
    pytest.mark.explore,  # starts clusters
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.timeout(300),  # actors are slow to start on a busy machine
]


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # the actors import this folder's modules
        found = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "resources": {"head": 4}})
        ray.init(address=found.address, log_to_driver=False)
        yield found
        ray.shutdown()
        found.shutdown()


@pytest.fixture(autouse=True)
def _deadline(cluster, monkeypatch):
    monkeypatch.setattr(engine, "HEARTBEAT_SECONDS", 3.0)


SEEDS = [0, 3, 4, 5, 7, 9, 12, 13, 14, 17, 22, 27, 30, 33, 38, 39, 84, 87, 96, 112]
"""Every case has a fault. Together they have each fault in several pipelines, but few with a deadline to wait for."""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_stream_is_that_of_the_pipeline_without_faults(seed, tmp_path):
    case = draw_case(seed, workers_max=2)
    check_case(case, str(tmp_path), engine="ray", resources={"CPU": 0.1})


def test_large_arrays_are_views_of_the_object_store_and_actors_end_with_the_iterator():
    def page(x):
        return np.full((256, 1024), x), os.getpid()

    iterator = iter(Dataset.range(4).map(page).distribute(1, engine="ray"))
    array, process = next(iterator)
    assert not array.flags.owndata
    assert (array == 0).all()
    iterator.close()
    assert has_ended(int(process))
    assert (array == 0).all()


def test_the_actors_of_a_lost_node_are_replaced_on_another(cluster, tmp_path):
    first_process = tmp_path / "first process"

    def where(x):
        if not first_process.exists():
            first_process.write_text(str(os.getpid()))
        while x == 20 and os.getpid() == int(first_process.read_text()):
            time.sleep(0.01)  # until it notices that its node is lost
        return x, os.getppid()

    node = cluster.add_node(num_cpus=2, resources={"spare": 2})
    other = None
    try:
        numbers = Dataset.range(40).map(where)
        iterator = iter(numbers.distribute(1, engine="ray", resources={"CPU": 0.1, "spare": 1}))
        first, raylet = next(iterator)
        other = cluster.add_node(num_cpus=2, resources={"spare": 2})
        cluster.remove_node(node, allow_graceful=False)
        rest = list(iterator)
        assert [int(first), *(int(x) for x, _ in rest)] == list(range(40))
        assert int(rest[-1][1]) != int(raylet)
        (worker,) = iterator.stats().operators[0].workers
        assert worker.restarts >= 1  # Ray may place the first successor on the lost node
        assert worker.node
    finally:
        if other is not None:
            cluster.remove_node(other)


@pytest.mark.parametrize("by_files", [False, True])
def test_shares_without_resources_are_served_by_the_actors_that_run(by_files, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(actors, "PLACE_SECONDS", 5.0)
    for part in range(3):
        (tmp_path / f"{part}.txt").write_text(f"{part}\n" * 9)
    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False).flat_map(TextLineDataset)
    found = files if by_files else Dataset.range(40).map(Faulty({7: "kill"}, str(tmp_path)))
    iterator = iter(found.distribute(3, engine="ray", resources={"head": 2}))
    expected = [b"0", b"1", b"2"] * 9 if by_files else list(range(40))
    assert outcomes(iterator) == expected
    assert "an actor that runs does its work, too" in caplog.text


def test_resources_that_the_cluster_lacks_are_an_error(monkeypatch):
    monkeypatch.setattr(actors, "PLACE_SECONDS", 1.0)
    monkeypatch.setattr(actors, "START_SECONDS", 1.0)
    with pytest.raises(RuntimeError, match="has not started an actor"):
        list(Dataset.range(3).distribute(1, engine="ray", resources={"no such thing": 1}))


def test_to_ray_and_back():
    rows = Dataset.range(10).map(lambda x: {"x": x, "row": np.full(3, x)})
    there = rows.to_ray(2)
    assert there.count() == 10
    back = sorted((int(row["x"]), row["row"].tolist()) for row in Dataset.from_ray(there))
    assert back == [(x, [x] * 3) for x in range(10)]


@pytest.mark.parametrize("method", [Dataset.to_ray, Dataset.from_ray])
def test_the_examples_of_the_documentation_are_right(method):
    """Without a cluster, they are skipped."""
    (example,) = doctest.DocTestFinder(recurse=False).find(method, method.__name__, globs={"Dataset": Dataset})
    for line in example.examples:
        line.options.pop(doctest.SKIP, None)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_as_many_workers_as_the_nodes_have_room_for(cluster):
    squares = Dataset.range(10).map(lambda x: x * x).distribute(engine="ray", resources={"CPU": 0.5, "head": 2})
    assert "in 2 Ray actors" in squares.explain()
    assert outcomes(iter(squares)) == [x * x for x in range(10)]
    assert actors.actors_that_fit({}) == 4
    assert actors.actors_that_fit({"CPU": 0.5, "head": 3}) == 1
    assert actors.actors_that_fit({"CPU": 8}) == 1  # the error says what is missing
    assert Dataset.range(3).to_ray().count() == 3


def test_reading_from_ray_resumes():
    numbers = Dataset.from_ray(ray.data.range(6, override_num_blocks=1))
    assert [int(row["id"]) for row in rest_of(numbers, state_after(numbers, 2))] == [2, 3, 4, 5]


def test_elements_of_other_structures_have_columns_by_position():
    there = Dataset.range(3).map(lambda x: (x, b"text")).to_ray(1)
    assert sorted(row["item_0"] for row in there.take_all()) == [0, 1, 2]
