"""Random numbers: seeds, epochs, streams, and the permutation of a range."""
