"""TFRecord files: frames and checksums, readers and writers, and indexes. Start with frames.py."""
