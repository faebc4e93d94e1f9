"""shuffle, and how its buffer is saved and resumed."""
