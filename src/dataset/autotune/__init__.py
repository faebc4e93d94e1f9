"""Autotuner: reads the counters of a running pipeline's stages, and sets their knobs. No lower layer imports it."""

from dataset.lazy_imports import lazy_imports

__all__ = ["Measured", "memory_file", "untuned_advice"]

with lazy_imports():  # for statistics, advice and files, which most programs do not use
    from dataset.autotune import memory_file
    from dataset.autotune.remedies import untuned_advice
    from dataset.autotune.report import Measured
