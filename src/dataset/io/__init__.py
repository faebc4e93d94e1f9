"""Files and formats: TFRecord, ``tf.train.Example``, images, raw bytes.

Codecs here see only bytes, files only move them, and the two source ops (tfrecord_dataset.py, list_files.py) join them.
"""

from dataset.io.example import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
    encode_example,
)
from dataset.io.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from dataset.io.image import decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png
from dataset.io.parse_example import ExampleParser, parse_example, parse_single_example
from dataset.io.raw import decode_raw
from dataset.io.resize import resize
from dataset.io.tfrecord_writer import TFRecordOptions, TFRecordWriter

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
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "encode_example",
    "encode_jpeg",
    "encode_png",
    "parse_example",
    "parse_single_example",
    "resize",
]
