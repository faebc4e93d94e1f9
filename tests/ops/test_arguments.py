"""Wrong arguments of the ops of this folder: an error at once, that names the op, the argument and what is wrong."""

import numpy as np
import pytest

from dataset import Dataset, SparseTensor, vectorized

NUMBERS = Dataset.range(3)
INTS = [("take", "count"), ("skip", "count"), ("repeat", "count"), ("enumerate", "start"), ("prefetch", "buffer_size")]
FUNCTIONS = {
    "map_func": NUMBERS.map,
    "map_func ": NUMBERS.random_map,
    "predicate": NUMBERS.filter,
    "predicate ": NUMBERS.take_while,
    "scan_func": lambda function: NUMBERS.scan(0, function),
    "reduce_func": lambda function: NUMBERS.reduce(0, function),
    "class_func": lambda function: NUMBERS.rejection_resample(function, [0.5, 0.5]),
}


@pytest.mark.parametrize(("op", "argument"), INTS)
@pytest.mark.parametrize("value", [2.0, "2", True, [2]], ids=repr)
def test_what_is_not_an_int(op, argument, value):
    with pytest.raises(TypeError, match=rf"{op}\(\): {argument} must be an int, got"):
        getattr(NUMBERS, op)(value)


@pytest.mark.parametrize("argument", FUNCTIONS)
def test_what_is_not_a_function(argument):
    call = FUNCTIONS[argument]
    for value in (None, 3, "len", [len]):
        with pytest.raises(TypeError, match=rf"\(\): {argument.strip()} must be a function, got"):
            call(value)


def of_map(**arguments):
    return lambda: NUMBERS.map(str, **arguments)


def of_random_map(*arguments):
    return lambda: NUMBERS.random_map(lambda rng, x: x, *arguments)


def of_resample(*arguments):
    return lambda: NUMBERS.rejection_resample(abs, *arguments)


def of(source, *arguments, **keywords):
    return lambda: getattr(Dataset, source)(*arguments, **keywords)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: NUMBERS.take(None), TypeError, r"take\(\): count must be an int, got None"),
        (lambda: NUMBERS.skip(None), TypeError, r"skip\(\): count must be an int, got None"),
        (lambda: NUMBERS.enumerate(2**63), ValueError, r"enumerate\(\): start must be at most"),
        (lambda: NUMBERS.enumerate(-(2**63) - 1), ValueError, r"enumerate\(\): start must be at least"),
        (lambda: NUMBERS.prefetch(-2), ValueError, r"prefetch\(\): buffer_size must be at least 0, got -2"),
        (of_map(num_parallel_calls=0), ValueError, "num_parallel_calls must be at least 1, got 0"),
        (of_map(num_parallel_calls=2.0), TypeError, "num_parallel_calls must be an int"),
        (of_map(deterministic=1), TypeError, "deterministic must be True or False"),
        (of_map(synchronous=1), TypeError, "synchronous must be True or False"),
        (of_map(use_unbounded_threadpool="yes"), TypeError, "use_unbounded_threadpool must be True or False"),
        (of_map(synchronous=True, num_parallel_calls=2), ValueError, "cannot be combined with num_parallel_calls=2"),
        (of_map(synchronous=True, num_parallel_calls=-1), ValueError, "leave out one of them"),
        (of_random_map(1.5), TypeError, r"random_map\(\): seed must be an int"),
        (of_random_map(1, 0), ValueError, r"random_map\(\): num_parallel_calls must be at least 1"),
        (of_random_map(1, None, "no"), TypeError, r"random_map\(\): deterministic must be True or False"),
        (
            lambda: NUMBERS.random_map(vectorized(lambda rng, x: x)),
            TypeError,
            r"random_map\(\): .*marked as vectorized",
        ),
        (
            lambda: NUMBERS.scan(0, vectorized(lambda s, x: (s, x))),
            TypeError,
            r"scan\(\): scan_func .*marked as vectorized",
        ),
        (lambda: NUMBERS.scan({1: 1, "a": 2}, max), TypeError, "sortable"),
        (lambda: NUMBERS.scan(2**70, max), ValueError, "64 bits"),
        (lambda: NUMBERS.ignore_errors(1), TypeError, r"ignore_errors\(\): log_warning must be True or False, got"),
        (NUMBERS.select, TypeError, "at least one key"),
        (lambda: NUMBERS.select(["a", "b"]), TypeError, r"got \['a', 'b'\]; pass keys one by one"),
        (lambda: NUMBERS.concatenate([1, 2]), TypeError, r"concatenate\(\): expected a Dataset, got"),
        (lambda: NUMBERS.with_options(None), TypeError, r"with_options\(\): expected an Options, got"),
        (of("zip"), TypeError, r"zip\(\).*give datasets"),
        (of("zip", [NUMBERS]), TypeError, r"zip\(\).*use a tuple"),
        (of("zip", NUMBERS, 3), TypeError, r"zip\(\).*expected a Dataset, got 3"),
        (of("zip", NUMBERS, datasets=NUMBERS), TypeError, r"zip\(\).*not both"),
        (of("zip", ()), (TypeError, ValueError), r"zip\(\)"),
        (of("zip", (None,)), (TypeError, ValueError), r"zip\(\)"),
        (of_resample([0.6, 0.6]), ValueError, "target_dist must sum to 1, got .* with sum 1.2"),
        (of_resample([0.5, 0.5], [5, 5]), ValueError, "initial_dist must sum to 1"),
        (of_resample([-0.5, 1.5]), ValueError, "target_dist must contain numbers of at least 0"),
        (of_resample([[0.5, 0.5]]), ValueError, r"target_dist must be a vector.*got shape \(1, 2\)"),
        (of_resample([]), ValueError, "must be a vector"),
        (of_resample(["a"]), TypeError, "must be a vector of numbers"),
        (of_resample([[0.5], [0.25, 0.25]]), TypeError, "must be a vector of numbers"),
        (of_resample([0.5, 0.5], [0.2, 0.3, 0.5]), ValueError, "must have the same size, got 2 and 3"),
        (of_resample([0.5, 0.5], [1.0, 0.0]), ValueError, "initial_dist must not be 0 for a class that target_dist"),
        (of_resample([0.5, 0.5], None, 1.5), TypeError, r"rejection_resample\(\): seed must be an int"),
        (of("counter", 2.0), TypeError, r"counter\(\): start must be an int, got 2.0"),
        (of("counter", 0, 0.5), TypeError, r"counter\(\): step must be an int"),
        (of("counter", 1j, 1, np.float32), TypeError, r"counter\(\): start must be a real number"),
        (of("counter", 0, "a", np.complex64), TypeError, r"counter\(\): step must be a number"),
        (of("counter", 2**63), ValueError, r"counter\(\): start must fit into 64 bits"),
        (of("counter", 0, 2**64), ValueError, r"counter\(\): step must fit into 64 bits"),
        (of("counter", 2**64, 1, np.uint64), ValueError, r"counter\(\): start must fit into 64 bits"),
        (of("counter", dtype="datetime64[s]"), TypeError, r"counter\(\): dtype must be a numeric dtype"),
        (of("range"), ValueError, r"range\(\).*got 0 numbers"),
        (of("range", 1, 2, 3, 4), ValueError, r"range\(\).*got 4 numbers"),
        (of("range", 1.0), TypeError, r"range\(\): stop must be an int"),
        (of("range", "a", 2), TypeError, r"range\(\): start must be an int"),
        (of("range", 2**63, 2**63 + 1), ValueError, r"range\(\): numbers must fit into 64 bits"),
        (of("range", 0, -(2**70), -(2**69)), ValueError, r"range\(\): numbers must fit into 64 bits"),
        (of("range", 0, 5, 0), ValueError, "step must not be 0"),
        (of("range", 3, output_type=bool), TypeError, "output_type must be a numeric dtype"),
        (of("range", 3, output_type=np.complex64), TypeError, "output_type must be a numeric dtype"),
        (of("random", seed=1.5), TypeError, r"random\(\): seed must be an int"),
        (of("random", None, 1), TypeError, r"random\(\): rerandomize_each_iteration must be True or False"),
        (of("from_tensors", None), ValueError, r"from_tensors\(\).*component"),
        (of("from_tensors", 2**64), ValueError, "64 bits"),
        (of("from_tensors", [[1, 2], [3]]), ValueError, "inhomogeneous|shape"),
        (of("from_tensors", {1: 1, "a": 2}), TypeError, "sortable"),
        (of("from_tensor_slices", {}), ValueError, r"from_tensor_slices\(\).*component"),
        (of("from_tensor_slices", 3), ValueError, r"from_tensor_slices\(\).*from_tensors"),
        (of("from_tensor_slices", {"image": [1, 2], "label": 3}), ValueError, "label"),
        (of("from_tensor_slices", {"b": [1], "a": [1, 2]}), ValueError, "same number of rows.*'a' has 2.*'b' has 1"),
        (
            of("from_tensor_slices", {"b": [[1, 2], [3]]}),
            ValueError,
            r"component 'b' .*RaggedTensor\.from_rows\(rows\)",
        ),
        (
            of("from_tensor_slices", {"s": SparseTensor([[1]], [5], [3]), "x": [1, 2, 3]}),
            ValueError,
            r"'s' must have two or more dimensions.*shape \(3,\)",
        ),
    ],
)
def test_what_the_op_does_not_take(call, error, words):
    with pytest.raises(error, match=words):
        call()
