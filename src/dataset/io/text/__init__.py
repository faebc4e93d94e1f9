"""Lines of text, and records of fixed length."""
