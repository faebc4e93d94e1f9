"""``info``: print the number of records, their sizes, and their features.

It makes two passes: one counts the records by their headers, which reads little data; the other one reads only the
sample of records that is needed to find the features.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from dataset.amounts import BLOCK_BYTES, STEP_ELEMENTS
from dataset.commands.command_errors import DAMAGED, GOOD
from dataset.commands.common_options import Subparsers, add_file_command, count
from dataset.commands.display.feature_summary import FeatureSummary, RecordsSummary
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.display.record_content import OTHER
from dataset.commands.display.terminal import complain, counted, number, printable, say, say_json, size
from dataset.commands.inputs import COMPRESSION_WORDS, Input, damage_json, open_inputs
from dataset.errors import DataLossError
from dataset.io.files.compression import open_stream
from dataset.io.files.opening import open_input
from dataset.io.tfrecord.frames import FRAME_BYTES
from dataset.plan.drawing.summary import table

SAMPLE = 1000
SAMPLE_BYTES_MAX = 1 << 28  # limits a sample of large records

MORE = f"""\
Records are counted exactly, by reading the header of each record; compressed files
are decompressed for this. With --quick, the count is estimated from the sample. The
sample is the first {SAMPLE:,} records of all files together, or the number given with
--sample, but at most {SAMPLE_BYTES_MAX >> 20} MiB. With --all, it is all records. The features
shown are those of the sample.

examples:
  python -m dataset tfrecord info train-*.tfrecord
  python -m dataset tfrecord info --quick --json train.tfrecord.gz

status: 0, or 1 if a file is damaged ('verify' shows details), or 2 if a file is
missing or of another kind
"""


@dataclass
class Sizes:
    """The number and the sizes of the records of one or several files.

    Attributes:
        records: the number of records.
        bytes: their total size, without framing.
        smallest: the size of the smallest record; None if there are no records.
        largest: the size of the largest record.
        exact: whether the numbers were counted, not estimated.
    """

    records: int = 0
    bytes: int = 0
    smallest: int | None = None
    largest: int | None = None
    exact: bool = True

    def add(self, other: Sizes) -> None:
        """Add the records of another file."""
        self.records += other.records
        self.bytes += other.bytes
        self.exact = self.exact and other.exact
        if other.smallest is not None and other.largest is not None:
            self.smallest = other.smallest if self.smallest is None else min(self.smallest, other.smallest)
            self.largest = max(self.largest or 0, other.largest)

    @property
    def mean(self) -> float | None:
        """The mean size of a record in bytes."""
        return self.bytes / self.records if self.records else None


@dataclass
class Report:
    """The results for all files."""

    inputs: list[Input]
    sizes: list[Sizes]
    damages: list[DataLossError | None]
    sample: RecordsSummary
    sampled_all: bool

    @property
    def total(self) -> Sizes:
        """The sizes of all files together."""
        total = Sizes()
        for sizes in self.sizes:
            total.add(sizes)
        return total


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_file_command(commands, "info", run, "count the records and show their features", MORE)
    parser.add_argument(
        "--sample", type=count, default=SAMPLE, metavar="N", help="number of records to inspect (%(default)s)"
    )
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--all", action="store_true", help="inspect and verify every record")
    how_many.add_argument("--quick", action="store_true", help="estimate the number of records from the sample")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    report = _examine(arguments, open_inputs(arguments))
    if arguments.json:
        say_json(_document(report))
    else:
        _say_files(report)
        _say_features(report)
    for damage in report.damages:
        if damage is not None:
            complain(f"{damage}; 'verify' shows how much is lost")
    return DAMAGED if any(report.damages) else GOOD


def _examine(arguments: argparse.Namespace, inputs: list[Input]) -> Report:
    report = Report(inputs, [], [], RecordsSummary(), sampled_all=True)
    with ProgressMeter(sum(file.size for file in inputs)) as progress:
        for place, file in enumerate(inputs):
            progress.start(file.path, file.size)
            left = arguments.sample - report.sample.records
            records_max = None if arguments.all else max(left // (len(inputs) - place), 1)
            sizes, damage = _sample(file, records_max, report.sample, progress)
            if not sizes.exact:
                report.sampled_all = False
                if arguments.quick and damage is None:
                    sizes = _estimate(file, sizes)
                else:
                    sizes, another = _count(file, progress)
                    damage = damage or another
            report.sizes.append(sizes)
            report.damages.append(damage)
    return report


def _sample(
    file: Input, records_max: int | None, summary: RecordsSummary, progress: ProgressMeter
) -> tuple[Sizes, DataLossError | None]:
    """Inspect the first records of a file, or all; the sizes are exact if the file has no more records."""
    sizes = Sizes(exact=False)
    with file.open() as records:
        while records_max is None or (sizes.records < records_max and summary.bytes < SAMPLE_BYTES_MAX):
            try:
                found = records.records(STEP_ELEMENTS if records_max is None else records_max - sizes.records)
            except DataLossError as damage:
                return sizes, damage
            if found is None:
                sizes.exact = True
                break
            for record in found:
                summary.add(record)
                sizes.add(Sizes(1, len(record), len(record), len(record), exact=False))
            progress.update(file.done(records.tell()[0]), sizes.records)
    return sizes, None


def _count(file: Input, progress: ProgressMeter) -> tuple[Sizes, DataLossError | None]:
    """Count the records of a file."""
    lengths, damage = file.lengths(progress)
    smallest, largest = (int(lengths.min()), int(lengths.max())) if len(lengths) else (None, None)
    return Sizes(len(lengths), int(lengths.sum()), smallest, largest, exact=damage is None), damage


def _estimate(file: Input, sample: Sizes) -> Sizes:
    """Extrapolate the sizes of a sample to the whole file."""
    seen = sample.bytes + FRAME_BYTES * sample.records
    factor = max(file.size / _stored(file, seen), 1.0) if seen else 1.0
    return Sizes(
        round(sample.records * factor), round(sample.bytes * factor), sample.smallest, sample.largest, exact=False
    )


def _stored(file: Input, seen: int) -> int:
    """Return approximately how many stored bytes of the file correspond to its first ``seen`` decompressed bytes."""
    if not file.compression:
        return seen
    source = open_input(file.path)
    stream = open_stream(source, file.compression)
    try:
        while seen > 0 and (piece := stream.read(min(seen, BLOCK_BYTES))):
            seen -= len(piece)
        return source.tell()
    finally:
        stream.close()


def _say_files(report: Report) -> None:
    rows = [["FILE", "RECORDS", "BYTES", "COMPRESSION", "SMALLEST", "MEAN", "LARGEST"]]
    for file, sizes, damage in zip(report.inputs, report.sizes, report.damages, strict=True):
        kind = COMPRESSION_WORDS[file.compression]
        rows.append(_row(printable(file.path), sizes, file.size, kind, damaged=damage is not None))
    if len(report.inputs) > 1:
        stored = sum(file.size for file in report.inputs)
        name = counted(len(report.inputs), "file")
        rows.append(_row(name, report.total, stored, "", damaged=any(report.damages)))
    lines = table(rows, right=[1, 2, 4, 5, 6])
    if len(report.inputs) > 1:
        lines.insert(-1, "-" * max(map(len, lines)))
    say(*lines)


def _row(name: str, sizes: Sizes, stored: int, compression: str, *, damaged: bool) -> list[str]:
    about = "" if sizes.exact else ">= " if damaged else "about "
    lengths = [sizes.smallest, sizes.mean, sizes.largest]
    shown = ["-" if length is None else size(length) for length in lengths]
    return [name, about + number(sizes.records), size(stored), compression, *shown]


def _say_features(report: Report) -> None:
    sample = report.sample
    if not sample.records:
        return
    say()
    say(_looked_into(report))
    if features := sample.features():
        say()
        rows = [["FEATURE", "KIND", "IN", "VALUES", "CONTENT"], *(_feature_row(f, sample.records) for f in features)]
        say(*table(rows, right=[2]))
    if sample.unnamed:
        say(f"... and {number(sample.unnamed)} more in these records")


def _looked_into(report: Report) -> str:
    """Return a sentence that names the kinds of the inspected records."""
    sample = report.sample
    which = counted(sample.records, "record")
    which = f"all {which}" if report.sampled_all else f"the first {which}"
    if not report.sampled_all and len(report.inputs) > 1:
        which = f"the first records of each file, {number(sample.records)} in total"
    kinds = [kind for kind, _ in sample.kinds.most_common()]
    if kinds == [OTHER]:
        return f"Other bytes, not tf.train.Example: {which}."
    if len(kinds) == 1:
        return f"tf.train.{kinds[0]}: {which}."
    words = ", ".join(f"{number(count)} {_kind_words(kind)}" for kind, count in sample.kinds.most_common())
    return f"{which[0].upper()}{which[1:]}: {words}."


def _kind_words(kind: str) -> str:
    return "of other bytes" if kind == OTHER else f"tf.train.{kind}"


def _feature_row(feature: FeatureSummary, records: int) -> list[str]:
    present = "all" if feature.records == records else f"{100 * feature.records / records:.1f}%"
    values = feature.values.words()
    if feature.is_list:
        steps = feature.steps.words()
        values = f"{steps} step{'' if steps == '1' else 's'}" + (f" of {values}" if values != "-" else "")
    name = printable(feature.name)
    return [name, "/".join(sorted(feature.kinds)) or "-", present, values, feature.content()]


def _document(report: Report) -> dict[str, Any]:
    files = [
        {
            "path": file.path,
            "bytes": file.size,
            "compression": COMPRESSION_WORDS[file.compression],
            **_sizes_json(sizes),
            "damage": damage_json(damage),
        }
        for file, sizes, damage in zip(report.inputs, report.sizes, report.damages, strict=True)
    ]
    return {
        "files": files,
        "total": {"bytes": sum(file.size for file in report.inputs), **_sizes_json(report.total)},
        "sample": {
            "records": report.sample.records,
            "all": report.sampled_all,
            "kinds": dict(report.sample.kinds),
        },
        "features": [feature.json() for feature in report.sample.features()],
    }


def _sizes_json(sizes: Sizes) -> dict[str, Any]:
    return {
        "records": sizes.records,
        "exact": sizes.exact,
        "record_bytes": sizes.bytes,
        "smallest": sizes.smallest,
        "mean": sizes.mean,
        "largest": sizes.largest,
    }
