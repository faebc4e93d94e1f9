"""Files and formats: TFRecord, ``tf.train.Example``, CSV, images, raw bytes.

A codec (example/, image/, tfrecord/, csv/, text/, ...) sees only bytes, and files/ only moves them. The modules called
``source``, or ``..._source``, ``..._dataset``, join both with the ops. What they share is dataset_files.py.
"""

import typing

from dataset.io import libraries
from dataset.io.csv.decode import decode_csv
from dataset.io.example.encode import encode_example
from dataset.io.example.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from dataset.io.example.parse import ExampleParser, parse_example, parse_single_example
from dataset.io.files.remote.paths import allow_protocols
from dataset.io.image.codecs import decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png
from dataset.io.image.folder import image_folder_classes
from dataset.io.image.resize import resize
from dataset.io.raw import decode_raw
from dataset.io.tfrecord.index import TFRecordIndex
from dataset.io.tfrecord.sharded_writer import ShardedTFRecordWriter
from dataset.io.tfrecord.writer import TFRecordOptions, TFRecordWriter

__all__ = [
    "BytesList",
    "Example",
    "ExampleParser",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FloatList",
    "Int64List",
    "RaggedFeature",
    "SequenceExample",
    "ShardedTFRecordWriter",
    "TFRecordIndex",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "allow_protocols",
    "decode_csv",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "encode_example",
    "encode_jpeg",
    "encode_png",
    "image_folder_classes",
    "parse_example",
    "parse_single_example",
    "resize",
]

if typing.TYPE_CHECKING:
    from dataset.io.example.messages import (
        BytesList,
        Example,
        Feature,
        FeatureList,
        FeatureLists,
        Features,
        FloatList,
        Int64List,
        SequenceExample,
    )
else:

    def __getattr__(name: str) -> object:
        """The message classes, built when one is first asked for: that takes a while, and most programs need none."""
        if name in __all__:
            return getattr(libraries.messages, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
