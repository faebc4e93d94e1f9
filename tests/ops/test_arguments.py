"""Wrong arguments of ops and sources: an error at once, that names the op, the argument and what is wrong."""

from functools import partial

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, RaggedTensor, Reducer, SparseTensor, TensorSpec, set_random_seed, vectorized

N = Dataset.range(3)
INTS = [("take", "count"), ("skip", "count"), ("repeat", "count"), ("enumerate", "start"), ("prefetch", "buffer_size")]
FUNCTIONS = {
    "map_func": N.map,
    "map_func ": N.random_map,
    "predicate": N.filter,
    "predicate ": N.take_while,
    "scan_func": lambda function: N.scan(0, function),
    "reduce_func": lambda function: N.reduce(0, function),
    "class_func": lambda function: N.rejection_resample(function, [0.5, 0.5]),
}


@pytest.mark.parametrize(("op", "argument"), INTS)
@pytest.mark.parametrize("value", [2.0, "2", True, [2]], ids=repr)
def test_what_is_not_an_int(op, argument, value):
    with pytest.raises(TypeError, match=rf"{op}\(\): {argument} must be an int, got"):
        getattr(N, op)(value)


@pytest.mark.parametrize("argument", FUNCTIONS)
def test_what_is_not_a_function(argument):
    call = FUNCTIONS[argument]
    for value in (None, 3, "len", [len]):
        with pytest.raises(TypeError, match=rf"\(\): {argument.strip()} must be a function, got"):
            call(value)


def of(method, *arguments, **keywords):
    return lambda: method(*arguments, **keywords)


V = Dataset.from_generator(list, output_signature=TensorSpec((None,), np.int64))
RAGGED = Dataset.from_tensors(RaggedTensor([1], [0, 1]))
INT, TEN, BATCHES = TensorSpec((), np.int64), Dataset.range(10), N.batch(2)
of_map, of_random_map = partial(of, N.map, str), partial(of, N.random_map, lambda rng, x: x)
of_buckets, of_resample = partial(of, V.bucket_by_sequence_length, len), partial(of, N.rejection_resample, abs)
of_choice, of_mix = partial(of, Dataset.choose_from_datasets), partial(of, Dataset.sample_from_datasets)
of_generator, of_slices = partial(of, Dataset.from_generator), partial(of, Dataset.from_tensor_slices)
of_groups, of_list = partial(of, N.group_by_window), partial(of, Dataset.from_list)
VECTOR = SparseTensor([[1]], [5], [3])
TOKENS = Dataset.from_generator(list, output_signature={"label": INT, "tokens": TensorSpec((None,), np.int64)})
of_pack, of_batches = partial(of, TOKENS.pack), partial(of, TOKENS.batch_by_tokens)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: N.take(None), TypeError, r"take\(\): count must be an int, got None"),
        (lambda: N.enumerate(2**63), ValueError, r"enumerate\(\): start must be at most"),
        (lambda: N.prefetch(-2), ValueError, r"prefetch\(\): buffer_size must be at least 0, got -2"),
        (of_map(num_parallel_calls=0), ValueError, "num_parallel_calls must be at least 1, got 0"),
        (of_map(deterministic=1), TypeError, "deterministic must be True or False"),
        (of_map(synchronous=True, num_parallel_calls=2), ValueError, "cannot be combined with num_parallel_calls=2"),
        (of_random_map(1.5), TypeError, r"random_map\(\): seed must be an int"),
        (
            of_map(executor="gpu"),
            ValueError,
            r"map\(\): executor must be \"thread\", \"process\" or AUTOTUNE, got 'gpu'",
        ),
        (of_random_map(executor=AUTOTUNE(max=2)), ValueError, r"or AUTOTUNE, got AUTOTUNE\(max=2\)"),
        (of_random_map(1, None, "no"), TypeError, r"random_map\(\): deterministic must be True or False"),
        (of(N.random_map, vectorized(lambda *args: args)), TypeError, r"random_map\(\): .*marked as vectorized"),
        (of(N.scan, 0, vectorized(lambda *args: args)), TypeError, r"scan\(\): scan_func .*marked as vectorized"),
        (lambda: N.scan({1: 1, "a": 2}, max), TypeError, "sortable"),
        (lambda: N.scan(2**70, max), ValueError, "64 bits"),
        (lambda: N.ignore_errors(1), TypeError, r"ignore_errors\(\): log_warning must be True or False, got"),
        (N.select, TypeError, "at least one key"),
        (of(N.cache, ["a"]), TypeError, "a path must be str, bytes or os.PathLike"),
        (of(Reducer, 1, len, len), TypeError, "init_func"),
        (of(V.ragged_batch, 2, False, "no dtype"), TypeError, "no dtype"),
        (lambda: N.select(["a", "b"]), TypeError, r"got \['a', 'b'\]; pass keys one by one"),
        (lambda: N.concatenate([1, 2]), TypeError, r"concatenate\(\): expected a Dataset, got"),
        (lambda: N.concatenate(N.enumerate()), TypeError, r"concatenate\(\).*the same structure"),
        (lambda: N.with_options(None), TypeError, r"with_options\(\): expected an Options, got"),
        (of(Dataset.zip), TypeError, r"zip\(\).*give datasets"),
        (of(Dataset.zip, [N]), TypeError, r"zip\(\).*use a tuple"),
        (of(Dataset.zip, N, 3), TypeError, r"zip\(\).*expected a Dataset, got 3"),
        (of(Dataset.zip, N, datasets=N), TypeError, r"zip\(\).*not both"),
        (of(Dataset.zip, ()), (TypeError, ValueError), r"zip\(\)"),
        (of_resample([0.6, 0.6]), ValueError, "target_dist must sum to 1, got .* with sum 1.2"),
        (of_resample([0.5, 0.5], [5, 5]), ValueError, "initial_dist must sum to 1"),
        (of_resample([-0.5, 1.5]), ValueError, "target_dist must contain numbers of at least 0"),
        (of_resample([[0.5, 0.5]]), ValueError, r"target_dist must be a vector.*got shape \(1, 2\)"),
        (of_resample([0.5, 0.5], [0.2, 0.3, 0.5]), ValueError, "must have the same size, got 2 and 3"),
        (of_resample([0.5, 0.5], [1.0, 0.0]), ValueError, "initial_dist must not be 0 for a class that target_dist"),
        (of_resample([0.5, 0.5], None, 1.5), TypeError, r"rejection_resample\(\): seed must be an int"),
        (of(Dataset.counter, 2.0), TypeError, r"counter\(\): start must be an int, got 2.0"),
        (of(Dataset.counter, 1j, 1, np.float32), TypeError, r"counter\(\): start must be a real number"),
        (of(Dataset.counter, 0, "a", np.complex64), TypeError, r"counter\(\): step must be a number"),
        (of(Dataset.counter, 2**63), ValueError, r"counter\(\): start must fit into 64 bits"),
        (of(Dataset.counter, dtype="datetime64[s]"), TypeError, r"counter\(\): dtype must be a numeric dtype"),
        (of(Dataset.range), ValueError, r"range\(\).*got 0 numbers"),
        (of(Dataset.range, 1.0), TypeError, r"range\(\): stop must be an int"),
        (of(Dataset.range, 2**63, 2**63 + 1), ValueError, r"range\(\): numbers must fit into 64 bits"),
        (of(Dataset.range, 0, 5, 0), ValueError, "step must not be 0"),
        (of(Dataset.range, 3, output_type=bool), TypeError, "output_type must be a numeric dtype"),
        (of(Dataset.random, seed=1.5), TypeError, r"random\(\): seed must be an int"),
        (of(Dataset.random, None, 1), TypeError, r"random\(\): rerandomize_each_iteration must be True or False"),
        (of(Dataset.from_tensors, None), ValueError, r"from_tensors\(\).*component"),
        (of(Dataset.from_tensors, 2**64), ValueError, "64 bits"),
        (of(Dataset.from_tensors, [[1, 2], [3]]), ValueError, "inhomogeneous|shape"),
        (of_slices({}), ValueError, r"from_tensor_slices\(\).*component"),
        (of_slices(3), ValueError, r"from_tensor_slices\(\).*from_tensors"),
        (of_slices({"image": [1, 2], "label": 3}), ValueError, "label"),
        (of_slices({"b": [1], "a": [1, 2]}), ValueError, "same number of rows.*'a' has 2.*'b' has 1"),
        (of_slices({"b": [[1, 2], [3]]}), ValueError, r"component 'b' .*RaggedTensor\.from_rows\(rows\)"),
        (of_slices({"s": VECTOR, "x": [1, 2, 3]}), ValueError, r"'s' must have two or more dim.*shape \(3,\)"),
    ],
)
def test_what_the_op_does_not_take(call, error, words):
    with pytest.raises(error, match=words):
        call()


REFUSED = {
    "batch": [
        (of(N.batch, 0), ValueError, "batch_size must be at least 1, got 0"),
        (of(N.batch, 2, 1), TypeError, "drop_remainder must be True or False"),
    ],
    "padded_batch": [
        (of(V.padded_batch, 0), ValueError, "batch_size must be at least 1, got 0"),
        (of(V.padded_batch, 2, [4, 4]), ValueError, r"shape \(4, 4\) does not fit the element of shape \(None,\)"),
        (of(V.padded_batch, 2, ([4], [4])), TypeError, "padded_shapes must contain shapes of ints and None"),
        (of(V.padded_batch, 2, None, (1, 2)), TypeError, "padding_values must have the structure"),
    ],
    "ragged_batch": [
        (of(V.ragged_batch, 0), ValueError, "batch_size must be at least 1, got 0"),
        (of(V.ragged_batch, 2, False, np.int16), ValueError, "row_splits_dtype must be int32 or int64"),
    ],
    "sparse_batch": [
        (of(N.sparse_batch, 2, None), TypeError, "row_shape must contain shapes of ints and None"),
        (of(V.sparse_batch, 2, [-1]), ValueError, r"row_shape .* got \[-1\]"),
        (of(N.sparse_batch, 2, [2]), ValueError, r"row_shape \(2,\) is too small .* shape \(\)"),
        (of(N.enumerate().sparse_batch, 2, []), TypeError, r"single dense component, got \(\*, \*\)"),
        (of(RAGGED.sparse_batch, 2, []), TypeError, "RaggedTensorSpec"),
    ],
    "rebatch": [
        (of(BATCHES.rebatch, 0), ValueError, "batch_size must.*a size of at least 1, got 0"),
        (of(BATCHES.rebatch, [2, -1]), ValueError, "batch_size must.*at least 0, got -1"),
        (of(BATCHES.rebatch, [2, None]), TypeError, "batch_size must.*be an int, got None"),
    ],
    "window": [
        (of(N.window, 0), ValueError, "size must be at least 1, got 0"),
        (of(N.window, 1, 0), ValueError, "shift must be at least 1"),
        (of(N.window, 1, 1, -1), ValueError, "stride must be at least 1"),
    ],
    "cache": [
        (of(N.cache, "a", on_mismatch="ignore"), ValueError, 'on_mismatch must be "error" or "rebuild"'),
        (of(N.cache, AUTOTUNE(max=3)), TypeError, r"must be a path or AUTOTUNE, got AUTOTUNE\(max=3\)"),
        (of(N.cache, directory="a"), ValueError, "directory is for cache"),
        (of(N.cache, AUTOTUNE, directory="s3://bucket/cache"), ValueError, "without a scheme"),
    ],
    "snapshot": [
        (of(N.snapshot, "a", "ZIP"), ValueError, "compression"),
        (of(N.snapshot, "a", reader_func=3), TypeError, "reader_func"),
        (of(N.snapshot, "a", shard_func=3), TypeError, "shard_func"),
    ],
    "bucket_by_sequence_length": [
        (of(V.bucket_by_sequence_length, 1, [3], [2, 2]), TypeError, "element_length_func must be a function, got 1"),
        (of_buckets(3, [2, 2]), TypeError, "bucket_boundaries must be a list of ints, got 3 of type int"),
        (of_buckets([3.0], [2, 2]), TypeError, r"bucket_boundaries\[0\] must be an int, got 3.0"),
        (of_buckets([3, 3], [2, 2, 2]), ValueError, r"bucket_boundaries must be strictly ascending, got \[3, 3\]"),
        (of_buckets([3, 5], [2, 2]), ValueError, "one more entry than .* got 2 bucket_batch_sizes and 2"),
        (of_buckets([3], [2, 0]), ValueError, r"bucket_batch_sizes\[1\] must be at least 1, got 0"),
        (of_buckets([3], [2, 2], no_padding=1), TypeError, "no_padding must be True or False, got 1"),
    ],
    "group_by_window": [
        (of_groups(1, max, 2), TypeError, "key_func must be a function, got 1"),
        (of_groups(abs, 1, 2), TypeError, "reduce_func must be a function"),
        (of_groups(abs, max), ValueError, "pass either window_size or window_size_func, not both"),
        (of_groups(abs, max, 0), ValueError, "window_size must be at least 1, got 0"),
        (of_groups(abs, max, None, 2), TypeError, "window_size_func must be a function"),
    ],
    "group_by_reducer": [
        (of(N.group_by_reducer, len, 5), TypeError, "reducer must be a Reducer, got 5"),
        (of(N.group_by_reducer, 5, Reducer(len, len, len)), TypeError, "key_func"),
    ],
    "interleave": [
        (of(N.interleave, Dataset.range, 0), ValueError, "cycle_length must be at least 1, got 0"),
        (of(N.interleave, Dataset.range, 2, 0), ValueError, "block_length must be at least 1, got 0"),
        (of(N.interleave, 3), TypeError, "map_func must be a function"),
    ],
    "shard": [
        (of(N.shard, 0, 0), ValueError, "num_shards must be at least 1, got 0"),
        (of(N.shard, 2, 2), ValueError, "index must be below num_shards, 2, got 2"),
    ],
    "shard_by_process": [
        (of(N.shard_by_process, 0), ValueError, "give rank and world_size, or neither, got rank=0, world_size=None"),
        (of(N.shard_by_process, 2, 2), ValueError, "rank must be below world_size, 2, got 2"),
        (of(N.shard_by_process, -1, 2), ValueError, "rank must be at least 0, got -1"),
        (of(N.shard_by_process, 0, 0), ValueError, "world_size must be at least 1, got 0"),
        (of(N.shard_by_process, 0.0, 1), TypeError, "rank must be an int"),
        (of(N.shard_by_process, 0, 1, seed=None), TypeError, "seed must be an int"),
        (of(N.shard_by_process, 0, 1, remainder="fill"), ValueError, "remainder must be one of 'drop', 'pad'"),
        (of(N.shard_by_process, 0, 1, by="records"), ValueError, "by must be one of 'auto', 'files'"),
        (of(N.shard_by_process, 0, 1, remainder="repeat", by="files"), ValueError, 'needs by="elements"; use that, or'),
        (of(N.shard_by_process, 0, 2, by="files"), ValueError, r"range\(3\) from .* is not a list of file names"),
    ],
    "split": [
        (of(TEN.split, 0.5), TypeError, "parts must be a list"),
        (of(TEN.split, [1.0]), TypeError, "at least two"),
        (of(TEN.split, [0.5, 0.6]), ValueError, "add up to 1"),
        (of(TEN.split, [1.5, -0.5]), ValueError, "must be positive"),
        (of(TEN.split, [0.5, 1]), TypeError, "a count must be an int"),
        (of(TEN.split, [0, 10]), ValueError, "at least 1"),
        (of(TEN.split, [-1, -1]), ValueError, "only one count may be -1"),
        (of(TEN.split, [4, 5]), ValueError, "add up to 9, but there are 10 elements; use -1"),
        (of(TEN.split, [4, 7, -1]), ValueError, "10 elements are not enough"),
        (of(TEN.split, [0.5, 0.5], "a"), TypeError, "seed must be"),
        (of(TEN.split, [0.5, 0.5], by="row"), ValueError, "by must be"),
        (of(TEN.split, [5, 5], by=lambda x: x), ValueError, "parts must be fractions"),
        (of(TEN.split, [0.5, 0.5], by="file"), ValueError, "is not a list of file names"),
    ],
    "pack": [
        (of_pack(0), ValueError, "length must be at least 1"),
        (of_pack(4, window=0), ValueError, "window must be at least 1"),
        (of_pack(4, too_long="cut"), ValueError, "too_long must be one of 'split', 'truncate', 'error', 'drop'"),
        (of_pack(4, boundaries="mask"), ValueError, "must be one of 'segment_ids', 'cu_seqlens', 'lengths'"),
        (of_pack(4, max_sequences=0), ValueError, "max_sequences must be at least 1"),
        (of_pack(4, seed=1), ValueError, "no effect with shuffle=False"),
        (of_pack(4, key="label"), ValueError, "key='label' is not a token feature"),
        (of_pack(4, pad={"token": 1}), ValueError, "pad has the key 'token'"),
        (of_pack(4, pad={"tokens": 0.5}), TypeError, r"pad has 0\.5"),
        (of(N.pack, 4), ValueError, r"no array of tokens.*np\.asarray"),
        (of(of_slices({"positions": [[1, 2]]})().pack, 4), ValueError, "already have the key 'positions'"),
    ],
    "batch_by_tokens": [
        (of_batches(0), ValueError, "max_tokens must be at least 1"),
        (of_batches(4, window=0), ValueError, "window must be at least 1"),
        (of_batches(4, layout="flat"), ValueError, "layout must be one of 'padded', 'ragged', 'packed'"),
        (of_batches(4, pad_to=0), ValueError, "pad_to must be at least 1"),
        (of_batches(4, pad_to=[4, 4]), ValueError, "ascending lengths"),
        (of_batches(4, pad_to=4, layout="ragged"), ValueError, "has no effect with layout"),
        (of_batches(4, across_processes=0), ValueError, "across_processes must be at least 1"),
        (of_batches(4, seed=1, shuffle=False), ValueError, "no effect with shuffle=False"),
        (of_batches(4, pad={"token": 1}), ValueError, "pad has the key 'token'"),
        (of_batches(4, length="t"), TypeError, "length must be a function"),
        (of(N.batch_by_tokens, 4), ValueError, "no array of tokens"),
    ],
    "distribute": [
        (of(N.distribute, 0), ValueError, "at least 1"),
        (of(N.distribute, 2, engine="threads"), ValueError, "processes"),
        (of(N.distribute, 2, resources={"CPU": 1}), ValueError, "ray"),
        (of(N.distribute, 2, max_restarts=-1), ValueError, "at least 0"),
    ],
    "shuffle": [
        (of(N.shuffle, 0), ValueError, "buffer_size must be at least 1, got 0"),
        (of(N.shuffle, 3, 1.5), TypeError, "seed must be an int"),
    ],
    "set_random_seed": [
        (of(set_random_seed, "1"), TypeError, "seed must be an int or None"),
    ],
    "choose_from_datasets": [
        (of_choice([], N), ValueError, "datasets must contain at least one"),
        (of_choice(N, N), TypeError, "datasets must be a list"),
        (of_choice([N, 4], N), TypeError, r"datasets\[1\] must be a Dataset, got 4"),
        (of_choice([N], [0, 1]), TypeError, "choice_dataset must be a Dataset"),
        (of_choice([N], Dataset.range(3, output_type=np.int32)), TypeError, "int64 scalars"),
        (of_choice([N, N.enumerate()], N), TypeError, "the same structure"),
    ],
    "sample_from_datasets": [
        (of_mix([N, N], [1.0]), ValueError, r"one number per dataset \(2\), got 1"),
        (of_mix([N, N], [-1.0, 1.0]), ValueError, "finite and at least 0"),
        (of_mix([N, N], "ab"), TypeError, "list of numbers or a Dataset"),
        (of_mix([N, N], ["1", "2"]), TypeError, "must be numbers, got '1'"),
        (of_mix([N, N], N), TypeError, "vectors of 2 numbers"),
        (of_mix([N, N], exact=1), TypeError, "exact must be True or False"),
        (of_mix([N, N], exact=True, seed=1), ValueError, "deterministic and takes no seed, got seed=1"),
        (of_mix([N, N], V.batch(2), exact=True), ValueError, "constant weights"),
        (of_mix([N, Dataset.from_tensors("a")]), TypeError, "the same type"),
        (of_mix([N, N], stop_on_empty_dataset=True, on_empty="stop"), ValueError, "not both"),
        (of_mix([N, N], on_empty="end"), ValueError, "on_empty must be one of 'continue', 'stop', 'repeat'"),
        (of_mix([N, N], [(1, [1, 1])]), ValueError, "must ascend from 0"),
        (of_mix([N, N], [(0, [1, 1, 1])]), ValueError, "one number per dataset"),
        (of_mix([N, N], [(0, [0, 0])]), ValueError, "from element 0 on are all 0"),
        (of_mix([N, N], [(0, [1, -1])]), ValueError, "at least 0"),
        (of_mix([N, N], [(0, [1, 1])], exact=True), ValueError, "got a schedule"),
        (of_mix([N, N], [1, 1], interpolation="linear"), ValueError, "several element numbers"),
        (of_mix([N, N], [(0, [1, 1])], interpolation="cubic"), ValueError, "interpolation must be one of 'step', 'lin"),
    ],
    "from_generator": [
        (of_generator([1, 2]), TypeError, "generator must be a function"),
        (of_generator(list, np.int64, output_signature=INT), TypeError, "output_signature"),
        (of_generator(list, None, ()), TypeError, "output_types"),
        (of_generator(list, output_signature=np.int64), TypeError, "TensorSpec"),
        (of_generator(list, output_signature={}), ValueError, "must have at least one component"),
        (of_generator(list, "no such type"), TypeError, "invalid shape"),
        (of_generator(iter, args=3), TypeError, "args must be a tuple"),
        (of_generator(list, (np.int64, np.int64), ((),)), ValueError, "must have the structure of output_types"),
    ],
    "from_list": [
        (of_list([]), ValueError, "must not be empty; for an empty dataset, use Dataset.range"),
        (of_list((1, 2)), ValueError, "must be a list, got a tuple"),
        (of_list([(), ()]), ValueError, r"must have at least one component, got \(\)"),
        (of_list([{"a": 1}, {"b": 1}]), ValueError, "same structure, .*'b'.* in element 1 .*'a'.* in element 0"),
        (of_list([1, 2.5]), ValueError, "same type in all elements, .*float64.* element 1 .*int64.* element 0"),
    ],
}


@pytest.mark.parametrize(
    ("op", "call", "error", "words"), [(op, *refused) for op, each in REFUSED.items() for refused in each]
)
def test_an_op_refuses_what_it_does_not_take(op, call, error, words):
    with pytest.raises(error, match=rf"{op}\(\): .*{words}"):
        call()
