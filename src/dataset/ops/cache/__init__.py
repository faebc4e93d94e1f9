"""cache in memory and in files, and what both share with snapshot."""
