"""Encoding: values as bytes with separate large buffers, and back.

Pickle's protocol 5 can leave buffers, such as the memory of arrays, out of its bytes. Large buffers are kept separate,
for shared memory; small ones stay in the pickle.

Plain pickle is faster, and sends functions and classes by name. Objects that only this process can find by name, such
as those defined in ``__main__`` or inside a function, are sent by value by cloudpickle. In processes that
multiprocessing starts by spawn and forkserver, the main script is called ``__mp_main__``; other processes have no
module of that name.

A class that is sent by value belongs to the process that sent it first. Other processes set the attributes that come
with it. Its own process never does, so results never change a class of the user.
"""

from __future__ import annotations

import copyreg
import functools
import io
import pickle
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dataset.extras import load_extra
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.processes.transport.shared_memory import Bytes
from dataset.world.forking import whole

BESIDE_MIN = 1 << 14
"""Smaller buffers are cheaper to copy through a socket than to put into shared memory."""

_SPAWNED_MAIN = "__mp_main__"
_MAINS = {"__main__", _SPAWNED_MAIN}
_IN_EITHER_MAIN = b"_main__"
_DYNAMIC_CODE = "<dynamic-code>"  # cloudpickle's name for all files


class Encoded(NamedTuple):
    """Value as bytes.

    Attributes:
        pickled: the value without its large buffers.
        buffers: the large buffers.
        by_value: whether classes had to be sent by value.
    """

    pickled: bytes
    buffers: list[Bytes]
    by_value: bool


def encode(value: Any, *, by_value: bool = False) -> Encoded:
    """Encode ``value``; set ``by_value`` if it is known to require cloudpickle."""
    if not by_value:
        try:
            encoded = _encode(_ByName, value)
        except (pickle.PicklingError, AttributeError, TypeError):
            pass  # a lambda or a local class, or something that cannot be sent at all
        else:
            if _IN_EITHER_MAIN not in encoded.pickled:  # a main module is a different module in each process
                return encoded
    return _encode(_by_value(), value)._replace(by_value=True)


def decode(pickled: bytes | memoryview, buffers: Sequence[memoryview]) -> Any:
    """Decode a value; its arrays use the memory of ``buffers``."""
    return pickle.loads(pickled, buffers=buffers)


def _encode(pickler: Callable[..., pickle.Pickler], value: Any) -> Encoded:
    buffers: list[Bytes] = []

    def stays_in(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < BESIDE_MIN:
            return True
        buffers.append(np.frombuffer(raw, np.uint8))
        return False

    file = io.BytesIO()
    pickler(file, protocol=5, buffer_callback=stays_in).dump(value)
    return Encoded(file.getvalue(), buffers, by_value=False)


def _reduce_array(array: np.ndarray[Any, Any]) -> Any:
    """Reduce an array, made contiguous if it is large: NumPy leaves only contiguous memory out of the pickle."""
    if array.nbytes >= BESIDE_MIN and not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = array.copy()
    return array.__reduce_ex__(5)


def _reduce_chunk(chunk: Chunk) -> Any:
    """Reduce a chunk to columns, which pack numbers into arrays that are sent faster than single numbers."""
    return Chunk, (chunk.structure, chunk.length, chunk.columns())


def _reduce_cached(function: Any) -> Any:
    """Reduce a cached function by value if it is in ``__main__`` or local; functools.cache reduces it by name."""
    if function.__module__ not in _MAINS and "<locals>" not in function.__qualname__:
        return function.__reduce__()
    return _cached, (function.__wrapped__, function.cache_parameters())


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


class _Reducers(dict[type, Callable[[Any], Any]]):
    """Reducers by type: our own for chunks and arrays, otherwise those of ``others``."""

    def __init__(self, others: Mapping[type, Callable[[Any], Any]]) -> None:
        super().__init__({np.ndarray: _reduce_array, Chunk: _reduce_chunk})
        self._others = others

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        return self._others[kind]


class _ByName(pickle.Pickler):
    dispatch_table = _Reducers(copyreg.dispatch_table)


@functools.cache
def _by_value() -> Callable[..., pickle.Pickler]:
    cloudpickle = load_extra("cloudpickle", "process", "a worker process needs")
    base = cloudpickle.Pickler
    table = _Reducers(base.dispatch_table)
    table[functools._lru_cache_wrapper] = _reduce_cached  # noqa: SLF001  # the type has no public name

    def reduce_type_variable(variable: typing.TypeVar) -> Any:
        with _spawned_main_by_value(cloudpickle, variable):
            return base.dispatch_table[typing.TypeVar](variable)

    table[typing.TypeVar] = reduce_type_variable

    def reduce_code(code: types.CodeType) -> Any:
        """Reduce code with the name of its file, which tracebacks show; cloudpickle 3.1.3 and later omit it."""
        make, arguments = base.dispatch_table[types.CodeType](code)
        return make, tuple(code.co_filename if part == _DYNAMIC_CODE else part for part in arguments)

    table[types.CodeType] = reduce_code

    class ByValue(base):  # type: ignore[misc, valid-type]  # a base class that is known only at run time
        dispatch_table = table

        def reducer_override(self, value: Any) -> Any:
            if not isinstance(value, type | types.FunctionType):
                return NotImplemented  # use the base class's behavior
            with _spawned_main_by_value(cloudpickle, value):
                reduced = super().reducer_override(value)
            match reduced:
                case make, arguments, attributes, None, None, setter if isinstance(value, type):
                    _is_own.setdefault(value, True)
                    return make, arguments, (setter, attributes), None, None, _complete
            return reduced

    return ByValue


@contextmanager
def _spawned_main_by_value(cloudpickle: Any, value: Any) -> Iterator[None]:
    """Make cloudpickle send ``value`` by value inside the block if it is defined in ``__mp_main__``."""
    main = sys.modules.get(_SPAWNED_MAIN) if getattr(value, "__module__", None) == _SPAWNED_MAIN else None
    if main is None or main.__name__ != _SPAWNED_MAIN:
        yield
        return
    with whole:  # other threads that register it, and forks, wait
        known = _SPAWNED_MAIN in cloudpickle.list_registry_pickle_by_value()
        if not known:
            cloudpickle.register_pickle_by_value(main)
        try:
            yield
        finally:
            if not known:
                cloudpickle.unregister_pickle_by_value(main)


_is_own: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
"""For classes sent or received by value: whether this process was the first to send the class."""


def _complete(cls: type, state: tuple[Callable[[type, Any], Any], Any]) -> None:
    """Set the attributes of a class received by value, unless it is this process's own."""
    if not _is_own.setdefault(cls, False):
        setter, attributes = state
        setter(cls, attributes)
