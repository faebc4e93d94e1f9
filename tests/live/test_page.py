"""Tests of the live page in a real browser: headless Chromium."""

import contextlib
import os
import pathlib
import time

import pytest

from dataset import AUTOTUNE, Dataset
from dataset.live import feed as feeds
from dataset.plan.drawing.brief import brief_number, brief_seconds
from support.browser import find_browser

pytestmark = [
    pytest.mark.explore,
    pytest.mark.skipif(
        find_browser() is None and "BROWSER_REQUIRED" not in os.environ,
        reason="Chromium is not installed: apt-get install chromium",
    ),
]

SHOWN = "document.getElementById('{}').textContent"
NAME = '<img src=x onerror="document.title=1"> </script><script>document.title=2</script>'


@pytest.fixture(autouse=True)
def _no_complaints(browser, monkeypatch):
    monkeypatch.setattr(feeds, "_INTERVAL_SECONDS", 0.05)
    browser.complaints.clear()
    yield
    browser.open("about:blank")
    refused = [one for one in browser.complaints if "ERR_CONNECTION_REFUSED" not in str(one)]
    assert not refused


def pipeline(count=300):
    left = Dataset.range(count).map(lambda x: x + 1, name=NAME)
    right = Dataset.range(count).map(str, name="text", num_parallel_calls=2)
    return Dataset.zip(left, right).batch(10).prefetch(AUTOTUNE)


def state_is(browser, state):
    browser.wait_until(f"{SHOWN.format('state')} === '{state}'")


@contextlib.contextmanager
def opened(browser, dataset):
    """Open the page of an iterator, which runs."""
    with iter(dataset) as iterator:
        browser.open(iterator.serve().url)
        state_is(browser, "running")
        yield iterator


def read_to_the_end(browser, iterator):
    list(iterator)
    state_is(browser, "ended")


def texts(browser, selector):
    return browser.evaluate(f"Array.from(document.querySelectorAll('{selector}'), node => node.textContent)")


def test_the_numbers_on_the_page_are_those_of_stats(browser):
    with opened(browser, pipeline()) as iterator:
        read_to_the_end(browser, iterator)
        stats = iterator.stats()
        assert browser.evaluate(SHOWN.format("verdict")) == stats.verdict
        assert browser.evaluate(SHOWN.format("tile-elements")) == f"{stats.elements:,}"
        assert browser.evaluate(SHOWN.format("tile-rate")) == f"{brief_number(stats.elements / stats.seconds)}/s"
        for name in ("p50", "p95", "p99"):
            value = browser.evaluate(SHOWN.format(f"tile-{name}"))
            assert value == brief_seconds(getattr(stats.step_waits, name))
        nodes = texts(browser, "#plan .node")
        for operator, shown in zip(stats.operators, nodes[1:], strict=True):
            assert f"{operator.elements:,} elements" in shown
            assert f"{_percent(operator.busy)}% busy" in shown
            assert not operator.seconds or f"{brief_seconds(operator.seconds_per_element)} each" in shown
        hot = texts(browser, "#plan .hot .name")
        expected = stats.bottleneck.name[:31] if stats.bottleneck.operator is not None else "the consumer"
        assert hot[0].startswith(expected)


def _percent(share):
    return int(100 * share + 0.5)  # as JavaScript rounds


def test_names_are_text_and_never_markup(browser):
    with opened(browser, pipeline()):
        assert NAME in "".join(texts(browser, "#plan .node title"))
        assert browser.evaluate("document.title") == "dataset"
        assert browser.evaluate("document.images.length") == 0
        assert browser.evaluate("document.scripts.length") == 1


def test_it_survives_the_end_of_the_iterator_and_shows_the_next_on_the_same_port(browser):
    iterator = iter(pipeline())
    port = iterator.serve().port
    browser.open(iterator.serve().url)
    list(iterator)
    state_is(browser, "ended")
    iterator.close()
    state_is(browser, "not connected; trying again")
    assert browser.evaluate(SHOWN.format("tile-elements")) == "30"
    with iter(pipeline(70)) as iterator:
        iterator.serve(port)
        list(iterator)
        browser.wait_until(f"{SHOWN.format('tile-elements')} === '7'")
        state_is(browser, "ended")


def test_the_workers_of_distribute_are_shown_and_stragglers_marked(browser):
    with opened(browser, Dataset.range(40).map(str).distribute(2)) as iterator:
        read_to_the_end(browser, iterator)
        [operator] = [one for one in iterator.stats().operators if one.workers]
        rows = texts(browser, "#workers .bar")
        assert len(rows) == 2
        for row, worker in zip(rows, operator.workers, strict=True):
            assert f"distribute(2) worker {worker.rank}" in row
            assert f"{worker.elements} elements" in row
        worker = "{waiting, rank, elements: 1, elements_per_second: 1, restarts: 0, node: '', memory: 0}"
        one = f"{{name: 'distribute(3)', workers: [0.8, 0.1, 0.8].map((waiting, rank) => ({worker}))}}"
        browser.evaluate(f"showWorkers([{one}])")
        assert [", straggler" in row for row in texts(browser, "#workers .bar")] == [False, True, False]
    with opened(browser, pipeline()) as iterator:
        assert browser.evaluate("document.getElementById('workers').parentElement.hidden")


def test_the_functions_of_a_fused_bottleneck_are_shown(browser):
    dataset = Dataset.range(30).map(lambda x: time.sleep(0.002) or x, name="slow").map(str, name=NAME).batch(2)
    with opened(browser, dataset) as iterator:
        read_to_the_end(browser, iterator)
        functions = iterator.stats().operators[1].steps
        rows = texts(browser, "#functions .bar")
        assert [row.split("%")[0] for row in rows] == [f"{one.name}{_percent(one.share)}" for one in functions]
        assert functions[1].name == NAME
        assert all(one.location in row for one, row in zip(functions, rows, strict=True))


def test_the_first_figures_are_means_and_the_same_figures_again_change_nothing(browser):
    with iter(Dataset.range(40).map(lambda x: time.sleep(0.01) or x).batch(4)) as iterator:
        browser.open(iterator.serve().url)
        next(iterator)
        browser.wait_until(f"{SHOWN.format('tile-elements')} === '1'")
        for _ in range(3):
            browser.evaluate("show(structuredClone(shown))")
        assert browser.evaluate(SHOWN.format("tile-rate")) != "0/s"
        assert "100% busy" not in texts(browser, "#plan .node")[0]


@pytest.mark.timeout(600)
def test_half_an_hour_of_updates_leaves_memory_flat(browser):
    with iter(pipeline()) as iterator:
        browser.open(iterator.serve().url)
        next(iterator)
        browser.wait_until(f"{SHOWN.format('tile-elements')} === '1'")
        update = (
            "(async () => { const base = await (await fetch('/snapshot')).json(); for (let i = 1; i <= %d; i++) {"
            " const one = structuredClone(base); one.stats.seconds += i; one.stats.elements += i;"
            " one.decision_count = i; show(one); } })()"
        )
        browser.evaluate(update % 100)
        before = memory(browser)
        browser.evaluate(update % 1800)  # one per second
        after = memory(browser)
        assert after["Nodes"] <= before["Nodes"] + 100
        assert after["JSEventListeners"] <= before["JSEventListeners"] + 2
        assert after["JSHeapUsedSize"] <= before["JSHeapUsedSize"] + 1_000_000


def memory(browser):
    """Return the least of several measurements: an update after the collection leaves the nodes that it replaces."""
    found = []
    for _ in range(5):
        browser.command("HeapProfiler.collectGarbage")
        found.append({one["name"]: one["value"] for one in browser.command("Performance.getMetrics")["metrics"]})
    return {name: min(one[name] for one in found) for name in found[0]}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_into_its_window_in_both_modes(browser, width, dark, tmp_path):
    with opened(browser, pipeline()) as iterator:
        read_to_the_end(browser, iterator)
        folder = pathlib.Path(os.environ.get("SCREENSHOTS", tmp_path))
        browser.screenshot(folder / f"page-{width}-{'dark' if dark else 'light'}.png", width, dark=dark)
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 27)" if dark else "rgb(246, 247, 249)")
