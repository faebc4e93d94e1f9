"""Plans as text."""

import functools
import re
from typing import ClassVar

import numpy as np
import pytest

from dataset import Dataset, Options, SpecError
from dataset.optimize.driver import RULES, Miss
from dataset.plan.node import UnaryNode


def options(**rules):
    found = Options()
    for name, value in rules.items():
        setattr(found.optimization, name, value)
    return found


def section(text, heading):
    """The lines below a heading, without their indent."""
    sections = dict(part.split("\n", 1) for part in text.split("\n\n"))
    return [line.removeprefix("  ") for line in sections[heading].splitlines()]


def line_of(function):
    return function.__code__.co_firstlineno


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
    first = written(Dataset.range(3).filter(bool))[0]
    assert "element" not in first


def test_columns_stand_below_each_other():
    lines = written(Dataset.range(1000).shuffle(10).batch(32))
    assert len({line.index("test_explain.py") for line in lines}) == 1
    assert len({line.index("int64") for line in lines}) == 1
    assert max(map(len, lines)) < 120


def test_a_wide_cell_moves_no_other_line():
    short = Dataset.range(3).batch(2)
    usual = written(short)[-1].index("test_explain.py")
    wide = Dataset.zip(short, name="x" * 200).explain()
    assert section(wide, BOTH)[-1].replace("└─ ", "").index("test_explain.py") == usual


def test_the_plan_as_written_stands_before_the_plan_as_it_runs():
    text = Dataset.range(3).take(-1).batch(2).explain()
    assert [line.split("(")[0] for line in section(text, "as written:")] == ["batch", "take", "range"]
    assert [line.split("(")[0] for line in section(text, "as it runs:")] == ["batch", "range"]
    assert re.fullmatch(r"noop_elimination: take\(-1\) from test_explain\.py:\d+", *section(text, "rewritten:"))


def test_a_plan_that_no_rule_changes_is_drawn_once():
    text = Dataset.range(3).batch(2).explain()
    assert text.count("range(3)") == 1
    assert text.startswith("as written, and as it runs:\n")


def test_without_the_optimizer_the_plan_is_as_it_was_written():
    dataset = Dataset.range(3).take(-1).map(lambda x: x + 1).with_options(options(enabled=False))
    assert "take(-1)" in "".join(written(dataset))
    assert "rewritten" not in dataset.explain()
    assert "columns" not in dataset.explain()


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
    dataset = Dataset.range(3)
    for _ in range(3):
        dataset = dataset.skip(0)
    assert re.fullmatch(
        r"noop_elimination: skip\(0\) from test_explain\.py:\d+ \(3 times\)",
        *section(dataset.explain(), "rewritten:"),
    )


def decode(x):
    return x


class Scaler:
    def __call__(self, x):
        return x

    def scale(self, x):
        return x


def wrapped(function):
    @functools.wraps(function)
    def call(x):
        return function(x)

    return call


@pytest.mark.parametrize(
    ("function", "shown", "line"),
    [
        (decode, "decode", line_of(decode)),
        (functools.partial(functools.partial(decode)), "decode", line_of(decode)),
        (wrapped(decode), "decode", line_of(decode)),
        (functools.lru_cache(decode), "decode", line_of(decode)),
        (Scaler(), "Scaler", line_of(Scaler.__call__)),
        (Scaler().scale, "Scaler.scale", line_of(Scaler.scale)),
    ],
)
def test_a_users_function_is_shown_with_its_own_line(function, shown, line):
    text = Dataset.range(3).map(function).explain()
    assert f"map({shown})" in text
    assert f"  {shown} at test_explain.py:{line}" in text


@pytest.mark.parametrize("function", [len, np.sqrt, int, functools.partial(len)])
def test_a_function_without_source_is_shown_by_its_name(function):
    assert " at " not in Dataset.range(3).map(function).explain()


def test_a_lambda_is_shown_with_its_line_and_each_function_of_an_op():
    dataset = Dataset.range(3).group_by_window(
        lambda x: x % 2,
        lambda key, window: window.batch(2),
        2,
    )
    shown = re.search(r"<lambda> at test_explain.py:(\d+), <lambda> at test_explain.py:(\d+)", dataset.explain())
    first, second = map(int, shown.groups())
    assert second == first + 1


def test_specs_that_are_known_are_shown_briefly():
    arrays = {"image": np.zeros((4, 28, 28), np.uint8), "label": [b"a", b"b", b"c", b"d"]}
    dataset = Dataset.from_tensor_slices(arrays).batch(2)
    tree = "\n".join(written(dataset))
    assert "{image: uint8[28, 28], label: bytes}" in tree
    assert "{image: uint8[?, 28, 28], label: bytes[?]}" in tree
    assert "int64" not in written(Dataset.range(3).map(decode))[0]


def test_a_plan_whose_specs_do_not_fit_is_shown_with_what_is_wrong():
    class Broken(UnaryNode):
        op: ClassVar[str] = "broken"

        def _element_spec(self):
            raise SpecError("broken(): the element is no dict")

    dataset = Dataset(Broken(Dataset.range(3).plan)).take(2)
    assert "no spec: broken(): the element is no dict" in dataset.explain()
    assert "no spec: broken(): the element is no dict" in dataset._repr_html_()


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


@pytest.mark.parametrize("form", ["text", "svg", "html", "dot"])
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


def chain(length):
    dataset = Dataset.range(10)
    for _ in range(length // 4):
        dataset = dataset.batch(2).unbatch().take(5).map(decode)
    return dataset


def wide(length):
    return Dataset.zip(tuple(Dataset.range(3).take(2) for _ in range(length)))


def left_deep(length):
    dataset = source = Dataset.range(10)
    for _ in range(length):
        dataset = dataset.concatenate(source)
    return dataset


def doubled(depth):
    dataset = Dataset.range(10).map(decode)
    for _ in range(depth):
        dataset = Dataset.zip(dataset, dataset)
    return dataset


@pytest.mark.parametrize("make", [chain, wide, left_deep])
def test_large_plans_are_drawn_in_space_that_grows_with_them(make):
    small, large = make(500), make(1000)
    for form in ("text", "svg", "html", "dot"):
        assert len(large.explain(form)) < 2.5 * len(small.explain(form))


def test_a_plan_that_reads_itself_twice_again_and_again_does_not_explode():
    assert len(written(doubled(12))) == 12 * 2 + 2
