"""Mutation study: planted faults in the library, each of which the tests named beside it must catch.

    python tests/support/planted_faults.py                    all faults, one after another
    python tests/support/planted_faults.py --only shuffle     those whose name contains "shuffle"
    python tests/support/planted_faults.py --jobs 4           four at a time

Each fault is one small edit of one file of ``src/dataset``. It is made in a temporary copy, never in the working tree.
The named tests first run without any fault, where they must pass. A fault is caught if they then fail.

Run it before and after tests are removed: a fault that is no longer caught shows what was lost. pytest does not run it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[2]
_SECONDS_MAX = 240  # per run of the tests; a fault that makes them hang is caught by pytest-timeout before


class Fault(NamedTuple):
    """One edit. ``old`` occurs exactly once in the file; ``tests`` are paths below tests/, with pytest options."""

    name: str
    path: str
    old: str
    new: str
    tests: str


FAULTS = [
    # Operators that choose and order elements.
    Fault("take gives too many", "ops/take.py", "pull(min(n, self.remaining))", "pull(n)", "ops/test_take.py"),
    Fault("take state", "ops/take.py", '"remaining": self.remaining}', '"remaining": self.node.count}', "ops/test_take.py"),
    Fault("take state_after", "ops/take.py", 'int(state["remaining"]) - count', 'int(state["remaining"])', "ops/test_take.py"),
    Fault("skip counts", "ops/skip.py", "self.remaining -= passed", "self.remaining -= 1", "ops/test_skip.py"),
    Fault("skip state", "ops/skip.py", '"remaining": self.remaining}', '"remaining": self.node.count}', "ops/test_skip.py"),
    Fault("repeat count", "ops/repeat.py", "self.finished == self.times", "self.finished - 1 == self.times", "ops/test_repeat.py"),
    Fault("repeat seek", "ops/repeat.py", "self.finished += passes", "self.finished += 0", "ops/test_repeat.py"),
    Fault("concatenate seek", "ops/concatenate.py", "count -= length", "count -= 1", "ops/test_concatenate.py"),
    Fault("concatenate state", "ops/concatenate.py", '"current": self.current', '"current": 0', "ops/test_concatenate.py"),
    Fault("zip state", "ops/zip.py", '"ended": self.ended', '"ended": False', "ops/test_zip.py"),
    Fault("zip raises the last error", "ops/zip.py", "failed = failed or error", "failed = error", "ops/test_zip.py"),
    Fault("zip state_after", "ops/zip.py", "state_after(saved, count)", "state_after(saved, count + 1)", "ops/test_zip.py"),
    Fault("shard state_after", "ops/shard/shard.py", '"ahead": self.num_shards - 1', '"ahead": 0', "ops/shard/test_shard.py"),
    Fault("shard seek", "ops/shard/shard.py", "self.ahead + count * self.num_shards", "count * self.num_shards", "ops/shard/test_shard.py"),
    Fault("take_while reads early", "ops/take_while.py", "1 if self._one_by_one else n", "n", "ops/test_take_while.py"),
    Fault("unique state", "ops/unique.py", '"seen": seen', '"seen": {}', "ops/test_unique.py"),
    Fault("filter error position", "ops/filter.py", "self.position += 1", "self.position += 0", "ops/test_filter.py optimize/test_filter_fusions.py"),
    Fault("ignore_errors position", "ops/ignore_errors.py", "self.dropped += 1", "self.dropped += 0", "ops/test_ignore_errors.py"),
    Fault("scan state", "ops/scan.py", 'self.carried.load(state["carried"])', "self.carried.save()", "ops/test_scan.py"),
    Fault("scan keeps the caller's array", "ops/scan.py", "own(result, given)", "result", "ops/test_scan.py"),
    Fault("generator's arrays are shared", "ops/generator.py", "own(take())", "take()", "ops/test_generator.py"),
    Fault("generator state", "ops/generator.py", '"held": self._ready.save()', '"held": []', "ops/test_generator.py"),
    Fault("map shares its arguments", "ops/map.py", "own(self.function(*given), given)", "self.function(*given)", "optimize/test_map_fusion.py"),
    # Batches and windows.
    Fault("batch error position", "ops/batch/batch.py", "error, position + error.index", "error, error.index", "ops/batch/test_batch.py"),
    Fault("batch position after an error", "ops/batch/batch.py", "1 + sum(chunk.length for chunk in self._waiting)", "1", "ops/batch/test_batch.py"),
    Fault("batch state", "ops/batch/batch.py", '"waiting": waiting}', '"waiting": None}', "ops/batch/test_batch.py"),
    Fault("batch state_after", "ops/batch/batch.py", "after_inputs(state, count * self.node.batch_size)", "after_inputs(state, count)", "ops/batch/test_batch.py"),
    Fault("batch cardinality", "ops/batch/batch.py", "-(-n // size)", "n // size", "ops/batch/test_batch.py"),
    Fault("padded_batch default", "ops/batch/padded_batch.py", "np.zeros((), dtype)", "np.ones((), dtype)", "ops/batch/test_padded_batch.py"),
    Fault("padded_batch spec", "ops/batch/padded_batch.py", "return (None,) * len(spec.shape)", "return spec.shape", "ops/batch/test_padded_batch.py"),
    Fault("ragged_batch rank", "ops/batch/ragged_batch.py", "last + 1, self", "last, self", "ops/batch/test_ragged_batch.py"),
    Fault("window remainder", "ops/batch/window.py", "-(-held // self.shift)", "held // self.shift", "ops/batch/test_window.py"),
    Fault("window gap", "ops/batch/window.py", "windows * self.shift - passed", "0", "ops/batch/test_window.py"),
    Fault("window state", "ops/batch/window.py", '"gap": self._gap', '"gap": 0', "ops/batch/test_window.py"),
    Fault("unbatch state", "ops/batch/unbatch.py", '"rest": save_chunk(self.rows.rest())', '"rest": None', "ops/batch/test_unbatch.py"),
    Fault("rebatch state", "ops/batch/rebatch.py", '"turn": self.turn', '"turn": 0', "ops/batch/test_rebatch.py"),
    Fault("rebatch keeps rows after an error", "ops/batch/rebatch.py", "self._held.clear()", "pass", "ops/batch/test_rebatch.py"),
    # Shuffles and mixtures.
    Fault("shuffle loses elements", "ops/shuffle/shuffle.py", "out[later] = fresh.take(source, axis=0)", "pass", "ops/shuffle/test_shuffle.py"),
    Fault("shuffle reshuffles", "ops/shuffle/shuffle.py", "draws = Draws(draws.key, 0, 0)", "pass", "ops/shuffle/test_shuffle.py"),
    Fault("shuffle state", "ops/shuffle/shuffle.py", '"drawn": self.stream.position', '"drawn": 0', "ops/shuffle/test_shuffle_states.py"),
    Fault("shuffle counts what waits", "ops/shuffle/shuffle.py", "return made - waiting", "return made", "ops/shuffle/test_shuffle_states.py"),
    Fault("shuffle places", "ops/shuffle/shuffle_places.py", "written = given - 1", "written = given", "ops/shuffle/test_shuffle_places.py"),
    Fault("shuffle bytes", "ops/shuffle/shuffle.py", "self._account.hold(new.nbytes - given.nbytes)", "pass", "ops/shuffle test_ram_budget.py"),
    Fault("sample rewinds", "ops/mix/sample_from_datasets.py", "self.random.stream.position - unused", "self.random.stream.position", "ops/mix"),
    Fault("sample state", "ops/mix/sample_from_datasets.py", 'random["drawn"] - unused', 'random["drawn"]', "ops/mix"),
    Fault("mixture stops on empty", "ops/mix/mixing.py", "self.stop_on_empty or self._gone.all()", "self._gone.all()", "ops/mix"),
    Fault("mixture error position", "ops/mix/mixing.py", "place, self.position = self.position, self.position + 1", "place = self.position", "ops/mix"),
    # Datasets of elements.
    Fault("interleave order", "ops/interleave/round_robin.py", ".transpose(1, 0, 2)", "", "ops/interleave"),
    Fault("interleave state", "ops/interleave/round_robin.py", "min(block, max(0, rest - k * block))", "max(0, rest - k * block)", "ops/interleave"),
    Fault("interleave block", "ops/interleave/round_robin.py", "self.given == self.block_length", "self.given > self.block_length", "ops/interleave"),
    Fault("flat_map state", "ops/interleave/flat_map.py", '"inner": inner', '"inner": None', "ops/interleave"),
    Fault("parallel interleave skips one that is late", "ops/interleave/parallel_interleave.py", "elif self.in_order:", "elif False:", "ops/interleave test_parallel_order.py"),
    Fault("parallel interleave leaks files", "ops/interleave/parallel_interleave.py", "stack.callback(reader.inner.close)", "pass", "ops/interleave test_parallel_endings.py"),
    Fault("group order at the end", "ops/group/group_by_window.py", "min(self.groups, default=None)", "next(iter(self.groups), None)", "ops/group"),
    Fault("group state", "ops/group/group_by_window.py", '"ended": self.ended', '"ended": False', "ops/group"),
    Fault("group window error", "ops/group/group_by_window.py", "self.source.position - 1)", "self.source.position)", "ops/group"),
    Fault("bucket boundary", "ops/group/bucket_by_sequence_length.py", 'searchsorted(lengths, side="right")', "searchsorted(lengths)", "ops/group"),
    Fault("bucket padding", "ops/group/bucket_by_sequence_length.py", "self.bucket_boundaries[bucket] - 1 if", "self.bucket_boundaries[bucket] if", "ops/group"),
    # Caches.
    Fault("cache keeps the second pass", "ops/cache/cache.py", "if self._finished is None:", "if True:", "ops/cache/test_cache.py"),
    Fault("cache gives its memory away", "ops/cache/caching.py", "return chunk.read_only()", "return chunk", "ops/cache/test_cache.py"),
    Fault("cache counts failures", "ops/cache/caching.py", "self._failures += 1", "self._failures += 0", "ops/cache"),
    Fault("cache state", "ops/cache/caching.py", 'self._taken < int(target["taken"])', 'self._taken + 1 < int(target["taken"])', "ops/cache"),
    # Threads, memory and errors at their places.
    Fault("prefetch buffers too much", "ops/prefetch.py", "min(wanted, self.knob.value - self._held)", "wanted", "ops/test_prefetch.py"),
    Fault("prefetch error in a state", "ops/prefetch.py", "self._given += 1", "self._given += 0", "ops/test_prefetch.py ops/test_prefetch_resume.py"),
    Fault("prefetch bytes", "ops/prefetch.py", "self._account.release(counted_bytes - self._items.counted_bytes)", "pass", "ops/test_prefetch.py test_ram_budget.py"),
    Fault("replay log forgets too much", "runtime/state/replay_log.py", "self._marks[1][0] <= given", "self._marks[0][0] <= given", "ops/test_prefetch_resume.py test_parallel_states.py"),
    Fault("replay log and errors", "runtime/state/replay_log.py", "self.read += 1\n", "self.read += 0\n", "ops/test_prefetch_resume.py test_parallel_states.py"),
    Fault("threads are not joined", "runtime/resources/coordinator.py", "self._job_came.notify_all()", "pass", "ops/test_parallel_map.py"),
    Fault("parallel order", "runtime/parallel/pool.py", "elif self._tasks[0] is task:", "elif self._tasks[-1] is task or len(self._tasks):", "ops/test_parallel_map.py test_parallel_order.py"),
    Fault("parallel reservation", "runtime/parallel/pool.py", "self._account.settle(unused, 0, 0)", "pass", "test_ram_budget.py ops/test_parallel_map.py"),
    Fault("parallel state", "runtime/parallel/pool.py", "max(0, count - (made - given))", "0", "test_parallel_states.py"),
    Fault("byte account", "runtime/parallel/pending.py", "self.counted_bytes -= self._front_bytes", "pass", "runtime/parallel ops/test_prefetch.py"),
    Fault("ledger", "runtime/resources/ledger.py", "if held + expected <= most:", "if True:", "runtime/resources test_ram_budget.py"),
    Fault("error at a wrong element", "runtime/functions/calls.py", "self.put_back(inputs, done + 1)", "self.put_back(inputs, done + 2)", "ops/test_map.py"),
    Fault("error names a wrong element", "runtime/functions/calls.py", "placed(error, self.node, self.position)", "placed(error, self.node, 0)", "ops/test_map.py"),
    Fault("random order is not uniform", "runtime/random/permutation.py", "part + 1)]", "1)]", "runtime/random/test_permutation.py"),
    # Rules of the optimizer.
    Fault("rule joins takes", "optimize/noop_elimination.py", "min(inner, outer)", "max(inner, outer)", "optimize/test_noop_elimination.py"),
    Fault("rule joins shards", "optimize/noop_elimination.py", "node.index * inner", "node.index * node.num_shards", "optimize/test_noop_elimination.py"),
    Fault("rule slices", "optimize/slice_pushdown.py", "slice(node.index, None, node.num_shards)", "slice(node.index, None)", "optimize/test_slice_pushdown.py"),
    Fault("rule seeks past errors", "optimize/skip_by_seeking.py", " and node.source.is_certain", "", "optimize/test_skip_by_seeking.py"),
    Fault("rule joins other settings", "optimize/joining.py", "node.parallel_settings() != below.parallel_settings()", "False", "optimize/test_map_fusion.py"),
    Fault("rule and synchronous maps", "optimize/map_parallelization.py", "node.synchronous", "False", "optimize/test_map_parallelization.py"),
    Fault("rule loses the order", "optimize/parallel_batch.py", "deterministic=True", "deterministic=False", "optimize/test_parallel_batch.py"),
    Fault("rule shuffles failing rows", "optimize/shuffle_before_gather.py", "not gather.rows.is_certain", "False", "optimize/test_shuffle_before_gather.py io/test_shuffle_references.py"),
    Fault("rule vectorizes large arrays", "optimize/map_vectorization.py", "> ELEMENT_BYTES_MAX", "> 100 * ELEMENT_BYTES_MAX", "optimize/test_map_vectorization.py"),
    # Readers and parsers.
    Fault("csv line ends", "io/csv/cut.py", "begins[1:] += (data[marks] == _CR)", "begins[1:] += False", "io/csv/test_csv_reader.py"),
    Fault("csv integers", "io/csv/numbers.py", "odd |= (values < limits.min)", "odd |= False", "io/csv/test_numbers.py"),
    Fault("csv records", "io/csv/decode.py", "len(rows) == len(texts) and not rows.problems", "True", "io/csv/test_decode.py"),
    Fault("tfrecord checksum", "io/tfrecord/reader.py", "self._verify and (words := data_damage(data, crc))", "(words := '')", "io/tfrecord/test_reader.py io/tfrecord/test_damage.py"),
    Fault("tfrecord block checksums", "io/tfrecord/checksums.py", "(self._view[: starts[-1]]) == 0", "(self._view[: starts[1]]) == 0", "io/tfrecord/test_damage.py"),
    Fault("tfrecord place", "io/tfrecord/reader.py", "self._offset += frame_bytes", "self._offset += len(data)", "io/tfrecord/test_reader.py"),
    Fault("example int64", "io/example/varints.py", "ninth & (tenth << 7 | 0x7F)", "ninth & 0x7F", "io/example/test_varints.py"),
    Fault("example default", "io/example/assemble.py", "result[~present] = self.default", "result[~present] = self.default[0]", "io/example/test_parse.py"),
    Fault("example kinds", "io/example/columns.py", "wrong = present & (lists.kind != wanted)", "wrong = present & False", "io/example/test_parse.py"),
    Fault("parquet nulls", "io/parquet/reader.py", "self._advance(1, group.count)", "self._advance(2, group.count)", "io/parquet/test_parquet_source.py"),
    Fault("parquet place", "io/parquet/reader.py", "starts[group] + self._row", "starts[group]", "io/parquet/test_parquet_source.py"),
    Fault("text line ends", "io/text/lines.py", 'content.replace(b"\\r", b"")', "content", "io/text/test_lines.py"),
    Fault("text place", "io/text/lines.py", "index - told", "index", "io/text/test_lines.py"),
    Fault("fixed length footer", "io/text/fixed_length_records.py", "(self._held - self._footer_bytes)", "self._held", "io/text/test_fixed_length_records.py"),
]  # fmt: skip


@contextlib.contextmanager
def _copied_tree() -> Iterator[Path]:
    """Copy what the tests need into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        root = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("src", "tests"):
            shutil.copytree(_ROOT / name, root / name, ignore=ignored)
        shutil.copy(_ROOT / "pyproject.toml", root)
        found = _run(root, "-c", "import dataset; print(dataset.__file__)")
        if not found.stdout.startswith(str(root)):
            raise SystemExit(f"the copy in {root} is not what is imported, but {found.stdout}{found.stderr}")
        yield root


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
    )


def _tests(root: Path, tests: str) -> subprocess.CompletedProcess[str]:
    paths = [f"tests/{path}" for path in tests.split()]
    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--timeout=60"]
    return _run(root, "-m", "pytest", *options, *paths)


def _failing(root: Path, faults: list[Fault]) -> set[str]:
    """Return which of the tests fail without any fault, so that they cannot tell that they catch one."""
    failing = set()
    for tests in sorted({path for fault in faults for path in fault.tests.split()}):
        started = time.perf_counter()
        done = _tests(root, tests)
        print(f"without a fault {time.perf_counter() - started:5.1f} s  {tests}", flush=True)
        if done.returncode:
            failing.add(tests)
            print(f"{tests} fails without a fault:\n{done.stdout[-1000:]}", flush=True)
    return failing


def _edited(fault: Fault, text: str) -> str:
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.path} holds {fault.old!r} {text.count(fault.old)} times, not once")
    return text.replace(fault.old, fault.new)


def _try(fault: Fault, root: Path) -> tuple[str, float]:
    """Plant one fault, run its tests, and remove it. Return what came of it, and the seconds."""
    path = root / "src" / "dataset" / fault.path
    text = path.read_text()
    path.write_text(_edited(fault, text))
    started = time.perf_counter()
    try:
        done = _tests(root, fault.tests)
        failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
        # Only a test that fails has caught a fault: 2 and above are faults of the study, such as an import that fails.
        words = f"caught      by {failed[0][7:100]}" if done.returncode == 1 and failed else "NOT CAUGHT"
        if done.returncode not in {0, 1}:
            words += f" (pytest ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]})"
    except subprocess.TimeoutExpired:
        words = f"caught      by no end after {_SECONDS_MAX} s"
    finally:
        path.write_text(text)
    return words, time.perf_counter() - started


def main() -> int:
    """Try the faults. Return 1 unless all are caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only faults with this in their name")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at a time")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a fault first")
    given = parser.parse_args()
    faults = [fault for fault in FAULTS if given.only in fault.name]
    for fault in faults:
        _edited(fault, (_ROOT / "src" / "dataset" / fault.path).read_text())
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        roots: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for _ in range(given.jobs):
            roots.put(stack.enter_context(_copied_tree()))
        root = roots.get()
        failing = set() if given.no_baseline else _failing(root, faults)
        roots.put(root)

        def attempt(fault: Fault) -> bool:
            root = roots.get()
            words, seconds = ("NOT TRIED: its tests fail without a fault", 0.0)
            if failing.isdisjoint(fault.tests.split()):
                words, seconds = _try(fault, root)
            roots.put(root)
            print(f"{fault.name:45} {seconds:5.1f} s  {words}", flush=True)
            return words.startswith("caught")

        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            caught = sum(pool.map(attempt, faults))
    print(f"{caught} of {len(faults)} faults were caught, in {time.perf_counter() - started:.0f} s")
    return int(caught < len(faults))


if __name__ == "__main__":
    sys.exit(main())
