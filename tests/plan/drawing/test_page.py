"""The piece of HTML that notebooks show."""

import html.parser
import re

from dataset import Dataset, Options

VOID = {"rect", "path"}  # as SVG writes them


class Page(html.parser.HTMLParser):
    """Tags, attributes and texts, with a check that tags are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def inside(self, tag):
        return "".join(text for inside, text in self.texts if inside == tag)


def evil(x):
    return x


EVIL = '</pre></title></svg><script>alert("1")</script><img src=x onerror=alert(1)>'
evil.__qualname__ = EVIL


def test_the_picture_comes_first_then_lists_that_fold_if_a_rule_fired():
    dataset = Dataset.range(10).take(-1).map(lambda x: x + 1)
    page = Page(dataset.explain("html"))
    assert page.tags.index("svg") < page.tags.index("details")
    assert page.inside("summary") == "2 rules firedthe plan as written"
    assert "noop_elimination: take(-1)" in page.inside("pre")
    assert re.search(r"take\(-1\) +10 elements", page.inside("pre"))
    assert dataset.explain("svg") in dataset.explain("html")
    assert Page(Dataset.range(10).take(-1).explain("html")).inside("summary").startswith("1 rule fired")
    assert "details" not in Page(Dataset.range(10).batch(2).explain("html")).tags


def test_no_name_gets_out_of_its_place():
    options = Options()
    options.dataset_name = EVIL
    text = Dataset.range(3).skip(0).map(evil, name=EVIL).filter(evil).with_options(options).explain("html")
    page = Page(text)
    assert set(page.tags) <= {"div", "svg", "style", "rect", "g", "title", "text", "path", "details", "summary", "pre"}
    assert not any(name.startswith("on") or name in {"href", "src", "id"} for name, _ in page.attributes)
    assert EVIL in page.inside("div")
    assert EVIL in page.inside("title")
    assert EVIL in page.inside("pre")


def test_styles_reach_nothing_else_in_the_page():
    style = Page(Dataset.range(3).explain("html")).inside("style")
    selectors = re.findall(r"^([^@\s{][^{]*)\{", style, re.MULTILINE)
    assert selectors
    assert all(selector.startswith(".dataset-plan-") for selector in selectors)
