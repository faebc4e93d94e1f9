"""Deferred imports: names used by the methods of ``Dataset`` and the readers, imported at their first use.

Every operator, reader and adapter has a line here. ``import dataset`` loads no framework, and only what nearly every
pipeline uses, so that the first batch does not wait for imports: the names outside the block.
"""

from dataset.autotune.autotuner import Autotuner
from dataset.lazy_imports import lazy_imports
from dataset.ops.batch.batch import Batch
from dataset.ops.map import Map
from dataset.ops.prefetch import Prefetch
from dataset.ops.shuffle.shuffle import Shuffle, clump_shuffle
from dataset.ops.sources.range import Range
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.optimize.driver import Optimized, optimize
from dataset.runtime.iteration.iterator import DatasetIterator

with lazy_imports():
    from dataset.adapters.huggingface import Makers as HuggingfaceMakers
    from dataset.adapters.huggingface import plan_of as huggingface_plan
    from dataset.adapters.jax import JaxDataset
    from dataset.adapters.keras import to_keras as keras_dataset
    from dataset.adapters.live_progress import LiveProgress
    from dataset.adapters.pandas import columns_of as pandas_columns
    from dataset.adapters.polars import table_of as polars_table
    from dataset.adapters.progress import Progress
    from dataset.adapters.queue_feeder import QueueFeeder
    from dataset.adapters.ranks import process_rank
    from dataset.adapters.ray import to_ray
    from dataset.adapters.tensorflow import TfDataset, tf_dataset
    from dataset.adapters.torch import from_torch as torch_source
    from dataset.adapters.torch.to_torch import torch_dataset
    from dataset.autotune.profile_report import profile
    from dataset.io.arrow.one_row import RowReader
    from dataset.io.arrow.requested_columns import require_fill_null
    from dataset.io.arrow.source import PandasSlices, PolarsSlices, arrow_columns, arrow_plan
    from dataset.io.arrow.table_rows_source import TableRows
    from dataset.io.arrow_ipc.source import ArrowIpc
    from dataset.io.csv.layout import layout_of
    from dataset.io.csv.source import Csv, from_csv_plan
    from dataset.io.dataset_files import file_names, read_files
    from dataset.io.elements.cache_dataset import CacheDirectories, FileCache
    from dataset.io.elements.element_log import log_opener
    from dataset.io.elements.load_dataset import load
    from dataset.io.elements.save_dataset import save
    from dataset.io.elements.snapshot_dataset import Snapshot
    from dataset.io.files.list_files import ListFiles, matching_files
    from dataset.io.files.opening import local_folder, path_string, read_file
    from dataset.io.image.folder_source import image_folder_plans
    from dataset.io.indexed.source import read_or_index
    from dataset.io.json_lines.source import JsonLines, json_lines_plan
    from dataset.io.parquet.source import parquet_plan
    from dataset.io.sql.source import SqlQuery
    from dataset.io.tar.source import tar_plan
    from dataset.io.text.fixed_length_records_source import FixedLengthRecord
    from dataset.io.text.lines_source import TextLine
    from dataset.io.tfrecord.source import TFRecord
    from dataset.io.tfrecord.write_dataset import write_tfrecord
    from dataset.ops.assert_cardinality import AssertCardinality
    from dataset.ops.batch.padded_batch import PaddedBatch
    from dataset.ops.batch.ragged_batch import RaggedBatch
    from dataset.ops.batch.rebatch import Rebatch
    from dataset.ops.batch.sliding_window import SlidingWindow
    from dataset.ops.batch.sparse_batch import SparseBatch
    from dataset.ops.batch.unbatch import Unbatch
    from dataset.ops.batch.window import Window
    from dataset.ops.cache.auto_cache import AutoCache
    from dataset.ops.cache.cache import Cache
    from dataset.ops.concatenate import Concatenate
    from dataset.ops.distribute.actors import actors_that_fit
    from dataset.ops.distribute.distribute import Distribute
    from dataset.ops.enumerate import Enumerate
    from dataset.ops.filter import Filter
    from dataset.ops.get_single_element import get_single_element
    from dataset.ops.group.bucket_by_sequence_length import BucketBySequenceLength
    from dataset.ops.group.group_by_reducer import group_by_reducer_plan
    from dataset.ops.group.group_by_window import GroupByWindow
    from dataset.ops.ignore_errors import IgnoreErrors
    from dataset.ops.interleave.flat_map import FlatMap
    from dataset.ops.interleave.interleave import Interleave
    from dataset.ops.mix.choose_from_datasets import ChooseFromDatasets
    from dataset.ops.mix.sample_from_datasets import sample_plan
    from dataset.ops.pack.batch_by_tokens import BatchByTokens
    from dataset.ops.pack.concat_split import ConcatSplit
    from dataset.ops.pack.pack import Pack
    from dataset.ops.random_map import RandomMap
    from dataset.ops.reduce import reduce
    from dataset.ops.rejection_resample import rejection_resample_plan
    from dataset.ops.repeat import Repeat
    from dataset.ops.scan import Scan
    from dataset.ops.select import Select
    from dataset.ops.shard.pad_to_cardinality import PadToCardinality
    from dataset.ops.shard.shard import Shard
    from dataset.ops.skip import Skip
    from dataset.ops.skip_records import SkipRecords, skip_list
    from dataset.ops.sources.counter import Counter
    from dataset.ops.sources.external_source import ExternalSource
    from dataset.ops.sources.from_queue import FromQueue
    from dataset.ops.sources.generator import Generator
    from dataset.ops.sources.indexed_source import IndexedSource
    from dataset.ops.sources.list_elements import ListElements
    from dataset.ops.sources.random import Random
    from dataset.ops.sources.select_positions import elements_at
    from dataset.ops.sources.signature import signature_of
    from dataset.ops.sources.tensors import Tensors
    from dataset.ops.sources.whole_sources import keep_sources_whole
    from dataset.ops.take import Take
    from dataset.ops.take_while import TakeWhile
    from dataset.ops.unique import Unique
    from dataset.ops.with_options import WithOptions, options_of
    from dataset.ops.zip import Zip
    from dataset.optimize.sharding.among_workers import divide
    from dataset.optimize.sharding.plan import shard_plan
    from dataset.optimize.sharding.splitting import split_plans
    from dataset.plan.drawing.explain import explain_text
    from dataset.plan.drawing.svg import svg
    from dataset.plan.fingerprints.fingerprint import content_fingerprint
    from dataset.runtime.iteration.async_elements import AsyncElements
    from dataset.runtime.iteration.chunk_scan import ChunkScan
    from dataset.runtime.iteration.device_prefetch import Convert, DevicePrefetch
    from dataset.runtime.iteration.random_access import element_at, first_elements
    from dataset.runtime.state.replay_log import ReplayMarks
