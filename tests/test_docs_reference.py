"""Tests that the API reference shows every public name once, and that the site is built without warnings."""

import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import dataset
from dataset import Dataset, checkpoint, io, queues, testing

ROOT = Path(__file__).parents[1]
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)
SHOWN = [
    name
    for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
    for name in DIRECTIVE.findall(page.read_text(encoding="utf-8"))
]
DOORS = {door.__name__: door for door in (dataset, checkpoint, io, queues, testing)}
PUBLIC = {f"{path}.{name}" for path, door in DOORS.items() for name in door.__all__} - {
    "dataset.checkpoint",
    "dataset.io",
    "dataset.queues",
}
METHODS = {f"dataset.Dataset.{name}" for name in dir(Dataset) if not name.startswith("_")}
EVERYTHING = sorted(PUBLIC | METHODS)


def test_the_reference_lists_every_public_name_and_none_twice():
    assert sorted(set(EVERYTHING) - set(SHOWN)) == []
    assert sorted(name for name in set(SHOWN) if SHOWN.count(name) > 1) == []


def callables():
    """Return public callables with arguments, by name: methods of Dataset, functions, classes."""
    made_by_the_library = {"Dataset", "DatasetIterator"}
    for path in EVERYTHING:
        owner, _, name = path.rpartition(".")
        found = inspect.getattr_static(Dataset, name) if owner == "dataset.Dataset" else getattr(DOORS[owner], name)
        found = getattr(found, "__func__", found)
        is_message = inspect.isclass(found) and hasattr(found, "DESCRIPTOR")
        is_error = inspect.isclass(found) and issubclass(found, BaseException)
        if callable(found) and not is_message and not is_error and name not in made_by_the_library:
            yield pytest.param(found, id=path)


@pytest.mark.parametrize("function", list(callables()))
def test_every_argument_is_described(function):
    described = re.findall(r"^ {4}\*{0,2}(\w+): ", inspect.getdoc(function), re.MULTILINE)
    arguments = set(inspect.signature(function).parameters) - {"self"}
    assert sorted(arguments - set(described)) == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    pytest.importorskip("mkdocs", reason="the site is built where mkdocs is installed: the extra docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class Page(HTMLParser):
    """Parser for the names that an HTML page defines and the files that it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.loaded, self.links = [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
        if tag in {"script", "img", "iframe", "source"} and values.get("src"):
            self.loaded.append(values["src"])
        if tag == "link" and values.get("rel") != "canonical":
            self.loaded.append(values["href"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


@pytest.mark.explore
def test_every_public_name_has_one_place_on_the_site(pages):
    ids = [name for page in pages.values() for name in page.ids]
    assert [name for name in EVERYTHING if ids.count(name) != 1] == []


@pytest.mark.explore
def test_the_site_loads_nothing_from_elsewhere(pages):
    loaded = {source for page in pages.values() for source in page.loaded}
    assert len(loaded) > 5
    assert sorted(source for source in loaded if urlsplit(source).netloc) == []


@pytest.mark.explore
def test_the_links_of_the_site_lead_to_places_that_are_there(pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment) or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, f"{path.name}: {link}"
