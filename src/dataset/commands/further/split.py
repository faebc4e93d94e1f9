"""``split``: write the records of some files to new files of even size, in the same order.

A shard holds consecutive records, so reading the shards in order returns the original sequence. The number of shards is
part of their names, so the lengths of all records are read first.
"""

from __future__ import annotations

import argparse
import string
from collections.abc import Iterator, Sequence

from dataset.commands.command_errors import GOOD, CommandError
from dataset.commands.common_options import Subparsers, add_file_command, byte_count, count
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.display.terminal import counted, number, printable, say, say_json
from dataset.commands.inputs import Input, open_inputs
from dataset.commands.outputs import Losses, NewFiles, add_output_options, check_new, output_options, sound_records
from dataset.io.tfrecord.frames import FRAME_BYTES
from dataset.io.tfrecord.writer import TFRecordOptions

SHARDS_MAX = 100_000

MORE = """\
The order of the records is kept: each shard has consecutive records. With
--num-shards, the numbers of records in the shards differ by at most one. With
--max-records and --max-bytes, each shard is filled before the next one is started.
Bytes are counted before compression. A record larger than --max-bytes is written to
a shard of its own.

All checksums are verified. The new files appear when all of them are complete; if
an error occurs, no files are written.

examples:
  python -m dataset tfrecord split big.tfrecord --num-shards 16 \\
      --output "train-{shard:05d}-of-{num_shards:05d}.tfrecord"
  python -m dataset tfrecord split *.tfrecord --max-bytes 200MB \\
      --output "part-{shard:03d}.tfrecord" --compression gzip

status: 0, or 1 if a file is damaged, or 2 if a file is missing, of another kind or
can't be written
"""


class ShardBeingFilled:
    """Assignment of records to shards: tells at which record a new shard starts.

    Args:
        arguments: have exactly one of ``num_shards``, ``max_records`` and ``max_bytes``.
        total: the number of records of all files; needed only for ``num_shards``.
    """

    def __init__(self, arguments: argparse.Namespace, total: int) -> None:
        self._bytes_max: int | None = arguments.max_bytes
        self._records_max: int | None = arguments.max_records
        self._even = divmod(total, arguments.num_shards or 1)  # records per shard, and how many shards have one more
        self.shards = self._shard_records = self._shard_bytes = 0

    def next_shard(self, length: int) -> bool:
        """Add a record of this length; return whether it starts a new shard."""
        size = length + FRAME_BYTES
        new = not self.shards or self._is_full(size)
        if new:
            self.shards += 1
            self._shard_records = self._shard_bytes = 0
        self._shard_records += 1
        self._shard_bytes += size
        return new

    def _is_full(self, size: int) -> bool:
        if self._bytes_max is not None:
            return self._shard_bytes + size > self._bytes_max
        if self._records_max is not None:
            return self._shard_records == self._records_max
        each, larger = self._even
        return self._shard_records == each + int(self.shards <= larger)


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_file_command(commands, "split", run, "write the records to several new files", MORE, writes=True)
    parser.add_argument(
        "--output", required=True, metavar="NAME", help="the names of the new files, with {shard} and {num_shards}"
    )
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--num-shards", type=count, metavar="N", help="this many files")
    how.add_argument("--max-bytes", type=byte_count, metavar="B", help="files of at most this size, such as 200MB")
    how.add_argument("--max-records", type=count, metavar="R", help="files of at most this many records")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    shard_name(arguments.output, 0, 1)
    inputs = open_inputs(arguments)
    options = output_options(arguments, inputs)
    with ProgressMeter(2 * sum(file.size for file in inputs)) as progress:
        names = _names(arguments, inputs, progress)
        check_new(arguments, names, inputs)
        losses = Losses()
        files = _write(arguments, inputs, options, names, losses, progress)
    if arguments.json:
        say_json({"files": files, **losses.json()})
    else:
        _say_files(files)
        if losses.first:
            say(losses.words())
    return GOOD


def shard_name(template: str, shard: int, num_shards: int) -> str:
    """Return the name of a shard.

    >>> shard_name("train-{shard:05d}-of-{num_shards:05d}", 3, 16)
    'train-00003-of-00016'
    """
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        if not set(fields) <= {"shard", "num_shards"}:
            raise CommandError(f"--output supports only {{shard}} and {{num_shards}}, got {template!r}")
        name = template.format(shard=shard, num_shards=num_shards)
    except (ValueError, LookupError) as error:
        raise CommandError(
            f"--output must be a name with fields such as {{shard:05d}}, got {template!r}: {error}"
        ) from None
    if not name:
        raise CommandError("--output must not be empty")
    return name


def _names(arguments: argparse.Namespace, inputs: Sequence[Input], progress: ProgressMeter) -> list[str]:
    """Return the names of all shards. Unless their number is given, this reads the lengths of all records."""
    if arguments.num_shards:
        shards = arguments.num_shards
    else:
        filling = ShardBeingFilled(arguments, 0)
        for length in _lengths(arguments, inputs, progress):
            filling.next_shard(length)
        shards = max(filling.shards, 1)
    if shards > SHARDS_MAX:
        raise CommandError(f"this would write {number(shards)} files; the maximum is {number(SHARDS_MAX)}")
    names = [shard_name(arguments.output, shard, shards) for shard in range(shards)]
    if len(set(names)) < len(names):
        raise CommandError(f"{arguments.output!r} gives several shards the same name; add {{shard}} to it")
    return names


def _lengths(arguments: argparse.Namespace, inputs: Sequence[Input], progress: ProgressMeter) -> Iterator[int]:
    """Yield the lengths of the records that will be written."""
    for file in inputs:
        progress.start(file.path, file.size)
        if arguments.on_error == "skip":  # only reading the records tells which ones are skipped
            for records in sound_records(file, Losses(), progress):
                yield from map(len, records)
        else:
            found, damage = file.lengths(progress)
            if damage is not None:
                raise damage
            yield from found.tolist()


def _write(
    arguments: argparse.Namespace,
    inputs: Sequence[Input],
    options: TFRecordOptions,
    names: Sequence[str],
    losses: Losses,
    progress: ProgressMeter,
) -> list[dict[str, object]]:
    total = sum(1 for _ in _lengths(arguments, inputs, progress)) if arguments.num_shards else 0
    filling = ShardBeingFilled(arguments, total)
    noted = losses if arguments.on_error == "skip" else None
    with NewFiles(options) as new:
        for file in inputs:
            progress.start(file.path, file.size)
            for records in sound_records(file, noted, progress):
                for record in records:
                    if filling.next_shard(len(record)):
                        if filling.shards > len(names):
                            raise CommandError("an input file changed while it was read; no files were written")
                        new.start(names[filling.shards - 1])
                    new.write(record)
        for name in names[filling.shards :]:
            new.start(name)
        new.commit()
    return new.files


def _say_files(files: list[dict[str, object]]) -> None:
    records = [int(str(file["records"])) for file in files]
    first, last = printable(str(files[0]["path"])), printable(str(files[-1]["path"]))
    each = number(min(records)) if min(records) == max(records) else f"{number(min(records))} to {number(max(records))}"
    names = first if len(files) == 1 else f"{first} ... {last}"
    say(f"{counted(sum(records), 'record')} in {counted(len(files), 'file')} of {each}: {names}")
