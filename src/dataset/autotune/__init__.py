"""Autotuner: reads the counters of a running pipeline's stages, and sets their knobs. No lower layer imports it."""

from dataset.lazy_imports import lazy_imports

__all__ = ["Measured", "untuned_advice"]

with lazy_imports():  # for statistics and advice, which most programs do not request
    from dataset.autotune.remedies import untuned_advice
    from dataset.autotune.report import Measured
