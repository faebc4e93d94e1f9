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
from dataset.io.files.opening import FileStamp
from dataset.io.indexed.records_at import RecordIndex, RecordsAt
from dataset.io.indexed.saved_index import unchanged_stamp
from dataset.io.tar.members import END, MemberReader, key_and_field
from dataset.io.tar.reader import Sample, SampleError, SampleReader, sample_error


@dataclass(frozen=True, eq=False)
class TarIndex(RecordIndex):
    """Index of the samples of an uncompressed file, as ``RecordIndex``.

    Attributes:
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
        stamp = unchanged_stamp(path)
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
        places = np.array([*offsets, members.offset], np.int64)
        return cls(path, places, unchanged_stamp(path, stamp), names, is_closed)

    def open_records(self) -> SamplesAt:
        """Open the file for reading samples by number. The caller closes it."""
        return SamplesAt(self)


class SamplesAt(RecordsAt[Sample]):
    """Random-access reader of the samples of one open file. A sample without the fields is a SpecError. Thread-safe."""

    _index: TarIndex

    def records(self, first: int, stop: int) -> tuple[list[Sample], DataLossError | SpecError | None]:
        base, end = self._index.span(first, stop)
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
