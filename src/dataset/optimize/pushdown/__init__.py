"""Rules that move operations toward the source, so that fewer elements are computed or moved."""
