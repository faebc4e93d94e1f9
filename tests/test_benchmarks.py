"""Tests of the harness of benchmarks/: its arithmetic, and runners that are wrong, hang or leak processes."""

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import psutil
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import publish  # noqa: E402
from harness import digests, results, tables, tree  # noqa: E402

FAKE = """
import os, subprocess, sys, time
from harness.workload import Again, Workload
def make_data(folder, scale):
    (folder / "numbers").write_text(str(int(4000 * scale)))
def numbers(folder):
    return range(int((folder / "numbers").read_text()))
WORKLOAD = Workload("numbers", make_data, count=len, digest=sum, small=0.01, unit="numbers")
def batches(folder, change=lambda batch: batch, order=1):
    every = numbers(folder)
    return Again(lambda: (change(list(every[i : i + 8])) for i in range(0, len(every), 8)[::order]))
@WORKLOAD.runner("numpy")
def numpy(folder):
    print("noise on stdout")
    return batches(folder)
@WORKLOAD.runner("dataset")
def dataset(folder):  # leaves a process with its own session whose parent has ended
    code = "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", code], check=True)
    return batches(folder)
def runner(name, function, **about):
    WORKLOAD.runner(name, **about)(function)
runner("backwards", lambda f: batches(f, order=-1), settings="the other way round", source="https://example.org/way")
runner("slow", lambda folder: batches(folder, lambda batch: time.sleep(0.02) or batch))
runner("short", lambda folder: batches(folder, lambda batch: batch[1:]))
runner("other", lambda folder: batches(folder, lambda batch: [x + 1 for x in batch]))
runner("once", lambda folder: iter(batches(folder)))
runner("missing", lambda folder: __import__("no_such_library"))
runner("raises", lambda folder: {}["not today"])
runner("dies", lambda folder: (print("my last words", flush=True), os._exit(3)))
runner("loses", lambda folder: batches(folder, lambda batch: batch if batch[0] < 1000 else batch[1:]))
WORKLOAD.limit("counting")(lambda folder: len(numbers(folder)))
"""
"""A workload whose runners go wrong in all ways; "loses" does so on much data only, which checks do not see."""


@pytest.fixture
def run(tmp_path):
    """Run benchmarks/run.py on workloads given as text."""

    def run(sources, *arguments):
        folder = tmp_path / "fakes"
        folder.mkdir(exist_ok=True)
        for name, source in sources.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(source))
        command = [sys.executable, ROOT / "benchmarks" / "run.py", "--workloads", folder, "--data", tmp_path / "data"]
        command += ["--json", tmp_path / "results.json", *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=250)

    return run


@pytest.mark.explore
def test_measures_what_is_right_and_says_what_is_wrong(run, tmp_path):
    done = run({"numbers": FAKE}, "--runs", "2", "--cap", "0.5")
    whole = json.loads((tmp_path / "results.json").read_text())
    fake = whole["workloads"]["numbers"]
    outcomes = {library: result["outcome"] for library, result in fake["libraries"].items()}
    assert outcomes == {
        "numpy": "ok",
        "dataset": "ok",
        "backwards": "ok",
        "slow": "ok",
        "short": "wrong: 35 elements in epoch 1, not 40",
        "other": "wrong: other elements in epoch 1: their digest is 820.0, not 780.0",
        "once": "wrong: 0 elements in epoch 2, not 40",
        "missing": "absent: No module named 'no_such_library'",
        "raises": "failed: KeyError: 'not today'",
        "dies": "failed: ended with status 3, having said 'my last words'",
        "loses": "wrong: 3,625 elements in a whole pass, not 4,000",
    }, done.stderr
    assert done.returncode == 0, done.stderr

    whole_pass = fake["libraries"]["backwards"]["runs"]
    assert all(one["complete"] and one["elements"] == 4000 * one["passes"] for one in whole_pass)
    cut_short = fake["libraries"]["slow"]["runs"]
    assert all(0 < one["elements"] < 4000 and not one["complete"] for one in cut_short)
    assert all(one["first_batch_s"] > 0 and one["made_bytes"] <= one["peak_bytes"] for one in cut_short)
    assert [one["killed"] for one in fake["libraries"]["dataset"]["runs"]] == [1, 1]
    assert fake["limits"]["counting"]["elements_per_s"]["min"] > 0

    assert "absent: No module named 'no_such_library'" in done.stdout
    assert "noise on stdout" not in done.stdout
    assert fake["elements"] == 4000
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(p.info["cmdline"] or [])]
    page = publish.markdown.page(whole)
    assert "- backwards: the other way round ([recommended here](https://example.org/way))" in page


@pytest.mark.explore
def test_kills_what_hangs_and_all_below_it(run, tmp_path):
    """The processes write their own pids; each has a separate session."""
    source = f"""
        import os, subprocess, time
        from pathlib import Path
        from harness.workload import Workload

        WORKLOAD = Workload("x", lambda folder, scale: None, count=len, digest=sum, reference="dataset")

        @WORKLOAD.runner("dataset")
        def dataset(folder):
            below = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            print("going to sleep", flush=True)
            Path({str(tmp_path / "pids")!r}).write_text(f"{{os.getpid()}} {{below.pid}}")
            time.sleep(1000)
    """
    done = run({"hanging": source}, "--check", "--timeout", "4")
    assert done.returncode == 1
    assert "timed out: no result after 4 s, having said 'going to sleep'" in done.stderr
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    assert not any(psutil.pid_exists(int(pid)) for pid in pids)


def test_digests_do_not_depend_on_order_or_batches_and_are_compared_within_the_tolerance():
    rows = np.arange(60, dtype=np.float32).reshape(20, 3)
    shuffled = rows[np.random.default_rng(0).permutation(20)]
    assert digests.of_rows(rows) == digests.of_rows(shuffled[:7]) + digests.of_rows(shuffled[7:])
    assert digests.of_rows(rows) != digests.of_rows(rows + 1)
    assert digests.of_texts(["a", "é"]) == digests.of_texts(["é".encode(), b"a"])
    reference = [(10, 1000.0), (10, 1000.0)]
    assert results.compared(reference, reference, 0.0) == ""
    assert results.compared([(10, 1001.0), (10, 999.0)], reference, 0.01) == ""
    other = results.compared([(10, 1000.0), (10, 1020.0)], reference, 0.01)
    assert other.startswith("wrong: other elements in epoch 2")
    assert results.compared([(10, 1000.0), (11, 1000.0)], reference, 0.5) == "wrong: 11 elements in epoch 2, not 10"


ME, WAITED_FOR, UNNOTICED = (10, 0.0), (11, 0.0), (12, 0.0)


def usage(own, ended=0.0, parent=10, peak=0):
    return tree.Usage(parent, own, ended, peak)


def look(time_s, **processes):
    """Return a sample; ``me``, ``waited_for`` and ``unnoticed`` are processes."""
    return tree.Look({globals()[name.upper()]: one for name, one in processes.items()}, time_s)


def test_cpu_time_counts_processes_that_end_on_the_way():
    before = look(0.0, me=usage(5.0), waited_for=usage(2.0), unnoticed=usage(1.0))
    between = look(1.0, me=usage(5.5), waited_for=usage(2.5), unnoticed=usage(1.7))
    after = look(2.0, me=usage(6.0), waited_for=usage(3.0), unnoticed=usage(2.0))
    assert tree.cpu_s([before, between, after]) == pytest.approx(1.0 + 1.0 + 1.0)
    # One has ended and was waited for, so its time is added to its parent's; the other one was only sampled.
    ended = look(2.0, me=usage(6.0, ended=2.9), unnoticed=usage(2.0))
    assert tree.cpu_s([before, between, ended]) == pytest.approx(1.0 + 0.9 + 1.0)
    forgotten = look(2.0, me=usage(6.0), waited_for=usage(3.0))
    assert tree.cpu_s([before, between, forgotten]) == pytest.approx(1.0 + 1.0 + 0.7)
    # A daemon without a parent, and a process that started and ended between samples.
    daemon = look(1.0, me=usage(5.5, ended=0.4), unnoticed=usage(0.3, parent=99))
    samples = [look(0.0, me=usage(5.0)), daemon, look(2.0, me=usage(6.0, ended=0.4))]
    assert tree.cpu_s(samples) == pytest.approx(1.0 + 0.4 + 0.3)


def ok(speed):
    spreads = {name: {"median": 1.0, "min": 1.0, "max": 1.0} for name in tables.MEASURES}
    speeds = {"median": speed, "min": speed, "max": speed}
    return {"outcome": "ok", "settings": "", "source": "", "elements_per_s": speeds, **spreads}


def not_ok(outcome):
    return {"outcome": outcome, "settings": "", "source": "", "runs": []}


def workload(libraries, limits):
    about = {"title": "a -> b", "unit": "elements", "notes": "", "elements": 10, "data_bytes": 1234}
    return {**about, "libraries": libraries, "limits": limits}


def test_compares_the_fastest_of_ours_with_the_fastest_peer_and_the_last_limit():
    speeds = {"dataset": 10, "dataset, batched": 20, "tf.data": 4, "tf.data, batched": 5, "numpy": 40}
    libraries = {name: ok(speed) for name, speed in speeds.items()} | {"grain": not_ok("wrong: 3 elements")}
    limits = {"disk": {"outcome": "failed: no"}, "copy": ok(400.0), "CRC": ok(100.0)}
    stand = results.standing(workload(libraries, limits))
    assert (stand.ours, stand.peer) == ("dataset, batched", "tf.data, batched")
    assert (stand.floor, stand.limit) == ("numpy", "CRC")
    assert (stand.times(stand.peer), stand.times(stand.floor), stand.share) == (4.0, 0.5, 0.2)
    assert stand.remarks == ["slower than the loop", "below a quarter of the limit"]
    behind = results.standing(workload({"dataset": ok(1.0), "grain": ok(2.0)}, {}))
    assert (behind.remarks, behind.share) == (["not the fastest"], None)
    absent = workload({"dataset": not_ok("failed: no")}, {})
    assert results.standing(absent).remarks == ["no result of ours"]
    assert not tables.ours_is_sound(absent)


PUBLISHED = ROOT / "docs" / "assets" / "benchmarks"


@pytest.mark.explore
def test_publishes_pictures_and_tables_of_what_was_measured_and_leaves_the_rest(tmp_path):
    measured, docs = tmp_path / "measured", tmp_path / "docs"
    shutil.copytree(PUBLISHED, measured)
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("assets"))
    page = docs / "benchmarks.md"
    text = page.read_text()
    page.write_text(text.replace("| dataset |", "| gone |"))
    publish.publish(measured, tmp_path)
    assert page.read_text() == text
    first = {file.name: file.read_bytes() for file in (docs / "assets" / "benchmarks").iterdir()}
    assert first.keys() == {file.name for file in measured.iterdir()}

    (measured / "scale.json").unlink()
    publish.publish(measured, tmp_path)
    assert page.read_text() == text
    assert {file.name: file.read_bytes() for file in (docs / "assets" / "benchmarks").iterdir()} == first


@pytest.mark.parametrize("part", publish.PARTS)
def test_published_tables_are_those_of_the_published_results(part):
    results = json.loads((PUBLISHED / f"{part}.json").read_text())
    text = (ROOT / "docs" / publish.PAGES.get(part, "benchmarks.md")).read_text()
    assert publish.filled(text, part, publish.PARTS[part](results)) == text, "publish.py renders the page anew"
