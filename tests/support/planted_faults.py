"""Mutation study: planted faults in the library, each of which the tests named beside it must catch.

    python tests/support/planted_faults.py                    all faults, one after another
    python tests/support/planted_faults.py --only shuffle     those whose name contains "shuffle"
    python tests/support/planted_faults.py --jobs 4           four at a time

Each fault is one small edit of one file of ``src/dataset``. It is made in a temporary copy, never in the working tree.
After an edit of C code, the kernels of the copy are compiled. The named tests first run without any fault, where they
must pass. A fault is caught if they then fail.

Run it before and after tests are removed: a fault that is no longer caught shows what was lost. pytest does not run it.
"""

# ruff: noqa: T201  # a program that prints what it finds

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import multiprocessing
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

_ROOT = Path(__file__).parents[2]
_SECONDS_MAX = 240  # per run of the tests; a fault that makes them hang is caught by pytest-timeout before


class Fault(NamedTuple):
    """One edit. ``old`` occurs exactly once in the file; ``tests`` are paths below tests/, with pytest options."""

    name: str
    path: str
    old: str
    new: str
    tests: str


_TABLE = r"""
ops/take.py: ops/test_take.py
    take gives too many: pull(min(n, self.remaining)) => pull(n)
    take state: saved = ("remaining",) => saved = ()
    take advance: position.count("remaining") - count => position.count("remaining")
ops/skip.py: ops/test_skip.py
    skip counts: self.remaining -= passed => self.remaining -= 1
    skip state: saved = ("remaining",) => saved = ()
ops/repeat.py: ops/test_repeat.py
    repeat count: self.finished == self.times => self.finished - 1 == self.times
    repeat advance: finished += passes => finished += 1
ops/concatenate.py: ops/test_concatenate.py
    concatenate advance: count -= left => count -= 1
    concatenate structure: chunk.structure != self._last.structure => False
ops/zip.py: ops/test_zip.py
    zip state: saved = ("ended",) => saved = ()
    zip raises the last error: failed = failed or error => failed = error
    zip advance: position.input(index), count) => position.input(index), count + 1)
ops/shard/shard_operator.py: ops/shard/test_shard.py ops/shard/test_shard_by_process.py
    shard advance: position.after(count, below => position.after(count - 1, below
    shard offset: reached = base + shard.places(given - 1) + 1 => reached = base + shard.places(given - 1)
    shard state: with_held(held=self._held.save(), => with_held(held=[],
    shard end: if self.at < own: => if self.at <= own:
ops/take_while.py: ops/test_take_while.py
    take_while reads early: 1 if self._one_by_one else n => n
ops/unique.py: ops/test_unique.py
    unique state: "seen": seen => "seen": {}
ops/filter.py: ops/test_filter.py optimize/fusion/test_filter_fusions.py
    filter error position: self.at += 1 => self.at += 0
ops/ignore_errors.py: ops/test_ignore_errors.py
    ignore_errors position: self.dropped += 1 => self.dropped += 0
ops/scan.py: ops/test_scan.py
    scan state: .load(position.own["carried"]) => .save()
    scan keeps the caller's array: own(results.pop(), given) => results.pop()
native/rows.c: native/test_row_loop.py::test_what_the_user_keeps_is_copied
    row loop keeps arrays of the user: if ((alone && is_new(array, writer->bytes)) => if ((is_new(array, writer->bytes))
    row loop keeps all views: is_given(writer, owner_of(value), writer->given) => 1
runtime/chunks/ownership.py: runtime/chunks/test_normalization.py
    parts of arguments are copied: return array if _owns_part(owner, given) else array.copy() => return array.copy()
    views are kept whoever owns them: if _owner_of(value) is owner: => if True:
ops/sources/generator.py: ops/sources/test_generator.py
    generator state: self.at - len(self._ready) => self.at
ops/map.py: optimize/fusion/test_map_fusion.py
    map shares its arguments: own(function(*given), given) => function(*given)

ops/batch/batch.py: ops/batch/test_batch.py
    batch error position: error, position + error.index => error, error.index
    batch position after an error: 1 + sum(chunk.length for chunk in self._waiting) => 1
    batch state: with_held(waiting=waiting) => with_held(waiting=None)
    batch advance: advance_input(position, count * self.node.batch_size) => advance_input(position, count)
    batch cardinality: -(-n // size) => n // size
ops/batch/padded_batch.py: ops/batch/test_padded_batch.py
    padded_batch default: np.zeros((), dtype) => np.ones((), dtype)
    padded_batch shape: pad_column(column, shape, => pad_column(column, (None,) * np.ndim(first),
ops/batch/ragged_batch.py: ops/batch/test_ragged_batch.py
    ragged_batch rank: last + 1, self => last, self
ops/batch/window.py: ops/batch/test_window.py
    window remainder: -(-held // self.shift) => held // self.shift
    window gap: windows * self.shift - passed => 0
    window state: saved = ("_gap",) => saved = ()
runtime/parallel/buffered_operator.py: ops/batch/test_unbatch.py
    outbox state: position.having(held={"outbox": self.outbox.save()}) if self.outbox else position => position
ops/batch/rebatch.py: ops/batch/test_rebatch.py
    rebatch state: saved = ("turn", "ended") => saved = ("ended",)
    rebatch keeps rows after an error: self._held.clear() => pass

ops/shuffle/shuffle.py: ops/shuffle/test_shuffle.py
    shuffle loses elements: out[later] = fresh.take(source, axis=0) => pass
    shuffle reshuffles: draws = Draws(draws.key, 0, 0) => pass
ops/shuffle/shuffle.py: ops/shuffle/test_shuffle_states.py
    shuffle state: "drawn": self.stream.position => "drawn": 0
    shuffle counts what waits: return made - len(self.outbox) => return made
runtime/chunks/provenance.py: test_provenance.py
    references lose files: if found.count(files) < len(found): => if False:
ops/shuffle/shuffle_places.py: ops/shuffle/test_shuffle_places.py
    shuffle places: written = given - 1 => written = given
runtime/random/permutation.py: ops/shuffle/test_clumps.py
    clumps at fixed places: first = int(stream.random(1)[0] * clump) => first = 0
ops/shuffle/shuffle.py: ops/shuffle/test_clumps.py
    clumps are read by row: while isinstance(node, UnaryNode) and (node => while False and (node
    processes read all clumps: shard = shard.one_turn_each(self.cardinality()) => pass
    clumps resume in another epoch: self.key, self.iteration, self.epoch, clump => self.key, self.iteration, 0, clump
ops/sources/row_source.py: ops/shuffle/test_clumps.py
    clumps are divided: return stop + int(ends[0]) if len(ends) else stop => return stop
ops/shuffle/shuffle.py: test_ram_budget.py
    shuffle bytes: self._hold(buffer.estimated_nbytes()) => pass
ops/mix/sample_from_datasets.py: ops/mix
    sample rewinds: self.random.stream.position - unused => self.random.stream.position
    sample state: random["drawn"] -= unused => random["drawn"] -= 0
ops/mix/mixing.py: ops/mix
    mixture loses what is after the end: if self.stop_on_empty:  # what => if False:  # what
    mixture stops on empty: self.stop_on_empty or self._gone.all() => self._gone.all()
    mixture error position: place, self.at = self.at, self.at + 1 => place = self.at

ops/interleave/round_robin.py: ops/interleave
    interleave order: .transpose(1, 0, 2) => .copy()
    interleave state: min(block, max(0, rest - k * block)) => max(0, rest - k * block)
    interleave block: self.given == self.block_length => self.given >= 1
ops/interleave/flat_map.py: ops/interleave
    flat_map state: self.inputs.save([self.datasets.save(self.inner)] => self.inputs.save([None]
ops/interleave/parallel_interleave.py: ops/interleave test_parallel_order.py
    parallel interleave skips one that is late: elif self.in_order: => elif False:
ops/interleave/parallel_interleave.py: ops/interleave test_parallel_endings.py
    parallel interleave leaks files: stack.callback(reader.inner.close) => pass
ops/group/group_by_window.py: ops/group
    group order at the end: min(self.groups, default=None) => next(iter(self.groups), None)
    group state: if key in groups else part => if False else part
    group window error: self.source.at - 1) => self.source.at)
ops/group/bucket_by_sequence_length.py: ops/group
    bucket boundary: searchsorted(lengths, side="right") => searchsorted(lengths)
    bucket padding: self.bucket_boundaries[bucket] - 1 if => self.bucket_boundaries[bucket] if

io/elements/decoding.py: io/elements/test_codec.py
    element text below zero: int(sizes.min()) < 0 => False
    element rest: self.position != len(self.record) => self.position > len(self.record)
    element place: found == list(expected) => found is None
    sparse index below zero: np.any(value.indices < 0) or => False or
    sparse index after the shape: np.any(value.indices >= value.dense_shape) => False
io/elements/metadata.py: io/elements/test_runs.py ops/test_save_load_checkpoints.py
    element shard name: _SHARD.fullmatch(name) => _SHARD.match(name)
    element shard digits: [0-9]{8,} => [0-9]*
io/elements/write_session.py: io/elements/test_runs.py io/elements/test_element_processes.py
    element folder of a user: if not all(is_shard_name(entry.name) and => if not all(
    element dead run: return _current_run(path) == run or => return
io/elements/write_session.py: ops/test_save_load_checkpoints.py
    element size of a checkpoint: 0 <= int(one["size"]) <= os.fstat(descriptor).st_size => 0 <= int(one["size"])
    element later shards: path not in known and is_shard_name(path.name) => path not in known
io/elements/write_session.py: ops/cache/test_cache_files.py
    element lock of its own: but=self.run => but=""

ops/cache/cache.py: ops/cache/test_cache.py
    cache keeps the second pass: if self._finished is None: => if True:
ops/cache/caching.py: ops/cache/test_cache.py
    cache gives its memory away: chunk = chunk.read_only() => pass
ops/cache/caching.py: ops/cache
    cache counts failures: self._failures += 1 => self._failures += 0
    cache state: self._taken < target.at => self._taken + 1 < target.at

ops/prefetch.py: ops/test_prefetch.py
    prefetch buffers too much: reserve(min(self._at_once, room)) => reserve(self._at_once)
    prefetch rests while it reads: self._rests = False  # it => pass  # it
ops/prefetch.py: ops/test_prefetch_patience.py
    prefetch reads beside its worker: self._wait_for_stillness() => pass
ops/prefetch.py: ops/test_prefetch_resume.py::test_an_exception_is_not_raised_again_after_a_resume
    prefetch error in a state: an element\n            self._given += 1 => an element\n            self._given += 0
ops/prefetch.py: ops/test_prefetch.py test_ram_budget.py
    prefetch bytes: self._account.release(counted_bytes - self._items.counted_bytes) => pass
runtime/state/replay_log.py: ops/test_prefetch_resume.py test_parallel_states.py
    replay log forgets too much: self._marks[1][0] <= given => self._marks[0][0] <= given
    replay log and errors: self.read += 1\n => self.read += 0\n
runtime/resources/coordinator.py: ops/test_parallel_map.py
    threads are not joined: self._job_came.notify_all() => pass
runtime/parallel/pool.py: ops/test_parallel_map.py test_parallel_order.py
    parallel order: elif self._tasks[0] is task: => elif self._tasks.remove(task) or not self._accept(task):
runtime/parallel/pool.py: test_ram_budget.py::test_they_stay_below_it_all_the_time_whatever_the_sizes
    parallel reservation: self._account.settle(unused, 0, 0) => pass
runtime/parallel/pool.py: test_parallel_states.py
    parallel state: max(0, count - (made - given)) => 0
runtime/parallel/outcome_queue.py: runtime/parallel
    byte account: self.bytes_given += nbytes => pass
runtime/resources/ledger.py: runtime/resources test_ram_budget.py
    ledger: if held + expected <= most: => if True:
runtime/functions/kernels/rows.py: ops/test_map.py runtime/functions/test_divided.py runtime/functions/test_call_loop.py
    error at a wrong element: Done(count + 1, [*outcomes => Done(count + 2, [*outcomes
    error names a wrong element: calls.node, position + count) => calls.node, 0)
    row of a batch at a wrong place: collect(results, inputs, position) => collect(results, inputs, 0)
runtime/functions/kernels/columns.py: runtime/functions optimize/vectorization
    an output that was not requested: end - inputs.length => end
runtime/functions/kernels/divided.py: runtime/functions/test_divided.py
    divided without a comparison: if not self.trusted: => if False:
    divided, with equal objects for one: if again else rows => if False else rows
    divided although the rest changes what is read: not self._is_first and => False and
    divided, with writeable rows: values.flags.writeable = False => pass
runtime/random/permutation.py: runtime/random/test_permutation.py
    random order is not uniform: part + 1)] => 1)]
ops/shuffle/shuffle.py: test_resume_search.py::test_no_case_resumes_inexactly[0]
    shuffle resumes in another epoch: Stream(self.key, self.iteration, self.epoch) => Stream(self.key, self.iteration, 0)
    shuffle resumes without its hole: self._hole = position.like("hole", -1) => pass
ops/repeat.py: test_resume_search.py::test_no_case_resumes_inexactly[0]
    repeat resumes in the first pass: saved = ("finished", "pass_is_empty", "over") => saved = ("pass_is_empty", "over")
    repeat resumes as if the pass were empty: saved = ("finished", "pass_is_empty", "over") => saved = ("finished", "over")
ops/cache/caching.py: test_resume_search.py::test_no_case_resumes_inexactly[0]
    cache resumes one element early: self._taken < target.at => self._taken + 1 < target.at
ops/group/group_by_window.py: test_resume_search.py::test_no_case_resumes_inexactly[0]
    group_by_window resumes after its window: self.inner = self.windows.load(position.inputs[1]) => pass
runtime/state/replay_log.py: test_resume_search.py::test_no_case_resumes_inexactly[0]
    replay log resumes at its mark: self.given = position.skipped => self.given = 0
runtime/position.py: runtime/test_position.py
    own entry of another type: if type(found) is not type(value) or => if
    negative count: least <= value <= _COUNT_MAX => value <= _COUNT_MAX
    runs in any order: after[0] < before[0] => False
    later position with the former inputs: inputs or self.inputs => self.inputs
runtime/contract.py: runtime/test_position.py
    operator restores no declared attribute: for name in self.saved: => for name in ():
ops/interleave/round_robin.py: ops/interleave/test_interleave.py
    interleave resumes at the start of a block: own.count("turn"), own.count("given") => own.count("turn"), 0
ops/interleave/flat_map.py: test_resume_search.py::test_no_case_resumes_inexactly[0]
    flat_map resumes after its dataset: self.inputs.save([self.datasets.save(self.inner)] => self.inputs.save([None]
ops/take.py: test_resume_search.py::test_no_case_resumes_inexactly[0]
    take resumes with all elements left: saved = ("remaining",) => saved = ()

ops/take.py: optimize/test_noop_elimination.py
    rule joins takes: min(self.source.count, self.count) => max(self.source.count, self.count)
ops/shard/shard.py: optimize/test_noop_elimination.py
    rule joins shards: inner.num_shards * self.index => self.num_shards * self.index
optimize/pushdown/slice_pushdown.py: optimize/pushdown/test_slice_pushdown.py
    rule slices: node.cardinality() * step, step) => node.cardinality() * step)
ops/skip.py: optimize/pushdown/test_skip_by_seeking.py
    rule seeks past errors: and not self.by_seeking and is_exact(self.source) => and not self.by_seeking
optimize/fusion/elementwise_fusion.py: optimize/fusion/test_map_fusion.py
    rule joins other settings: node.parallel_settings() != below.parallel_settings() => False
ops/map.py: optimize/parallelism/test_parallel_calls.py
    rule and synchronous maps: None if self.synchronous else => None if False else
plan/node.py: optimize/parallelism/test_parallel_calls.py
    rule loses the order: num_parallel_calls=-1, deterministic=True => num_parallel_calls=-1, deterministic=False
optimize/pushdown/shuffle_before_gather.py: optimize/pushdown/test_shuffle_before_gather.py
    rule shuffles failing rows: node.traits.aligned and not => False and not
optimize/vectorization/map_vectorization.py: optimize/vectorization/test_map_vectorization.py
    rule marks nothing: marks["columnwise"] = found => pass

io/csv/row_parser.py: io/csv/test_csv_reader.py
    csv line ends: (2 if data.startswith => (1 if data.startswith
io/csv/row_parser.py: io/csv/test_numbers.py
    csv integers: if not -limit <= value < limit: => if not value < limit:
io/csv/decode.py: io/csv/test_decode.py
    csv records: or len(rows.starts) <= len(part) => or False
io/tfrecord/frames.py: io/tfrecord/test_reader.py io/tfrecord/damage/test_damage.py
    tfrecord checksum: verify and (words := data_damage(data, _read_crc(footer)[0])) => (words := '')
io/tfrecord/frames.py: io/tfrecord/test_frame_finder.py
    tfrecord frames: if verify == VERIFY_ALL and => if verify and
io/tfrecord/reader.py: io/tfrecord/test_reader.py
    tfrecord place: self._offset += len(data) + FRAME_BYTES => self._offset += len(data)
io/example/kernel_columns.py: io/example/test_kernel_columns.py
    example kinds: kinds & ~(1 | sole | several) => False
io/example/reference.py: io/example/test_parse.py
    example keys: b"".join(entry.value) => entry.value[0]
io/example/assemble.py: io/example/test_parse.py
    example default: values[~column.present] = self.default => values[~column.present] = self.default[0]
io/parquet/reader.py: io/parquet/test_parquet_source.py
    parquet nulls: self._advance(1, group.count) => self._advance(2, group.count)
    parquet place: starts[group] + self._row => starts[group]
io/files/remote/ranges_ahead.py: io/files/remote/test_ranges_ahead.py
    ranges ahead are mixed with announced ones: if self._are_announced: => if False:
    ranges ahead of all files are not limited: and len(_requested) < _PROCESS_RANGES_MAX: => :
    ranges ahead do not become fewer after a failure: max(1, self.count // 2) => self.count
io/files/remote/disk_cache.py: io/files/remote/test_disk_cache.py
    cached blocks are not checked: if len(data) < length or checksum != _checksum(name, number, version, data): => if False:
    cached blocks of another version are used: if found != version or length > CACHED_BYTES: => if length > CACHED_BYTES:
    the cache removes what was used last: found.sort(reverse=True) => found.sort()
    the cache trusts the folder of another user: if found.st_uid != os.geteuid(): => if False:
io/files/remote/cached_object.py: io/files/remote/test_disk_cache.py
    a claim is taken although another reader holds it: if error.errno == errno.EADDRINUSE: => if False:
    blocks that arrive are not kept: whole = len(data) if first + len(data) == size => whole = 0 if first + len(data) == size
io/files/remote/backoff.py: io/files/remote/test_disk_cache.py
    a host may ask for any wait: return min(max(0.0, until - time.time()), RETRY_AFTER_SECONDS_MAX) => return max(0.0, until - time.time())
io/text/lines.py: io/text/test_lines.py io/files/test_readers.py
    text line ends: content.replace(b"\r", b"") => content
    text place: index - told => index
io/text/fixed_length_records.py: io/text/test_fixed_length_records.py
    fixed length footer: (self._held - self._footer_bytes) => self._held

ops/distribute/operator.py: ops/distribute/test_distribute.py::test_a_state_is_resumed_by_any_number_of_workers[7-3]
    distribute state without its cursor: self._cursor = position.count("cursor") => pass
    distribute state counts what only arrived: share.position(share.delivered) for => share.position(share.received) for
ops/distribute/operator.py: ops/distribute/test_distribute.py::test_a_state_is_resumed_by_any_number_of_workers[7-2]
    distribute resumes other numbers of workers: None, shard.own_in(self.at) => None, self.at // workers
ops/distribute/operator.py: ops/distribute/test_distribute.py::test_whole_rounds_are_taken_at_once_and_a_state_in_the_middle_is_exact[0-2]
    distribute counts rounds that are not whole: self._turns.rotate(-more) => pass
ops/distribute/operator.py: ops/distribute/test_distribute.py::test_a_change_of_workers_releases_the_bytes_of_elements_that_were_not_taken
    distribute keeps the bytes of former shares: self._account.release(share.queue.counted_bytes) => pass
ops/distribute/operator.py: ops/distribute/test_distribute_faults.py::test_a_worker_that_keeps_dying_is_an_error_after_the_elements_before_it
    distribute restarts once too often: len(share.losses) > self.node.max_restarts => len(share.losses) > self.node.max_restarts + 1
    distribute names a wrong element: own * share.workers + share.rank => own * share.workers
    distribute loses elements before a deadly one: max(share.singly, count) => 0
ops/distribute/share_runner.py: ops/distribute/test_distribute.py::test_files_have_random_numbers_of_their_own
    distribute draws alike for all files: derived_seed(key, start.rank) => derived_seed(key, 0)

ops/pack/best_fit.py: ops/pack/test_pack.py::test_no_row_of_the_plan_is_too_full
    pack exceeds max_sequences: if room and left[row]: => if room:
ops/pack/window_operator.py: ops/pack/test_pack.py::test_after_a_resume_an_error_names_the_element_of_the_input
    pack state without its origin: self._index, self._origin = position.count("window"), position.at => self._index, self._origin = position.count("window"), 0
ops/pack/window_operator.py: ops/pack/test_pack.py::test_a_window_that_changes_before_a_resume_is_an_error[pack]
    pack repeats rows after a resume: self._next, self._count, self._behind = min(self._behind, count), => self._next, self._count, self._behind = 0,
    pack resumes in another window: if self._checksum not in {None, found}: => if False:
ops/pack/window_operator.py: ops/pack/test_pack.py::test_shuffles_the_rows_of_a_window_anew_in_each_epoch
    pack orders windows alike: stream.permutation(count, self._index) => stream.permutation(count, 0)
ops/pack/concat_split.py: ops/pack/test_concat_split.py::test_keeps_the_contract_of_an_op[4]
    concat_split state without its carry: carry=save_chunk(self._carry) => carry=None
ops/pack/concat_split.py: test_provenance.py::test_the_records_of_a_row_are_in_its_order_and_come_once
    concat_split counts separators twice: sizes[self._carry is not None :] += 1 => sizes += 1
ops/pack/batch_by_tokens.py: ops/pack/test_batch_by_tokens.py::test_a_sequence_that_does_not_fit_is_an_error
    batch_by_tokens checks without padding: and padded <= self.node.max_tokens => and length <= self.node.max_tokens

queues/element_queue.py: queues/test_queue_kinds.py::test_an_exception_takes_the_place_of_an_element
    queue loses elements before a failure: self._restore(rows[:index] + rows[index + 1 :]) => self._restore(rows[index + 1 :])
queues/element_queue.py: queues/test_queue_kinds.py::test_closing_lets_waiting_producers_finish
    queue ends before waiting producers: return self._is_closed and not self._enqueues => return self._is_closed
queues/random_shuffle_queue.py: queues/test_queue_kinds.py::test_a_random_order_is_uniform_and_repeats_with_its_seed
    queue never chooses the last: self._random.randrange(len(rows)) => self._random.randrange(max(1, len(rows) - 1))
queues/priority_queue.py: queues/test_queue_kinds.py::test_elements_that_are_put_back_keep_their_order
    queue puts elements back in another order: next(self._restored), row => next(self._numbers), row
queues/threads.py: queues/test_threads.py::test_the_queue_stays_open_until_the_last_function_has_ended
    queue closes with the first function: is_last = not self._running => is_last = True
queues/serving.py: queues/test_serving.py::test_only_methods_of_queues_can_be_called
    queue serves any attribute: if method not in _METHODS: => if method.startswith("_"):
queues/serving.py: queues/test_serving.py::test_an_exception_that_does_not_arrive_goes_back queues/test_serving.py::test_what_is_not_acknowledged_goes_back_and_delays_the_end
    served queue lends nothing: self._is_lent = self.call is not None and bool(self.call.rows) => self._is_lent = False
queues/serving.py: queues/test_serving.py::test_a_server_that_is_stopped_is_named_and_a_call_without_an_answer_never_begins
    served queue begins calls of connections that have ended: self._server.loop.call_later(0, self._read) => self._read()
queues/serving.py: queues/test_serving.py::test_nothing_is_unpickled_before_the_key_is_proved
    served queue admits anybody: if hmac.compare_digest(proof, => if not hmac.compare_digest(b"",
queues/element_queue.py: queues/test_serving.py::test_what_is_not_acknowledged_goes_back_and_delays_the_end
    queue ends before what is lent comes back: not (len(self) or self._lent) => not len(self)
ops/sources/from_queue.py: queues/test_queue_log.py::test_what_is_taken_together_is_one_record_and_a_state_may_be_within_it
    queue log resumes at its record: self._run - waiting if waiting else 0 => 0

live/page_server.py: live/test_page_server.py::test_a_name_that_was_made_to_point_to_this_machine_is_refused
    live page answers names that begin alike: _HOST.fullmatch( => _HOST.match(
live/page_server.py: live/test_page_server.py::test_only_this_machine_can_connect_and_no_other_origin_may_read
    live page listens everywhere: super().__init__(("127.0.0.1", port) => super().__init__(("", port)
live/page_server.py: live/test_page_server.py::test_a_new_client_is_answered_however_many_others_keep_a_thread
    live page lets no client give way: [: len(self._clients) >= _CLIENTS_MAX] => [:0]
live/page_server.py: live/test_page_server.py::test_clients_that_do_not_read_or_ask_end_after_a_while
    live page never forgets clients: self._clients.pop(threading.current_thread(), None) => pass
live/feed.py: live/test_page_server.py::test_a_stream_hears_of_the_end_at_once_and_ends_with_the_page
    live feed shows the end late: self._latest_change != self._changes or => False or
live/feed.py: live/test_page_server.py::test_a_stream_that_sends_while_all_are_told_to_repeat_does_not_wait_next
    live stream misses what comes while it sends: number = self._changes + self._repeats => number = self._changes
runtime/choice.py: autotune/test_choice.py
    comparisons cost nothing: max(GAIN - 1, worse) * seconds / _PRICE => 0.0 * seconds / _PRICE
    comparisons may waste CPU time: max(1 - gain, (other - last) / max(other, 1e-9)) => 1 - gain
    the first segment counts without a reason: if not (is_busy and self.is_much_slower( => if (False and self.is_much_slower(
runtime/parallel/controller.py: autotune/test_choice.py
    work that changes is compared at any price: else self.choice.is_paid => else (lambda now: True)
runtime/parallel/controller.py: autotune/test_controller.py autotune/test_choice.py
    the start of processes is measured: if self.inline and self.wants_processes and not self.has_processes: => if False:
    a request that is much slower is awaited: if self.choice.is_much_slower(made, now - begun.now): => if False:
    gaps begin a comparison that is lost: verdict.ratio * segment.seconds > busy_seconds => verdict.ratio
    inline is compared with itself: THREADS if self.inline else INLINE, now => INLINE, now
    processes are never started: self.wants_processes = True  # the => pass  # the
runtime/parallel/pool.py: ops/test_map_executor.py
    a process that cannot load the function is awaited: failure = self._start_failure => failure = None
runtime/processes/worker_processes.py: runtime/processes/test_processes.py
    processes started ahead are not kept: self._give_back(self._take(fresh=True)[0]) => self._take(fresh=True)
runtime/functions/text_operations.py: runtime/functions/test_expression.py
    default of a lookup is lost: table.get(key, *default) if => table.get(key) if
    arrays are printed by the user: np.get_printoptions()["formatter"] is None => True
runtime/functions/evaluate.py: runtime/functions/test_expression.py
    a mask is taken for places: if places.dtype == bool and => if False and
    a large int is stored: "safe" if is_checked else "same_kind" => "same_kind"
    keys that were assumed are not checked: require(type(target) is dict and (*target,) == names) => require(target)
    numbers are arrays: return np.ndarray if column.ndim > 1 => return np.ndarray if column.ndim > 0
    texts are computed on columns alone: uses_arrays or not evaluation.takes_texts => True
ops/map.py: ops/test_map.py
    an invalid element fails differently with threads: if len(results) == 1:  # an element => if False:  # an element
live/process_page.py: live/test_page_server.py::test_a_wrong_value_of_the_environment_says_what_is_right
    live port is one too large: int(setting) < 1 << 16 => int(setting) <= 1 << 16
live/prometheus.py: live/test_prometheus.py::test_any_name_survives
    live label is not escaped: text.replace("\\", r"\\").replace => text.replace
live/telemetry.py: live/test_telemetry.py::test_an_estimate_that_becomes_smaller_does_not_decrease_a_counter
    live counter decreases: get((name, index), 0)) > 0 => get((name, index), 0)) != 0

native/csv.c: io/csv/test_numbers.py::test_integers_at_the_limits_of_their_dtype
    kernel reads integers above the limit: whole > limit + (uint64_t)is_negative => whole > limit + 1
native/csv.c: io/csv/test_numbers.py::test_a_float32_is_not_rounded_twice
    kernel rounds float32 twice: (bits & 0x1fffffff) == 0x10000000 => 0
native/csv.c: io/test_kernels.py::test_a_kernel_agrees_with_its_twin[copy_texts]
    kernel ends rows within a line end: if (rest.at == rest.end) => if (rest.at > rest.end)
native/example.c: io/example/test_kernel_columns.py::test_an_integer_has_ten_bytes_or_fewer_wherever_it_begins
    kernel takes integers of eleven bytes: : 8) > 10) => : 8) > 11)
native/example.c: io/example/test_kernel_columns.py::test_many_unusual_records_among_regular_ones
    kernel forgets that records differ: sums[EACH] = row && sums[EACH] != count ? MIXED : count; => sums[EACH] = count;
native/ragged.c: native/test_ragged_rows.py::test_splits_that_were_overwritten_read_nothing_outside_of_the_values[0--1]
    kernel copies before the values: if (begin < 0 || end < begin => if (end < begin
native/framing.c: io/test_kernels.py::test_a_kernel_agrees_with_its_twin[find_frames]
    kernel takes frames without their footer: - position - HEADER_BYTES - FOOTER_BYTES) => - position - HEADER_BYTES)
native/framing.c: io/tfrecord/test_frame_finder.py::test_data_of_every_length_is_verified
    kernel joins checksums wrongly: SHIFTS[i].two) ^ shifted(second, SHIFTS[i].one) => SHIFTS[i].one) ^ shifted(second, SHIFTS[i].two)
native/image.c: io/image/test_resize.py::test_resized_values_are_those_of_tensorflow
    kernel weighs rows alike: next_weight = rows.weights[next] => next_weight = rows.weights[at]

runtime/functions/expression.py: optimize/vectorization/test_map_vectorization.py::test_what_a_function_reads_is_read_anew
    graph ignores what is read anew: if value is UNBOUND or not read.allows(value): => if value is UNBOUND:
runtime/functions/expression.py: runtime/functions/test_expression.py::test_runs_on_columns_with_the_results_of_single_calls
    graph exchanges the sides of a branch: if when != "false" else => if when == "false" else
runtime/functions/expression.py: runtime/functions/test_expression.py::test_what_a_function_reads_is_read_again
    graph overlooks that a dict has other keys: self._note(_Outside((*container.place, step), None), keys) => pass
runtime/functions/bytecode.py: runtime/functions/test_bytecode.py::test_other_instructions_are_not_executed
    graph reads a variable of a closure too early: if any(at > instruction.offset or any( => if any(any(
runtime/functions/expression.py: runtime/functions/test_expression.py::test_says_why_there_is_no_graph
    graph takes the items of an iterator before a change: if items.at not in {None, self.changes}: => if False:
runtime/functions/expression.py: optimize/vectorization/test_batch_parsing.py::test_any_other_function_gets_objects
    trace overlooks handlers of exceptions: if self.is_called is None else names_in_handlers(code) => if True else ()
runtime/functions/expression.py: ops/interleave/test_window_batches.py::test_other_functions_are_not_proved
    trace overlooks variables of a loop: for name in stored: => for name in ():
runtime/functions/places.py: runtime/functions/test_expression.py::test_a_method_that_is_replaced_or_hidden_is_called
    graph overlooks attributes that hide methods: not is_special and name in => is_special and name in
runtime/functions/places.py: runtime/functions/test_expression.py::test_classes_that_are_more_than_named_tuples_are_called
    graph overlooks methods of a named tuple: and members.isdisjoint(_USED) => and True
runtime/functions/column_operations.py: runtime/functions/test_expression.py::test_an_array_that_the_user_holds_is_not_modified
    functions write into arrays of the user: len(positional) <= most and refused.isdisjoint(keywords) => True
runtime/functions/column_operations.py: runtime/functions/test_column_operations.py
    columns choose another zero: found = (alike & (np.signbit(left) != np.signbit(right))).any() => found = False
runtime/functions/evaluate.py: optimize/vectorization/test_map_vectorization.py::test_numpy_warns_as_often_and_in_the_same_words
    columns do not warn: if how != "ignore"} => if how == "raise"}
runtime/functions/evaluate.py: optimize/vectorization/test_map_vectorization.py::test_elements_decide_whether_it_runs_on_columns
    columns reuse what is used twice: len(self.graph.uses[expression]) == 1 => len(self.graph.uses[expression]) >= 1
runtime/functions/evaluate.py: runtime/functions/test_expression.py::test_a_dict_that_the_user_holds_is_not_modified
    columns modify a dict of the user: require(id(value) in self.own_dicts, => require(True,
runtime/functions/evaluate.py: runtime/functions/test_expression.py::test_a_row_that_the_user_holds_is_not_modified
    columns modify the rows of the user: np.may_share_memory(rows.values, other) for other in self.foreign => False for other in self.foreign
runtime/functions/evaluate.py: runtime/functions/test_generated_functions.py
    sides of a branch modify copies of views: self.foreign.append(known.values) => known.values.shape
    columns forget what is a view of a table: self.foreign += [value.values, value.source] => self.foreign += []
optimize/vectorization/parsing_functions.py: optimize/vectorization/test_parser_vectorization.py::test_features_that_change_later_are_those_that_count
    columns of features that have changed: if not self.holds(): => if False:
runtime/functions/kernels/vectorized.py: runtime/functions/test_call_loop.py::test_a_vectorized_function_that_returns_no_columns_is_an_error
    columns of another length: or len(column) != length: => or not len(column):

io/tar/members.py: io/tar/test_tar.py::test_long_members_that_are_not_requested_are_not_read
    tar padding of whole blocks: self._padding = -size % BLOCK_BYTES => self._padding = BLOCK_BYTES - size % BLOCK_BYTES
io/tar/members.py: io/tar/test_tar.py::test_a_declared_size_is_compared_with_the_file_before_anything_is_allocated
    tar size is not compared with the file: if size > left: => if False:
    tar name of any size: if size > EXTENDED_BYTES_MAX: => if False:
io/tar/members.py: io/tar/test_tar.py::test_times_in_the_header_of_a_gnu_archive_are_not_part_of_the_name
    tar prefix of GNU headers: header[257:263] == b"ustar\0" => header[257:262] == b"ustar"
io/indexed/saved_index.py: io/tar/test_tar.py::test_a_file_that_changes_while_its_index_is_built_is_an_error
    index of a file that changes: if stamp is not None and found != stamp: => if False:
io/text/line_index.py: io/text/test_line_index.py
    line index trusts its numbers: if len(ends) != stop - first: => if False:
    line index begins with a line end: int(ends[place - 1]) + 1 if place => int(ends[place - 1]) if place
    line index counts blank rows: found[end] = False => pass
    line index counts returns as a line: .strip(b"\r"): => :
io/indexed/records_at.py: io/text/test_line_index.py
    index of a file that was modified since: if (found.st_size, found.st_mtime_ns) != self._index.stamp: => if False:
io/indexed/index_file.py: io/text/test_line_index.py io/tfrecord/test_index.py
    index without its checksum: if masked_crc(memoryview(content) => if False and masked_crc(memoryview(content)
io/tar/reader.py: io/tar/test_tar.py::test_an_interrupt_in_the_middle_loses_no_sample
    tar interrupt loses samples: self._reopen_at(*place)  # what => pass  # what
io/tar/reader.py: io/tar/test_tar.py::test_files_are_closed_at_the_end_and_after_damage
    tar files stay open: if self._ended:\n            self._release()\n        return sample => return sample
io/tar/reader.py: io/tar/test_tar.py::test_fields_are_those_of_the_first_sample_or_those_requested
    tar counts no failed sample: self._number += 1\n => self._number += 0\n

io/json_lines/reader.py: io/json_lines/test_json_lines.py::test_a_byte_order_mark_within_a_file_is_not_valid
    json mark within the file: if self._first + start == 0: => if start == 0:
io/json_lines/reader.py: io/json_lines/test_json_lines.py::test_reading_continues_exactly_from_every_position
    json position without blank lines: self._next = run.places[stop - 1] + 1 => self._next += stop - start
io/json_lines/reader.py: io/json_lines/test_json_lines.py::test_a_value_that_does_not_match_is_an_error_in_its_place
    json error names the line before: line {number + 1}, {words} => line {number}, {words}
io/json_lines/columns.py: io/json_lines/test_json_lines.py::test_numbers_are_those_of_the_json_module
    json integers of 64 bits: info.min <= min(values) and => True and
io/json_lines/columns.py: io/json_lines/test_json_lines.py::test_a_value_that_does_not_match_is_an_error_in_its_place
    json overflow of float32: np.errstate(over="raise") => np.errstate(over="ignore")
io/json_lines/columns.py: io/json_lines/test_json_lines.py::test_a_key_or_a_type_that_the_inspected_rows_do_not_have_is_an_error_that_says_what_to_do
    json keys of the first row only: set().union(*rows) - tree.keys() => set(rows[0]) - tree.keys()
io/json_lines/columns.py: io/json_lines/test_json_lines.py::test_each_kind_of_value_has_its_component
    json columns in another order: names = dict.fromkeys(itertools.chain.from_iterable(rows)) => names = sorted(set(itertools.chain.from_iterable(rows)))
io/json_lines/source.py: io/json_lines/test_json_lines.py::test_the_rows_for_inference_are_counted_over_all_files
    json rows of each file: left = rows_max\n    for path in paths:\n => for path in paths:\n        left = rows_max\n
"""  # noqa: E501  # names of tests and lines of code are not broken


def _faults(table: str) -> list[Fault]:
    """Read the table: a file and its tests, then its faults, each as name, old text and new text."""
    found, path, tests = [], "", ""
    for line in filter(None, table.splitlines()):
        name, rest = line.split(": ", 1)
        if name.startswith(" "):
            old, new = rest.split(" => ")
            found.append(Fault(name.strip(), path, old.replace("\\n", "\n"), new.replace("\\n", "\n"), tests))
        else:
            path, tests = name, rest
    return found


FAULTS = _faults(_TABLE)


@contextlib.contextmanager
def _copied_tree() -> Iterator[Path]:
    """Copy what the tests need into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        root = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("src", "tests"):
            shutil.copytree(_ROOT / name, root / name, ignore=ignored)
        for name in ("pyproject.toml", "hatch_build.py"):
            shutil.copy(_ROOT / name, root)
        # Otherwise each run would compile all modules. The bytecode of an edited file is ignored, as its hash differs.
        _run(root, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src", "tests")
        found = _run(root, "-c", "import dataset; print(dataset.__file__)")
        if not found.stdout.startswith(str(root)):
            raise SystemExit(f"the copy in {root} is not what is imported, but {found.stdout}{found.stderr}")
        yield root


def _environment(root: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{root / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command, environment = [sys.executable, *arguments], {**os.environ, **_environment(root)}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


class _Ended(NamedTuple):
    code: int | None
    output: str


def _tests(root: Path, tests: Iterable[str], *options: str, seconds: float | None = _SECONDS_MAX) -> _Ended:
    """Run tests in a process of their own, which begins with all imports that no fault can change."""
    common = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--timeout=60"]
    common += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # for what was imported before
    arguments = [*common, *options, *(f"tests/{path}" for path in tests)]
    output = root / "output"
    process = _PROCESSES.Process(target=_pytest, args=(root, arguments, output))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        raise TimeoutError
    return _Ended(process.exitcode, output.read_text())


_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["hypothesis", "numpy", "pytest"])


def _pytest(root: Path, arguments: list[str], output: Path) -> None:
    """Run pytest, and exit with its code. Runs in the new process."""
    os.chdir(root)
    os.environ.update(_environment(root))
    sys.dont_write_bytecode = True
    sys.path[0] = f"{root / 'src'}"  # in the place of the folder of this program
    with output.open("w") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    sys.exit(pytest.main(arguments))


def _failed(done: _Ended) -> list[str]:
    """Return the tests that failed, by their paths below tests/."""
    marks = ("FAILED tests/", "ERROR tests/")
    return [line.removeprefix(mark) for line in done.output.splitlines() for mark in marks if line.startswith(mark)]


def _failing(root: Path, faults: list[Fault]) -> set[str]:
    """Return which of the tests fail without any fault, so that they cannot tell that they catch one."""
    named = sorted({path for fault in faults for path in fault.tests.split()})
    started = time.perf_counter()
    done = _tests(root, named, seconds=None)
    failed = _failed(done)
    print(f"without a fault {time.perf_counter() - started:5.1f} s  {done.output.splitlines()[-1]}", flush=True)
    if done.code and not failed:
        raise SystemExit(f"the tests do not run without a fault:\n{done.output[-3000:]}")
    for test in failed:
        print(f"fails without a fault: {test}", flush=True)
    return {path for path in named if any(test.startswith(path) for test in failed)}


def _edited(fault: Fault, text: str) -> str:
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.path} holds {fault.old!r} {text.count(fault.old)} times, not once")
    return text.replace(fault.old, fault.new)


@contextlib.contextmanager
def _planted(fault: Fault, root: Path) -> Iterator[None]:
    """Plant a fault for the time of a block."""
    path = root / "src" / "dataset" / fault.path
    kernels = [path.with_name("_kernels.so")] if path.suffix == ".c" else []
    before = {file: file.read_bytes() for file in (path, *kernels)}
    path.write_text(_edited(fault, path.read_text()))
    try:
        for library in kernels:
            done = _run(root, "hatch_build.py", f"{library}", "-O0")  # in a third of the time of -O3
            if done.stderr:
                raise SystemExit(f"{fault.name}: {done.stderr}")
        yield
    finally:
        for file, content in before.items():
            file.write_bytes(content)


def _try(fault: Fault, root: Path) -> tuple[str, float]:
    """Plant one fault, run its tests, and remove it. Return what came of it, and the seconds."""
    started = time.perf_counter()
    try:
        with _planted(fault, root):
            done = _tests(root, fault.tests.split(), "-x")
        failed = _failed(done)
        # Only a test that fails has caught a fault: 2 and above are faults of the study, such as an import that fails.
        words = f"caught      by {failed[0]:.100}" if done.code == 1 and failed else "NOT CAUGHT"
        if done.code not in {0, 1}:
            words += f" (pytest ended with {done.code}: {done.output[-300:]})"
    except TimeoutError:
        words = f"NOT CAUGHT within {_SECONDS_MAX} s"
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
