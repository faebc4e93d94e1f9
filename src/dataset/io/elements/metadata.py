"""Metadata file of a directory of elements. It is written last, so a directory with metadata.json is complete."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from dataset.errors import DataLossError
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.compression import compression_name
from dataset.io.files.opening import require_regular
from dataset.plan.plain import from_json, to_json
from dataset.plan.skeleton import fits, names_classes, spec_from_plain, spec_to_plain, structure_named
from dataset.plan.spec import ComponentSpec, flatten_spec
from dataset.plan.structure import Structure

FORMAT = "dataset elements"
VERSION = 1
FILE_NAME = "metadata.json"
_RUN = re.compile(r"[0-9a-f]{16}")
_SHARD = re.compile(r"[0-9]{8,}\.tfrecord")
_SIZE_MAX = 1 << 30  # of the file; real ones are much smaller


@dataclass(frozen=True)
class ShardRecord:
    """Metadata of one shard: the number of its file, and its contents; ``crc`` is the CRC-32C of all its records."""

    file: int
    records: int
    elements: int
    crc: int

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if type(value) is not int or value < 0:
                raise ValueError(f"not a valid number: {value!r:.50}")


@dataclass(frozen=True)
class Metadata:
    """Metadata of a directory of elements.

    Attributes:
        run: the name of the subdirectory of its shards.
        skeleton: the skeleton of the elements' structure.
        components: the specs of their components; None if there was no element to derive them from.
        compression: a name from ``compression_name``.
        shards: the shards in the order of their numbers.
        about: plain data of the writer.
    """

    run: str
    skeleton: Any
    components: tuple[ComponentSpec, ...] | None
    compression: str
    shards: tuple[ShardRecord, ...]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def elements(self) -> int:
        """Return the number of elements."""
        return sum(shard.elements for shard in self.shards)

    @property
    def identity(self) -> str:
        """Return a digest that differs for other elements: saved states depend on the elements, not on the files."""
        return _digest({key: value for key, value in self._plain().items() if key not in {"run", "about"}})

    def shard_path(self, path: str, number: int) -> str:
        """Return the file of the shard at index ``number``."""
        return str(run_path(path, self.run) / shard_name(self.shards[number].file))

    def structure(self) -> Structure | None:
        """Return the structure of the elements; None if the file can't represent it."""
        return None if self.components is None else structure_named(self.skeleton)

    def spec_or(self, pipeline_spec: Callable[[], Any]) -> Any:
        """Return the element_spec in the file, or ``pipeline_spec()`` if it contains user-defined classes."""
        structure = None if names_classes(self.skeleton) else self.structure()
        return pipeline_spec() if structure is None else structure.unflatten(list(self.components or ()))

    def misfit(self, spec: Any) -> str:
        """Return how the elements differ from an expected ``spec``; empty if they match."""
        structure, expected = flatten_spec(spec)
        if self.components is None:
            return ""
        if not fits(self.skeleton, structure):
            known = structure_named(self.skeleton)
            shown = json.dumps(self.skeleton) if known is None else repr(known)
            return f"the structure {structure!r}, but the file has {shown}"
        for index, (component, theirs) in enumerate(zip(self.components, expected, strict=True)):
            if not theirs.is_compatible_with(component):
                return f"{theirs!r} for {structure.component_name(index)}, but the file has {component!r}"
        return ""

    def write(self, path: str) -> None:
        """Write the metadata, which makes the run visible and replaces the previous one."""
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
        """Read the metadata of the directory at ``path``.

        Raises:
            FileNotFoundError: the metadata is missing: nothing was saved, or saving has not finished.
            DataLossError: the file is damaged, or is not a metadata file.
            ValueError: the file has an unsupported version.
        """
        name = str(Path(path) / FILE_NAME)
        require_regular(name, "metadata of saved elements must be a regular file")
        with Path(name).open("rb") as file:  # the size is bounded because read() allocates it
            content = file.read(min(os.fstat(file.fileno()).st_size, _SIZE_MAX))
        try:
            plain = json.loads(content)
            if type(plain) is not dict or plain.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT!r}")  # noqa: TRY301
            if plain.get("version") == VERSION:
                return cls._parsed(plain)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise DataLossError(
                f"this is not a valid metadata file of elements: {error!r:.300}", path=name, offset=0, record=0
            ) from None
        raise ValueError(
            f"{name}: the format has version {plain.get('version')!r:.50}, but this library reads version {VERSION}"
        )

    @classmethod
    def _parsed(cls, plain: dict[str, Any]) -> Self:
        if plain.pop("digest", None) != _digest(plain):
            raise ValueError("its content does not match its digest")
        components, about = plain["components"], from_json(plain["about"])
        read = cls(
            run=plain["run"],
            skeleton=plain["structure"],
            components=None if components is None else tuple(map(spec_from_plain, components)),
            compression=compression_name(plain["compression"]),
            shards=tuple(ShardRecord(**shard) for shard in plain["shards"]),
            about=about if type(about) is dict else {},
        )
        if not is_run(read.run):
            raise ValueError(f"not the name of a run: {read.run!r:.50}")
        structure = read.structure()
        if structure is not None and structure.num_components != len(components):
            raise ValueError(f"{len(components)} components do not match the structure {structure!r}")
        if read.elements != plain["elements"] or (read.elements and read.components is None):
            raise ValueError("the numbers of elements are inconsistent")
        return read


def _digest(plain: dict[str, Any]) -> str:
    content = json.dumps(plain, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def is_run(name: Any) -> bool:
    """Return whether this is a valid name of a run, which is never a path."""
    return type(name) is str and _RUN.fullmatch(name) is not None


def run_path(path: str, run: str) -> Path:
    """Return the directory of a run."""
    return Path(path) / run


def shard_name(number: int) -> str:
    """Return the name of a shard's file."""
    return f"{number:08d}.tfrecord"


def is_shard_name(name: str) -> bool:
    """Return whether this is a name that ``shard_name`` returns."""
    return _SHARD.fullmatch(name) is not None


def compression_of_elements(op: str, compression: str | None) -> str:
    """Check and return the compression for elements in files; ``"AUTO"`` means none.

    Raises:
        ValueError: the compression is not supported.
    """
    if compression == "AUTO":
        return ""
    try:
        return compression_name(compression)
    except ValueError:
        raise ValueError(
            f'{op}(): compression must be None, "AUTO" (which means None), "GZIP", "ZLIB", "ZSTD" or "SNAPPY", got '
            f"{compression!r:.100}"
        ) from None
