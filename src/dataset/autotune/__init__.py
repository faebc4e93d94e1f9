"""Autotuner: reads the counters of a running pipeline's stages, and sets their knobs. No lower layer imports it."""
