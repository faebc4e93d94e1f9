"""Rules that run columns instead of single elements, and the proofs of bytecode that they need."""
