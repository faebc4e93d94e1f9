"""Optional libraries: loaded at the first call that needs one, with a helpful error if one is not installed.

No module imports one at the top level, so ``import dataset`` is fast and works without them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

EXTRAS: dict[str, dict[str, str]] = {
    "images": {"simplejpeg": "simplejpeg", "cv2": "opencv-python-headless"},
    "process": {"cloudpickle": "cloudpickle"},
    "distributed": {"ray": "ray", "cloudpickle": "cloudpickle"},
    "parquet": {"pyarrow": "pyarrow"},
    "gzip": {"isal": "isal"},
    "json": {"orjson": "orjson"},
    "snappy": {"cramjam": "cramjam"},
    "zstd": {"backports.zstd": "backports.zstd"} if sys.version_info < (3, 14) else {},
    "remote": {"fsspec": "fsspec"},
    "torch": {"torch": "torch"},
    "keras": {"keras": "keras"},
    "jax": {"jax": "jax"},
    "tensorflow": {"tensorflow": "tensorflow"},
    "huggingface": {"datasets": "datasets"},
    "pandas": {"pandas": "pandas", "pyarrow": "pyarrow"},
    "polars": {"polars": "polars", "pyarrow": "pyarrow"},
    "telemetry": {"opentelemetry": "opentelemetry-api"},
    "progress": {"tqdm": "tqdm", "rich": "rich"},
}
"""The modules that each extra installs, with their distributions."""


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed. None is imported."""
    return [module for module in EXTRAS[extra] if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that holds the module
        return False


def load_extra(module: str, extra: str, need: str) -> Any:
    """Import a module of a library that an extra of this package installs.

    Args:
        module: the name of the module, such as ``"pyarrow.parquet"``.
        extra: the extra, such as ``"parquet"``.
        need: the beginning of the message, such as ``"Parquet needs"``.

    Raises:
        ImportError: if the library is not installed; the message has the command that installs it. Errors that an
            installed library raises during its import pass through unchanged.

    >>> load_extra("no_such_library", "polars", "from_polars() needs")
    Traceback (most recent call last):
        ...
    ImportError: from_polars() needs no_such_library, which is not installed: pip install "dataset-combinators[polars]"
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the library is installed, but one of its own dependencies is missing
        msg = f'{need} {module}, which is not installed: pip install "dataset-combinators[{extra}]"'
        raise ImportError(msg, name=module) from error
