"""Reader of the samples of one tar file: consecutive members with the same key, as in WebDataset.

A sample is known to be complete when the header of the next one was read; that header is kept for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dataset.amounts import BLOCK_BYTES, STEP_BYTES
from dataset.errors import DataLossError, SpecError
from dataset.io.files.compression import DamagedStreamError
from dataset.io.files.stream_file import StreamFile
from dataset.io.tar.members import Member, MemberReader, key_and_field
from dataset.redaction import redacted

KEY = "__key__"

Sample = dict[str, bytes]


class SampleError(Exception):
    """Internal error: a sample does not have the requested fields. Callers add the file and the position."""


def sample_error(error: SampleError, path: str, offset: int, number: int) -> SpecError:
    """Return the public error for a sample."""
    return SpecError(f"{redacted(path)}, sample {number}, at byte {offset}: {error}")


class SampleReader:
    """Grouping of members to samples.

    Args:
        members: the members of an archive.
        names: the key and the fields to return; None for all.
        is_closed: whether another field is an error.

    Attributes:
        offset: where the next sample begins; after an error, the one that failed.
    """

    def __init__(self, members: MemberReader, names: Sequence[str] | None, *, is_closed: bool) -> None:
        self._members = members
        self._names = names
        self._is_closed = is_closed
        self._next: tuple[Member, str, str] | None = None  # the first member of the next sample, with its key and field
        self._damage: DamagedStreamError | None = None  # found after a sample that has all its fields
        self.offset = members.offset

    def next_sample(self) -> Sample | None:
        """Return the next sample; None at the end.

        Raises:
            DamagedStreamError: the archive is damaged.
            SampleError: the sample has other fields, or one of them twice. The next call continues after it.
        """
        if self._damage is not None:
            raise self._damage
        current = self._next or self._next_member()
        if current is None:
            self.offset = self._members.begin
            return None
        self.offset, key = current[0].offset, current[1]
        sample = {KEY: key.encode(errors="surrogateescape")}
        twice = None
        while current is not None and current[1] == key:
            member, _, field = current
            if field in sample:
                twice = member.name
            if self._names is None or field in self._names:
                sample[field] = self._members.data(member.size)
            else:
                sample[field] = b""
                self._members.skip(member.size)
            try:
                current = self._next_member()
            except DamagedStreamError as damage:
                if self._names is None or not sample.keys() >= set(self._names):
                    raise
                current, self._damage = None, damage
        self._next = current
        self._require_fields(sample, twice)
        self.skip_failed()
        return sample

    def skip_failed(self) -> None:
        """Continue after the sample that failed."""
        self.offset = self._members.begin if self._next is None else self._next[0].offset

    def _next_member(self) -> tuple[Member, str, str] | None:
        while (member := self._members.next_member()) is not None:
            if (found := key_and_field(member.name)) is not None:
                return member, *found
            self._members.skip(member.size)
        return None

    def _require_fields(self, sample: Sample, twice: str | None) -> None:
        key = f"{sample[KEY]!r:.80}"
        if twice is not None:
            raise SampleError(f"{key} contains {twice!r:.80} twice")
        if self._names is None:
            return
        found = sorted(sample.keys() - {KEY})
        if missing := [name for name in self._names if name not in sample]:
            raise SampleError(f"{key} has no {missing[0]!r}; its fields are {found}")
        if self._is_closed and (others := set(found).difference(self._names)):
            raise SampleError(f"{key} has {min(others)!r}, which the first sample does not have; pass fields")


class TarFile(StreamFile):
    """Sequential reader of the samples of one file.

    Args:
        path: the file.
        names: the components in order, the key and fields; None to return whole samples as dicts, in one column.
        compression_type: as in ``StreamFile``.
        buffer_size: bytes to read at once; default 256 KiB.
        is_closed: whether a sample with another field is an error.
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        names: Sequence[str] | None,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        *,
        is_closed: bool = False,
    ) -> None:
        super().__init__(path, compression_type)
        self._names = names
        self._is_closed = is_closed
        self._block_bytes = buffer_size or BLOCK_BYTES
        self._go_to(0, 0)

    def tell(self) -> tuple[int, int]:
        """Return the offset of the next sample in the uncompressed stream, and its number from 0."""
        return self._offset, self._number

    def _go_to(self, offset: int, number: int) -> None:
        self._offset = offset
        self._number = number
        self._samples: SampleReader | None = None
        self._failure: Exception | None = None  # of the next sample
        self._ended = False

    def columns(self, n: int) -> list[list[Any]] | None:
        """Return the next 1 to ``n`` samples, one column per component; None at the end, and on every later call.

        Raises:
            DataLossError: the file is truncated or corrupt here. Raised once; the end follows.
            SpecError: a sample has other fields, or one of them twice. The next call continues after it.
            OSError: the file is missing or can't be read. The next call tries again at the same position.
            ClosedError: after ``close``.
        """
        self._check_open()
        samples: list[Sample] = []
        place, size = self.tell(), 0
        try:
            while len(samples) < n and size < STEP_BYTES and (sample := self._read_sample()) is not None:
                samples.append(sample)
                size += sum(map(len, sample.values()))
        except BaseException:
            self._reopen_at(*place)  # what was read is lost
            raise
        if not samples:
            if self._failure is None:
                return None
            raise self._failed()
        return [samples] if self._names is None else [[sample[name] for sample in samples] for name in self._names]

    def _read_sample(self) -> Sample | None:
        """Return the next sample. None at the end, or if it failed; then the failure is kept for its place."""
        if self._ended or self._failure is not None:
            return None
        offset, sample = self._offset, None
        try:
            samples = self._opened()
            try:
                sample = samples.next_sample()
            finally:
                offset = samples.offset
            self._ended = sample is None
            self._number += not self._ended
        except SampleError as error:
            self._failure = sample_error(error, self.path, offset, self._number)
        except DamagedStreamError as damage:
            self._failure = DataLossError(str(damage), path=self.path, offset=offset, record=self._number)
        self._offset = offset
        if self._ended:
            self._release()
        return sample

    def _failed(self) -> Exception:
        """Return the failure of the next sample, and continue after it."""
        failure, self._failure = self._failure, None
        assert failure is not None
        if isinstance(failure, SpecError) and self._samples is not None:
            self._number += 1
            self._samples.skip_failed()
            self._offset = self._samples.offset
        else:
            self._ended = True
            self._release()
        return failure

    def _opened(self) -> SampleReader:
        if self._samples is None:
            self._stream = self._open()
            if self._offset:  # a pipe can be read as long as it is not moved
                self._stream.seek(self._offset)
            members = MemberReader(self._stream, self._offset, self._block_bytes)
            self._samples = SampleReader(members, self._names, is_closed=self._is_closed)
        return self._samples
