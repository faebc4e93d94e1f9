"""Search order: guides and the reference come before pages that mention every operation."""

from typing import Any

_BOOSTS = {
    "howto/": 4.0,
    "tutorial.md": 4.0,
    "reference/queues.md": 0.5,  # its functions have the names of methods
    "reference/": 2.0,
    "comparison.md": 0.3,
    "benchmarks.md": 0.01,
    "decisions/": 0.01,
    "changelog.md": 0.01,
    "releasing.md": 0.01,
}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs with the text of each page; the text is not changed."""
    boost = next((boost for start, boost in _BOOSTS.items() if page.file.src_uri.startswith(start)), 1.0)
    page.meta["search"] = {"boost": boost}
    return markdown
