"""The site has the Markdown of its pages beside them, for coding assistants: llms.txt links to it."""

import shutil
from pathlib import Path
from typing import Any


def on_post_build(*, config: Any, **_: Any) -> None:
    """Called by MkDocs after the site is written."""
    docs = Path(config["docs_dir"])
    for page in docs.rglob("*.md"):
        shutil.copy(page, Path(config["site_dir"]) / page.relative_to(docs))
