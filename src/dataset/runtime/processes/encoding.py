"""Values as bytes and back, large buffers beside them.

Pickle's protocol 5 leaves buffers, such as the memory of arrays, out of its bytes. Those of a size that is worth it are
kept beside, for shared memory; the others stay in.

Plain pickle is the fast way, and sends functions and classes by name. What only this process can find by its name, such
as what is defined in ``__main__`` or inside a function, is sent by value, which is cloudpickle's trade. The main script
is called ``__mp_main__`` in the processes that multiprocessing starts by spawn and forkserver; other processes have no
module of that name.

A class that is sent by value belongs to the process that sent it first. Other processes take the attributes that come
with it; its own process never does, so no result changes a class of the user's.
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
from dataset.runtime.processes.forking import whole
from dataset.runtime.processes.memory import Bytes

BESIDE_MIN = 1 << 14
"""From how many bytes on a buffer is worth a place in shared memory instead of one copy more into a socket and out."""

_SPAWNED_MAIN = "__mp_main__"
_MAINS = {"__main__", _SPAWNED_MAIN}
_IN_EITHER_MAIN = b"_main__"


class Encoded(NamedTuple):
    """A value as bytes.

    Attributes:
        pickled: the value without its large buffers.
        buffers: those.
        by_value: whether classes had to be sent by value.
    """

    pickled: bytes
    buffers: list[Bytes]
    by_value: bool


def encode(value: Any, *, by_value: bool = False) -> Encoded:
    """``value`` as bytes; ``by_value`` if it is known that it takes cloudpickle."""
    if not by_value:
        try:
            encoded = _encode(_ByName, value)
        except (pickle.PicklingError, AttributeError, TypeError):
            pass  # a lambda or a local class, or nothing that can be sent at all
        else:
            if _IN_EITHER_MAIN not in encoded.pickled:  # which is another module in each process
                return encoded
    return _encode(_by_value(), value)._replace(by_value=True)


def decode(pickled: bytes | memoryview, buffers: Sequence[memoryview]) -> Any:
    """The value; its arrays lie in ``buffers``."""
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
    """NumPy leaves only contiguous memory out; an image with its axes swapped is made so."""
    if array.nbytes >= BESIDE_MIN and not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = array.copy()
    return array.__reduce_ex__(5)


def _reduce_chunk(chunk: Chunk) -> Any:
    """As columns: numbers are packed into arrays there, which are sent faster than one number after another."""
    return Chunk, (chunk.structure, chunk.length, chunk.columns())


def _reduce_cached(function: Any) -> Any:
    """functools.cache has its functions sent by name, which means nothing in the ``__main__`` of another process."""
    if function.__module__ not in _MAINS and "<locals>" not in function.__qualname__:
        return function.__reduce__()
    return _cached, (function.__wrapped__, function.cache_parameters())


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


class _Reducers(dict[type, Callable[[Any], Any]]):
    """What pickling does with a type: our own ways with chunks and arrays, before those of ``others``."""

    def __init__(self, others: Mapping[type, Callable[[Any], Any]]) -> None:
        super().__init__({np.ndarray: _reduce_array, Chunk: _reduce_chunk})
        self._others = others

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        return self._others[kind]


class _ByName(pickle.Pickler):
    dispatch_table = _Reducers(copyreg.dispatch_table)


@functools.cache
def _by_value() -> Callable[..., pickle.Pickler]:
    cloudpickle = load_extra("cloudpickle", "process", 'executor="process" needs')
    base = cloudpickle.Pickler
    table = _Reducers(base.dispatch_table)
    table[functools._lru_cache_wrapper] = _reduce_cached  # noqa: SLF001  # there is no other name for its type

    def reduce_type_variable(variable: typing.TypeVar) -> Any:
        with _spawned_main_by_value(cloudpickle, variable):
            return base.dispatch_table[typing.TypeVar](variable)

    table[typing.TypeVar] = reduce_type_variable

    class ByValue(base):  # type: ignore[misc, valid-type]  # known only here
        dispatch_table = table

        def reducer_override(self, value: Any) -> Any:
            if not isinstance(value, type | types.FunctionType):
                return NotImplemented  # as it would be there
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
    """Inside the block, cloudpickle sees ``value`` as one to send by value if it is from ``__mp_main__``."""
    main = sys.modules.get(_SPAWNED_MAIN) if getattr(value, "__module__", None) == _SPAWNED_MAIN else None
    if main is None or main.__name__ != _SPAWNED_MAIN:
        yield
        return
    with whole:  # others who register it, and forks, wait
        known = _SPAWNED_MAIN in cloudpickle.list_registry_pickle_by_value()
        if not known:
            cloudpickle.register_pickle_by_value(main)
        try:
            yield
        finally:
            if not known:
                cloudpickle.unregister_pickle_by_value(main)


_is_own: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
"""Of the classes that were sent or received by value: whether this process was the first to send it."""


def _complete(cls: type, state: tuple[Callable[[type, Any], Any], Any]) -> None:
    """Give a class that was received by value its attributes, unless it is this process's own."""
    if not _is_own.setdefault(cls, False):
        setter, attributes = state
        setter(cls, attributes)
