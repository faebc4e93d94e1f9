"""Generated functions with views, writes and branches: columns give what single calls give bit by bit, or refuse."""

import re

import numpy as np

from dataset.plan.structure import structure_of
from dataset.runtime.functions.evaluate import run_on_columns
from dataset.runtime.functions.kernels.columns import ElementwiseFunction, elementwise_function
from support.seeds import IS_FRESH, rng

COUNT = 3000 if IS_FRESH else 150
LENGTH = 12
TABLE = np.arange(48.0).reshape(3, 4, 4)

# All names are those of arrays with the shape 4 x 4; i is a small integer.
EXPRESSIONS = [
    *(
        "A / 3",
        "A * 2",
        "A + B",
        "A - B.mean()",
        "A / (A.std() + 1)",
        "A.clip(0, 9)",
        "np.maximum(A, B)",
        "A - A.sum()",
    ),
    *("A.T", "A[::-1]", "A[:, ::-1]", "A.reshape(-1).reshape(4, 4)", "A.swapaxes(0, 1)", "np.flip(A)", "np.rot90(A)"),
    *("np.asarray(A)", "np.ascontiguousarray(A)", "np.atleast_2d(A)", "np.squeeze(A)", "np.real(A)", "(A, B)[1]"),
    *(
        "np.array(A)",
        "A.copy()",
        "A.flatten().reshape(4, 4)",
        "A.astype(np.float64)",
        "A.astype(B.dtype)",
        "np.float32(A)",
    ),
    *("A[[0, 1, 2, 3]]", "TABLE[i]", "np.take(TABLE, i, 0)", "np.roll(A, 1, 0)", "np.repeat(A, 2, axis=0)[::2]"),
    *("-A", "abs(A)", "A // 3", "A % 7", "(A > B) * A", "np.fmax(A, 0.5)", "np.sign(A) * B", "np.where(A, B, 2)"),
    *("np.where(A > 2, A, B)", "np.stack([A, B])[1]", "np.concatenate([A, B])[2:6]", "np.pad(A, 1)[1:5, 1:5]"),
    *(
        "np.round(A, 1)",
        "np.power(A, 2)",
        "A.max(axis=0) + B",
        "np.sum(A, axis=1, keepdims=True) + B",
        "A[i : i + 1] + B",
    ),
]
STATEMENTS = ["A += 1", "A *= B", "A -= B", "A[0] = 2", "A[1] = i", "A[:, 1] = B[0]", "A[1:3, 1:3] = 0", "A[i] = 3"]
TESTS = ["i % 2", "i", "A[0, 0] > 3", "A.sum() > 20"]


def filled(draw, text, names):
    """Return a text with names in the places of A and B."""
    return re.sub(r"\b[AB]\b", lambda _: draw.choice(names), text)


def lines_of(draw, names, depth=0):
    """Return the lines of a block that may use some names and assigns to more, and all of these."""
    indent, lines, names = "    " * (depth + 1), [], [*names]
    for _ in range(draw.randint(2, 7 - 2 * depth)):
        kind = draw.random()
        if kind < 0.6:
            name = draw.choice("wxyz")
            lines.append(f"{indent}{name} = {filled(draw, draw.choice(EXPRESSIONS), names)}")
            names.append(name)
        elif kind < 0.85 or depth == 2:
            lines.append(indent + filled(draw, draw.choice(STATEMENTS), names))
        else:
            lines.append(f"{indent}if {filled(draw, draw.choice(TESTS), names)}:")
            lines += [*lines_of(draw, names, depth + 1)[0], f"{indent}else:", *lines_of(draw, names, depth + 1)[0]]
    return lines, names


def is_exact(number):
    """Compare a function with single calls; return False if it is not run on columns."""
    draw = rng("generated functions", number)
    begin = ["def function(image, i):", "    x = image / 2", "    y = image.astype(np.float32) * 3"]
    lines, names = lines_of(draw, ["x", "y", "image"][: draw.choice([2, 3])])
    source = "\n".join([*begin, *lines, f"    return {draw.choice(names)}, {draw.choice(names)}, i"])
    table = TABLE.copy()
    namespace = {"np": np, "TABLE": table}
    exec(source, namespace)
    function = namespace["function"]
    found = elementwise_function(function)
    if not isinstance(found, ElementwiseFunction):
        return False
    images = np.array(
        [[draw.randrange(9) for _ in range(16)] for _ in range(LENGTH)], draw.choice(["u1", "i4", "f4", "f8"])
    )
    images, labels = images.reshape(LENGTH, 4, 4), np.arange(LENGTH) % 3
    columns = images.copy(), labels
    try:
        results, _ = run_on_columns(found.graph, found.graph.current(function), structure_of((0, 0)), columns)
    except Exception:  # the elements are computed one by one
        results = None
    assert (columns[0] == images).all(), source
    if results is None:
        return False
    for at in range(LENGTH):
        image = images[at].copy()
        for got, expected in zip(results, function(image, labels[at]), strict=True):
            one = np.asarray(expected)
            assert (got.dtype, got[at].shape, got[at].tobytes()) == (one.dtype, one.shape, one.tobytes()), source
        assert (image == images[at]).all(), source  # otherwise it may not run on columns
        assert (table == TABLE).all(), source
    return True


def test_columns_give_what_single_calls_give_or_are_refused():
    with np.errstate(all="ignore"):
        exact = sum(map(is_exact, range(COUNT)))
    assert exact > COUNT / 4
