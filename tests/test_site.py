"""Tests of the built site in a headless browser: nothing is cut off, no picture is missing, and the search knows them.

They need the site, which `make docs` builds, and Chromium; CI has both.
"""

import inspect
import json
import os
from pathlib import Path

import pytest

from dataset import DatasetIterator
from support.browser import find_browser

SITE = Path(__file__).parents[1] / "site"
PAGES = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")

pytestmark = [
    pytest.mark.explore,
    pytest.mark.skipif(
        "BROWSER_REQUIRED" not in os.environ and (find_browser() is None or not PAGES),
        reason="needs `make docs` and Chromium: apt-get install chromium",
    ),
]


def load(browser, page):
    browser.open(page.as_uri())
    browser.evaluate(
        "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"
    )


def test_there_is_a_site():
    assert len(PAGES) > 40


def test_the_text_of_the_reference_has_the_docstrings():
    for page in SITE.glob("reference/*.md"):
        assert ":::" not in page.read_text(), page
    text = (SITE / "reference/iteration.md").read_text()
    assert "## `dataset.DatasetIterator.skip(self, count)`" in text
    assert inspect.getdoc(DatasetIterator.skip) in text


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_a_page_fits_and_shows_its_pictures(browser, page, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.command("Emulation.setDeviceMetricsOverride", **size)
    load(browser, page)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    shown = "Array.from(document.images).filter(image => getComputedStyle(image).display !== 'none')"
    assert browser.evaluate(f"{shown}.filter(image => !image.naturalWidth).map(image => image.src)") == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("shuffle", "reference/sequence"),
        ("augment", "howto/images"),
        ("FIFOQueue", "howto/queues"),
        ("DataLoader", "howto/porting"),
        ("resume", "howto/resume"),
        ("slow", "howto/slow"),
        ("tokenizer", "howto/language_models"),
        ("validation", "howto/training_and_validation"),
        ("prefetch", "reference/iteration"),
        ("csv", "reference/readers"),
    ],
)
def test_the_search_box_finds_what_people_look_for(browser, words, page):
    load(browser, SITE / "index.html")
    browser.evaluate(
        "(() => { const toggle = document.querySelector('[data-md-toggle=search]');"
        " toggle.checked = true; toggle.dispatchEvent(new Event('change'));"
        " const box = document.querySelector('input.md-search__input');"
        f" box.focus(); box.value = {json.dumps(words)};"
        " box.dispatchEvent(new Event('keyup', {bubbles: true})); })()"
    )
    browser.wait_until("document.querySelector('.md-search-result__link')")
    links = browser.evaluate(
        "Array.from(document.querySelectorAll('.md-search-result__item a:first-child'), a => a.href)"
    )
    assert any(f"{page}.html" in link for link in links[:4]), links
