"""Arrow tables as NumPy columns: the shared part of the Parquet and Arrow sources.

Where to read next:

    pyarrow_library.py     loading of pyarrow
    types.py     the component for a column of an Arrow type
    arrow_values.py   conversion of Arrow arrays to NumPy arrays, without a copy where possible
    requested_columns.py    the requested columns of a table and the structure of an element

These modules work on tables in memory; only source.py opens files.
"""
