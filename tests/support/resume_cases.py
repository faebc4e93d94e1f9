"""Pipelines for tests of resuming and interrupts: at least one for every method that makes an op, and for every reader.

A case is an expression with the names of chains/names.py, so that another process builds the same pipeline. Its name
is the public name that it covers, followed by a colon and the variant. chains/draw.py draws combinations of ops.
"""

from __future__ import annotations

import re

from chains.chain import Chain, Step


def _chains(table: str) -> dict[str, Chain]:
    """Read a table of names and expressions. An indented line continues the one before."""
    lines = re.sub(r"\n +", "", table).splitlines()
    texts = dict(line.split(" => ") for line in lines if line and not line.startswith("#"))
    return {name: Chain((_whole(text),)) for name, text in texts.items()}


def _whole(text: str) -> Step:
    """Return a pipeline as one step."""
    keeps_order = ".cache(" in text or ".snapshot(" in text
    return Step(text, None, by_chance="deterministic=False" in text, keeps_order=keeps_order)


CASES = _chains("""
# Sources
range => Dataset.range(20, 3, -2)
counter => Dataset.counter(0.5, 0.1, np.float32).take(9)
random => Dataset.random(3, rerandomize_each_iteration=True).take(5).repeat(3)
random: without a seed => Dataset.random(seed=None).take(4).repeat(2)
from_tensors => Dataset.from_tensors({'a': np.arange(3), 'b': 'text'}).repeat(3)
from_list => Dataset.from_list([(i, np.arange(i)) for i in range(7)]).shuffle(3, seed=1).repeat(2)
from_list: in order => Dataset.from_list([(i, np.arange(i)) for i in range(7)]).batch(1)
from_tensor_slices => Dataset.from_tensor_slices((np.arange(11), {'t': [b'%d' % i for i in range(11)]}))
from_generator => Dataset.from_generator(lambda stop: ((i, np.full(i % 3, i)) for i in range(stop)), args=(9,))
from_generator: that raises => Dataset.from_generator(lambda: (failing(5, 4)(x) for x in range(9))).repeat(3)
from_pandas => Dataset.from_pandas(__import__('pandas').DataFrame({'x': range(9), 'name': list('abcdefghi')}))
from_polars => Dataset.from_polars(__import__('polars').DataFrame({'x': range(9), 'name': list('abcdefghi')}))
from_arrow => Dataset.from_arrow(str(files.folder / 'table.arrow'))
from_arrow_ipc => Dataset.from_arrow_ipc(files.parts('batches')).shuffle(4, seed=1).repeat(2)
from_arrow_ipc: files at once => Dataset.from_arrow_ipc(files.parts('batches'), num_parallel_reads=2)
from_parquet => Dataset.from_parquet(files.parts('table'))
from_parquet: files at once => Dataset.from_parquet(files.parts('table'), num_parallel_reads=2)
from_image_folder => Dataset.from_image_folder(files.folder / 'images', channels=1, shuffle=True, seed=1).repeat(2)
load => Dataset.load(files.folder / 'saved')
load: with a reader => Dataset.load(files.folder / 'saved', reader_func=lambda shards: shards.shuffle(3, seed=1)
    .flat_map(lambda shard: shard)).repeat(2)
list_files => Dataset.list_files(str(files.folder / '*.tfrecord'), seed=4).map(lambda path: path[-14:])
list_files: interleaved => Dataset.list_files(str(files.folder / 'text-*'), seed=4)
    .interleave(TextLineDataset, 2, 2, num_parallel_calls=2).shuffle(5, seed=2).repeat(2)
# Readers
TFRecordDataset => TFRecordDataset(files.parts('plain'))
TFRecordDataset: GZIP => TFRecordDataset(files.parts('gzip'), 'GZIP')
TFRecordDataset: ZLIB, files at once => TFRecordDataset(files.parts('zlib'), 'ZLIB', num_parallel_reads=2)
TFRecordDataset: ZSTD => TFRecordDataset(files.parts('zstd'), 'ZSTD')
TFRecordDataset: with an index => TFRecordDataset(files.parts('plain'), index=True)
TFRecordDataset: of clumps => TFRecordDataset(files.parts('plain'), index=True).shuffle(7, seed=1, clump=4).repeat(2)
TFRecordDataset: shuffled => TFRecordDataset(files.parts('plain'), index=True).shuffle(7, seed=1).repeat(2)
TFRecordDataset: a file is missing => TFRecordDataset([files.parts('plain')[0], 'no', files.parts('plain')[1]])
TextLineDataset => TextLineDataset(files.parts('text'), buffer_size=7)
TextLineDataset: with an index => TextLineDataset(files.parts('lines'), index=True)
TextLineDataset: with an index, split => TextLineDataset(files.parts('lines'), index=True)
    .split([0.7, 0.3])[0].shuffle(None, seed=1).repeat(2)
TextLineDataset: GZIP => TextLineDataset(files.parts('packed'), 'GZIP').shuffle(5, seed=1).repeat(2)
JsonLinesDataset => JsonLinesDataset(files.parts('json'), buffer_size=40)
JsonLinesDataset: shuffled => JsonLinesDataset(files.parts('json'), {'n': int, 'text': bytes}, num_parallel_reads=2)
    .shuffle(5, seed=1).repeat(2)
JsonLinesDataset: with an index => JsonLinesDataset(files.parts('rows'), index=True)
from_json_lines => Dataset.from_json_lines(str(files.folder / 'json-*'), ['n', 'text']).ignore_errors().batch(3)
TarDataset => TarDataset(files.parts('shard'), buffer_size=600)
TarDataset: shuffled => TarDataset(files.parts('shard'), ['txt'], num_parallel_reads=2).shuffle(5, seed=1).repeat(2)
TarDataset: with an index => TarDataset(files.parts('shard'), index=True)
TarDataset: with an index, shuffled => TarDataset(files.parts('shard'), index=True).shuffle(7, seed=1).repeat(2)
CsvDataset => CsvDataset(files.parts('csv'), [np.int64, np.float64, bytes])
CsvDataset: files at once => CsvDataset(files.parts('csv'), [int, bytes], select_cols=[0, 2], num_parallel_reads=2)
FixedLengthRecordDataset => FixedLengthRecordDataset(files.parts('fixed'), 4, header_bytes=4, buffer_size=5)
FixedLengthRecordDataset: with an index => FixedLengthRecordDataset(files.parts('fixed'), 4, header_bytes=4, index=True)
SqlDataset => SqlDataset('sqlite', str(files.folder / 'numbers.sqlite'), 'SELECT * FROM numbers', (np.int64, bytes))
from_csv => Dataset.from_csv(files.parts('named'), 4, num_epochs=2, shuffle_buffer_size=6, shuffle_seed=3)
from_csv: without end => Dataset.from_csv(files.parts('named'), 5, shuffle_seed=3, num_parallel_reads=2).take(7)
# At most one element for each input element
map => Dataset.range(13).map(failing(4, 1))
map: of a stream => numbers_in(range(13)).map(pair)
map: by threads => numbers_in(range(20)).map(failing(7, 0), num_parallel_calls=2)
map: in any order => numbers_in(range(20)).map(number, num_parallel_calls=3, deterministic=False)
map: fused with batch => Dataset.range(20).map(number, num_parallel_calls=2).batch(3).prefetch(1)
random_map => Dataset.range(7).random_map(noisy, seed=2).repeat(3)
random_map: by threads => numbers_in(range(7)).random_map(noisy, seed=2, num_parallel_calls=2).repeat(2)
select => Dataset.range(13).map(record).select('row')
filter => Dataset.range(25).filter(others(3, 1))
filter: by threads => Dataset.range(25).map(failing(7, 3)).filter(others(3, 1))
    .with_options(options(optimization__filter_parallelization=True))
enumerate => numbers_in(range(13)).enumerate(5)
take => numbers_in(range(30)).take(9)
take_while => Dataset.range(30).take_while(lambda x: x < 9)
skip => Dataset.range(13).skip(4)
skip: of a stream, in epochs => numbers_in(range(7)).skip(4).repeat(3)
shard => numbers_in(range(30)).shard(3, 1)
split => Dataset.range(31).split([0.6, 0.4], seed=1)[0]
split: consecutive, and mapped => Dataset.range(31).map(failing(9, 2)).split([0.4, 0.6])[1]
split: of an unknown number => numbers_in(range(31)).split([0.6, 0.4], seed=1)[0].repeat(2)
split: by a key => Dataset.range(31).shuffle(5, seed=1).split([0.6, 0.4], by=lambda x: x % 7)[0].repeat(2)
split: by file => TFRecordDataset(files.parts('plain')).split([1, -1], seed=1, by='file')[1].repeat(2)
shard_by_process => Dataset.range(30).shuffle(30, seed=1).shard_by_process(1, 3).repeat(2)
shard_by_process: of files => Dataset.list_files(str(files.folder / 'plain-*'), shuffle=False)
    .interleave(TFRecordDataset, cycle_length=1).shard_by_process(1, 2, remainder='pad')
shard_by_process: of a stream => numbers_in(range(30)).shard_by_process(1, 3, remainder='pad')
shard_by_process: of padding alone => numbers_in(range(1)).repeat().shard_by_process(1, 3, remainder='pad').take(5)
pad_to_cardinality => Dataset.from_tensor_slices({'x': np.arange(5)}).shuffle(3, seed=1).pad_to_cardinality(8)
pad_to_cardinality: in epochs => Dataset.range(5).map(lambda x: {'x': [x] * 3}).pad_to_cardinality(9).repeat(2)
assert_cardinality => numbers_in(range(13)).assert_cardinality(13)
assert_cardinality: that is wrong => numbers_in(range(13)).assert_cardinality(5)
unique => Dataset.range(30).map(lambda x: x * x % 17).unique().repeat(2)
skip_records => Dataset.range(20).skip_records(files.folder / 'skip.jsonl').shuffle(4, seed=1).batch(3)
ignore_errors => Dataset.range(20).map(failing(4, 3)).ignore_errors()
scan => numbers_in(range(13)).scan(np.int64(0), running_total)
apply => Dataset.range(13).apply(lambda d: d.map(number))
# Orders and epochs
repeat => numbers_in(range(5)).repeat(3)
repeat: without end => Dataset.range(3).map(failing(3, 1)).repeat().take(9)
shuffle => Dataset.range(13).shuffle(5, seed=1).repeat(2)
shuffle: of a stream => numbers_in(range(13)).shuffle(5, seed=1).repeat(2)
shuffle: over all => Dataset.range(13).shuffle(None, seed=1).repeat(2).map(number)
shuffle: of a stream, over all => numbers_in(range(13)).map(failing(9, 3)).shuffle(None, seed=1).repeat(2)
shuffle: after repeat => Dataset.range(7).repeat(3).shuffle(10, seed=1)
shuffle: without a seed => numbers_in(range(13)).shuffle(5, seed=None).repeat(2).batch(4).shuffle(None, seed=None)
shuffle: in one order => Dataset.range(7).shuffle(7, seed=None, reshuffle_each_iteration=False).repeat(2)
shuffle: of clumps => Dataset.range(23).shuffle(5, seed=1, clump=4).repeat(2).batch(3)
shuffle: of clumps of rows => Dataset.from_tensor_slices(np.arange(23)).repeat(2).shuffle(6, seed=None, clump=3)
    .prefetch(2)
shuffle: of clumps of a process => Dataset.from_tensor_slices(np.arange(23)).shuffle(4, seed=1, clump=3)
    .shard_by_process(1, 2).repeat(2)
shuffle: of ragged rows => Dataset.range(12).map(row).shuffle(4, seed=1).ragged_batch(3)
shuffle: of ragged tensors => Dataset.range(9).map(lambda x: RaggedTensor.from_rows([[x] * (x % 3), [1]]))
    .shuffle(4, seed=1)
concatenate => Dataset.range(6).concatenate(numbers_in(range(5))).repeat(2)
zip => Dataset.zip(numbers_in(range(9)), Dataset.range(12).shuffle(4, seed=1))
sample_from_datasets => Dataset.sample_from_datasets([Dataset.range(9), numbers_in(range(6))], [0.7, 0.3], seed=3)
sample_from_datasets: with a schedule => Dataset.sample_from_datasets([Dataset.range(9), numbers_in(range(9))],
    [(0, [1, 3]), (5, [0, 1]), (12, [2, 1])], seed=3, interpolation='linear').repeat(2)
sample_from_datasets: repeated => Dataset.sample_from_datasets([Dataset.range(3), numbers_in(range(4))],
    lambda n: [1, n % 3], seed=3, on_empty='repeat').take(20)
sample_from_datasets: in exact shares => Dataset.sample_from_datasets([Dataset.range(9), numbers_in(range(6))],
    [0.7, 0.3], exact=True)
choose_from_datasets => Dataset.choose_from_datasets([Dataset.range(9), numbers_in(range(6)), Dataset.range(3)],
    Dataset.range(40).map(lambda x: x * x % 3), stop_on_empty_dataset=False)
rejection_resample => numbers_in(range(50)).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5], seed=1)
rejection_resample: unknown => Dataset.range(50).rejection_resample(lambda x: x % 2, [0.2, 0.8], seed=1).repeat(2)
# Datasets in datasets
flat_map => Dataset.range(6).map(failing(4, 2)).flat_map(lambda x: Dataset.range(failing(5, 4)(x)).map(failing(3, 1)))
interleave => Dataset.range(6).interleave(lambda x: Dataset.range(x, x + 4), 3, block_length=2).repeat(2)
interleave: by threads => numbers_in(range(7)).interleave(lambda x: Dataset.range(x, x + 4).map(failing(7, 3))
    .shuffle(2, seed=1), cycle_length=3, num_parallel_calls=2)
interleave: in any order => numbers_in(range(7))
    .interleave(lambda x: Dataset.range(10 * x, 10 * x + 4), cycle_length=3, num_parallel_calls=3, deterministic=False)
window => numbers_in(range(13)).window(4, 2).flat_map(lambda window: window.batch(4))
sliding_window => numbers_in(range(13)).sliding_window(4, 2, 2, pad=-1).repeat(2)
window: itself => Dataset.range(13).window(3, 5, 2, drop_remainder=True)
group_by_reducer => Dataset.range(25).group_by_reducer(lambda x: x % 4, Reducer(lambda key: key,
    lambda total, x: total + failing(9, 7)(x), lambda total: total * 3))
group_by_window => numbers_in(range(11))
    .group_by_window(lambda x: x % 2, lambda key, group: group.map(lambda x: (key, x)), window_size=3).repeat(2)
# Batches
batch => Dataset.range(30).map(failing(7, 1)).batch(4)
batch: by threads => numbers_in(range(30)).batch(4, num_parallel_calls=2)
padded_batch => Dataset.range(12).map(row).padded_batch(3).repeat(2)
ragged_batch => Dataset.range(30).map(row).ragged_batch(4)
sparse_batch => Dataset.range(12).map(row).sparse_batch(3, (None,)).repeat(2)
rebatch => Dataset.range(40).batch(7).rebatch([3, 4, 2])
unbatch => Dataset.range(20).batch(7).unbatch()
batch_by_tokens => Dataset.range(40).map(row).batch_by_tokens(9, window=11, seed=4).repeat(2)
batch_by_tokens: ragged => Dataset.range(40).map(row).map(failing(9, 4))
    .batch_by_tokens(9, length=len, window=7, layout='ragged', shuffle=False)
batch_by_tokens: packed, by threads => numbers_in(range(40)).map(row, num_parallel_calls=2)
    .batch_by_tokens(9, window=8, layout='packed', seed=4, across_processes=2).shard_by_process(1, 2)
concat_split => Dataset.range(40).map(row).concat_split(6, separator=-1).repeat(2)
concat_split: by threads => numbers_in(range(40)).map(row, num_parallel_calls=2).concat_split(5, drop_remainder=True)
pack => Dataset.range(40).map(row).pack(6, window=9).repeat(2)
pack: shuffled => Dataset.range(40).map(row).map(failing(9, 4))
    .pack(6, window=9, boundaries='cu_seqlens', shuffle=True, seed=2).repeat(2)
pack: by threads => numbers_in(range(40)).map(row, num_parallel_calls=2).pack(5, window=7).prefetch(2)
bucket_by_sequence_length => Dataset.range(40).map(row).bucket_by_sequence_length(len, [2, 3], [4, 3, 2])
bucket_by_sequence_length: padded => Dataset.range(40).map(row)
    .bucket_by_sequence_length(len, [3, 6], [4, 3, 2], padded_shapes=(None,), pad_to_bucket_boundary=True)
# Kept elements
cache => numbers_in(range(7)).map(failing(5, 3)).cache().repeat(3)
cache: of a shuffled order => numbers_in(range(7)).shuffle(4, seed=None).cache().shuffle(3, seed=1).repeat(3)
cache: ahead => numbers_in(range(9)).map(number, num_parallel_calls=2).cache().repeat(2).batch(4).prefetch(2)
cache: in files => numbers_in(range(7)).map(failing(5, 3)).cache(folder + '/kept').repeat(3)
cache: at a chosen place => numbers_in(range(7)).map(number).cache(AUTOTUNE).repeat(4)
cache: at a chosen place, of a slow map => Dataset.range(7).map(failing(5, 3)).map(slow).shuffle(4, seed=1)
    .cache(AUTOTUNE).repeat(4)
cache: at a chosen place, in files => numbers_in(range(7)).map(slow).shuffle(4, seed=1)
    .cache(AUTOTUNE, directory=folder + '/kept').prefetch(2).repeat(4)
snapshot => numbers_in(range(7)).snapshot(folder + '/kept').repeat(3)
snapshot: read by a function => Dataset.range(9)
    .snapshot(folder + '/kept', reader_func=lambda shards: shards.flat_map(lambda shard: shard)).repeat(2)
snapshot: in shards => Dataset.range(9).snapshot(folder + '/kept', 'GZIP', shard_func=lambda x: x % 3).repeat(2)
# One dataset that draws a new order in each use, in several places of a plan
concatenate: with itself => Dataset.range(5).shuffle(5, seed=1).apply(lambda d: d.concatenate(d).repeat(2))
concatenate: with itself, shuffled => Dataset.range(5).shuffle(5, seed=1)
    .apply(lambda d: d.concatenate(d).shuffle(4, seed=2).repeat(2))
zip: with itself => Dataset.range(5).shuffle(5, seed=1).apply(lambda d: Dataset.zip(d, d.take(2).repeat(3)).repeat(2))
zip: without end => Dataset.range(5).shuffle(5, seed=1)
    .apply(lambda d: Dataset.zip(d.repeat().take(8), d.repeat()).repeat(2))
zip: by threads => Dataset.range(5).shuffle(5, seed=1)
    .apply(lambda d: Dataset.zip(d.prefetch(2).repeat(3), d.map(number, num_parallel_calls=2).repeat(3)))
sample_from_datasets: with itself => Dataset.range(5).shuffle(5, seed=1)
    .apply(lambda d: Dataset.sample_from_datasets([d, d.map(lambda x: -x)], seed=3).repeat(2))
sample_from_datasets: weights of itself => Dataset.range(5).shuffle(5, seed=1).apply(lambda d:
    Dataset.sample_from_datasets([d, d.map(lambda x: -x)], d.map(lambda x: np.array([1.0, x + 1])), seed=3).repeat(2))
choose_from_datasets: with itself => Dataset.range(5).shuffle(5, seed=1).apply(lambda d:
    Dataset.choose_from_datasets([d, d.repeat(2)], Dataset.range(30).map(lambda x: x % 2)).repeat(2))
rejection_resample: of passes => Dataset.range(5).shuffle(5, seed=1).repeat(3)
    .rejection_resample(lambda x: x % 2, [0.2, 0.8], seed=4).repeat(2)
shuffle: of shuffles => Dataset.range(2).shuffle(2, seed=1).take(9).shuffle(2, seed=1).repeat(2).shuffle(5, seed=1)
    .repeat(2)
flat_map: of a shared dataset => Dataset.range(3).apply(lambda d, shared=Dataset.range(3).shuffle(3, seed=7).repeat(2):
    d.flat_map(lambda x: shared.map(lambda y: 10 * x + y)).repeat(2))
flat_map: of a shared dataset without a seed => Dataset.range(3).apply(lambda d, shared=Dataset.range(3)
    .shuffle(3, seed=None): d.flat_map(lambda x: shared.map(lambda y: 10 * x + y)).repeat(2))
interleave: of shuffles without a seed => Dataset.range(6).interleave(lambda x: Dataset.range(10 * x, 10 * x + 4)
    .shuffle(4, seed=None), cycle_length=2, num_parallel_calls=2).repeat(2)
# Background work and options
prefetch => numbers_in(range(20)).map(failing(7, 6)).prefetch(2)
prefetch: in epochs => numbers_in(range(6)).shuffle(3, seed=1).prefetch(4).repeat(3)
prefetch: in flat_map => Dataset.range(4).flat_map(lambda x: Dataset.range(x + 2).prefetch(2))
with_options => Dataset.range(13).map(number).batch(3).with_options(options(optimization__inject_prefetch=True))
with_options: in any order => numbers_in(range(8)).map(number, num_parallel_calls=3)
    .interleave(lambda x: Dataset.range(10 * x, 10 * x + 3), 2, num_parallel_calls=2).prefetch(2)
    .with_options(options(deterministic=False))
with_options: without the optimizer => Dataset.range(9).map(number).filter(others(3, 0)).shuffle(4, seed=1).repeat(2)
    .with_options(options(optimization__enabled=False))
""")

BY_PROCESSES = _chains("""
map => numbers_in(range(24)).map(failing(8, 7), num_parallel_calls=2, executor='process')
map in any order => numbers_in(range(24)).map(failing(8, 7), num_parallel_calls=2, executor='process',
    deterministic=False)
random_map => numbers_in(range(9)).random_map(noisy, seed=2, num_parallel_calls=2, executor='process').repeat(2)
map and batch => Dataset.range(24).shuffle(6, seed=1).map(np.sqrt, num_parallel_calls=2, executor='process').batch(4)
    .prefetch(1)
""")
"""Only a few, because processes start slowly."""

NO_OPS = {
    *("plan", "options", "element_spec", "cardinality", "fingerprint", "explain"),  # data
    *("get_single_element", "reduce", "write_tfrecord"),  # whole passes
    "save",  # a whole pass; its own checkpoints are in ops/test_save_load_checkpoints.py
    *("as_numpy_iterator", "progress"),  # iterators
    "profile",  # a measurement
    *("to_queue", "to_ray", "to_tf", "to_keras"),  # to queues and other libraries
}
"""Public members of Dataset that do not create an op."""

ELSEWHERE = {
    "distribute": "ops/distribute/test_distribute.py",
    "from_queue": "queues/test_queue_log.py",
    "from_ray": "ops/distribute/test_distribute_ray.py",
    "from_tf": "adapters/test_from_tf.py",
    "from_torch": "adapters/test_from_torch.py",
    "from_huggingface": "adapters/test_from_huggingface.py",
    "to_torch": "adapters/test_to_torch_state.py",
    "to_jax": "adapters/test_to_jax.py",
}
"""Members that are tested in other files, because they need processes, queues or a library that is slow to import."""
