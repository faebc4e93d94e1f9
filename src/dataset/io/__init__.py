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
    from dataset.io.example.tensor import parse_tensor, serialize_tensor
    from dataset.io.example.text_forms import (
        decode_json_example,
        decode_text_example,
        encode_json_example,
        encode_text_example,
    )
    from dataset.io.files.atomic import write_file
    from dataset.io.files.opening import read_file
    from dataset.io.files.remote.paths import allow_protocols
    from dataset.io.image.codecs import (
        decode_and_crop_jpeg,
        decode_image,
        decode_jpeg,
        decode_png,
        encode_jpeg,
        encode_png,
    )
    from dataset.io.image.folder import image_folder_classes
    from dataset.io.image.resize import resize
    from dataset.io.raw import decode_raw
    from dataset.io.tfrecord.batched_features_dataset import make_batched_features_dataset
    from dataset.io.tfrecord.index import TFRecordIndex
    from dataset.io.tfrecord.sharded_writer import ShardedTFRecordWriter
    from dataset.io.tfrecord.writer import TFRecordOptions, TFRecordWriter
    from dataset.io.wav import decode_wav, encode_wav

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
    "decode_and_crop_jpeg",
    "decode_csv",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_raw",
    "decode_text_example",
    "decode_wav",
    "encode_example",
    "encode_jpeg",
    "encode_json_example",
    "encode_png",
    "encode_text_example",
    "encode_wav",
    "image_folder_classes",
    "make_batched_features_dataset",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "resize",
    "serialize_tensor",
    "write_file",
]
