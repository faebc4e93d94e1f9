"""The picture of a plan, read back as XML."""

import functools
import re
import unicodedata
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from dataset import Dataset
from dataset.optimize.driver import optimize
from dataset.plan.node import inputs_first
from support.pipelines import unoptimized

SVG = "{http://www.w3.org/2000/svg}"


def drawn(dataset):
    return ET.fromstring(dataset.explain("svg"))  # noqa: S314  # our own


def groups(picture):
    """The boxes, each with its texts."""
    return [group for group in picture.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None]


def texts(group):
    return [text.text for text in group.iter(f"{SVG}text")]


def rectangle(group):
    attributes = group.find(f"{SVG}rect").attrib
    return tuple(float(attributes[name]) for name in ("x", "y", "width", "height"))


def tips_of(picture):
    """Return where arrows end."""
    heads = [path.attrib["d"] for path in picture.iter(f"{SVG}path") if path.attrib["class"].endswith("head")]
    return [tuple(map(float, re.match(r"M(\S+) (\S+)l", d).groups())) for d in heads]


def zipped():
    slices = Dataset.from_tensor_slices(np.arange(50)).shuffle(50, seed=1)
    numbers = Dataset.range(50).map(lambda x: x + 1)
    return Dataset.zip(slices, numbers.take(-1), numbers.batch(2), Dataset.range(4).concatenate(numbers)).batch(8)


def forty():
    return functools.reduce(lambda dataset, _: dataset.map(str), range(39), Dataset.range(1000))


@pytest.mark.parametrize("make", [lambda: Dataset.range(3), zipped, forty])
def test_boxes_lie_in_the_picture_and_arrows_go_to_boxes(make):
    """test_graph_layout.py has the layout."""
    dataset = make()
    picture = drawn(dataset)
    boxes = list(map(rectangle, groups(picture)))
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    assert picture.attrib["viewBox"] == f"0 0 {width:.0f} {height:.0f}"
    assert all(0 <= x <= x + w < width and 0 <= y <= y + h < height for x, y, w, h in boxes)
    tips = tips_of(picture)
    assert len(tips) == sum(len(node.inputs) for node in inputs_first(optimize(dataset.plan).plan))
    for x, y in tips:
        assert any(left < x < left + w and abs(top - y) < 0.2 for left, top, w, h in boxes)


def test_the_last_operation_is_at_the_bottom_and_says_what_it_is():
    second, first = sorted(groups(drawn(Dataset.range(10).batch(4, name="four"))), key=lambda g: rectangle(g)[1])
    assert texts(first)[0] == "batch(4) 'four'"
    assert re.fullmatch(r"3 elements · test_svg\.py:\d+", texts(first)[1])
    assert texts(first)[2] == "int64[?]"
    assert texts(second)[0] == "range(10)"


def test_what_is_read_twice_is_one_box_with_two_arrows():
    dataset = Dataset.range(10)
    picture = drawn(Dataset.zip(dataset, dataset))
    assert len(groups(picture)) == 2
    assert len(set(tips_of(picture))) == 2


def test_what_the_optimizer_decided_stands_in_the_box_of_its_node():
    dataset = Dataset.range(10).take(-1).map(lambda x: x + 1).batch(2)
    source, mapped, batch = map(texts, sorted(groups(drawn(dataset)), key=lambda group: rectangle(group)[1]))
    assert batch[-1] == "✓ map_and_batch_fusion"
    assert mapped[1] == "on columns, into arrays"
    assert mapped[-2:] == ["✓ map_vectorization", "✓ map_and_batch_fusion"]
    assert not any("✓" in text for text in source)
    assert "✓" not in unoptimized(dataset).explain("svg")


def test_a_rule_that_made_new_ops_is_named_in_them_though_later_rules_moved_them():
    dataset = Dataset.from_tensor_slices(np.arange(5)).skip(0).shuffle(3, seed=1).take(-1).batch(2)
    marked = {texts(group)[0] for group in groups(drawn(dataset)) if texts(group)[-1] == "✓ shuffle_before_gather"}
    assert marked == {"gather(from_tensor_slices)", "shuffle(3, seed=1)", "range(5)"}


NAMES = [
    "<script>&\"'</script>",
    "]]>",
    "a\nb\tc\x00\x1b",
    "漢字" * 60,
    "word " * 60,
    "\u202e\ud800",
    "🙂" * 50,
    "نص" * 60,
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_gives_valid_xml_and_fits_into_its_box(name):
    def function(x):
        return x

    function.__qualname__ = name
    for group in groups(drawn(Dataset.range(3).map(function, name=name).map(str, name=name))):
        x, y, width, height = rectangle(group)
        for text in group.iter(f"{SVG}text"):
            columns = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text.text)
            size = float(text.attrib["font-size"])
            assert float(text.attrib["x"]) + columns * size * 0.602 <= x + width
            assert y < float(text.attrib["y"]) < y + height


def test_what_was_cut_off_is_in_the_tooltip():
    name = "word" * 60
    group = groups(drawn(Dataset.range(3, name=name)))[0]
    assert texts(group)[0].endswith("…")
    assert name in group.find(f"{SVG}title").text


def test_the_picture_needs_nothing_else_and_suits_the_dark():
    text = zipped().explain("svg")
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"<script|href|url\(|@import|<image|<use|\bid=", text)
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)[1]
    for selector in re.findall(r"^([^@}{]+?) *\{", style, re.MULTILINE):
        assert selector.startswith(".dataset-plan-"), "it would change the rest of a page"
        rule = selector[1:]
        assert f'class="{rule}"' in text or rule in {"dataset-plan-special", "dataset-plan-made", "dataset-plan-rule"}
