"""Links that lead out of docs/, to tests and sources, work on GitHub. On the site they become plain text."""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)#\s]+)[^)\s]*\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs with the text of each page."""
    folder = posixpath.dirname(page.file.src_uri)

    def leads_out(path: str) -> bool:
        return posixpath.normpath(posixpath.join(folder, path)).startswith("..")

    return _LINK.sub(lambda link: link[1] if leads_out(link[2]) else link[0], markdown)
