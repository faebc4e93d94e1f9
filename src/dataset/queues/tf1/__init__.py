"""The input functions and file readers of TensorFlow 1, which fill and read queues; for ported programs."""
