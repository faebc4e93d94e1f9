"""Files of the autotuner's memory: what was learned, as JSON, for the next run of a program.

The content is ``{"dataset_autotune": 3, "learned": {key: [way, value, ...]}}``, with the fields of ``Learned``.
"""

from __future__ import annotations

import contextlib
import json
import logging
from typing import Any

from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import open_input, read_whole, require_regular
from dataset.runtime.choice import Learned

_log = logging.getLogger("dataset")

_BYTES_MAX = 1 << 20  # of a file
_VERSION = 3
_NUMBER_MAX = 1e9  # more calls, or seconds, than there can be; also refuses NaN


def load(path: str) -> dict[str, Learned]:
    """Return the content of a file; nothing, with a warning, if it cannot be used."""
    try:
        require_regular(path, "a file of autotune.memory")
        with contextlib.closing(open_input(path)) as file:
            return _checked(json.loads(read_whole(file.read, _BYTES_MAX)))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        _log.warning("autotune.memory: %s is not used, and the end of an iteration replaces it: %s", path, error)
        return {}


def _checked(data: Any) -> dict[str, Learned]:
    """Return the content of a file; raise an exception if it is not what this version writes."""
    if data["dataset_autotune"] != _VERSION:
        raise ValueError(f"its version is {data['dataset_autotune']!r:.20}, not {_VERSION}")
    return {key: _entry(*fields) for key, fields in data["learned"].items()}


def _entry(
    way: Any, value: Any, each: Any, bound: Any, patience: Any, rest: Any, debt: Any, waits: Any, has_gaps: Any
) -> Learned:
    numbers = int(value), float(each), float(bound), int(patience), float(rest), float(debt)
    learned = Learned(str(way), *numbers, waits=bool(waits), has_gaps=bool(has_gaps))
    if not all(0 <= number < _NUMBER_MAX for number in numbers):
        raise ValueError(f"a number is out of range: {learned!r:.200}")
    return learned


def store(path: str, learned: dict[str, Learned]) -> None:
    """Add what was learned to a file, which another process may have written meanwhile. Failures are logged."""
    text = json.dumps({"dataset_autotune": _VERSION, "learned": {**load(path), **learned}})
    try:
        with AtomicFile(path) as target:
            target.file.write(text.encode())
    except OSError as error:
        _log.warning("autotune.memory: %s", error)
