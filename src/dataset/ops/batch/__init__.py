"""Several elements as one, and back: batch, padded_batch, ragged batches, window, unbatch, rebatch."""
