"""Tests of reading after damage, compared with a model that tries every position."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataset.io.files.compression import open_stream
from dataset.io.tfrecord.damage import salvage
from dataset.io.tfrecord.damage.salvage import Salvage, Sound
from support.salvage_model import salvage_model
from support.tfrecord_files import COMPRESS, KINDS, frame, frames, header

pytestmark = pytest.mark.usefixtures("native")


def salvaged(content, kind="", at=0):
    return list(Salvage(open_stream(io.BytesIO(COMPRESS[kind](content)), kind), at))


def damage(content, changes):
    """Return the content with bytes changed, removed, inserted and set to zero."""
    content = bytearray(content)
    for kind, anywhere, what in changes:
        place = anywhere % (len(content) + 1)
        if kind == "flip" and place < len(content):
            content[place] ^= what
        elif kind == "cut":
            del content[place : place + what]
        elif kind == "insert":
            content[place:place] = bytes([what]) * (what % 60)
        elif kind == "zero":
            content[place : place + what] = bytes(len(content[place : place + what]))
    return bytes(content)


KINDS_OF_DAMAGE = st.sampled_from(["flip", "cut", "insert", "zero"])


@settings(deadline=None, max_examples=150)
@given(
    records=st.lists(st.one_of(st.binary(max_size=60), st.just(frames([b"in", b"side"]))), max_size=40),
    changes=st.lists(st.tuples(KINDS_OF_DAMAGE, st.integers(0, 5000), st.integers(1, 255)), max_size=5),
    kind=st.sampled_from(KINDS),
    block=st.sampled_from([16, 64, 1 << 12]),
    scan=st.sampled_from([12, 13, 100, 1 << 18]),
)
@example([b"a"], [], "", 16, 12)
@example([b"one", b"two", b"three"], [("flip", 19 + 12, 1)], "", 64, 100)  # wrong data costs its record only
@example([bytes(1000)[:60], b"one", b"two"], [("cut", 30, 46)], "", 64, 100)  # the writer of the first one died
def test_what_is_found_is_what_trying_every_position_finds(records, changes, kind, block, scan):
    content = damage(frames(records), changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(salvage, "PEEK_BYTES", block)
        patch.setattr(salvage, "BLOCK_BYTES", scan)
        assert salvaged(content, kind) == salvage_model(content)


def test_a_file_made_of_headers_is_no_endless_work(monkeypatch):
    """There are only valid headers, each of which declares all data after it."""
    checked, check = [], salvage.data_damage
    monkeypatch.setattr(salvage, "data_damage", lambda data, stored: checked.append(len(data)) or check(data, stored))
    monkeypatch.setattr(salvage, "WASTE_BYTES", 100_000)
    content = b"".join(header(max((5000 - i - 2) * 12, 0)) for i in range(5000))
    search = Salvage(open_stream(io.BytesIO(content + frame(b"sound")), ""), 0)
    found = list(search)
    assert found[-1] == Sound(len(content), b"sound")
    assert sum(checked) <= 100_000 + salvage.WASTE_FACTOR * len(content) + 5000 * 24
    assert sum(checked) < len(content) * 5000 / 100
    assert not search.complete


def test_a_declared_length_takes_no_memory(monkeypatch):
    monkeypatch.setattr(salvage, "RECORD_BYTES_MAX", 1000)
    content = b"x" + frames([bytes(2000), b"small"])
    search = Salvage(open_stream(io.BytesIO(content), ""), 0)
    assert [part.data for part in search if isinstance(part, Sound)] == [b"small"]
    assert not search.complete
