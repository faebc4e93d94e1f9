"""Tests of the Prometheus text format, read by a parser of its specification."""

import re

from hypothesis import given
from hypothesis import strategies as st

from dataset import AUTOTUNE, Dataset
from dataset.live.feed import SnapshotFeed
from dataset.live.prometheus import exposition
from dataset.runtime.iteration.live_source import LiveSource

LABEL = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:]*)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[\d.e+-]+)", re.ASCII)


def parsed(text):
    """Return the samples by name, as (labels, value), and the types by name."""
    samples, types = {}, {}
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types
            types[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            pairs = re.findall(r'(\w+)="((?:[^"\\\n]|\\.)*)"', labels or "")
            unescaped = {
                key: re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text) for key, text in pairs
            }
            samples.setdefault(name, []).append((unescaped, float(value)))
    return samples, types


def snapshot_of(dataset):
    with iter(dataset) as iterator:
        feed = SnapshotFeed()
        source = LiveSource(feed, iterator._statistics)
        source.follow(iterator._profile, iterator._observer)
        list(iterator)
        return iterator.stats(), feed.snapshot()


def test_the_figures_are_those_of_stats(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    dataset = Dataset.range(100).map(lambda x: x + 1, name="plus").batch(10).prefetch(AUTOTUNE)
    stats, snapshot = snapshot_of(dataset)
    samples, types = parsed(exposition(snapshot))
    assert samples["dataset_elements_total"] == [({"rank": "3"}, stats.elements)]
    assert samples["dataset_wait_seconds_total"] == [({"rank": "3"}, stats.wait_seconds)]
    assert samples["dataset_running"] == [({"rank": "3"}, 0)]
    for index, operator in enumerate(stats.operators):
        labels = {"rank": "3", "index": str(index), "operator": operator.name}
        assert (labels, operator.elements) in samples["dataset_operator_elements_total"]
        assert (labels, operator.busy) in samples["dataset_operator_busy_ratio"]
    assert len(samples["dataset_operator_buffer_size"]) == 1
    quantiles = {labels["quantile"]: value for labels, value in samples["dataset_step_wait_seconds"]}
    assert quantiles == {"0.50": stats.step_waits.p50, "0.95": stats.step_waits.p95, "0.99": stats.step_waits.p99}
    assert samples["dataset_step_wait_seconds_count"] == [({"rank": "3"}, 10)]
    counters = {name for name, kind in types.items() if kind == "counter"}
    assert counters == {name for name in types if name.endswith("_total")}


def test_before_a_pipeline_has_begun_there_is_nothing():
    assert exposition({"pipeline": 0}) == ""


@given(st.text())
def test_any_name_survives(name):
    operator = dict.fromkeys(
        ["elements", "nbytes", "seconds", "cpu_seconds", "input_wait_seconds", "consumer_wait_seconds",
         "skipped_elements", "memory_refusals", "busy", "parallelism", "buffer_size", "buffered_elements",
         "buffered_bytes"], 1,
    )  # fmt: skip
    stats = {
        "elements": 1, "seconds": 1.0, "wait_seconds": 0.0, "buffered_bytes": 0, "ram_budget": None, "cpu_budget": 2,
        "ended": False, "step_waits": None, "operators": [{**operator, "name": name}],
    }  # fmt: skip
    text = exposition({"pipeline": 1, "process": {"rank": name}, "decision_count": 0, "stats": stats})
    samples, _ = parsed(text)
    assert samples["dataset_operator_parallelism"] == [({"rank": name, "index": "0", "operator": name}, 1)]
    assert "dataset_ram_budget_bytes" not in samples
