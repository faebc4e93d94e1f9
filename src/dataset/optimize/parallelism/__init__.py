"""Rules that add threads and read-ahead."""
