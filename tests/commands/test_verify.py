"""Tests of ``verify``: good files, damaged files, and correct counts."""

import random
import struct

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from dataset.io.files.compression import guess_compression
from dataset.io.tfrecord.damage.salvage import Gap
from support.salvage_model import salvage_model
from support.tfrecord_files import masked


def model(content):
    """Return the good records before the first bad one, its position, the records after it, places, and lost bytes."""
    parts = salvage_model(content)
    gaps = [part for part in parts if isinstance(part, Gap)]
    before = parts.index(gaps[0]) if gaps else len(parts)
    first = gaps[0].offset if gaps else None
    return before, first, len(parts) - before - len(gaps), len(gaps), sum(gap.size for gap in gaps)


def numbers(file):
    first = file["first_damage"]
    return (
        file["records_before"],
        first and first["offset"],
        file["records_after"],
        file["damaged_places"],
        file["lost_bytes"],
    )


def test_good_files(run, write, digits):
    status, out, err = run("verify", digits, write([], "none"), write([b"x"] * 3, "three.gz", "GZIP"))
    assert (status, err) == (0, "")
    lines = [line.split(maxsplit=2) for line in out.splitlines()]
    assert [line[0] for line in lines[:3]] == ["good", "good", "good"]
    assert [line[2].split(",")[0] for line in lines[:3]] == ["20 good records", "0 good records", "3 good records"]
    assert out.splitlines()[3].startswith("3 files: 3 good, 0 damaged; 23 good records")


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 60), max_size=30),
    changes=st.lists(
        st.tuples(st.sampled_from(["flip", "cut", "insert", "zero"]), st.integers(0, 3000), st.integers(1, 200)),
        max_size=4,
    ),
)
@example(sizes=[22, 10], changes=[("cut", 12, 26)])  # the second frame takes the place of the data of the first
def test_the_numbers_are_those_of_the_model(run, write, sizes, changes):
    rng = random.Random(1)
    path = write([rng.randbytes(size) for size in sizes])
    content = bytearray(path.read_bytes())
    for kind, anywhere, what in changes:
        place = anywhere % (len(content) + 1)
        if kind == "flip":
            content[place : place + 1] = bytes(byte ^ what for byte in content[place : place + 1])
        elif kind == "cut":
            del content[place : place + what]
        elif kind == "insert":
            content[place:place] = rng.randbytes(what)
        else:
            content[place : place + what] = bytes(len(content[place : place + what]))
    assume(not guess_compression(bytes(content)))  # damage may look like the beginning of a zlib stream
    path.write_bytes(content)
    expected = model(bytes(content))
    document = run.json("verify", path, status=0 if expected[1] is None else 1)
    (file,) = document["files"]
    assert numbers(file) == expected
    assert document["good"] == file["good"] == (expected[1] is None)
    assert file["records"] == expected[0] + expected[2]


def test_the_report_says_where_and_what_and_how_much(run, write):
    path = write([b"%04d" % i for i in range(2000)])
    content = bytearray(path.read_bytes())
    content[20 * 1234 + 12] ^= 1
    content[20 * 1500 : 20 * 1500 + 5] = b""
    path.write_bytes(content)
    status, out, _ = run("verify", path)
    assert status == 1
    lines = out.splitlines()
    assert lines[0].startswith("damaged")
    assert lines[1].endswith("first bad record: number 1,234 (from 0), at byte 24,680")
    assert "damage:           the checksum of a record's 4 bytes is wrong" in lines[2]
    assert lines[3].endswith("after it:         764 complete good records")
    assert lines[4].endswith("lost:             35 bytes in 2 places")


def test_a_damaged_file_keeps_no_other_from_its_turn_and_neither_does_a_missing_one(run, write, tmp_path):
    good, bad = write([b"a", b"b"]), write([b"a"])
    bad.write_bytes(bad.read_bytes()[:-1])
    document = run.json("verify", bad, tmp_path / "missing", tmp_path, good, status=2)
    assert [file["good"] for file in document["files"]] == [False, True]
    assert len(document["errors"]) == 2
    assert not document["good"]
    assert run("verify", bad, good)[0] == 1


def test_a_cut_gzip_file(run, write):
    rng = random.Random(0)
    path = write([rng.randbytes(100) for _ in range(1000)], compression="GZIP")
    path.write_bytes(path.read_bytes()[:60_000])
    (file,) = run.json("verify", path, status=1)["files"]
    assert 400 < file["records"] < 600
    assert file["records_after"] == 0
    assert "is truncated" in file["stream_damage"]
    assert "everything after the damage of the compressed stream" in run("verify", path)[1]


def test_records_behind_damage_in_a_compressed_file_are_found(run, write, tmp_path):
    import gzip

    content = bytearray(write([b"%03d" % i for i in range(100)]).read_bytes())
    content[19 * 40 + 12] ^= 1
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(content)))
    (file,) = run.json("verify", path, status=1)["files"]
    assert numbers(file) == (40, 19 * 40, 59, 1, 19)
    assert file["stream_damage"] is None


def test_text_is_a_file_without_good_records(run, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"this is a text of some length\n" * 100)
    status, out, _ = run("verify", path)
    assert status == 1
    assert "is this a TFRecord file?" in out
    assert "3,000 bytes in 1 place" in out


def test_a_search_that_was_given_up_is_said_to_be(run, tmp_path, monkeypatch):
    from dataset.io.tfrecord.damage import salvage

    monkeypatch.setattr(salvage, "WASTE_BYTES", 0)
    monkeypatch.setattr(salvage, "WASTE_FACTOR", 0)

    def header(length):
        packed = struct.pack("<Q", length)
        return packed + masked(packed)

    path = tmp_path / "hostile"
    path.write_bytes(b"".join(header(max(12 * (197 - i), 0)) for i in range(199)))
    status, out, _ = run("verify", path)
    assert status == 1
    assert "there may be more records" in out
    assert not run.json("verify", path, status=1)["files"][0]["searched_all"]
