"""Tests of ``on_statistics`` and ``export_telemetry``: when they call, and that the metrics equal ``stats()``."""

import importlib.util
import sys
import types

import pytest

from dataset import Dataset
from dataset.live.telemetry import Telemetry
from dataset.runtime.iteration.statistics_callback import StatisticsCallback
from support.overlap import Clock


@pytest.fixture
def meter(monkeypatch):
    """Return the instruments of a meter in the place of OpenTelemetry's, by name: kind, unit and recorded values."""
    instruments = {}

    class Meter:
        def create_counter(self, name, unit, description):
            return self.create("counter", name, unit, description)

        def create_gauge(self, name, unit, description):
            return self.create("gauge", name, unit, description)

        def create(self, kind, name, unit, description):
            assert description
            values = {}
            instruments[name] = kind, unit, values

            def add(value, attributes):
                assert kind == "counter"
                assert value >= 0
                key = tuple(sorted(attributes.items()))
                values[key] = values.get(key, 0) + value

            def put(value, attributes):
                assert kind == "gauge"
                values[tuple(sorted(attributes.items()))] = value

            return types.SimpleNamespace(add=add, set=put)

    metrics = types.ModuleType("opentelemetry.metrics")
    metrics.get_meter = lambda name: Meter()
    monkeypatch.setitem(sys.modules, "opentelemetry", types.ModuleType("opentelemetry"))
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", metrics)
    monkeypatch.delenv("RANK", raising=False)
    return instruments


def test_the_metrics_equal_the_statistics(meter):
    iterator = iter(Dataset.range(100).batch(5).prefetch(3))
    iterator.export_telemetry(every=1e-9)
    assert len(list(iterator)) == 20
    stats = iterator.stats().to_dict()
    assert meter["dataset.elements"] == ("counter", "", {(): 20})
    assert meter["dataset.wait_seconds"][:2] == ("counter", "s")
    assert meter["dataset.running"][2] == {(): 0}
    for index, operator in enumerate(stats["operators"]):
        key = (("index", index), ("operator", operator["name"]))
        assert meter["dataset.operator.elements"][2][key] == operator["elements"]
        assert meter["dataset.operator.busy_ratio"][2][key] == operator["busy"]
    assert meter["dataset.operator.buffered_bytes"][1] == "By"
    assert len(meter["dataset.operator.buffer_size"][2]) == 1  # only prefetch has one


def test_an_estimate_that_becomes_smaller_does_not_decrease_a_counter(meter):
    telemetry, stats = Telemetry(), dict.fromkeys(["elements", "seconds", "wait_seconds", "buffered_bytes"], 10)
    stats |= {"ram_budget": None, "cpu_budget": 2, "ended": False, "operators": []}
    for seconds in (10, 8, 9, 12):
        telemetry.send(stats | {"seconds": seconds})
    assert meter["dataset.seconds"][2] == {(): 12}
    assert meter["dataset.ram_budget_bytes"][2] == {}


def test_the_rank_is_an_attribute(meter, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    iterator = iter(Dataset.range(4))
    iterator.export_telemetry()
    list(iterator)
    assert meter["dataset.elements"][2] == {(("rank", "3"),): 4}


@pytest.mark.skipif(importlib.util.find_spec("opentelemetry") is not None, reason="opentelemetry-api is installed")
def test_without_the_extra_the_error_names_it():
    with pytest.raises(ImportError, match=r"pip install \"dataset-combinators\[telemetry\]\""):
        iter(Dataset.range(4)).export_telemetry()


def test_the_sdk_of_opentelemetry_gets_the_metrics():
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    early = iter(Dataset.range(7))
    early.export_telemetry()  # before an SDK is configured
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(sdk.MeterProvider([reader]))
    list(early)
    [resource] = reader.get_metrics_data().resource_metrics
    found = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    assert [point.value for point in found["dataset.elements"].data.data_points] == [7]
    assert "dataset.operator.busy_ratio" in found


def test_a_callback_is_called_when_it_is_due_and_at_the_end():
    clock, calls = Clock(), []
    callback = StatisticsCallback(calls.append, 10, clock)
    for clock.now in (1, 9, 10, 11, 19, 21, 22):
        callback.look(lambda: clock.now)
    assert calls == [10, 21]
    callback.look(lambda: "end", is_last=True)
    assert calls == [10, 21, "end"]


@pytest.mark.parametrize("make", [lambda: Dataset.range(50), lambda: Dataset.range(50).map(str).prefetch(2)])
def test_the_callbacks_see_what_the_loop_has_received_and_change_nothing(make):
    seen, also, elements, iterator = [], [], [], iter(make())
    iterator.on_statistics(lambda stats: seen.append((stats.elements, len(elements), stats.ended)), every=1e-9)
    iterator.on_statistics(lambda stats: also.append(iterator.stats().elements), every=1e-9)
    for element in iterator:
        elements.append(element)  # noqa: PERF402  # the callbacks count them
    assert elements == list(make())
    assert all(elements == received for elements, received, _ in seen)
    assert seen[-1] == (50, 50, True)
    assert also[-1] == 50


def test_a_callback_that_fails_is_logged_and_nothing_else(caplog):
    iterator = iter(Dataset.range(10))
    iterator.on_statistics(lambda stats: 1 // 0, every=1e-9)
    assert list(iterator) == list(range(10))
    assert "a callback of on_statistics() has failed" in caplog.text


def test_callbacks_stay_after_a_state_is_loaded():
    calls, dataset = [], Dataset.range(10)
    iterator = iter(dataset)
    iterator.on_statistics(lambda stats: calls.append(stats.elements))
    next(iterator)
    state = iterator.state_dict()
    iterator.load_state_dict(state)
    assert list(iterator) == list(range(1, 10))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("arguments", "error"), [((1,), TypeError), ((print, "1"), TypeError), ((print, 0), ValueError)]
)
def test_wrong_arguments(arguments, error):
    with pytest.raises(error, match=r"on_statistics\(\)"):
        iter(Dataset.range(3)).on_statistics(*arguments)
