"""Binding of the native kernels: finds and loads the shared library, and declares its functions.

The environment variable ``DATASET_NATIVE`` chooses: ``auto`` (the default) uses the kernels if they can be loaded,
``0`` never does, and ``1`` raises an error if they can't be loaded. The library is compiled by ``hatch_build.py`` when
the package is installed. It carries a hash of its sources, and is ignored if the sources here are others.

This module imports only the standard library, because ``hatch_build.py`` runs it before the package is installed.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
from ctypes import c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

LIBRARY = Path(__file__).with_name("_kernels.so")  # on Windows, too: the loader does not look at the suffix

_log = logging.getLogger("dataset")
_Octets = ctypes.c_char * 0


class NativeKernel(NamedTuple):
    """Declaration of a C function.

    Attributes:
        arguments: the types of its arguments. Addresses are integers or ``bytes``.
        twin: the Python function that specifies it, as ``module:name``.
    """

    arguments: tuple[Any, ...]
    twin: str


# The result of every kernel is an int64.
KERNELS = {
    "copy_texts": NativeKernel(
        (c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64, c_void_p),
        "dataset.io.csv.rows:cut_texts",
    ),
    "copy_rows": NativeKernel(
        (c_void_p, c_int64, c_void_p, c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64),
        "dataset.native.ragged_rows:copy_by_numpy",
    ),
    "decode_features": NativeKernel(
        (c_void_p, c_int64, c_int64, c_void_p, c_int64, c_void_p, c_int64),
        "dataset.io.example.columns:MessageReader",
    ),
    "find_features": NativeKernel((c_void_p, c_int64), "dataset.io.example.columns:MessageReader"),
    "find_steps": NativeKernel((c_void_p, c_int64, c_void_p), "dataset.io.example.columns:MessageReader"),
    "find_frames": NativeKernel(
        (c_void_p, c_int64, c_int64, c_int32, c_void_p),
        "dataset.io.tfrecord.frames:walk_frames",
    ),
    "read_rows": NativeKernel((c_void_p, c_int64, c_int64, c_int64, c_void_p), "dataset.io.csv.row_parser:scan_row"),
    "resample": NativeKernel((c_void_p,), "dataset.io.image.resize:resample"),
}


def kernels() -> Any:
    """Return the loaded library, whose attributes are the functions in ``KERNELS``; None if they are not in use.

    Raises:
        RuntimeError: ``DATASET_NATIVE`` is 1, and the library can't be loaded.
        ValueError: ``DATASET_NATIVE`` has an unknown value.
    """
    return load()[0]


def address_of(memory: Any) -> int:
    """Return the address of an array or other buffer."""
    try:
        return ctypes.addressof(_Octets.from_buffer(memory))  # a third of the time
    except (TypeError, ValueError):  # it is read-only, or its dtype has no format of the buffer protocol
        return memory.ctypes.data  # type: ignore[no-any-return]


def kernels_status() -> str:
    """Return "in use", or "not in use: " and the reason."""
    reason = load()[1]
    return f"not in use: {reason}" if reason else "in use"


def source_hash() -> str:
    """Return a hash of the C sources."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.[ch]")):
        found.update(path.read_bytes())
    return found.hexdigest()


@functools.cache
def load() -> tuple[Any, str]:
    """Return the loaded library, or None and the reason. The variable is read once."""
    setting = os.environ.get("DATASET_NATIVE", "auto")
    if setting not in {"auto", "0", "1"}:
        raise ValueError(f"the environment variable DATASET_NATIVE must be auto, 0 or 1, got {setting!r}")
    if setting == "0":
        return None, "DATASET_NATIVE is 0"
    library, reason = _open(os.fspath(LIBRARY))
    if reason and setting == "1":
        raise RuntimeError(f"DATASET_NATIVE is 1, but the native kernels can't be used: {reason}")
    return library, reason


def _open(path: str) -> tuple[Any, str]:
    if not os.path.exists(path):  # noqa: PTH110
        return None, "the package was installed without a C compiler; install one, then install the package again"
    try:
        library = ctypes.CDLL(path)
        built_from = (ctypes.c_char * 17).in_dll(library, "kernel_sources").value.decode()
        for name, kernel in KERNELS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = kernel.arguments, c_int64
    except (OSError, AttributeError) as error:
        return None, f"{path} can't be loaded: {error}"
    if built_from != source_hash():
        reason = f"{path} was compiled from other sources; run make, or install the package again"
        _log.warning("native kernels are not in use: %s", reason)
        return None, reason
    return library, ""
