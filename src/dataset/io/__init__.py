"""Files and formats: TFRecord, ``tf.train.Example``, CSV, images, raw bytes.

A codec (example/, image/, tfrecord/, csv/, text/, ...) sees only bytes; files/ only moves them. The modules named
``source``, ``..._source`` and ``..._dataset`` connect both to the ops. The code that they share is in dataset_files.py.
"""

from dataset.lazy_imports import lazy_imports

with lazy_imports():
    from dataset.io.csv.decode import decode_csv
    from dataset.io.example.encode import encode_example
    from dataset.io.example.features import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        RaggedFeature,
        SparseFeature,
        VarLenFeature,
    )
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
    from dataset.io.example.parse import ExampleParser, parse_example, parse_single_example
    from dataset.io.example.sequences import parse_sequence_example, parse_single_sequence_example
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
    "SparseFeature",
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
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "resize",
]
