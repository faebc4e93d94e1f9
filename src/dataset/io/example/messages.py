"""Message classes of tf.train.Example and SequenceExample, and of TensorFlow's TensorProto.

The classes are built in code, in the proto package ``dataset.io`` and in a separate descriptor pool. Their field
numbers are the same as TensorFlow's, so the bytes are the same. Their names differ, so TensorFlow can be imported in
the same process, before or afterwards. Building them is slow, so modules that rarely need them get them lazily from
libraries.py. encode.py encodes a dict of values; parse.py reads an Example into arrays.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "dataset.io"
_Field = descriptor_pb2.FieldDescriptorProto

# The fields of each message, as number, name and type; "*" marks a repeated field, "map" a map from string to the type.
# Those with Shell in their names are not TensorFlow's: they read the outer structure of an Example, or of the feature
# lists of a SequenceExample, and leave each Feature or FeatureList as bytes.
_MESSAGES = {
    "BytesList": "1 value *bytes",
    "FloatList": "1 value *float",
    "Int64List": "1 value *int64",
    "Feature": "1 bytes_list BytesList, 2 float_list FloatList, 3 int64_list Int64List",
    "Features": "1 feature map Feature",
    "Example": "1 features Features",
    "FeatureList": "1 feature *Feature",
    "FeatureLists": "1 feature_list map FeatureList",
    "SequenceExample": "1 context Features, 2 feature_lists FeatureLists",
    "ShellEntry": "1 key bytes, 2 value *bytes",
    "ShellEntries": "1 entry *ShellEntry",
    "Shell": "1 entries ShellEntries",
    "ListsShell": "2 entries ShellEntries",
    "Dim": "1 size int64",
    "TensorShapeProto": "2 dim *Dim",
    "TensorProto": "1 dtype int32, 2 tensor_shape TensorShapeProto, 4 tensor_content bytes, 5 float_val *float, "
    "6 double_val *double, 7 int_val *int32, 8 string_val *bytes, 9 scomplex_val *float, 10 int64_val *int64, "
    "11 bool_val *bool, 12 dcomplex_val *double, 13 half_val *int32, 16 uint32_val *uint32, 17 uint64_val *uint64",
}


def _add_field(message: descriptor_pb2.DescriptorProto, number: int, name: str, kind: str) -> None:
    """Add one field of ``_MESSAGES`` to ``message``."""
    bare = kind.removeprefix("*").removeprefix("map ")
    label = _Field.LABEL_OPTIONAL if bare == kind else _Field.LABEL_REPEATED
    scalar = getattr(_Field, f"TYPE_{bare.upper()}", None)
    type_name = None if scalar else f".{_PACKAGE}.{bare}"
    field = message.field.add(name=name, number=number, label=label, type=scalar, type_name=type_name)
    if kind.startswith("map "):  # on the wire a map is a repeated message of key and value
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, 1, "key", "string")
        _add_field(entry, 2, "value", bare)
        field.type_name = f".{_PACKAGE}.{message.name}.{entry.name}"


def _build_classes() -> dict[str, Any]:
    """Build the message classes; return them by name."""
    file = descriptor_pb2.FileDescriptorProto(name="dataset/io/example.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for field in fields.split(", "):
            number, name, kind = field.split(" ", 2)
            _add_field(message, int(number), name, kind)
        if message_name == "Feature":
            message.oneof_decl.add(name="kind")
            for member in message.field:
                member.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    classes = message_factory.GetMessageClassesForFiles([file.name], pool)
    for cls in classes.values():
        cls.__module__ = __name__  # where pickle looks for them
    return {name: classes[f"{_PACKAGE}.{name}"] for name in _MESSAGES}


_classes = _build_classes()
BytesList = _classes["BytesList"]
"""Values of a feature. Field: ``value``, a list of ``bytes``."""
FloatList = _classes["FloatList"]
"""Values of a feature. Field: ``value``, a list of floats, which are float32 in the message."""
Int64List = _classes["Int64List"]
"""Values of a feature. Field: ``value``, a list of ints."""
Feature = _classes["Feature"]
"""One of three fields: ``bytes_list``, ``float_list``, ``int64_list``. Setting one clears the others."""
Features = _classes["Features"]
"""Features by name. Field: ``feature``, a map from str to Feature."""
Example = _classes["Example"]
"""A record. Field: ``features``, a Features. ``FromString`` parses bytes, ``SerializeToString`` creates them."""
FeatureList = _classes["FeatureList"]
"""A Feature for each step. Field: ``feature``, a list."""
FeatureLists = _classes["FeatureLists"]
"""Feature lists by name. Field: ``feature_list``, a map from str to FeatureList."""
SequenceExample = _classes["SequenceExample"]
"""The record of a sequence. Fields: ``context``, a Features; ``feature_lists``, a FeatureLists."""
Shell, ListsShell = _classes["Shell"], _classes["ListsShell"]
TensorProto = _classes["TensorProto"]
