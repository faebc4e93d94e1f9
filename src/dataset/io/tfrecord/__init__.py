"""TFRecord files: their frames and checksums, the reader and the writer. Open frames.py first."""
