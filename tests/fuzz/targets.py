"""All targets by name."""

from __future__ import annotations

from .codecs import SnappyBlocks, Tensors, Wavs
from .images import GifAndBmp, Jpeg, Png
from .records import Examples, SequenceExamples, Streams, Tars, TFRecords, ZstdFrames
from .saved import Containers, Elements, Indexes, JsonStates, Metadatas, QueueLogs, States
from .tables import Arrow, ArrowIpc, Csv, JsonRows, Parquet
from .target import Target

_ALL: tuple[type[Target], ...] = (
    *(Examples, SequenceExamples, TFRecords, Streams, ZstdFrames, Tars, Csv, JsonRows, Parquet, Arrow, ArrowIpc),
    *(States, Containers, JsonStates, Indexes, Metadatas, Elements, QueueLogs, Jpeg, Png, GifAndBmp),
    *(Tensors, Wavs, SnappyBlocks),
)
TARGETS = {target.name: target for target in _ALL}
