"""Resources of an iteration: its threads, signals, memory budget, and cores."""
