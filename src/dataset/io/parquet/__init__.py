"""Parquet reader.

Where to read next:

source.py      the node of ``from_parquet``, which reads many files
reader.py      the rows of one file, with a position that can be saved and restored
row_group.py        one row group as NumPy columns
parquet_file.py   an open file: its footer, its row groups as Arrow tables, and the handling of damage
footer.py      sizes and counts of column chunks
"""
