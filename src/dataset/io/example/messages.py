"""Message classes of tf.train.Example and SequenceExample, and of TensorFlow's TensorProto.

The classes are built in code, in the proto package ``dataset.io`` and in a separate descriptor pool. Their field
numbers are the same as TensorFlow's, so the bytes are the same. Their names differ, so TensorFlow can be imported in
the same process, before or afterwards. Building them is slow, so modules that rarely need them get them lazily from
libraries.py. encode.py encodes a dict of values without messages; parse.py reads an Example into arrays.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "dataset.io"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    kind: getattr(_Field, f"TYPE_{kind.upper()}")
    for kind in ("bool", "bytes", "double", "float", "int32", "int64", "uint32", "uint64")
}

# message -> fields as (name, number, type); "*" marks a repeated field, "map" a map from string to the message.
# ShellEntry, ShellEntries and Shell are not TensorFlow's: they read the outer structure of an Example and leave each
# Feature as bytes.
_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "BytesList": [("value", 1, "*bytes")],
    "FloatList": [("value", 1, "*float")],
    "Int64List": [("value", 1, "*int64")],
    "Feature": [("bytes_list", 1, "BytesList"), ("float_list", 2, "FloatList"), ("int64_list", 3, "Int64List")],
    "Features": [("feature", 1, "map Feature")],
    "Example": [("features", 1, "Features")],
    "FeatureList": [("feature", 1, "*Feature")],
    "FeatureLists": [("feature_list", 1, "map FeatureList")],
    "SequenceExample": [("context", 1, "Features"), ("feature_lists", 2, "FeatureLists")],
    "ShellEntry": [("key", 1, "bytes"), ("value", 2, "*bytes")],
    "ShellEntries": [("entry", 1, "*ShellEntry")],
    "Shell": [("entries", 1, "*bytes"), ("lists", 2, "*bytes")],
    "Dim": [("size", 1, "int64")],
    "TensorShapeProto": [("dim", 2, "*Dim")],
    "TensorProto": [
        ("dtype", 1, "int32"),
        ("tensor_shape", 2, "TensorShapeProto"),
        ("tensor_content", 4, "bytes"),
        ("float_val", 5, "*float"),
        ("double_val", 6, "*double"),
        ("int_val", 7, "*int32"),
        ("string_val", 8, "*bytes"),
        ("scomplex_val", 9, "*float"),
        ("int64_val", 10, "*int64"),
        ("bool_val", 11, "*bool"),
        ("dcomplex_val", 12, "*double"),
        ("half_val", 13, "*int32"),
        ("uint32_val", 16, "*uint32"),
        ("uint64_val", 17, "*uint64"),
    ],
}


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    """Add one field of ``_MESSAGES`` to ``message``."""
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind.startswith(("*", "map ")):
        field.label = _Field.LABEL_REPEATED
    bare = kind.removeprefix("*").removeprefix("map ")
    if bare in _SCALARS:
        field.type = _SCALARS[bare]
        return
    field.type = _Field.TYPE_MESSAGE
    field.type_name = f".{_PACKAGE}.{bare}"
    if kind.startswith("map "):  # on the wire a map is a repeated message of key and value
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
        _add_field(entry, "value", 2, bare)
        field.type_name = f".{_PACKAGE}.{message.name}.{entry.name}"


def _build_classes() -> dict[str, Any]:
    """Build the message classes; return them by name."""
    file = descriptor_pb2.FileDescriptorProto(name="dataset/io/example.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        if message_name == "Feature":
            message.oneof_decl.add(name="kind")
        for name, number, kind in fields:
            _add_field(message, name, number, kind)
        if message_name == "Feature":
            for field in message.field:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    classes = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }
    for cls in classes.values():
        cls.__module__ = __name__  # where pickle looks for them
    return classes


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
ShellEntries, Shell = _classes["ShellEntries"], _classes["Shell"]
TensorProto = _classes["TensorProto"]
