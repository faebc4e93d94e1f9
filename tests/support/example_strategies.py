"""Records for tests of Example parsing: regular records, unusual but valid records, and damaged records."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import strategies as st

from dataset.io.example.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature

KINDS = {"bytes": 1, "float": 2, "int64": 3}
# keys that are prefixes of each other, of eight bytes and more, empty, and beyond ASCII
KEYS = ["a", "ab", "abc", "abcdefgh", "abcdefghi", "abcdefgi", "", "é", "日本", "image/encoded", "k" * 130]


def varint(number, width=1):
    """Encode ``number`` in at least ``width`` bytes; the format allows more bytes than needed."""
    number &= (1 << 64) - 1
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F)
    groups += [0] * (width - len(groups))
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def field(number, content, width=1):
    """Return a length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content), width) + content


def packed(kind, values):
    """Return the list message in its usual form."""
    if kind == "bytes":
        return b"".join(field(1, value) for value in values)
    content = struct.pack(f"<{len(values)}f", *values) if kind == "float" else b"".join(map(varint, values))
    return field(1, content) if content else b""


def unpacked(kind, values):
    """Return the list message with one field per value."""
    if kind == "bytes":
        return packed(kind, values)
    if kind == "float":
        return b"".join(varint(1 << 3 | 5) + struct.pack("<f", value) for value in values)
    return b"".join(varint(1 << 3) + varint(value) for value in values)


def feature(kind, values, form=packed):
    return field(KINDS[kind], form(kind, values))


def entry(key, content):
    return field(1, field(1, key.encode()) + field(2, content))


def example(*entries):
    return field(1, b"".join(entries))


floats = st.floats(width=32)  # including NaN and infinities
int64s = st.one_of(st.integers(0, 127), st.integers(0, 20_000), st.integers(-(1 << 63), (1 << 63) - 1))
values_of = {"bytes": st.binary(max_size=6), "float": floats, "int64": int64s}
UNKNOWN = [b"\x10\x05", b"\x2a\x01z", b"\x13\x08\x01\x14", b"\x1d1234", b"\x1912345678"]


@st.composite
def features_of(draw, max_size=4):
    """Draw a Feature message of any kind, sometimes in an unusual form."""
    kind = draw(st.sampled_from(list(KINDS)))
    values = draw(st.lists(values_of[kind], max_size=max_size))
    forms = [
        lambda: b"",
        lambda: feature(kind, values, unpacked),
        # Two lists: lists of one kind are joined, otherwise the last one counts.
        lambda: feature(kind, values) + draw(features_of()),
        lambda: draw(st.sampled_from(UNKNOWN)) + feature(kind, values),
        lambda: field(KINDS[kind], draw(st.sampled_from(UNKNOWN[:2])) + packed(kind, values)),
        lambda: field(KINDS[kind], packed(kind, values) + unpacked(kind, values)),
        lambda: field(KINDS[kind], packed(kind, values), width=3),
    ]
    odd = draw(st.integers(0, 19))
    return forms[odd]() if odd < len(forms) else feature(kind, values)


@st.composite
def odd_examples(draw):
    """Draw a record that is valid, although it may be unusual."""
    entries = draw(st.lists(st.tuples(st.sampled_from(KEYS), features_of()), max_size=5))
    encoded = [entry(key, content) for key, content in entries]
    key, content = entries[0] if entries else ("", b"")
    named, valued = field(1, key.encode()), field(2, content)
    forms = [
        lambda: example(*encoded) + draw(st.sampled_from(UNKNOWN)),
        lambda: example(*encoded) + example(*encoded[:1]),
        lambda: example(field(1, valued + named), *encoded),
        lambda: example(*encoded, field(1, named + valued + valued)),
        lambda: example(*encoded, field(1, named)),
        lambda: example(*encoded, b"\x10\x05"),
    ]
    odd = draw(st.integers(0, 11))
    return forms[odd]() if odd < len(forms) else example(*encoded)


@st.composite
def damaged(draw, records):
    """Draw a record with a few bytes changed, removed or duplicated."""
    record = bytearray(draw(records))
    for _ in range(draw(st.integers(1, 3))):
        if not record:
            break
        at = draw(st.integers(0, len(record) - 1))
        how = draw(st.integers(0, 3))
        if how == 0:
            record[at] = draw(st.integers(0, 255))
        elif how == 1:
            record[at] ^= 1 << draw(st.integers(0, 7))
        elif how == 2:
            del record[at : at + draw(st.integers(1, 4))]
        else:
            record[at:at] = record[at : at + draw(st.integers(1, 4))]
    return bytes(record)


DTYPES = {"bytes": bytes, "float": np.float32, "int64": np.int64}


@st.composite
def feature_specs(draw, fixed_kinds=None):
    """Draw a dict of features over KEYS."""
    specs = {}
    for key in draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True)):
        kind = (fixed_kinds or {}).get(key) or draw(st.sampled_from(list(KINDS)))
        dtype = DTYPES[kind]
        default = {"bytes": b"?", "float": 0.5, "int64": -1}[kind]
        specs[key] = draw(
            st.sampled_from(
                [
                    FixedLenFeature((), dtype),
                    FixedLenFeature((), dtype, default),
                    FixedLenFeature((2,), dtype, [default, default]),
                    VarLenFeature(dtype),
                    FixedLenSequenceFeature((), dtype, allow_missing=True, default_value=default),
                    FixedLenSequenceFeature((2,), dtype, allow_missing=True),
                    RaggedFeature(dtype),
                ]
            )
        )
    return specs


@st.composite
def alike(draw, min_size=0, max_size=24):
    """Draw records with the same keys, kinds and order, as in most files; and the kind of each key."""
    kinds = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(list(KINDS)), min_size=1, max_size=4))
    count = draw(st.integers(min_size, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    length = draw(st.sampled_from([1, 1, 1, 2, None]))
    large = draw(st.sampled_from([3, 100, 200, 20_000]))

    def value(kind):
        if kind == "bytes":
            return rng.bytes(large if length else int(rng.integers(large)))
        if kind == "float":
            return float(np.float32(rng.normal()))
        return int(rng.choice([rng.integers(100), rng.integers(1000), rng.integers(-(1 << 62), 1 << 62)]))

    def record():
        sizes = {key: length or int(rng.integers(4)) for key in kinds}
        return example(
            *[entry(key, feature(kind, [value(kind) for _ in range(sizes[key])])) for key, kind in kinds.items()]
        )

    return [record() for _ in range(count)], kinds
