"""Live page: the statistics of a running pipeline over HTTP, for a browser, for Prometheus and for scripts.

It knows nothing of pipelines. What it serves comes from a ``SnapshotSource``.
"""

from dataset.lazy_imports import lazy_imports

__all__ = ["LivePage", "SnapshotFeed", "Telemetry", "shown_by_environment"]

with lazy_imports():  # http.server is needed only for pages
    from dataset.live.feed import SnapshotFeed
    from dataset.live.page_server import LivePage
    from dataset.live.process_page import shown_by_environment
    from dataset.live.telemetry import Telemetry
