"""Tests of the built site in a headless browser: nothing is cut off, no picture is missing, and the search knows them.

They need the site, which `make docs` builds, and Chromium; CI has both.
"""

import json
import os
from pathlib import Path

import pytest

from support.browser import Browser, find_browser

SITE = Path(__file__).parents[1] / "site"
PAGES = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")

pytestmark = pytest.mark.skipif(
    "BROWSER_REQUIRED" not in os.environ and (find_browser() is None or not PAGES),
    reason="needs `make docs` and Chromium: apt-get install chromium",
)


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


def load(browser, page):
    browser.open(page.as_uri())
    browser.evaluate(
        "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"
    )


def test_there_is_a_site():
    assert len(PAGES) > 40


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
        ("shuffle", "transformations"),
        ("augment", "images"),
        ("FIFOQueue", "queues"),
        ("DataLoader", "porting"),
        ("resume", "resume"),
        ("slow", "slow"),
        ("tokenizer", "language_models"),
    ],
)
def test_the_search_index_has_the_words_that_people_use(words, page):
    text = (SITE / "search" / "search_index.js").read_text(encoding="utf-8")
    entries = json.loads(text[text.index("{") :].rstrip(";\n"))["docs"]
    found = {entry["location"] for entry in entries if words.lower() in (entry["title"] + entry["text"]).lower()}
    assert any(page in location for location in found), found
