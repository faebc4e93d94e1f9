"""Binding of the row loop (rows.c), a C function that calls Python functions.

It is compiled without headers of Python, so that installing the package needs none, and one library serves all versions
of Python: it receives the addresses of the functions of the stable ABI that it calls. What that ABI does not cover are
the reference count of an object, its type, the fields of an array, and the memory of a number of NumPy. So these are
compared with what Python says, and if an interpreter keeps them elsewhere, or does not have a lock for all threads, the
loop is not used.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

import numpy as np

from dataset.native.library import kernels

FUNCTIONS = (
    "PyCFunction_NewEx",
    "Py_IncRef",
    "Py_DecRef",
    "PyErr_CheckSignals",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyObject_Call",
    "PyObject_CallFunctionObjArgs",
    "PyIter_Next",
    "PyList_Append",
    "PyList_Size",
    "PyList_GetItem",
    "PyTuple_Size",
    "PyTuple_GetItem",
    "PyDict_Size",
    "PyDict_GetItemWithError",
    "PySet_Contains",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PyFloat_AsDouble",
    "PyBool_FromLong",
    "PyObject_IsTrue",
    "PyUnicode_AsUTF8String",
    "PyObject_RichCompareBool",
    "PySequence_SetItem",
    "PyByteArray_Resize",
    "PyByteArray_AsString",
    "PyDict_Next",
)
"""The functions of the stable ABI that the loop calls, in its order."""

NUMBERS = frozenset(np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?")


@functools.cache
def row_loop() -> Callable[..., int] | None:
    """Return the row loop, or None if it is not in use."""
    library = kernels()
    if library is None or not (_has_one_lock() and _has_known_objects()):
        return None
    addresses = (ctypes.c_void_p * len(FUNCTIONS))()
    for place, name in enumerate(FUNCTIONS):
        function = getattr(ctypes.pythonapi, name, None)
        if function is None:
            return None
        addresses[place] = ctypes.cast(function, ctypes.c_void_p).value
    make = ctypes.PyDLL(library._name).row_loop  # noqa: SLF001  # a PyDLL keeps the interpreter's lock
    make.argtypes, make.restype = [ctypes.c_void_p], ctypes.py_object
    return make(addresses)  # type: ignore[no-any-return]


def _has_one_lock() -> bool:
    return sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


def _has_known_objects() -> bool:
    """Return whether objects have the fields that rows.c reads."""
    word, value = ctypes.sizeof(ctypes.c_void_p), object()
    if object.__basicsize__ != 2 * word or np.ndarray.__basicsize__ < 9 * word:
        return False
    values = [value] * 5
    counted = ctypes.c_uint32.from_address(id(value))
    before = counted.value
    values *= 2
    if counted.value != before + 5 or not 6 <= before <= 8:
        return False
    array = np.zeros((2, 3), np.float32)[1:]
    fields = (ctypes.c_ssize_t * 9).from_address(id(array))
    expected = [id(np.ndarray), array.ctypes.data, id(array.base), id(array.dtype)]
    return (
        [fields[place] for place in (1, 2, 6, 7)] == expected
        and ctypes.c_int.from_buffer(fields, 3 * word).value == array.ndim
        and [list((ctypes.c_ssize_t * 2).from_address(fields[at])) for at in (4, 5)] == [[1, 3], [12, 4]]
        and ctypes.c_int.from_buffer(fields, 8 * word).value == array.flags.num
        and all(_is_after_fields(kind(1)) for kind in NUMBERS)
    )


def _is_after_fields(number: np.generic) -> bool:
    return ctypes.string_at(id(number) + object.__basicsize__, number.nbytes) == number.tobytes()
