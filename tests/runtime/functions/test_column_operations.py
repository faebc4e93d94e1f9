"""Operations on columns: for each element, they give what the operation gives for that element alone, bit by bit."""

import math
import operator
import warnings

import numpy as np
import pytest

from dataset.runtime.functions import column_operations
from dataset.runtime.functions.bytecode import NotProvedError
from dataset.runtime.functions.column_operations import ColumnValues
from support.seeds import IS_FRESH, numpy_rng

DRAWS = 500 if IS_FRESH else 5
"""How many inputs each case gets."""

DTYPES = [np.dtype(name).char for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]
SHAPES = [(), (), (), (1,), (3,), (8,), (5, 4), (28, 28), (2, 3, 4), (3, 1), (1, 9)]
LENGTHS = [1, 2, 7, 64, 300]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, np.nan, np.inf, -np.inf, 5e-324, 1e-310, 6e-8, 1e-40, 65504.0, 1e30, 1e300]
INTEGERS = [0, 1, -1, 2, 3, 7, 127, 128, 255, -128, 2**31 - 1, -(2**31), 2**53 + 1, 2**62, -(2**63), 2**63 - 1]

# Operands: the placeholders of a case.
X, Y, Z = "first", "second", "third"  # Y and Z: of the same shape, of another one, or constants
I = "index"  # noqa: E741  # small integers
TABLE = np.arange(12.0).reshape(4, 3)


class Case:
    """A call, whose operands are placeholders, constants, or tuples, lists and slices of these."""

    def __init__(self, single, run, *operands, **keywords):
        self.single, self.run, self.operands, self.keywords = single, run, operands, keywords

    def given(self, values):
        """Return the operands and keywords where the placeholders have these values."""
        return list(replaced(self.operands, values)), {k: replaced(v, values) for k, v in self.keywords.items()}

    def on(self, values):
        """Return the result on columns."""
        return self.run(*self.given(values))


def replaced(operand, values):
    """Return what an operand is where the placeholders have these values."""
    if type(operand) is str and operand in values:
        return values[operand]
    if type(operand) in {tuple, list}:
        return type(operand)(replaced(item, values) for item in operand)
    if type(operand) is slice:
        return slice(*(replaced(item, values) for item in (operand.start, operand.stop, operand.step)))
    return operand


def called(function, *operands, **keywords):
    return Case(function, lambda p, k: column_operations.call(function, p, k), *operands, **keywords)


def method(name, *operands, **keywords):
    single = lambda owner, *p, **k: getattr(owner, name)(*p, **k)
    return Case(single, lambda p, k: column_operations.method(p[0], name, p[1:], k), X, *operands, **keywords)


def operated(symbol, single, *operands):
    return Case(single, lambda p, k: column_operations.operate(symbol, *p), *operands)


def reading(name):
    return Case(operator.attrgetter(name), lambda p, k: column_operations.attribute(p[0], name), X)


def item(owner, key):
    return Case(operator.getitem, lambda p, k: column_operations.subscript(*p), owner, key)


AXES = [
    {},
    {"axis": 0},
    {"axis": -1},
    {"axis": (0, 1)},
    {"axis": (-1, 0)},
    {"keepdims": True},
    {"axis": 1, "keepdims": True},
]
REDUCTIONS = [np.mean, np.std, np.var, np.sum, np.prod, np.min, np.max, np.amin, np.amax, np.any, np.all]
LARGEST = [np.argmin, np.argmax]
AXIS = [{}, {"axis": 0}, {"axis": -1}, {"axis": 1}]
KEYS = [0, -1, (0, 0), slice(None, None, -1), (slice(None), slice(None, None, -1)), (..., 0), None, ..., slice(0, 2)]
KEYS += [(slice(None), slice(1, 2)), [0, 0], (), (0, None), (slice(None), [0]), True]


def calls(function, *operands):
    """Return a case for each tuple of operands."""
    return [called(function, *each) for each in operands]


def methods(name, *operands):
    return [method(name, *each) for each in operands]


CALLS = {
    **{function: [called(function, X, **axes) for axes in AXES] for function in REDUCTIONS},
    **{
        function: [called(function, X, **axis) for axis in AXIS]
        for function in [*LARGEST, np.sort, np.argsort, np.cumsum, np.cumprod, np.diff, np.ptp]
    },
    **{function: [called(function, X)] for function in column_operations.SCALARS},
    **{
        function: [called(function, X)]
        for function in [
            *[float, int, bool, abs, len, np.shape, np.ndim, np.size, np.flipud, np.fliplr, np.trace, np.diagonal],
            *[np.tril, np.median, np.nan_to_num, np.linalg.norm, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft],
            *[np.real, np.imag, np.angle, np.atleast_1d, np.atleast_2d],
        ]
    },
    **{function: [called(function, [X, Y])] for function in [np.hstack, np.vstack, np.dstack, np.column_stack]},
    **{function: [called(function, X, Y)] for function in [np.outer, np.isclose, np.allclose, np.array_equal]},
    **{function: calls(function, (X,), (X, np.float32)) for function in [np.ascontiguousarray, np.ones_like]},
    **{function: calls(function, (X, Y), (X,), (X, 0)) for function in [min, max]},
    np.clip: [
        *calls(np.clip, (X, Y, Z), (X, 0, 1), (X, -0.0, 0.0), (X, Y, None), (X, None, Y), (X, np.nan, 1.0)),
        called(np.clip, X, a_min=0, a_max=Y),
    ],
    np.where: calls(np.where, (X, Y, Z), ((X, Y), X, X), (X, 1, 0), (X, 1.0, Y), (Y, X, -0.0)),
}
for reduced in [np.sum, np.mean, np.prod, np.var, np.std]:
    CALLS[reduced] += [called(reduced, X, dtype=dtype) for dtype in (np.float32, np.float64, np.int64, "f2")]
    CALLS[reduced] += [called(reduced, X, None, np.float64)]
for reduced in [np.var, np.std]:
    CALLS[reduced] += [called(reduced, X, ddof=1), called(reduced, X, axis=0, ddof=3), called(reduced, X, ddof=28 * 28)]
CALLS |= {
    np.reshape: calls(np.reshape, *[(X, shape) for shape in [-1, (-1, 1), (4, 5), (1, -1, 2), (), (1,)]]),
    np.ravel: [called(np.ravel, X), called(np.ravel, X, order="F")],
    np.expand_dims: calls(np.expand_dims, *[(X, axis) for axis in (0, -1, 1, (0, 1), -2)]),
    np.squeeze: calls(np.squeeze, (X,), (X, 0), (X, -1)),
    np.transpose: calls(np.transpose, (X,), (X, (1, 0)), (X, (-1, 0, 1))),
    np.swapaxes: calls(np.swapaxes, (X, 0, -1), (X, 0, 1)),
    np.moveaxis: calls(np.moveaxis, (X, 0, -1), (X, (0, 1), (1, 0))),
    np.flip: calls(np.flip, (X,), (X, 0), (X, -1), (X, (0, 1))),
    np.rot90: [*calls(np.rot90, (X,), (X, 2), (X, I)), called(np.rot90, X, k=3, axes=(-1, 0))],
    np.roll: calls(np.roll, (X, 1), (X, -2, 0), (X, (1, 2), (0, 1)), (X, I)),
    np.pad: [
        *calls(np.pad, (X, 1), (X, ((1, 2),)), (X, ((1, 0), (2, 2))), (X, 1, "reflect")),
        called(np.pad, X, (0, 1), mode="constant", constant_values=3),
        called(np.pad, X, 1, constant_values=(1, 2)),
    ],
    np.take: [
        *calls(np.take, (X, 0), (X, [0, 0], 0), (X, np.array([[0]]), -1), (TABLE, I), (TABLE, I, 0), (X, I)),
        *[called(np.take, TABLE, I, axis=1), called(np.take, TABLE, I, axis=0, mode="clip")],
    ],
    np.stack: calls(np.stack, ([X, Y],), ((X, X, Y), -1), ([X, Y], 1)),
    np.concatenate: calls(np.concatenate, ([X, Y],), ((X, Y), -1), ([X, X], 1)),
    np.asarray: calls(np.asarray, (X,), (X, np.float32), ([X, Y],), (X, "i1")),
    np.array: [
        *calls(np.array, (X,), (X, np.float32), ([X, Y],), ([[X, 1], [2.0, Y]],), ([X, [1]],), ((X, 1, Y), np.int64)),
        *[called(np.array, [X, Y], np.float16), called(np.array, [X, Y], dtype=np.float32)],
    ],
    np.copy: calls(np.copy, (X,), (X, "C")),
    np.zeros_like: [called(np.zeros_like, X), called(np.zeros_like, X, dtype=bool)],
    np.full_like: [*calls(np.full_like, (X, 3), (X, Y)), called(np.full_like, X, 0.5, dtype=np.float32)],
    round: calls(round, (X,), (X, 1)),
    sum: calls(sum, (X,), ([X, Y],)),
    pow: calls(pow, (X, Y), (X, 2)),
    divmod: calls(divmod, (X, Y), (X, 3)),
    np.round: calls(np.round, (X,), (X, 2)),
    np.around: calls(np.around, (X, -1)),
    np.dot: calls(np.dot, (X, Y), (X, np.ones((4, 2), np.float32))),
    np.vdot: calls(np.vdot, (X, X)),
    np.inner: calls(np.inner, (X, X)),
    np.tensordot: calls(np.tensordot, (X, X, 1)),
    np.triu: calls(np.triu, (X, 1)),
    np.tile: calls(np.tile, (X, 2)),
    np.repeat: calls(np.repeat, (X, 2), (X, 2, -1)),
    np.broadcast_to: calls(np.broadcast_to, (X, (5, 4)), (X, (3,))),
    np.percentile: calls(np.percentile, (X, 30)),
    np.quantile: calls(np.quantile, (X, 0.3)),
    np.count_nonzero: calls(np.count_nonzero, (X,), (X, 0)),
    np.searchsorted: calls(np.searchsorted, (np.arange(5.0), X)),
    np.digitize: calls(np.digitize, (X, np.arange(5.0))),
    np.bincount: [called(np.bincount, [I, I], minlength=5)],
    np.interp: calls(np.interp, (X, np.arange(3.0), np.arange(3.0))),
    np.convolve: calls(np.convolve, (X, np.ones(2))),
    np.correlate: calls(np.correlate, (X, np.ones(2))),
    np.linalg.inv: calls(np.linalg.inv, ([[X, 1.0], [0.5, 3]],)),
    np.linalg.det: calls(np.linalg.det, ([[X, 1.0], [0.5, 3]],)),
    np.linalg.solve: calls(np.linalg.solve, ([[2.0, 1.0], [0.5, 3]], [X, X])),
    **{getattr(np, name): [called(getattr(np, name), np.ones((3, 3)), X)] for name in ("matvec",) if hasattr(np, name)},
    **{getattr(np, name): [called(getattr(np, name), X, np.ones((3, 3)))] for name in ("vecmat",) if hasattr(np, name)},
}
MATH_ARITY = {"atan2": 2, "copysign": 2, "dist": 2, "fmod": 2, "gcd": 2, "hypot": 2, "isclose": 2, "lcm": 2}
MATH_ARITY |= {"ldexp": 2, "nextafter": 2, "pow": 2, "remainder": 2, "sumprod": 2, "fma": 3}
for function in column_operations._AT_ONCE:
    if type(function) is np.ufunc and function not in CALLS:
        CALLS[function] = [called(function, X, *([Y] * (function.nin - 1)))]
    elif getattr(function, "__module__", None) == "math":
        CALLS[function] = [called(function, *[X, Y, Z][: MATH_ARITY.get(function.__name__, 1)])]
CALLS |= {math.dist: calls(math.dist, ([X, X], [Y, 1])), math.fsum: calls(math.fsum, ([X, Y],))}
CALLS |= {math.prod: calls(math.prod, ([X, Y],))}
CALLS |= {math.sumprod: calls(math.sumprod, ([X], [Y]))} if hasattr(math, "sumprod") else {}


METHODS = {
    **{
        name: [method(name, **axes) for axes in AXES]
        for name in ("mean", "std", "var", "sum", "prod", "min", "max", "any", "all")
    },
    **{name: [method(name, **axis) for axis in AXIS] for name in ("argmin", "argmax", "cumsum", "cumprod", "argsort")},
    **{name: [method(name)] for name in ("item", "ravel", "diagonal", "trace")},
    "astype": [
        *methods("astype", (np.float32,), ("f2",), (float,), (int,), (np.uint8,), (bool,), (np.dtype("f8"),), (">f4",)),
        *[method("astype", np.float32, copy=False), method("astype", "f4", order="C")],
        method("astype", dtype=np.float64),
    ],
    "clip": [*methods("clip", (0, 1), (Y, Z), (None, 5)), method("clip", min=0), method("clip", max=Y)],
    "reshape": methods("reshape", (-1,), (-1, 1), ((4, 5),), (1, -1), (4, 7, -1), ([-1],)),
    "flatten": [method("flatten"), method("flatten", order="F")],
    "squeeze": methods("squeeze", (), (-1,)),
    "transpose": methods("transpose", (), (1, 0), ((2, 0, 1),)),
    "swapaxes": methods("swapaxes", (0, 1)),
    "copy": [method("copy"), method("copy", order="F")],
    "take": methods("take", (0,), ([0, 0], 0), ([0, 0, 0], -1)),
    "round": methods("round", (), (1,)),
    "repeat": methods("repeat", (2,)),
    "dot": methods("dot", (Y,)),
}
METHODS["mean"] += [method("mean", dtype=np.float64)]
METHODS["std"] += [method("std", ddof=1)]
OPERATORS = {
    **{
        symbol: [operated(symbol, f, X, Y), operated(symbol, f, Y, X)]
        for symbol, f in column_operations._BINARY.items()
    },
    **{f"unary {symbol}": [operated(symbol, f, X)] for symbol, f in column_operations._UNARY.items()},
}
OPERATORS["**"] += [operated("**", operator.pow, X, exponent) for exponent in (2, -1, 0.5, 2.0, 3, 1, 0)]
ATTRIBUTES = {name: [reading(name)] for name in column_operations.KNOWN_ATTRIBUTES - {"real", "imag"}}


SUBSCRIPTS = {
    "of elements": [item(X, key) for key in [*KEYS, I, slice(I, None), (0, I), np.array([0])]],
    "of tables": [
        *[item(table, I) for table in (TABLE, TABLE.T, np.eye(4, dtype=np.float32), np.arange(5))],
        *[item(TABLE, key) for key in ((I, 0), X, (I, I))],
    ],
}


CASES = {
    **{f"{getattr(function, '__module__', '')}.{function.__name__}": cases for function, cases in CALLS.items()},
    **{f"method {name}": cases for name, cases in METHODS.items()},
    **{f"operator {symbol}": cases for symbol, cases in OPERATORS.items()},
    **{f"attribute {name}": cases for name, cases in ATTRIBUTES.items()},
    **{f"items {name}": cases for name, cases in SUBSCRIPTS.items()},
}


def drawn_values(rng, dtype, shape):
    """Return an array of extreme values, of small ones, or of both."""
    dtype = np.dtype(dtype)
    kind = rng.integers(4)
    with np.errstate(all="ignore"):
        ordinary = (
            rng.integers(-4, 5, shape).astype(dtype) if dtype.kind != "f" else rng.normal(0, 3, shape).astype(dtype)
        )
        if dtype.kind == "u":
            ordinary = np.abs(rng.integers(0, 250, shape)).astype(dtype)
        if kind < 2:
            return np.asarray(np.round(ordinary) if kind else ordinary)
        special = rng.choice(np.array(FLOATS), shape) if dtype.kind == "f" else rng.choice(np.array(INTEGERS), shape)
        return np.asarray(
            special.astype(dtype) if kind == 2 else np.where(rng.random(shape) < 0.1, special.astype(dtype), ordinary)
        )


def drawn_rows(rng, n, shape):
    kind = rng.integers(8)
    if shape == () and kind < 2:
        return ColumnValues(drawn_values(rng, rng.choice(["?", np.int64, np.float64]), n), is_python=True)
    dtype = rng.choice(list(DTYPES))
    if len(shape) > 1 and kind == 0:  # a view with other strides
        axes = (0, *(1 + rng.permutation(len(shape))))
        values = drawn_values(rng, dtype, (n, *(np.array(shape)[np.argsort(axes[1:])]))).transpose(*np.argsort(axes))
        values = values.reshape(n, *shape) if values.shape != (n, *shape) else values
        return ColumnValues(values)
    if shape and kind == 1:
        return ColumnValues(np.flip(drawn_values(rng, dtype, (n, *shape)), rng.integers(1, len(shape) + 1)))
    return ColumnValues(drawn_values(rng, dtype, (n, *shape)), is_array=bool(shape == () and kind == 2))


def drawn_operand(rng, n, shape):
    """Return rows of this shape or of another one, or a constant."""
    kind = rng.integers(10)
    if kind < 4:
        return drawn_rows(rng, n, shape)
    if kind < 6:
        return drawn_rows(rng, n, [(), SHAPES[rng.integers(len(SHAPES))], shape[-1:]][rng.integers(3)])
    dtype = rng.choice(list(DTYPES))
    if kind < 8:
        return drawn_values(rng, rng.choice(["i8", "d", "?", "d"]), ()).item()
    if kind == 8:
        return drawn_values(rng, dtype, ())[()]
    return drawn_values(rng, dtype, [shape, shape[-1:], (2, *shape)][rng.integers(3)])


def bits(array):
    """Return the bits of numbers; those of all NaNs are the same."""
    array = np.asarray(array)
    if array.dtype.kind != "f":
        return array.tobytes()
    return np.where(np.isnan(array), np.array(np.nan, array.dtype), array).tobytes()


def assert_same(got, expected):
    if type(expected) is np.ndarray and expected.ndim:
        axes = [axis for axis, size in enumerate(expected.shape) if size > 1]
        assert [got.strides[axis] for axis in axes] == [expected.strides[axis] for axis in axes]
    assert type(got) is type(expected)
    if type(expected) in {tuple, list}:
        assert len(got) == len(expected)
        for mine, theirs in zip(got, expected, strict=True):
            assert_same(mine, theirs)
        return
    if isinstance(expected, np.ndarray | np.generic):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert bits(got) == bits(expected)
    elif type(expected) is float:
        assert bits(got) == bits(expected)
    else:
        assert got == expected


def each(value, n):
    """Return what an operand or a result is for each element."""
    if type(value) is tuple and any(type(part) is ColumnValues for part in value):
        return list(zip(*(each(part, n) for part in value), strict=True))
    return list(value.each()) if type(value) is ColumnValues else [value] * n


def single_outcome(case, operands, **state):
    positional, keywords = case.given(operands)
    with np.errstate(**state):
        return case.single(*positional, **keywords)


def check(case, operands, n, handling):
    """Compare; return whether the case ran on columns."""
    try:
        with np.errstate(all=handling):
            results = case.on(operands)
    except Warning:  # but for those of floats, it must raise an error instead, whatever the filters are
        raise
    except Exception:  # the elements are computed one by one
        return False
    for *values, got in zip(*(each(operand, n) for operand in operands.values()), each(results, n), strict=True):
        element = dict(zip(operands, values, strict=True))
        try:
            expected = single_outcome(case, element, all=handling)
        except FloatingPointError:  # NumPy detects overflows of integers in numbers only
            expected = single_outcome(case, element, all=handling, over="ignore")
            assert np.asarray(expected).dtype.kind in "iu"
        assert_same(got, expected)
    return True


def small(operand):
    """Return Python's integers without large ones, which would be the exponents of numbers without end."""
    if type(operand) is int:
        return operand % 50
    is_integer = type(operand) is ColumnValues and operand.is_python and operand.values.dtype == int
    return ColumnValues(operand.values % 50, is_python=True) if is_integer else operand


def drawn_operands(rng, *, are_python=False, are_small=False):
    n, shape = LENGTHS[rng.integers(len(LENGTHS))], SHAPES[rng.integers(len(SHAPES))]
    if np.prod(shape) > 100:
        n = min(n, 7)
    operands = {X: drawn_rows(rng, n, shape), Y: drawn_operand(rng, n, shape), Z: drawn_operand(rng, n, shape)}
    if are_python and rng.random() < 0.8:
        draw = [lambda: rng.integers(0, 5, n), lambda: rng.random(n)][rng.integers(2)]
        operands = {name: ColumnValues(draw(), is_python=bool(rng.integers(2))) for name in operands}
    if are_small:
        operands = {name: small(operand) for name, operand in operands.items()}
    operands[I] = ColumnValues(rng.integers(0, 3, n).astype(rng.choice(["i1", "u1", "i4", "i8", "u8"])))
    return n, operands


def ran_on_columns(name, number, draw):
    """Compare for operands that depend on the draw; return whether the case ran on columns."""
    rng = numpy_rng("column operations", name, number, draw)
    n, operands = drawn_operands(
        rng, are_python=name.startswith("math"), are_small=any(part in name for part in ("math", "pow", "**", "<<"))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return check(CASES[name][number], operands, n, ["raise", "ignore"][rng.integers(2)])


@pytest.mark.parametrize("name", CASES)
def test_each_element_is_as_if_computed_alone(name):
    ran = [ran_on_columns(name, number, draw) for number in range(len(CASES[name])) for draw in range(DRAWS)]
    assert any(ran) or any(ran_on_columns(name, 0, draw) for draw in range(DRAWS, 20 * DRAWS))


def test_each_function_and_method_has_a_case():
    assert CALLS.keys() == {*column_operations._AT_ONCE, *column_operations._SIZES}
    assert METHODS.keys() == column_operations.KNOWN_METHODS
    assert all(map(column_operations.is_known, CALLS))


# What runs at once, and what is given back

IMAGES = 1 + np.arange(4 * 28 * 28, dtype=np.float32).reshape(4, 28, 28) / 77
LABELS = np.arange(4)
NUMBERS = np.array([0.5, 2.0, -1.0, 3.0])


AT_ONCE = [
    *(called(function, X, axis=axis) for function in (np.mean, np.std, np.sum, np.max) for axis in (None, 0, 1)),
    *map(method, ("mean", "var", "min", "argmax", "any", "ravel", "flatten", "squeeze", "transpose", "copy")),
    *(called(f, X) for f in (np.flip, np.fliplr, np.flipud, np.rot90, np.float64, np.asarray, np.zeros_like)),
    *(method("astype", "u1"), method("reshape", 28, 28, 1), method("clip", 0, 5), called(np.clip, X, 0, 5)),
    *(called(np.maximum, X, 0), called(np.where, X, X, 0), called(np.pad, X, 2), called(np.roll, X, 1, 0)),
    *(called(np.stack, [X, X], -1), called(np.concatenate, [X, TABLE[:1, :1].repeat(28, 1)], 0)),
    *(called(np.expand_dims, X, -1), called(np.take, TABLE, I, axis=0)),
    *(operated("**", operator.pow, X, 2), operated("-", operator.sub, X, Y), operated("/", operator.truediv, X, 255.0)),
    *(item(X, (slice(None), slice(None, None, -1))), item(X, 0), item(np.eye(10), I)),
    *(called(float, Y), called(int, Y), called(bool, Y), called(abs, Y), called(np.array, [Y, [Y, Y], 1][::2])),
    *(operated("not", operator.not_, Y), operated("+", operator.add, Z, 1), operated("//", operator.floordiv, I, 2)),
]


@pytest.mark.parametrize("case", AT_ONCE)
def test_common_functions_call_nothing_for_each_element(case, monkeypatch):
    monkeypatch.setattr(column_operations, "_stacked", lambda *_: pytest.fail("one by one"))
    operands = {
        X: ColumnValues(IMAGES),
        Y: ColumnValues(NUMBERS),
        Z: ColumnValues(LABELS, is_python=True),
        I: ColumnValues(LABELS % 3),
    }
    assert check(case, operands, 4, "raise")


@pytest.mark.parametrize(
    "case", [called(np.exp, X), operated("**", operator.pow, X, 3), called(np.log1p, X), called(np.linalg.norm, X)]
)
def test_what_depends_on_the_position_is_computed_one_by_one(case):
    assert check(case, {X: ColumnValues(IMAGES)}, 4, "raise")


def test_minima_of_zeros_of_both_signs_are_computed_one_by_one():
    zeros = np.where(np.arange(40).reshape(4, 10) % 3, 0.0, -0.0)
    for constant in (0.0, -0.0, 0, np.float32(0), zeros[0]):
        for function in (np.maximum, np.minimum, np.fmax, np.fmin):
            assert check(called(function, X, constant), {X: ColumnValues(zeros)}, 4, "raise")
            assert check(called(function, constant, X), {X: ColumnValues(zeros)}, 4, "raise")


def test_spectra_are_complex_in_between():
    spectra = column_operations.call(np.fft.rfft, [ColumnValues(IMAGES)])
    assert spectra.values.dtype.kind == "c"
    power = column_operations.operate("**", column_operations.call(np.abs, [spectra]), 2)
    for got, image in zip(power.each(), IMAGES, strict=True):
        assert_same(got, np.abs(np.fft.rfft(image)) ** 2)
    for name in ("real", "imag"):
        parts = column_operations.attribute(spectra, name)
        assert_same(next(parts.each()), getattr(np.fft.rfft(IMAGES[0]), name))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/"])
@pytest.mark.parametrize(
    "other", [2, 0.5, np.float32(3), IMAGES[0], ColumnValues(IMAGES), ColumnValues(IMAGES[:, 0, 0])]
)
def test_an_intermediate_result_may_be_overwritten(symbol, other):
    mine = ColumnValues(IMAGES.copy())
    expected = column_operations.operate(symbol, mine, other).values
    got = column_operations.operate(symbol, mine, other, reuse=True)
    assert got.values is mine.values
    assert bits(got.values) == bits(expected)


def test_what_may_not_be_overwritten():
    values = IMAGES.copy()
    reused = lambda rows, other: column_operations.operate("+", rows, other, reuse=True)
    views = [called(function, X) for function in (np.asarray, np.float32, np.squeeze)]
    for case in [*views, method("astype", "f4", copy=False)]:
        reused(case.on({X: ColumnValues(values)}), 1)
    for other in (np.float64(1), np.ones((2, 28, 28), np.float32), ColumnValues(np.ones((4, 28, 28)))):
        reused(ColumnValues(values), other)
    reused(ColumnValues(np.arange(4)), 1)
    assert bits(values) == bits(IMAGES)


VIEWS = [
    method("astype", "f4", copy=False),
    *(method(name) for name in ("ravel", "squeeze", "transpose", "diagonal")),
    *(called(function, X) for function in (np.asarray, np.ascontiguousarray, np.atleast_2d, np.flip, np.real)),
    *(item(X, 0), item(TABLE, I)),
]
COPIES = [
    *(method("astype", "f4"), method("flatten"), method("copy"), item(X, [0, 1]), called(np.array, X)),
    *(called(np.repeat, X, 1, 0), called(np.pad, X, 0), called(np.stack, [X])),
]


@pytest.mark.parametrize(("case", "is_view"), [*((case, True) for case in VIEWS), *((case, False) for case in COPIES)])
def test_a_result_is_a_view_or_says_of_what_exactly_if_it_is_one_for_each_element(case, is_view):
    operands = {X: ColumnValues(IMAGES.copy()), I: ColumnValues(LABELS % 3)}
    got = case.on(operands)
    held = [rows.values for rows in operands.values()]
    shares = any(np.may_share_memory(got.values, array) for array in held)
    assert (shares or got.source is not None) == is_view
    assert not is_view or shares or any(got.source is array for array in [*held, TABLE])


# What is refused

OUT = np.zeros((28, 28), np.float32)
REFUSED = [
    (called(np.add, X, 1, out=OUT), "results"),
    (called(np.add, X, 1, OUT), "results"),
    (called(np.sum, X, None, None, OUT), "results"),
    (called(np.clip, X, 0, 1, OUT), "results"),
    (called(np.dot, X, X, OUT), "results"),
    (called(np.sum, X, where=True), "results"),
    (called(max, X, key=abs), "results"),
    (method("sum", None, None, OUT), "results"),
    (method("clip", 0, 1, OUT), "results"),
    (called(np.add, X, {}), "dict"),
    (called(np.add, X, np.ma.masked_array([1])), "MaskedArray"),
    (called(np.add, X, np.array(["a"])), "ndarray"),
    (called(np.nonzero, X), None),
    (called(np.where, X), None),
    (called(float, X), "single numbers"),
    (called(math.sqrt, X), "single numbers"),
    (called(np.add, X, np.longlong(1) if np.longlong is not np.int64 else np.intc(1)), None),
    (operated("~", operator.invert, "bool"), None),
    (called(np.var, Y, ddof=1), None),
    (called(np.mean, "empty"), "empty"),
    (item(TABLE, "mask"), None),
]


@pytest.mark.parametrize(("case", "reason"), REFUSED)
def test_says_what_is_refused(case, reason):
    operands = {X: ColumnValues(IMAGES), Y: ColumnValues(NUMBERS), "empty": ColumnValues(np.zeros((4, 0)))}
    operands["mask"] = ColumnValues(np.array([[True] * 4, [False] + [True] * 3]))
    operands["bool"] = ColumnValues(NUMBERS > 0, is_python=True)
    with pytest.raises((NotProvedError, KeyError)) as caught:
        case.on(operands)
    assert reason is None or reason in str(caught.value)
    assert not OUT.any()


@pytest.mark.parametrize("symbol", ["+", "-", "*", "**", "//", "<<"])
def test_integers_of_python_do_not_overflow(symbol):
    integers = ColumnValues(np.array([2, 3, -(2**63), 2**63 - 1]), is_python=True)
    with pytest.raises((NotProvedError, OverflowError)):
        column_operations.operate(symbol, integers, -1 if symbol == "//" else 62)


def test_results_that_differ_in_shape_or_type_are_refused():
    operands = {X: ColumnValues(IMAGES), Y: ColumnValues(NUMBERS), I: ColumnValues(LABELS)}
    for case in (item(X, slice(None, I)), called(max, Y, 1), called(np.arange, I)):
        with pytest.raises((NotProvedError, KeyError)):
            case.on(operands)


def test_which_functions_are_known():
    class Meta(type):
        def __hash__(cls):
            return pytest.fail("user code")

    unknown = [np.random.rand, print, str, np.frompyfunc(int, 1, 1), np.vectorize(int), Meta("Mine", (), {})]
    assert not any(map(column_operations.is_known, unknown))
    assert column_operations.is_pure(np.arange)
    assert not column_operations.is_pure(np.random.rand)
    assert column_operations.why_unknown(np.unwrap) == "it calls np.unwrap, which is only called for single elements"
    assert column_operations.why_unknown(print) is None
