"""Tests of tar shards: grouping as in WebDataset, all header formats, damage, interrupts and random access."""

from __future__ import annotations

import io
import os
import random
import re
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import DataLossError, SpecError, TarDataset, TensorSpec
from dataset.io.files import compression
from dataset.io.tar import members
from dataset.io.tar.reader import TarFile
from support.block_files import COMPRESS, KINDS, OpenedFiles, columns_of
from support.folders import flipped
from support.tar_files import archive

SPECIAL = [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]


def samples_by_tarfile(content):
    """Return the samples according to the standard library and to WebDataset's group_by_keys."""
    samples = []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r|") as shard:
        for info in shard:
            found = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", info.name)
            if not info.isreg() or re.match(r"__[^/]*__($|/)", info.name) or found is None:
                continue
            if not samples or samples[-1]["__key__"] != found[1].encode():
                samples.append({"__key__": found[1].encode()})
            assert found[2].lower() not in samples[-1]
            samples[-1][found[2].lower()] = shard.extractfile(info).read()
    return samples


def write(path, content):
    path.write_bytes(content)
    return str(path)


def read_all(file, n=3):
    every = list(columns_of(file, n))
    errors = [one for one in every if isinstance(one, Exception)]
    return [sample for columns in every if columns not in errors for sample in columns[0]], errors


def special(name, kind, **fields):
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


NAMES = st.sampled_from(
    ["a.txt", "a.JPG", "b.seg.png", "b.txt", "d/a.txt", "d/.hidden", "noext", "d.x/c.txt", "d.x/c", "__meta__", "e.",
     ".f", "__meta__/a.txt", "é.txt", "x" * 90 + "/" + "y" * 90 + ".txt", "z" * 300 + ".cls", "a.b/c.d/e.f"]
)  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(
    entries=st.lists(st.tuples(NAMES, st.integers(0, 1200), st.sampled_from(SPECIAL) | st.none()), max_size=10),
    form=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    size=st.sampled_from([None, 1, 600]),
    n=st.integers(1, 4),
)
def test_samples_are_those_of_the_standard_library_and_webdataset(entries, form, size, n, tmp_path_factory):
    unique = {}
    for name, length, kind in entries:
        regular = name, b"%d " % length * (length // 4)
        unique.setdefault(name.lower(), special(name, kind, linkname="x" * 200) if kind else regular)
    content = archive(unique.values(), form)
    path = write(tmp_path_factory.mktemp("tar") / "a.tar", content)
    with TarFile(path, None, None, size) as file:
        assert read_all(file, n) == (samples_by_tarfile(content), [])


def test_global_pax_headers_sizes_in_pax_headers_and_binary_sizes_are_understood(tmp_path):
    content = archive([("a.txt", b"abc")], pax_headers={"comment": "all"})
    assert list(TarDataset(write(tmp_path / "a", content))) == [{"__key__": b"a", "txt": b"abc"}]
    big = bytearray(archive([("a.txt", b"abc")], tarfile.GNU_FORMAT))
    big[124:136] = b"\x80" + (3).to_bytes(11, "big")
    assert list(TarDataset(write(tmp_path / "b", with_checksum(big)))) == [{"__key__": b"a", "txt": b"abc"}]
    pax = b"%d size=%06d\n" % (15, 3)
    header = bytearray(archive([("x", pax)], tarfile.USTAR_FORMAT)[:1024])
    header[156] = ord("x")
    member = bytearray(archive([("a.txt", b"abc")], tarfile.USTAR_FORMAT))
    member[124:136] = b"00000000000\0"
    content = with_checksum(header) + with_checksum(member)
    assert list(TarDataset(write(tmp_path / "c", content))) == [{"__key__": b"a", "txt": b"abc"}]


def test_times_in_the_header_of_a_gnu_archive_are_not_part_of_the_name(tmp_path):
    member = bytearray(archive([("a.txt", b"abc")], tarfile.GNU_FORMAT))
    member[345:369] = b"%011o\0" % 7 * 2  # where a ustar header has the beginning of a long name
    assert list(TarDataset(write(tmp_path / "a", with_checksum(member)))) == [{"__key__": b"a", "txt": b"abc"}]


def with_checksum(content):
    """Correct the checksum of the first header."""
    content = bytearray(content)
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    return bytes(content)


def test_a_sparse_member_is_refused(tmp_path):
    sparse = bytearray(archive([("b.txt", b"abc")], tarfile.GNU_FORMAT))
    sparse[156] = ord("S")
    first = archive([("a.txt", b"1")], tarfile.GNU_FORMAT)[:1024]
    path = write(tmp_path / "a", first + with_checksum(sparse))
    iterator = iter(TarDataset(path, ["txt"]))
    assert next(iterator)["__key__"] == b"a"
    with pytest.raises(DataLossError, match=r"record 1, at byte 1024: the member b'b.txt' is a sparse file"):
        next(iterator)
    assert list(iterator) == []
    pax = archive([special("b.txt", tarfile.REGTYPE, pax_headers={"GNU.sparse.major": "1"})])
    with pytest.raises(DataLossError, match="sparse"):
        list(TarDataset(write(tmp_path / "b", pax), ["txt"]))


# Fields


def test_fields_are_those_of_the_first_sample_or_those_requested(tmp_path):
    content = archive(
        [("0.txt", b"0"), ("0.cls", b"a"), ("1.txt", b"1"), ("2.cls", b"c"), ("2.txt", b"2"), ("2.new", b"")]
    )
    path = write(tmp_path / "a", content)
    dataset = TarDataset(path)
    assert dataset.element_spec == dict.fromkeys(("__key__", "txt", "cls"), TensorSpec((), bytes))
    iterator = iter(dataset)
    assert list(next(iterator)) == ["__key__", "txt", "cls"]
    with pytest.raises(SpecError, match=r"a, sample 1, at byte \d+: b'1' has no 'cls'; its fields are \['txt'\]"):
        next(iterator)
    with pytest.raises(SpecError, match=r"sample 2, at byte \d+: b'2' has 'new', which the first sample does not have"):
        next(iterator)
    assert list(iterator) == []
    found = list(TarDataset(path, ["txt"]))
    assert found == [{"__key__": b"%d" % i, "txt": b"%d" % i} for i in range(3)]
    (batch,) = TarDataset(path, ["cls"]).ignore_errors().batch(5)
    assert batch["cls"].tolist() == [b"a", b"c"]


def test_a_field_that_is_contained_twice_is_an_error_in_the_place_of_its_sample(tmp_path):
    path = write(tmp_path / "a", archive([("0.txt", b"0"), ("1.txt", b"1"), ("1.TXT", b"2"), ("2.txt", b"3")]))
    for index in (False, True):
        iterator = iter(TarDataset(path, index=index))
        assert next(iterator)["txt"] == b"0"
        with pytest.raises(SpecError, match=r"sample 1, at byte 1024: b'1' contains '1\.TXT' twice"):
            next(iterator)
        assert [sample["txt"] for sample in iterator] == [b"3"]


def test_arguments_that_are_wrong(tmp_path):
    path = write(tmp_path / "a", archive([("0.txt", b"0")]))
    for make, error, words in (
        (lambda: TarDataset(path, "txt"), TypeError, "fields must be a list of names"),
        (lambda: TarDataset(path, [], index=True), ValueError, "fields must name at least one"),
        (lambda: TarDataset(path, index=1), TypeError, "index"),
        (lambda: TarDataset(path, ["txt"], "GZIP", index=True), ValueError, "a compressed file can't be indexed"),
        (lambda: TarDataset(path, num_parallel_reads=2, index=True), ValueError, "can't be interleaved"),
        (lambda: TarDataset(tmp_path / "nowhere"), FileNotFoundError, "nowhere"),
        (lambda: TarDataset(path, ["txt"], "BZ2"), ValueError, "compression_type must be"),
        (lambda: TarDataset(path, buffer_size=-1), ValueError, "buffer_size"),
    ):
        with pytest.raises(error, match=words):
            make()
    for content in (archive([]), archive([("README", b"text")])):
        with pytest.raises(ValueError, match=r"no sample was found in .*b; pass fields"):
            TarDataset(write(tmp_path / "b", content))


# Damage


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_an_archive_that_is_cut_between_members_is_not_complete(tmp_path, form):
    """tests/fuzz cuts archives anywhere."""
    content = archive([(f"{number}.{field}", b"1" * 600) for number in range(3) for field in "ab"], form)
    path = write(tmp_path / "a", content[: 2 * 2 * 1536])
    with TarFile(path, ["a", "b"]) as file:
        found, (error,) = read_all(file)
    assert len(found) == 2
    assert "ends without a block of zeros" in str(error)
    with pytest.raises(DataLossError, match=r"a, record .*append 1024 zeros"):
        TarDataset(path, ["a", "b"], index=True)


@pytest.mark.parametrize(("kind", "checked"), [("GZIP", 8), ("ZLIB", 4), ("ZSTD", 4)])
def test_the_end_of_a_compressed_stream_is_verified_after_that_of_the_archive(tmp_path, kind, checked):
    content = COMPRESS[kind](archive([("0.txt", b"0")]))
    for damaged in (content[:-1], flipped(content, -checked)):
        with TarFile(write(tmp_path / "a", damaged), ["txt"], kind) as file:
            found, errors = read_all(file)
        assert found == [b"0"]
        assert kind in str(errors[0])


def test_errors_name_the_file_and_the_byte_and_what_else_it_may_be(tmp_path):
    content = archive([("0.txt", b"0"), ("1.txt", b"1" * 600)])
    path = write(tmp_path / "a", content[:2000])
    iterator = iter(TarDataset([path, write(tmp_path / "b", content)], ["txt"]))
    assert next(iterator)["__key__"] == b"0"
    with pytest.raises(
        DataLossError, match=r"a, record 1, at byte 1024: the archive is truncated: 600 bytes"
    ) as caught:
        next(iterator)
    assert (caught.value.path, caught.value.offset, caught.value.record) == (path, 1024, 1)
    assert [sample["__key__"] for sample in iterator] == [b"0", b"1"]
    with pytest.raises(DataLossError, match="is this a tar file"):
        list(TarDataset(write(tmp_path / "c", b"text" * 1000), ["txt"]))
    with pytest.raises(DataLossError, match='starts like a GZIP stream: pass compression_type="GZIP"'):
        list(TarDataset(write(tmp_path / "c", COMPRESS["GZIP"](random.Random(1).randbytes(2000))), ["txt"]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_declared_size_is_compared_with_the_file_before_anything_is_allocated(tmp_path, kind, monkeypatch):
    header = bytearray(archive([("0.txt", b"0")], tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + (1 << 60).to_bytes(11, "big")
    path = write(tmp_path / "a", COMPRESS[kind](with_checksum(header)))
    for fields in (["txt"], ["cls"]):
        with pytest.raises(DataLossError, match=r"truncated|has only"):
            list(TarDataset(path, fields, kind))
    name = bytearray(archive([("n" * 300 + ".txt", b"0")], tarfile.GNU_FORMAT))
    name[124:136] = b"%011o\0" % (1 << 30)
    with pytest.raises(DataLossError, match="a long name of 1073741824 bytes"):
        list(TarDataset(write(tmp_path / "b", COMPRESS[kind](with_checksum(name))), ["txt"], kind))
    if kind:
        monkeypatch.setattr("dataset.io.files.compression.LARGE_BYTES", 1 << 20)
        zeros = write(tmp_path / "c", COMPRESS[kind](archive([("0.txt", bytes(1 << 23))])))
        with pytest.raises(DataLossError, match="100 times the size of the compressed file"):
            list(TarDataset(zeros, ["txt"], kind))


def test_a_long_name_ends_at_its_first_null_byte_as_in_the_standard_library(tmp_path):
    content = archive([("n" * 120 + ".txt.png", b"0")], tarfile.GNU_FORMAT).replace(b".txt.png", b".txt\0png")
    (sample,) = TarDataset(write(tmp_path / "a", content), None)
    assert sample == samples_by_tarfile(content)[0] == {"__key__": b"n" * 120, "txt": b"0"}


# Positions


def shard(first, count=5):
    rng = random.Random(first)
    entries = []
    for number in range(first, first + count):
        entries += [(f"{number:03}.txt", b"%d" % number), (f"{number:03}.bin", rng.randbytes(rng.randrange(900)))]
        entries += [("note", b"skipped")] * (number % 2)
    return entries


def test_an_interrupt_in_the_middle_loses_no_sample(tmp_path, monkeypatch):
    path = write(tmp_path / "a", archive(shard(0)))
    file = TarFile(path, ["__key__"], None, 600)
    assert file.columns(1) == [[b"000"]]
    true = members.MemberReader.next_member
    calls = []

    def interrupted(reader):
        calls.append(reader)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return true(reader)

    monkeypatch.setattr(members.MemberReader, "next_member", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.columns(4)
    assert read_all(file) == ([b"001", b"002", b"003", b"004"], [])


# Files


def test_long_members_that_are_not_requested_are_not_read(tmp_path, monkeypatch):
    entries = [(f"{i}.{field}", bytes(1 << 20 if field == "bin" else 1)) for i in range(3) for field in ("bin", "txt")]
    path = write(tmp_path / "a", archive(entries))
    taken = []
    true = members.MemberReader._take
    monkeypatch.setattr(members.MemberReader, "_take", lambda reader, size: taken.append(size) or true(reader, size))
    assert len(list(TarDataset(path, ["txt"], buffer_size=1 << 12))) == 3
    assert sum(taken) < 1 << 16


def test_files_are_closed_at_the_end_and_after_damage(tmp_path, monkeypatch):
    opened = OpenedFiles()
    monkeypatch.setattr(compression, "open_input", opened)
    content = archive(shard(0))
    whole, damaged = TarFile(write(tmp_path / "a", content), None), TarFile(write(tmp_path / "b", content[:2100]), None)
    whole.columns(1)
    assert not opened.all_closed()
    assert len(read_all(whole)[0]) == 4
    assert len(read_all(damaged)[1]) == 1
    assert len(opened.files) == 2
    assert opened.all_closed()


# The index


def test_samples_by_number_are_those_in_order(tmp_path):
    paths = [write(tmp_path / f"{first}", archive(shard(first, count))) for first, count in ((0, 5), (10, 1), (20, 4))]
    expected = list(TarDataset(paths))
    for buffer_size in (None, 1):
        dataset = TarDataset(paths, buffer_size=buffer_size, index=True)
        assert len(dataset) == 10
        assert list(dataset) == expected
        assert [dataset[i] for i in range(10)] == expected
        assert list(dataset.skip(3).shard(2, 1)) == expected[4::2]


def test_a_file_that_changed_after_it_was_indexed_is_an_error(tmp_path):
    path = write(tmp_path / "a", archive(shard(0)))
    dataset = TarDataset(path, index=True)
    write(tmp_path / "a", archive(shard(0, 4)))
    with pytest.raises(DataLossError, match="modified after its index was built"):
        list(dataset)
    with pytest.raises(DataLossError, match=r"record 1, at byte \d+: .*truncated"):
        TarDataset(write(tmp_path / "a", archive(shard(0))[:2100]), ["txt"], index=True)


def test_a_file_that_changes_while_its_index_is_built_is_an_error(tmp_path, monkeypatch):
    path = write(tmp_path / "a", archive(shard(0)))
    true = members.MemberReader.next_member

    def modifying(reader):
        os.utime(path, ns=(0, 0))
        return true(reader)

    monkeypatch.setattr(members.MemberReader, "next_member", modifying)
    with pytest.raises(OSError, match="modified while its index was built; try again"):
        TarDataset(path, ["txt"], index=True)
