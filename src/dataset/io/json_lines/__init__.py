"""JSON Lines reader: one JSON object per line.

Where to read next:

    source.py    the node of ``JsonLinesDataset`` and ``from_json_lines``, which reads many files
    reader.py    the rows of one file, with a position that can be saved and restored
    columns.py   the columns of the rows: requested or inferred, and the conversion of parsed values
    parser.py    one line as Python values, by orjson or by the standard library, with the same results
"""
