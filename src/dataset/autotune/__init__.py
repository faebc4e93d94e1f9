"""The autotuner: reads what the stages of a running pipeline count, and sets their knobs. Nothing below imports it."""
