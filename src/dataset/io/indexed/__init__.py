"""Random access to the records of files by number: indexes, the files in which they are saved, and the source node."""
