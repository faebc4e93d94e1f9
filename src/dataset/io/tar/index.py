"""Index of one tar file: where its samples begin; and the reader of samples by number.

The index is built from the headers of the members, in memory. Members without a key belong to the sample before them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataset.amounts import PEEK_BYTES
from dataset.errors import DataLossError, SpecError
from dataset.io.files.compression import DamagedStreamError, open_decompressed, open_stream
from dataset.io.files.opening import FileStamp, file_stamp, require_regular
from dataset.io.tar.members import END, MemberReader, key_and_field
from dataset.io.tar.reader import Sample, SampleError, SampleReader, sample_error
from dataset.io.tfrecord.records_at import RecordsAt
from dataset.redaction import redacted


@dataclass(frozen=True, eq=False)
class TarIndex:
    """Index of the samples of an uncompressed file.

    Attributes:
        path: the file.
        offsets: int64 array of shape (n + 1,): where each sample begins, and where the last one ends.
        stamp: the stamp of the file when the index was built.
        names: the components of a sample: the key and the fields.
        is_closed: whether another field is an error.
    """

    path: str
    offsets: npt.NDArray[np.int64]
    stamp: FileStamp
    names: Sequence[str]
    is_closed: bool

    @classmethod
    def build(cls, path: str, names: Sequence[str], *, is_closed: bool) -> TarIndex:
        """Build the index of a file.

        Raises:
            DataLossError: the archive is damaged.
            OSError: the file can't be read, or is modified at the same time.
        """
        require_regular(path, "an indexed file must be a regular one")
        stamp = file_stamp(path)
        offsets: list[int] = []
        stream = open_decompressed(path, "")
        members = MemberReader(stream, 0, PEEK_BYTES)
        last = None
        try:
            while (member := members.next_member()) is not None:
                found = key_and_field(member.name)
                if found is not None and found[0] != last:
                    last = found[0]
                    offsets.append(member.offset)
                members.skip(member.size)
        except DamagedStreamError as damage:
            raise DataLossError(str(damage), path=path, offset=members.offset, record=len(offsets)) from None
        finally:
            stream.close()
        if file_stamp(path) != stamp:
            raise OSError(f"{redacted(path)}: the file was modified while its index was built; try again")
        return cls(path, np.array([*offsets, members.offset], np.int64), stamp, names, is_closed)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def open_records(self) -> SamplesAt:
        """Open the file for reading samples by number. The caller closes it."""
        return SamplesAt(self)


class SamplesAt(RecordsAt):
    """Random-access reader of the samples of one open file. Thread-safe."""

    def __init__(self, index: TarIndex) -> None:
        super().__init__(index.path, index.offsets, index.stamp)
        self._index = index

    def record(self, number: int) -> Sample:  # type: ignore[override]  # of another format
        """Return the sample with this number, from 0.

        Raises:
            DataLossError: the sample is damaged.
            SpecError: it does not have the fields.
            ClosedError: after ``close``.
        """
        found, failure = self.records(number, number + 1)
        if failure is not None:
            raise failure
        return found[0]

    def records(  # type: ignore[override]
        self, first: int, stop: int
    ) -> tuple[list[Sample], DataLossError | SpecError | None]:
        """Return the samples ``first`` to ``stop`` before the first failing one, and its error."""
        base, end = int(self._offsets[first]), int(self._offsets[stop])
        block = self._read(base, end - base)
        block += END if len(block) == end - base else b""  # else the file was truncated since
        samples = SampleReader(
            MemberReader(open_stream(io.BytesIO(block), ""), base, max(len(block), 1)),
            self._index.names,
            is_closed=self._index.is_closed,
        )
        found: list[Sample] = []
        try:
            while len(found) < stop - first and (sample := samples.next_sample()) is not None:
                found.append(sample)
            if len(found) < stop - first:
                raise DamagedStreamError("the archive ends before this sample; was the file modified?")  # noqa: TRY301
        except SampleError as error:
            return found, sample_error(error, self.path, samples.offset, first + len(found))
        except DamagedStreamError as damage:
            record = first + len(found)
            return found, DataLossError(str(damage), path=self.path, offset=samples.offset, record=record)
        return found, None
