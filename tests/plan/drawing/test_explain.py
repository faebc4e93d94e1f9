"""Plans as text."""

import functools
import re
from typing import ClassVar

import numpy as np
import pytest

from dataset import Dataset, SpecError, TextLineDataset
from dataset.optimize.driver import RULES, Miss
from dataset.plan.node import UnaryNode
from support.pipelines import unoptimized


def section(text, heading):
    """The lines below a heading, without their indent."""
    sections = dict(part.split("\n", 1) for part in text.split("\n\n"))
    return [line.removeprefix("  ") for line in sections[heading].splitlines()]


def written(dataset):
    text = dataset.explain()
    return section(text, BOTH if BOTH in text else "as written:")


BOTH = "as written, and as it runs:"


def test_a_chain_reads_from_the_last_operation_to_the_source():
    dataset = Dataset.range(1000).map(len).take(32, name="some")
    line = dataset.plan.origin.line
    assert written(dataset) == [
        f"take(32) 'some'  32 elements     test_explain.py:{line}",
        f"map(len)         1,000 elements  test_explain.py:{line}",
        f"range(1000)      1,000 elements  test_explain.py:{line}  int64",
    ]


def test_inputs_side_by_side_are_drawn_as_branches():
    a, b = Dataset.range(3).take(2), Dataset.range(4)
    tree = written(Dataset.zip((a, b, a)).concatenate(Dataset.zip(b, b, b)).batch(2))
    assert [re.match(r"[\s│├└─]*[a-z_]+(\(\d\), as above)?", line)[0] for line in tree] == [
        "batch",
        "concatenate",
        "├─ zip",
        "│  ├─ take",
        "│  │  range",
        "│  ├─ range",
        "│  └─ take(2), as above",
        "└─ zip",
        "   ├─ range",
        "   ├─ range",
        "   └─ range",
    ]


def test_counts_say_one_none_or_endless():
    assert " 1 element " in Dataset.from_tensors(3).explain()
    assert " 0 elements " in Dataset.range(0).explain()
    assert "endless" in Dataset.range(3).repeat().explain()
    assert "element" not in written(Dataset.range(3).filter(bool))[0]


def test_columns_stand_below_each_other_and_a_wide_cell_moves_no_other_line():
    lines = written(Dataset.range(1000).shuffle(10).batch(32))
    assert len({line.index("test_explain.py") for line in lines}) == 1
    assert len({line.index("int64") for line in lines}) == 1
    assert max(map(len, lines)) < 120
    short = Dataset.range(3).batch(2)
    usual = written(short)[-1].index("test_explain.py")
    wide = written(Dataset.zip(short, name="x" * 200))
    assert wide[-1].replace("└─ ", "").index("test_explain.py") == usual


def test_the_plan_as_written_stands_before_the_plan_as_it_runs():
    text = Dataset.range(3).take(-1).batch(2).explain()
    assert [line.split("(")[0] for line in section(text, "as written:")] == ["batch", "take", "range"]
    assert [line.split("(")[0] for line in section(text, "as it runs:")] == ["batch", "range"]
    assert re.fullmatch(r"noop_elimination: take\(-1\) from test_explain\.py:\d+", *section(text, "rewritten:"))


@pytest.mark.parametrize("dataset", [Dataset.range(3).batch(2), unoptimized(Dataset.range(3).take(-1).map(str))])
def test_a_plan_that_no_rule_changes_is_drawn_once(dataset):
    text = dataset.explain()
    assert text.count("range(3)") == 1
    assert text.startswith("as written, and as it runs:\n")
    assert "rewritten" not in text
    assert "columns" not in text


def test_what_nearly_was_rewritten_is_told_with_the_reason(monkeypatch):
    def picky(node):
        return Miss("it is a batch of 2; take 3") if node.op == "batch" else None

    monkeypatch.setitem(RULES, "noop_elimination", picky)
    dataset = Dataset.range(9).batch(2)
    line = dataset.plan.origin.line
    assert section(dataset.explain(), "nearly rewritten:") == [
        f"noop_elimination: batch(2) from test_explain.py:{line}: it is a batch of 2; take 3"
    ]


def test_rules_that_fired_alike_share_a_line():
    (line,) = section(Dataset.range(3).skip(0).skip(0).skip(0).explain(), "rewritten:")
    assert re.fullmatch(r"noop_elimination: skip\(0\) from test_explain\.py:\d+ \(3 times\)", line)


def decode(x):
    return x


class Scaler:
    def __call__(self, x):
        return x

    def scale(self, x):
        return x


@pytest.mark.parametrize(
    ("function", "shown", "source"),
    [
        (decode, "decode", decode),
        (functools.partial(functools.partial(decode)), "decode", decode),
        (functools.wraps(decode)(lambda x: decode(x)), "decode", decode),  # noqa: PLW0108  # another function
        (functools.lru_cache(decode), "decode", decode),
        (Scaler(), "Scaler", Scaler.__call__),
        (Scaler().scale, "Scaler.scale", Scaler.scale),
    ],
)
def test_a_users_function_is_shown_with_its_own_line(function, shown, source):
    text = Dataset.range(3).map(function).explain()
    assert f"map({shown})" in text
    assert f"  {shown} at test_explain.py:{source.__code__.co_firstlineno}" in text


def test_functions_without_source_and_each_function_of_an_op_are_shown():
    for function in (len, np.sqrt, int, functools.partial(len)):
        assert " at " not in Dataset.range(3).map(function).explain()
    text = Dataset.range(3).group_by_window(decode, lambda key, window: window.batch(2), 2).explain()
    assert re.search(r"decode at test_explain.py:\d+, <lambda> at test_explain.py:\d+", text)


def test_specs_that_are_known_are_shown_briefly():
    arrays = {"image": np.zeros((4, 28, 28), np.uint8), "label": [b"a", b"b", b"c", b"d"]}
    batched, source = written(Dataset.from_tensor_slices(arrays).batch(2))
    assert "{image: uint8[28, 28], label: bytes}" in source
    assert "{image: uint8[?, 28, 28], label: bytes[?]}" in batched
    assert "int64" not in written(Dataset.range(3).map(decode))[0]


def test_a_plan_whose_specs_do_not_fit_is_shown_with_what_is_wrong():
    class Broken(UnaryNode):
        op: ClassVar[str] = "broken"

        def _element_spec(self):
            raise SpecError("broken(): the element is no dict")

    dataset = Dataset(Broken(Dataset.range(3).plan)).take(2)
    for text in (dataset.explain(), dataset._repr_svg_()):
        assert "no spec: broken(): the element is no dict" in text


class Spy:
    """Counts whatever is asked of it, in the user's own code."""

    __dataset_vectorized__ = False  # which rules may ask any function

    def __init__(self):
        self.asked = []

    def __call__(self, *args):
        self.asked.append("__call__")
        return args

    def __getattr__(self, name):
        self.asked.append(name)
        raise AttributeError(name)

    def __iter__(self):
        self.asked.append("__iter__")
        return iter(range(3))


def test_a_plan_that_reads_files_says_whether_the_native_kernels_are_in_use(native):
    words = section(TextLineDataset("absent").map(str).explain(), "native kernels:")
    assert words == (["in use"] if native == "kernels" else ["not in use: DATASET_NATIVE is 0"])
    assert "native" not in Dataset.range(3).explain()


@pytest.mark.parametrize("form", ["text", "svg"])
def test_explaining_runs_no_user_code(form):
    spy = Spy()
    dataset = Dataset.from_generator(spy).map(spy).filter(spy).flat_map(spy).shuffle(3).map(spy).batch(2).unbatch()
    dataset = Dataset.zip(dataset, dataset).take(-1)
    spy.asked.clear()
    assert "Spy" in dataset.explain(form)
    assert spy.asked == []


def test_names_that_break_lines_do_not():
    def function(x):
        return x

    function.__qualname__ = "a\nb\x00\u202e"
    first, *_ = written(Dataset.range(3).map(function, name="c\nd"))
    assert first.startswith(r"map(a\nb\x00\u202e) 'c\nd'")


def repeated(step, dataset, times):
    for _ in range(times):
        dataset = step(dataset)
    return dataset


@pytest.mark.parametrize("form", ["text", "svg"])
def test_large_plans_are_drawn_in_space_that_grows_with_them(form):
    def sizes(length):
        wide = Dataset.zip(tuple(Dataset.range(3).take(2) for _ in range(length)))
        deep = repeated(lambda dataset: dataset.concatenate(Dataset.range(3)), Dataset.range(10), length)
        chain = repeated(lambda dataset: dataset.batch(2).unbatch().take(5).map(decode), Dataset.range(3), length // 4)
        return [len(dataset.explain(form)) for dataset in (wide, deep, chain)]

    assert all(large < 2.5 * small for small, large in zip(sizes(200), sizes(400), strict=True))


def test_a_plan_that_reads_itself_twice_again_and_again_does_not_explode():
    doubled = repeated(lambda dataset: Dataset.zip(dataset, dataset), Dataset.range(10).map(decode), 12)
    assert len(written(doubled)) == 12 * 2 + 2
