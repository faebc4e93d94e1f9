"""Nodes of ``from_arrow_ipc``: the rows of Arrow IPC files. A record batch is read as a row group of Parquet is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dataset.io.arrow_ipc.ipc_file import IpcContainer
from dataset.io.parquet.source import ParallelParquet, Parquet


@dataclass(frozen=True, eq=False)
class ParallelArrowIpc(ParallelParquet, static_spec=True):
    """Interleave of several Arrow IPC files."""

    op: ClassVar[str] = "from_arrow_ipc"


@dataclass(frozen=True, eq=False)
class ArrowIpc(Parquet, seekable=True):
    """Node that reads the rows of the files that ``source`` names, one file after another, or one shard of them."""

    op: ClassVar[str] = "from_arrow_ipc"
    container: ClassVar[type[IpcContainer]] = IpcContainer  # type: ignore[assignment]  # has the same interface
    in_parallel: ClassVar[type[ParallelParquet]] = ParallelArrowIpc
