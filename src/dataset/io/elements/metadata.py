"""metadata.json: what a directory of elements holds. Written last, so that a directory that has it is complete."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from dataset.errors import DataLossError
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.compression import compression_name
from dataset.plan.plain import from_json, to_json
from dataset.plan.skeleton import fits, names_classes, spec_from_plain, spec_to_plain, structure_named
from dataset.plan.spec import ComponentSpec, flatten_spec
from dataset.plan.structure import Structure

__all__ = [
    "Metadata",
    "ShardRecord",
    "compression_of_elements",
    "is_run",
    "is_shard_name",
    "new_run",
    "run_path",
    "shard_name",
]
__all__ += ["wait_for_metadata"]

FORMAT = "dataset elements"
VERSION = 1
FILE_NAME = "metadata.json"
_RUN = re.compile(r"[0-9a-f]{16}")
_SHARD = re.compile(r"[0-9]{8,}\.tfrecord")
_SIZE_MAX = 1 << 30  # of the file: far more than any has

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class ShardRecord:
    """The number of a shard's file, and what it holds; ``crc`` is the CRC-32C of all its records."""

    file: int
    records: int
    elements: int
    crc: int


@dataclass(frozen=True)
class Metadata:
    """What a directory holds.

    Attributes:
        run: the name of the folder of its shards.
        skeleton: of the elements' structure.
        components: the specs of their components; None where no element told them, because there was none.
        compression: a name from ``compression_name``.
        shards: in the order of their numbers.
        about: plain data of whoever wrote it.
    """

    run: str
    skeleton: Any
    components: tuple[ComponentSpec, ...] | None
    compression: str
    shards: tuple[ShardRecord, ...]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def elements(self) -> int:
        """How many there are."""
        return sum(shard.elements for shard in self.shards)

    @property
    def identity(self) -> str:
        """Short, and different where other elements were saved: saved states go with those and not with the files."""
        return _digest({key: value for key, value in self._plain().items() if key not in {"run", "about"}})

    def shard_path(self, path: str, number: int) -> str:
        """The file of the shard that is ``number`` in order."""
        return str(run_path(path, self.run) / shard_name(self.shards[number].file))

    def structure(self) -> Structure | None:
        """The structure of the elements, where the file can name it."""
        return None if self.components is None else structure_named(self.skeleton)

    def spec_or(self, pipeline_spec: Callable[[], Any]) -> Any:
        """The element spec that the file tells; ``pipeline_spec()`` where there are classes of the user's own."""
        structure = None if names_classes(self.skeleton) else self.structure()
        return pipeline_spec() if structure is None else structure.unflatten(list(self.components or ()))

    def misfit(self, spec: Any) -> str:
        """What does not fit if elements of ``spec`` are expected; empty if nothing does not."""
        structure, expected = flatten_spec(spec)
        if self.components is None:
            return ""
        if not fits(self.skeleton, structure):
            return f"the structure {structure!r}, in the file it is {_shown(self.skeleton)}"
        for index, (mine, theirs) in enumerate(zip(self.components, expected, strict=True)):
            if not theirs.is_compatible_with(mine):
                return f"{theirs!r} for {structure.component_name(index)}, in the file it is {mine!r}"
        return ""

    def write(self, path: str) -> None:
        """Make what the directory holds visible, in place of what was there before."""
        plain = self._plain()
        with AtomicFile(str(Path(path) / FILE_NAME)) as target:
            target.file.write(json.dumps({**plain, "digest": _digest(plain)}, indent=1).encode())

    def _plain(self) -> dict[str, Any]:
        components = None if self.components is None else [spec_to_plain(spec) for spec in self.components]
        return {
            "format": FORMAT,
            "version": VERSION,
            "run": self.run,
            "structure": self.skeleton,
            "components": components,
            "compression": self.compression,
            "elements": self.elements,
            "shards": [asdict(shard) for shard in self.shards],
            "about": to_json(self.about),
        }

    @classmethod
    def read(cls, path: str) -> Self:
        """What the directory at ``path`` holds.

        Raises:
            FileNotFoundError: if there is no metadata: nothing was saved, or it was not finished.
            DataLossError: if the file is damaged, or no such file.
            ValueError: if a newer version of the library wrote it.
        """
        name = str(Path(path) / FILE_NAME)
        with Path(name).open("rb") as file:  # read() allocates the size that it is given
            content = file.read(min(os.fstat(file.fileno()).st_size, _SIZE_MAX))
        try:
            data = json.loads(content)
            _check(data)
            return cls._parsed(data)
        except _VersionError as error:
            raise ValueError(f"{name}: {error}") from None
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise DataLossError(
                f"this is no metadata of elements: {error!r:.300}", path=name, offset=0, record=0
            ) from None

    @classmethod
    def _parsed(cls, data: dict[str, Any]) -> Self:
        components = data["components"]
        shards = tuple(
            ShardRecord(*(_count(one[key]) for key in ("file", "records", "elements", "crc"))) for one in data["shards"]
        )
        about = from_json(data["about"])
        read = cls(
            run=data["run"],
            skeleton=data["structure"],
            components=None if components is None else tuple(map(spec_from_plain, components)),
            compression=compression_name(data["compression"]),
            shards=shards,
            about=about if type(about) is dict else {},
        )
        if not is_run(read.run):
            raise ValueError(f"no name of a run: {read.run!r:.50}")
        structure = read.structure()
        if structure is not None and structure.num_components != len(components):
            raise ValueError(f"{len(components)} components in the structure {structure!r}")
        if read.elements != data["elements"] or (read.elements and read.components is None):
            raise ValueError("the numbers of elements do not fit")
        return read


class _VersionError(Exception):
    pass


def _check(data: Any) -> None:
    if type(data) is not dict or data.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if data.get("version") != VERSION:
        raise _VersionError(f"the format has version {data.get('version')!r:.50}, this library reads version {VERSION}")
    stored = data.pop("digest", None)
    if stored != _digest(data):
        raise ValueError("its content does not fit its digest")


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"no number: {value!r:.50}")
    return value


def _digest(plain: dict[str, Any]) -> str:
    content = json.dumps(plain, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _shown(skeleton: Any) -> str:
    structure = structure_named(skeleton)
    return repr(structure) if structure is not None else json.dumps(skeleton)


def is_run(name: Any) -> bool:
    """Whether this can be the name of a run: it is never a path."""
    return type(name) is str and _RUN.fullmatch(name) is not None


def new_run() -> str:
    """A name that no other run has."""
    return secrets.token_hex(8)


def run_path(path: str, run: str) -> Path:
    """The folder of a run."""
    return Path(path) / run


def shard_name(number: int) -> str:
    """The name of a shard's file."""
    return f"{number:08d}.tfrecord"


def is_shard_name(name: str) -> bool:
    """Whether ``shard_name`` made this name."""
    return _SHARD.fullmatch(name) is not None


def compression_of_elements(op: str, compression: str | None) -> str:
    """Check the compression for elements in files: none, as also ``"AUTO"`` means, ``"GZIP"`` or ``"ZLIB"``.

    Raises:
        ValueError: if it is another.
    """
    if compression == "AUTO":
        return ""
    try:
        return compression_name(compression)
    except ValueError:
        raise ValueError(
            f'{op}(): compression must be None, "AUTO" (which is none), "GZIP" or "ZLIB", got {compression!r:.100}'
        ) from None


def wait_for_metadata(path: str) -> Metadata:
    """What the directory holds, as soon as it is complete.

    Directories of other machines tell nobody that a file appeared, so it is looked for twice a second. The wait in
    between ends at once when the program is interrupted.
    """
    never = threading.Event()
    while True:
        try:
            return Metadata.read(path)
        except FileNotFoundError:
            never.wait(_POLL_SECONDS)
