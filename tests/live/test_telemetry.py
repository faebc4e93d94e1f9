"""Tests of ``on_statistics`` and ``export_telemetry``: when they call, and that the metrics equal ``stats()``."""

import importlib.util

import pytest

from dataset import Dataset
from dataset.live.telemetry import Telemetry
from dataset.runtime.iteration.statistics_callback import StatisticsCallback
from support.overlap import Clock


@pytest.fixture
def metrics(monkeypatch):
    """Return a function that returns the metrics of an SDK by name: unit, and values by their attributes."""
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    reader = pytest.importorskip("opentelemetry.sdk.metrics.export").InMemoryMetricReader()
    monkeypatch.setattr("opentelemetry.metrics.get_meter", sdk.MeterProvider([reader]).get_meter)
    monkeypatch.delenv("RANK", raising=False)

    def metrics():
        scopes = reader.get_metrics_data().resource_metrics[0].scope_metrics
        found = {metric.name: metric for scope in scopes for metric in scope.metrics}
        assert all(metric.description for metric in found.values())
        return {
            name: (
                metric.unit,
                {tuple(sorted(point.attributes.items())): point.value for point in metric.data.data_points},
            )
            for name, metric in found.items()
        }

    return metrics


def test_the_metrics_equal_the_statistics(metrics):
    iterator = iter(Dataset.range(100).batch(5).prefetch(3))
    iterator.export_telemetry(every=1e-9)
    assert len(list(iterator)) == 20
    stats, found = iterator.stats().to_dict(), metrics()
    assert found["dataset.elements"] == ("", {(): 20})
    assert found["dataset.wait_seconds"][0] == "s"
    assert found["dataset.running"][1] == {(): 0}
    for index, operator in enumerate(stats["operators"]):
        key = (("index", index), ("operator", operator["name"]))
        assert found["dataset.operator.elements"][1][key] == operator["elements"]
        assert found["dataset.operator.busy_ratio"][1][key] == operator["busy"]
    assert found["dataset.operator.buffered_bytes"][0] == "By"
    assert len(found["dataset.operator.buffer_size"][1]) == 1  # only prefetch has one


def test_an_estimate_that_becomes_smaller_does_not_decrease_a_counter(metrics):
    telemetry, stats = Telemetry(), dict.fromkeys(["elements", "seconds", "wait_seconds", "buffered_bytes"], 10)
    stats |= {"ram_budget": None, "cpu_budget": 2, "ended": False, "operators": []}
    for seconds in (10, 8, 9, 12):
        telemetry.send(stats | {"seconds": seconds})
    assert metrics()["dataset.seconds"][1] == {(): 12}
    assert "dataset.ram_budget_bytes" not in metrics()


@pytest.mark.skipif(importlib.util.find_spec("opentelemetry") is not None, reason="opentelemetry-api is installed")
def test_without_the_extra_the_error_names_it():
    with pytest.raises(ImportError, match=r"pip install \"dataset-combinators\[telemetry\]\""):
        iter(Dataset.range(4)).export_telemetry()


def test_the_sdk_of_opentelemetry_gets_the_metrics_with_the_rank_as_an_attribute(monkeypatch):
    monkeypatch.setenv("RANK", "3")
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
    [point] = found["dataset.elements"].data.data_points
    assert (point.value, dict(point.attributes)) == (7, {"rank": "3"})
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
