"""The iterator, the pass of a consumer, random access, and prefetching to a device."""

from dataset.lazy_imports import lazy_imports

__all__ = ["Envelope", "Headspace", "LiveSource", "Optional", "StatisticsCallback", "mapping_of", "resharding"]

with lazy_imports():  # parts of the iterator that most iterations do not use
    from dataset.runtime.iteration.headspace import Headspace
    from dataset.runtime.iteration.live_source import LiveSource
    from dataset.runtime.iteration.optional import Optional
    from dataset.runtime.iteration.statistics_callback import StatisticsCallback
    from dataset.runtime.state import resharding
    from dataset.runtime.state.envelope import Envelope
    from dataset.runtime.state.own_elements import mapping_of
