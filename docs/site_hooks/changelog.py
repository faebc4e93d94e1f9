"""The changelog is a page of the site; its links lead to other pages, or become plain text (links.py)."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File


def on_files(files: Any, *, config: Any, **_: Any) -> None:
    """Called by MkDocs with the files of the site."""
    text = (Path(config["docs_dir"]).parent / "CHANGELOG.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\((?!\w+:)", "](../", text).replace("](../docs/", "](")
    files.append(File.generated(config, "changelog.md", content=text))
